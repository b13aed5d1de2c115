"""The data of CROWD's figures 3, 4, 7, 9, 10 and 11, and the plots on the command line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tropel import cli
from tropel.figures.cells import CellsPanel, draw_cells
from tropel.figures.congestion import CrowdAtBottleneck
from tropel.figures.crowd import (
    FIG7_HAZARDS,
    PAPER_RULE,
    PLAIN_COUNTS,
    best_moves,
    corner_goals,
    door_use,
    flow_panels,
    influence_panels,
    six_door_hall,
    value_iteration,
)
from tropel.figures.curves import Band, Curve, CurvesPanel, draw_curves
from tropel.figures.measurements import (
    crowd_in_the_middle,
    frame_rates,
    gamma_effect,
    neighbours_around,
    plan_times,
    speed_by_density,
)
from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.path_plans.bottlenecks import find_bottlenecks
from tropel.planning.path_plans.congestion import CongestionWatch
from tropel.planning.path_plans.model import PathPlans
from tropel.scenario import load_builtin
from tropel.scenario.schema import LayerSpec
from tropel.simulation import Simulation


def nobody(what: str, done: int, total: int) -> None:
    """Nobody listens."""


# Figure 3 -------------------------------------------------------------------------------------------------------


def sideways(panel: CellsPanel) -> float:
    """Mean step to the east of the moves that are best in and just west of the middle door of the east wall."""
    assert panel.moves is not None
    row, column, dx, _ = panel.moves.T
    near = (np.abs(row - 17) <= 2) & (column >= 23) & (column <= 26)
    return float(dx[near].mean())


def test_equal_moves_push_people_away_from_the_middle_door_and_the_root_of_two_leads_them_to_it() -> None:
    equal, rooted = flow_panels()
    assert equal.free.shape == (36, 36)
    assert sideways(equal) < 0.1
    assert sideways(rooted) > 0.6


@pytest.mark.parametrize("equal_moves", [False, True])
def test_best_moves_are_those_of_value_iteration(equal_moves: bool) -> None:
    free, goal = six_door_hall(36), corner_goals(36)[3]
    value, _ = value_iteration(free, goal, gamma=0.9, equal_moves=equal_moves)
    found: set[tuple[int, int, int, int]] = set()
    for row, column in zip(*np.nonzero(free & ~goal), strict=True):
        options = {}
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                blocked = not (free[row + dy, column] and free[row, column + dx] and free[row + dy, column + dx])
                if (dy or dx) and not blocked:
                    options[dx, dy] = value[row + dy, column + dx]
        best = max(options.values())
        found |= {(row, column, dx, dy) for (dx, dy), v in options.items() if v >= best * (1 - 1e-9)}
    moves = best_moves(PathPlan(free, goal, equal_moves=equal_moves))
    assert {tuple(move) for move in moves.tolist()} == found


# Figure 4 -------------------------------------------------------------------------------------------------------


def test_value_iteration_and_our_layers_have_the_same_values() -> None:
    free, goal = six_door_hall(60, wall=2), corner_goals(60)[0]
    value, sweeps = value_iteration(free, goal, gamma=0.9)
    layer = PathPlan(free, goal)
    np.testing.assert_allclose(value[free], np.exp(layer.log_value(0.9))[free], rtol=1e-9)
    assert sweeps > 60


def test_plan_times_are_measured_for_every_size() -> None:
    told: list[int] = []
    ours, theirs = plan_times((40, 80), lambda what, done, total: told.append(done))
    assert ours.shape == theirs.shape == (2,)
    assert (ours > 0).all()
    assert (theirs > 0).all()
    assert told == [0, 1]


# Figure 7 -------------------------------------------------------------------------------------------------------


def test_the_influence_of_hazards_is_that_of_equation_four_and_ends_at_walls() -> None:
    through, clipped = influence_panels()
    assert through.worth is not None
    assert clipped.worth is not None
    rows, columns = np.indices(through.free.shape)
    expected = np.ones(through.free.shape)
    for x, y, inner in FIG7_HAZARDS:
        away = np.hypot(0.4 * (columns + 0.5) - x, 0.4 * (rows + 0.5) - y)
        expected *= np.clip((away - inner) / (3.0 * inner), 0.0, 1.0)
    np.testing.assert_allclose(through.worth, expected, atol=1e-12)
    # North of the hall, behind its wall, the second hazard is felt only when nothing clips it.
    behind = (rows > 103) & (np.abs(0.4 * columns - FIG7_HAZARDS[1][0]) < 6.0)
    assert (through.worth[behind] < 0.9).sum() > 100
    assert (clipped.worth[behind] == 1.0).all()
    seen = clipped.worth < 1.0
    np.testing.assert_allclose(clipped.worth[seen], expected[seen], atol=1e-12)


# Figure 9 -------------------------------------------------------------------------------------------------------


def test_every_door_of_the_two_maps_is_a_bottleneck_of_its_width() -> None:
    terrain = load_builtin("crowd_fig2").build(threads=1).ground
    assert terrain is not None
    doors = [each for each in find_bottlenecks(terrain) if each.width < 10.0]
    assert [each.width for each in doors] == pytest.approx([4.4] * 6)
    middles = sorted((round(each.position[0], 1), round(each.position[1], 1)) for each in doors)
    assert middles == [(14.4, 17.8), (14.4, 27.4), (14.4, 37.0), (40.4, 17.8), (40.4, 27.4), (40.4, 37.0)]
    terrain = load_builtin("crowd_fig10").build(threads=1).ground
    assert terrain is not None
    assert [each.width for each in find_bottlenecks(terrain)] == pytest.approx([1.2, 4.8])


# Figure 10 ------------------------------------------------------------------------------------------------------


def alarms(crowd: CrowdAtBottleneck) -> int:
    return int((np.diff(np.append(False, crowd.congested).astype(int)) == 1).sum())


@pytest.mark.parametrize("seed", [1, 2])
def test_congestion_comes_and_goes_at_the_narrow_door_and_the_wide_one_takes_over(seed: int) -> None:
    watched, unwatched = door_use(PAPER_RULE, seed=seed), door_use(False, seed=seed)
    narrow, wide = watched.crowds
    assert alarms(narrow) >= 4
    assert not narrow.congested[-1]
    assert alarms(wide) == 0
    assert wide.counts.max() > 36, "more people than raise the alarm there when they are just counted"
    assert unwatched.crowds == []
    assert watched.share_of_b > unwatched.share_of_b + 0.06


def test_planning_around_the_wait_is_faster_than_the_papers_rule_and_than_no_avoidance() -> None:
    for seed in (1, 2, 3):
        planned, repelled, without = (door_use(rule, seed=seed).time for rule in (None, PAPER_RULE, False))
        assert planned < without < repelled


@pytest.mark.parametrize("seed", [1, 2])
def test_plain_counts_raise_false_alarms_at_the_wide_door(seed: int) -> None:
    plain, scaled = door_use(PLAIN_COUNTS, seed=seed), door_use(PAPER_RULE, seed=seed)
    assert alarms(plain.crowds[1]) >= 3
    assert alarms(scaled.crowds[1]) == 0
    # People are turned away from a door that has room: fewer use it, and all take longer.
    assert plain.share_of_b < scaled.share_of_b - 0.05
    assert plain.time > scaled.time


def test_without_an_overlap_of_the_watched_squares_the_first_false_alarm_is_gone() -> None:
    """Of those counted at B when it is congested first, the ones in A's square make the difference."""
    sim = _with_plain_counts()
    watch = _watch_of(sim)
    while not watch.congested[1]:
        sim.step()
    place = sim.agents.position
    narrow, wide = (np.array(each.position) for each in watch.bottlenecks)
    in_narrow, in_wide = (np.abs(place - middle).max(axis=1) <= 3.2 for middle in (narrow, wide))
    assert watch.counts[1] > PLAIN_COUNTS["high"]
    assert (in_wide & ~in_narrow).sum() <= PLAIN_COUNTS["high"]


def _with_plain_counts() -> Simulation:
    scenario = load_builtin("crowd_fig10")
    layer = LayerSpec.model_validate({"model": "path_plans", "congestion": PLAIN_COUNTS})
    return replace(scenario, spec=scenario.spec.model_copy(update={"planning": layer})).build()


def _watch_of(sim: Simulation) -> CongestionWatch:
    (planner,) = [layer for layer in sim.all_layers() if isinstance(layer, PathPlans)]
    assert planner.watch is not None
    return planner.watch


# Figure 11, gamma and density -----------------------------------------------------------------------------------


def test_crowds_of_all_sizes_stand_equally_dense_in_the_middle_of_the_map() -> None:
    for agents in (400, 1600):
        place = crowd_in_the_middle(agents, side=80.0, density=1.0, seed=0).agents.position
        assert len(place) == agents
        side = np.ptp(place, axis=0)
        assert side == pytest.approx([agents**0.5] * 2, abs=1.0)
        assert place.mean(axis=0) == pytest.approx([40.0, 40.0], abs=1.0)


def test_frame_rates_have_a_row_per_crowd_and_a_column_per_run() -> None:
    rates = frame_rates((40, 80), nobody, runs=2, frames=3, side=60)
    assert rates.shape == (2, 2)
    assert (rates > 0).all()


def test_a_low_gamma_packs_people_and_above_four_fifths_it_makes_no_difference() -> None:
    _, around = gamma_effect((0.1, 0.85, 0.95), nobody, runs=2)
    low, high, higher = around.mean(axis=1)
    assert low > 1.3 * high
    assert higher == pytest.approx(high, rel=0.1)


def test_neighbours_are_counted_around_everybody() -> None:
    sim = crowd_in_the_middle(40, side=20.0, density=4.0, seed=3)
    place = sim.agents.position
    apart = np.abs(place[:, None] - place).max(axis=2)
    expected = ((apart < 0.5).sum() - len(place)) / len(place)
    assert neighbours_around(sim) == pytest.approx(expected)


def test_a_few_people_walk_at_free_speed_and_a_dense_crowd_hardly_moves() -> None:
    few, dense = speed_by_density((0.05, 5.8), nobody, runs=1)[:, 0]
    assert few == pytest.approx(1.34, rel=0.02)
    assert dense < 0.3


# Pictures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["crowd_fig3", "crowd_fig7", "crowd_fig9"])
def test_plots_are_drawn_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["tropel", "plot", name, "-q"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    written = capsys.readouterr().out.split()[1::2]
    assert len(written) == (2 if name == "crowd_fig9" else 1)
    for file in written:
        with Image.open(tmp_path / file) as image:
            assert min(image.size) > 400


def test_a_panel_shows_walls_worth_and_moves_in_their_places(tmp_path: Path) -> None:
    free = np.ones((4, 4), dtype=np.bool_)
    free[0, 0] = False
    panel = CellsPanel(title="", free=free, worth=np.linspace(0, 1, 16).reshape(4, 4))
    path = draw_cells([panel], tmp_path / "cells.png", title="t", about="a", worth_means="worth")
    image = np.asarray(Image.open(path).convert("RGB"))
    cell = 700 // 4
    low, high = image[104 + 3 * cell + 60, 24 + cell + 60], image[104 + 60, 24 + 3 * cell + 60]
    assert tuple(image[104 + 3 * cell + 60, 24 + 60]) == (255, 255, 255)
    assert int(high.sum()) > int(low.sum())


def test_curves_are_drawn_with_their_errors(tmp_path: Path) -> None:
    x = np.array([1.0, 10.0, 100.0])
    curves = [Curve(name="ours", x=x, y=x, error=0.1 * x), Curve(name="theirs", x=x[:1], y=x[2:], joined=False)]
    panel = CurvesPanel(
        x="agents", y="rate", curves=curves, logarithmic=True, band=Band(name="band", x=(1.0, 2.0), y=(3.0, 6.0))
    )
    with Image.open(draw_curves([panel, panel], tmp_path / "curves.png", title="t", about="a")) as image:
        assert image.size[0] > 1400

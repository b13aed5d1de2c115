"""CROWD's scenes: what each mechanism does, and that it is gone when the mechanism is switched off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tropel.scenario import Scenario, load_builtin
from tropel.scenario.schema import LayerSpec
from tropel.simulation import Simulation

#: The middles of crowd_fig2's doors, its walls and its corners [m].
DOORS = np.array([(x, y) for y in (27.4, 17.8, 37.0) for x in (14.4, 40.4)])
MIDDLE_DOORS = (0, 1)
#: Of the stadium, which has four gates in each.
SIDES = ("north", "east", "south", "west")
HALL = (14.4, 40.4)
CORNERS = np.array([(0.0, 0.0), (54.8, 0.0), (0.0, 54.8), (54.8, 54.8)])


def changed(name: str, **update: Any) -> Scenario:
    scenario = load_builtin(name)
    return replace(scenario, spec=scenario.spec.model_copy(update=update))


def with_planner(name: str, **parameters: Any) -> Scenario:
    return changed(name, planning=LayerSpec.model_validate({"model": "path_plans", **parameters}))


# Figure 2 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaving:
    """How people left the hall of figure 2."""

    through_the_middle: float  #: share of all who took a middle door
    on_the_diagonal: float  #: share of the steps outside that were within two cells of the diagonal of their corner
    arrived: int


def leaving(scenario: Scenario, *, seed: int) -> Leaving:
    sim = scenario.build(seed=seed)
    door = np.full(len(sim.agents), -1)
    off: list[NDArray[np.float64]] = []
    while len(sim.agents) and sim.time < scenario.spec.limit:
        sim.step()
        ids, place = sim.agents.id, sim.agents.position
        outside = (place[:, 0] < HALL[0]) | (place[:, 0] > HALL[1])
        new = outside & (door[ids] < 0)
        door[ids[new]] = np.linalg.norm(place[new, None] - DOORS, axis=2).argmin(axis=1)
        to_corner = np.abs(place - CORNERS[sim.agents.goal])[outside]
        off.append(np.abs(to_corner[:, 0] - to_corner[:, 1]))
    return Leaving(
        through_the_middle=float(np.isin(door, MIDDLE_DOORS).mean()),
        on_the_diagonal=float((np.concatenate(off) < 0.9).mean()),
        arrived=len(door) - len(sim.agents),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_with_the_root_of_two_people_use_the_middle_doors_and_do_not_line_up(seed: int) -> None:
    outcome = leaving(load_builtin("crowd_fig2"), seed=seed)
    assert outcome.arrived == 500
    assert outcome.through_the_middle > 0.06
    assert outcome.on_the_diagonal < 0.25


@pytest.mark.parametrize("seed", [1, 2])
def test_with_equal_moves_people_line_up_and_the_middle_doors_stay_empty(seed: int) -> None:
    outcome = leaving(load_builtin("crowd_fig2_mdp"), seed=seed)
    assert outcome.arrived == 500
    assert outcome.through_the_middle < 0.02
    assert outcome.on_the_diagonal > 0.45


def test_both_scenes_of_figure_two_differ_in_the_planner_alone() -> None:
    one, other = load_builtin("crowd_fig2").spec, load_builtin("crowd_fig2_mdp").spec
    assert other.planning.model_extra == {"equal_moves": True}
    told = {"name", "title", "about", "planning"}
    assert one.model_dump(exclude=told) == other.model_dump(exclude=told)


# Figure 5 -------------------------------------------------------------------------------------------------------


def from_the_middle(sim: Simulation) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm(sim.agents.position - 27.4, axis=1))


def density_by_distance(scenario: Scenario, seed: int, edges: list[float]) -> NDArray[np.float64]:
    """Living people per square metre between these distances from the middle, from three seconds after the fall."""
    sim = scenario.build(seed=seed)
    counts, frames = np.zeros(len(edges) - 1), 0
    while sim.time < 14.0:
        sim.step()
        if sim.time > 6.0:
            counts += np.histogram(from_the_middle(sim)[sim.agents.dead == 0], edges)[0]
            frames += 1
    return np.asarray(counts / frames / (np.pi * np.diff(np.array(edges) ** 2)))


def test_there_is_a_ring_of_free_space_around_the_rubble() -> None:
    (event,) = load_builtin("crowd_fig5").spec.events
    edges = [event.inner, 2.0 * event.inner, 4.0 * event.inner]
    for seed in (1, 2, 3, 4):
        near, outside = density_by_distance(load_builtin("crowd_fig5"), seed, edges)
        crowded, _ = density_by_distance(changed("crowd_fig5", events=[]), seed, edges)
        assert outside > 0.7
        assert near < 0.25 * outside
        assert near < 0.25 * crowded, "where people would walk without it"


def test_without_its_influence_people_crowd_around_the_rubble() -> None:
    (event,) = load_builtin("crowd_fig5").spec.events
    touching = changed("crowd_fig5", events=[event.model_copy(update={"intensity": 0.0})])
    edges = [event.inner, 2.0 * event.inner, 4.0 * event.inner]
    near, outside = density_by_distance(touching, 1, edges)
    assert near > outside


def test_rubble_kills_who_is_below_it_and_everybody_else_gets_out() -> None:
    scenario = load_builtin("crowd_fig5")
    (event,) = scenario.spec.events
    sim = scenario.build()
    sim.run(until=event.at + 2.0 * scenario.spec.dt)
    dead = set(sim.agents.id[sim.agents.dead > 0].tolist())
    assert 5 <= len(dead) <= 40
    assert set(sim.agents.id[from_the_middle(sim) <= event.inner].tolist()) == dead
    sim.run(until="empty", limit=scenario.spec.limit)
    assert set(sim.agents.id.tolist()) == dead, "only those whom it fell on stay"


# A fire before one of four exits --------------------------------------------------------------------------------


def exits_used(scenario: Scenario) -> tuple[Mapping[str, int], Simulation]:
    sim = scenario.build()
    summary = sim.run(until="empty", limit=scenario.spec.limit)
    return summary.exits, sim


def test_a_fire_turns_people_away_from_its_exit_and_all_who_live_get_out() -> None:
    scenario = load_builtin("four_exit_fire")
    quiet, _ = exits_used(changed("four_exit_fire", events=[]))
    burning, sim = exits_used(scenario)
    assert sum(quiet.values()) == 2000
    assert max(quiet.values()) - min(quiet.values()) < 60
    assert quiet["east"] - burning["east"] > 100
    assert burning["north"] + burning["south"] > quiet["north"] + quiet["south"] + 60
    (event,) = scenario.spec.events
    assert sum(burning.values()) + len(sim.agents) == 2000
    assert sim.agents.dead.all()
    assert 0 < len(sim.agents) < 100
    assert (np.linalg.norm(sim.agents.position - event.position, axis=1) <= event.largest).all()


def test_it_breaks_out_when_half_of_the_people_are_out() -> None:
    scenario = load_builtin("four_exit_fire")
    sim = scenario.build()
    sim.run(until=scenario.spec.events[0].at)
    assert len(sim.agents) == pytest.approx(1000, abs=60)


def test_without_looking_for_ways_around_it_people_stay_before_the_fire() -> None:
    (event,) = load_builtin("four_exit_fire").spec.events
    _, sim = exits_used(changed("four_exit_fire", events=[event.model_copy(update={"replan": False})], limit=120.0))
    assert (sim.agents.dead == 0).sum() > 50


# The stadium ----------------------------------------------------------------------------------------------------


def fewer(name: str, count: int) -> Scenario:
    return changed(name, groups=[load_builtin(name).spec.groups[0].model_copy(update={"count": count})])


def test_a_tenth_of_the_stadium_gets_out_on_all_sides() -> None:
    scenario = fewer("stadium", 5000)
    sim = scenario.build()
    summary = sim.run(until="empty", limit=scenario.spec.limit)
    assert len(sim.agents) == 0
    assert len(summary.exits) == 16
    sides = {side: sum(n for name, n in summary.exits.items() if name.startswith(side)) for side in SIDES}
    assert all(0.15 < count / 5000 < 0.35 for count in sides.values())


def test_the_stadium_is_the_same_on_one_thread_and_on_two() -> None:
    hashes = set()
    for threads in (1, 2):
        sim = fewer("stadium", 20_000).build(threads=threads)
        sim.run(until=12.0)
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


@pytest.mark.long
def test_fifty_thousand_people_get_out_of_the_stadium_in_a_quarter_of_an_hour() -> None:
    scenario = load_builtin("stadium")
    sim = scenario.build()
    assert len(sim.agents) == 50_000
    summary = sim.run(until="empty", limit=scenario.spec.limit)
    assert len(sim.agents) == 0
    assert 300.0 < summary.evacuation_time < 900.0
    assert len(summary.exits) == 16
    assert min(summary.exits.values()) > 1000


def test_the_plan_of_the_stadium_is_what_the_example_draws() -> None:
    import importlib.util

    root = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location("stadium_example", root / "examples" / "08_stadium.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    stored = np.asarray(Image.open(load_builtin("stadium").folder / "stadium.png").convert("RGB"))
    np.testing.assert_array_equal(stored, example.stadium())

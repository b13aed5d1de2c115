"""The standard tests pass where they should, and each of them can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import broken_models as broken
import numpy as np
import pytest
import shapely
from PIL import Image
from rich.console import Console

from tropel import Group, Simulation, World, verification
from tropel.contracts import Guidance
from tropel.errors import ParameterError
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.local.seek import Seek
from tropel.verification import corner, corridor, doors, fundamental_diagram
from tropel.verification.walkers import Gates

MODELS = [CollisionFreeSpeed, Seek]


# RiMEA 1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_forty_metres_take_as_long_as_the_speed_says(model: Any) -> None:
    verdict = corridor.check(model, model_name="m")
    assert verdict.passed
    assert not verdict.failed
    assert verdict.measured["time_s"] == pytest.approx(40.0 / 1.33, abs=0.01)


@pytest.mark.parametrize("model", [broken.Sprinter, broken.Dawdler, broken.Stander])
def test_who_is_too_fast_too_slow_or_stands_fails_in_the_corridor(model: Any) -> None:
    verdict = corridor.check(model, model_name="m")
    assert verdict.failed
    assert verdict.outcome == "FAILED"


def test_who_never_arrives_has_no_time() -> None:
    verdict = corridor.check(broken.Stander, model_name="m")
    assert verdict.measured["time_s"] is None
    assert verdict.said == "only 0.0 m after 60 s"


# RiMEA 4 --------------------------------------------------------------------------------------------------------------


def test_weidmanns_curve_has_its_known_points() -> None:
    assert fundamental_diagram.weidmann(0.01) == pytest.approx(1.34)
    assert fundamental_diagram.weidmann(5.4) == pytest.approx(0.0, abs=1e-12)
    assert fundamental_diagram.weidmann(8.0) == 0.0
    density = np.linspace(0.1, 5.4, 2000)
    flow = density * fundamental_diagram.weidmann(density)
    # Weidmann gives a capacity of about 1.22 per metre and second at 1.75 per square metre.
    assert flow.max() == pytest.approx(1.22, abs=0.01)
    assert density[flow.argmax()] == pytest.approx(1.75, abs=0.02)


@pytest.mark.parametrize("density", fundamental_diagram.DENSITIES)
def test_the_corridor_is_filled_as_asked_and_nobody_overlaps(density: float) -> None:
    places = fundamental_diagram._filled(density, 1)
    assert len(places) == pytest.approx(density * 240.0, rel=0.08)
    tree = shapely.STRtree(shapely.points(places))
    pairs = tree.query(shapely.points(places), predicate="dwithin", distance=0.4 - 1e-9)
    assert (pairs[0] == pairs[1]).all()
    assert places[:, 1].min() >= 0.2
    assert places[:, 1].max() <= 3.8


def test_free_walkers_are_measured_at_their_speed() -> None:
    measured = fundamental_diagram.measure(broken.Ghost, 1.0, seconds=3.0)
    assert measured.speed == pytest.approx(1.34)
    assert measured.density == pytest.approx(1.0, rel=0.1)


def test_speed_falls_with_density_for_a_model_that_minds_others() -> None:
    verdict = fundamental_diagram.check(CollisionFreeSpeed, model_name="m", densities=(0.5, 2.0, 4.0))
    speeds = verdict.measured["speed_m_per_s"]
    assert speeds[0] > 2 * speeds[1] > 3 * speeds[2]
    assert verdict.passed


def test_walkers_who_mind_nobody_are_outside_the_range_of_weidmann() -> None:
    verdict = fundamental_diagram.check(broken.Ghost, model_name="m", densities=(0.5, 3.0))
    assert not verdict.passed
    assert not verdict.failed
    assert verdict.outcome == "outside the range"
    assert "1 of 2 densities" in verdict.said


def test_a_speed_that_rises_with_density_is_noticed_even_near_the_curve() -> None:
    verdict = fundamental_diagram.check(broken.Uphill, model_name="m", densities=(1.0, 1.5))
    assert "speed does not fall with density" in verdict.said
    assert not verdict.passed


# RiMEA 6 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_twenty_people_get_round_the_corner(model: Any) -> None:
    verdict = corner.check(model, model_name="m")
    assert verdict.passed
    assert verdict.measured["arrived"] == 20
    assert verdict.measured["moves_through_walls"] == 0


def test_who_stands_is_lost() -> None:
    verdict = corner.check(broken.Stander, model_name="m")
    assert verdict.failed
    assert verdict.said.startswith("0 of 20 arrived")


def test_a_jump_over_the_wall_is_noticed_even_if_all_arrive() -> None:
    verdict = corner.check(broken.Jumper, model_name="m")
    assert verdict.failed
    assert verdict.measured["arrived"] == 20
    assert verdict.measured["moves_through_walls"] == 1


def test_a_move_is_looked_at_all_along_not_only_at_its_ends() -> None:
    inside = np.array([[5.0, 1.0], [9.5, 1.9], [11.0, 1.0]])
    assert corner.crossings(inside, np.array([[9.0, 1.0], [11.0, 1.9], [11.0, 9.0]])) == 0
    assert corner.crossings(inside, np.array([[11.0, 5.0], [10.5, 2.9], [11.0, 9.0]])) == 2


# Doors ----------------------------------------------------------------------------------------------------------------


def test_the_flow_is_that_of_the_middle_part_of_the_crowd() -> None:
    # One a second, but the first come all at once.
    times = np.concatenate([np.full(20, 3.0), 3.0 + np.arange(1.0, 81.0)])
    assert doors.flow(times, 83.0, people=100) == pytest.approx(1.0)
    assert doors.flow(times[:50], 83.0, people=100) == pytest.approx(30 / 80)
    assert doors.flow(times[:5], 83.0, people=100) == 0.0


def test_a_wider_door_lets_more_people_through() -> None:
    verdict = doors.check(CollisionFreeSpeed, model_name="m", widths=(0.8, 1.6), seeds=(0,), people=60)
    narrow, wide = verdict.measured["flow_per_s"]
    assert wide > 1.5 * narrow
    assert verdict.measured["stuck"] == 0


def test_walkers_who_mind_nobody_flow_faster_than_people() -> None:
    verdict = doors.check(broken.Ghost, model_name="m", widths=(1.2,), seeds=(0,), people=60)
    assert not verdict.passed
    assert verdict.measured["specific_flow_per_m_s"][0] > doors.MOST


def test_a_crowd_that_is_stuck_is_said_to_be() -> None:
    verdict = doors.check(broken.Stander, model_name="m", widths=(1.2,), seeds=(0,), people=40, patience=2.0)
    assert not verdict.passed
    assert "1 of 1 crowds got stuck" in verdict.said
    assert verdict.measured["flow_per_s"] == [0.0]


# The planner of the scenes --------------------------------------------------------------------------------------------


def test_walkers_aim_between_the_posts_of_the_first_gate_ahead_then_onward() -> None:
    gates = Gates(((4.0, 3.0), (4.0, 1.0)), ((8.0, 6.0), (8.0, 4.0)), onward=(0.0, 2.0))
    places = [(1.0, 2.0), (1.0, 8.0), (4.0, 2.0), (5.0, 5.0), (9.0, 1.0)]
    sim = Simulation(World(bounds=(0, 0, 12, 12)), Group("a", positions=places, goal="none"), planning=gates)
    out = Guidance(directions=np.full((5, 2), 9.0))
    gates.direct(replace(sim.moment(), members=np.arange(4)), out)
    aim = np.array([3.0, -5.3]) / np.hypot(3.0, 5.3)
    np.testing.assert_allclose(out.directions, [(1, 0), aim, (1, 0), (1, 0), (9, 9)], atol=1e-12)
    gates.direct(replace(sim.moment(), members=np.array([4])), out)
    np.testing.assert_allclose(out.directions[4], (0, 1))


# All together ---------------------------------------------------------------------------------------------------------


def test_run_gives_a_verdict_and_a_picture_for_each_test_and_model(tmp_path: Path) -> None:
    heard: list[tuple[int, str]] = []
    verdicts = list(
        verification.run(
            models=["seek", "collision_free_speed"],
            tests=["rimea_1", "rimea_6"],
            out=tmp_path / "new",
            told=lambda done, what: heard.append((done, what)),
        )
    )
    assert [(v.name, v.model) for v in verdicts] == [
        (test, model) for test in ("rimea_1", "rimea_6") for model in ("seek", "collision_free_speed")
    ]
    assert [done for done, _ in heard] == [0, 1, 2, 3]
    for verdict in verdicts:
        assert verdict.picture is not None
        with Image.open(verdict.picture) as picture:
            assert picture.width == 900
            assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 20
        json.dumps(verdict.json())
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(verification.verdict_table(verdicts))
    assert console.export_text().count("passed") == 4


def test_the_pictures_of_measurements_are_drawn(tmp_path: Path) -> None:
    fundamental_diagram.check(broken.Ghost, model_name="m", densities=(0.5,), picture=tmp_path / "a.png")
    doors.check(broken.Ghost, model_name="m", widths=(1.2,), seeds=(0, 1), people=20, picture=tmp_path / "b.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png"]


def test_all_models_that_scenario_files_know_are_verified_unless_told_otherwise() -> None:
    assert {"seek", "collision_free_speed"} <= set(verification.model_names())
    assert verification.names() == ["rimea_1", "rimea_4", "rimea_6", "doors"]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"tests": ["rimea_2"]}, "unknown verification test 'rimea_2'; did you mean"),
        ({"models": ["sek"]}, "no steering model 'sek'; did you mean 'seek'"),
        ({"models": ["tropel.nothing:Here"]}, "cannot import 'tropel.nothing:Here'"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(what: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        next(verification.run(**what))


def verify(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "tropel.cli", "verify", "-q", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, env=environment, check=False)


def test_the_command_prints_json_and_ends_well_when_all_criteria_hold(tmp_path: Path) -> None:
    done = verify("--model", "seek", "--test", "rimea_1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (verdict,) = json.loads(done.stdout)
    assert verdict["outcome"] == "passed"
    assert verdict["measured"]["time_s"] == pytest.approx(30.08, abs=0.01)
    assert (tmp_path / "out" / "verify" / "rimea_1-seek.png").exists()


def test_the_command_ends_with_1_when_a_criterion_fails(tmp_path: Path) -> None:
    done = verify("--model", "broken_models:Sprinter", "--test", "rimea_1", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "Traceback" not in done.stderr
    assert (tmp_path / "o" / "rimea_1-Sprinter.png").exists()

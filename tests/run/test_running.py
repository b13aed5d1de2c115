"""Runs: when they stop, what they say, and what is left on disk when they are interrupted or fail."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import CollisionFreeSpeed, Group, Simulation, Source, Target, World, events, read_trajectory
from tropel.agents.state import Steered
from tropel.contracts import Model, Moment
from tropel.errors import EventError, ModelError, ParameterError
from tropel.run.stages import STAGES

HALL = shapely.box(0, 0, 20, 10)


def hall() -> World:
    return World(HALL, exits={"east": shapely.box(18, 0, 20, 10)}, doors={"d": [(15, 0), (15, 1)]})


def simulation(count: int = 10, **more: Any) -> Simulation:
    return Simulation(hall(), Group("a", count=count, region=shapely.box(1, 1, 8, 9)), dt=0.1, **more)


class RaisesAt(Model):
    """A user's model with a mistake that shows at one step only."""

    def __init__(self, step: int, *, velocity: float = 0.5) -> None:
        self.step = step
        self.velocity = velocity

    def steer(self, moment: Moment, out: Steered) -> None:
        if moment.step == self.step:
            raise RuntimeError("forgot a case")
        out.velocity[moment.members, 0] = self.velocity


# When it stops ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("until", "steps"), [(0.3, 3), (0.0, 0), (1.0, 10), (0.25, 3), (2, 20), (np.float64(0.5), 5)])
def test_until_a_time_means_that_many_steps(until: Any, steps: int) -> None:
    summary = simulation().run(until=until)
    assert summary.steps == steps
    assert summary.simulated_time == steps * 0.1
    assert summary.reason == "the time is up"


@pytest.mark.parametrize("until", [np.int64(1), np.float32(1.0), 1])
def test_until_may_be_any_kind_of_number(until: Any) -> None:
    assert simulation().run(until=until).steps == 10


def test_a_run_can_be_continued_and_a_time_that_is_over_means_no_step() -> None:
    sim = simulation()
    assert sim.run(until=0.5).steps == 5
    assert sim.run(until=0.3).steps == 0
    assert sim.run(until=1.5).steps == 10
    assert sim.time == pytest.approx(1.5)
    through = simulation()
    through.run(until=1.5)
    assert sim.state_hash() == through.state_hash()


def test_until_empty_ends_when_the_last_one_has_left() -> None:
    sim = simulation()
    summary = sim.run(until="empty", limit=60.0)
    assert summary.reason == "everybody has left"
    assert summary.remaining == 0
    assert summary.evacuated == 10
    assert summary.exits == {"east": 10}
    # People leave when they reach the exit, and are seen there for a moment.
    assert summary.simulated_time - summary.evacuation_time == pytest.approx(0.65, abs=sim.dt)
    assert summary.mean_exit_time is not None
    assert summary.mean_exit_time <= summary.evacuation_time


def test_until_empty_waits_for_sources_and_for_events_that_bring_people() -> None:
    region = shapely.box(10, 1, 14, 9)
    source = Simulation(hall(), Source("late", rate=2.0, region=region, begin=3.0, total=4), dt=0.1)
    assert source.run(until="empty", limit=60.0).evacuated == 4
    assert source.time > 5.0
    event = Simulation(hall(), Group("a", count=0), dt=0.1)
    event.at(4.0, events.AddAgents(group="a", count=2, region=None))
    summary = event.run(until="empty", limit=60.0)
    assert summary.evacuated == 2
    assert summary.simulated_time > 4.0


def test_the_limit_ends_a_run_that_would_go_on() -> None:
    sim = Simulation(hall(), Group("a", count=3, goal="none", region=shapely.box(1, 1, 8, 9)), dt=0.1)
    summary = sim.run(until="empty", limit=2.0)
    assert summary.reason == "the time is up"
    assert summary.steps == 20
    assert summary.remaining == 3
    assert summary.evacuation_time is None
    assert simulation().run(limit=1.0).steps == 10
    assert simulation().run(until=5.0, limit=1.0).steps == 10
    assert simulation().run(until=1.0, limit=5.0).steps == 10


def test_a_predicate_ends_a_run_as_soon_as_it_holds() -> None:
    sim = simulation()
    summary = sim.run(until=lambda s: bool((s.agents.position[:, 0] > 9.0).any()), limit=60.0)
    assert summary.reason == "the condition to stop holds"
    assert (sim.agents.position[:, 0] > 9.0).any()
    assert simulation().run(until=lambda s: True, limit=60.0).steps == 0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "say when to stop"),
        ({"until": "empty"}, "give a limit in seconds too"),
        ({"until": lambda s: False}, "give a limit in seconds too"),
        ({"until": "emtpy", "limit": 1.0}, "until is a time in seconds, 'empty' or a predicate"),
        ({"until": [1.0], "limit": 1.0}, "until is a time in seconds"),
        ({"until": -1.0}, "until must be a finite number"),
        ({"until": math.nan}, "until must be a finite number"),
        ({"until": math.inf}, "until must be a finite number"),
        ({"limit": 0.0}, "limit must be a positive number"),
        ({"limit": -3.0}, "limit must be a positive number"),
        ({"limit": math.nan}, "limit must be a positive number"),
        ({"until": 1.0, "checkpoint_every": 0.0}, "checkpoint_every must be a positive number"),
        ({"until": 1.0, "checkpoint_every": math.nan}, "checkpoint_every must be a positive number"),
    ],
)
def test_a_run_without_a_sensible_end_is_refused_before_anything_happens(
    fields: dict[str, Any], says: str, tmp_path: Path
) -> None:
    sim = simulation()
    with pytest.raises(ParameterError, match=says):
        sim.run(record=tmp_path / "never.sqlite", **fields)
    assert sim.step_number == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fps", [0.0, -1.0, math.nan, math.inf])
def test_a_frame_rate_that_is_none_is_refused_before_anything_is_written(fps: float, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="fps must be a positive number"):
        simulation().run(until=1.0, record=tmp_path / "never.sqlite", fps=fps)
    assert not list(tmp_path.iterdir())


# What it says -------------------------------------------------------------------------------------------------------


def test_the_summary_is_plain_data_and_a_table() -> None:
    from rich.console import Console

    summary = simulation(title="the hall", seed=4).run(until="empty", limit=60.0)
    plain = json.loads(json.dumps(summary.as_dict()))
    assert plain["title"] == "the hall"
    assert plain["seed"] == 4
    assert plain["agents"] == plain["evacuated"] == 10
    assert plain["agent_steps"] <= 10 * plain["steps"]
    assert plain["agent_steps_per_second"] > 0
    assert list(plain["stages"]) == list(STAGES)
    console = Console(record=True, width=100, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(summary.table())
    text = console.export_text()
    for word in ("the hall", "agents", "evacuated", "through east", "evacuation time", "integrate"):
        assert word in text


def test_agent_steps_count_everybody_who_was_moved() -> None:
    sim = Simulation(hall(), Group("a", count=7, goal="none", region=shapely.box(1, 1, 8, 9)), dt=0.1)
    assert sim.run(until=1.0).agent_steps == 70


def test_progress_is_told_after_every_step() -> None:
    seen: list[int] = []
    simulation().run(until=0.5, progress=lambda s: seen.append(s.step_number))
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_zero_agents_make_a_run_with_a_readable_trajectory(name: str, tmp_path: Path) -> None:
    sim = Simulation(hall(), [], dt=0.1)
    summary = sim.run(until=1.0, record=tmp_path / name)
    assert summary.agents == 0
    assert summary.agent_steps == 0
    with read_trajectory(tmp_path / name) as trajectory:
        assert len(trajectory.ids()) == 0
        assert trajectory.summary is not None
    assert Simulation(hall(), [], dt=0.1).run(until="empty", limit=5.0).steps == 0


# When it fails ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_model_that_raises_leaves_a_closed_trajectory_with_everything_up_to_then(name: str, tmp_path: Path) -> None:
    sim = simulation(local=RaisesAt(23))
    with pytest.raises(ModelError, match=r"step 23 \(t = 2\.3 s\), stage 'local': RuntimeError: forgot a case"):
        sim.run(until=10.0, record=tmp_path / name, checkpoint=tmp_path / "c.ckpt", checkpoint_every=1.0)
    assert not sim.observers
    with read_trajectory(tmp_path / name) as trajectory:
        assert trajectory.frames.tolist() == list(range(24))
        assert trajectory.summary is None
        last = trajectory.frame(23)
        np.testing.assert_allclose(last.position, sim.agents.position)
    fresh = simulation(local=RaisesAt(23))
    fresh.restore(tmp_path / "c.ckpt")
    assert fresh.step_number == 20


def test_a_velocity_that_is_not_a_number_is_named_and_the_trajectory_is_readable(tmp_path: Path) -> None:
    sim = simulation(local=RaisesAt(-1, velocity=math.nan))
    with pytest.raises(ModelError, match=r"step 0 .*agent 0 .*not finite"):
        sim.run(until=10.0, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        assert trajectory.frames.tolist() == [0]


def test_an_event_that_fails_leaves_a_readable_trajectory(tmp_path: Path) -> None:
    sim = simulation()
    sim.at(0.4, lambda sim: None)  # may have added anything
    sim.at(0.5, events.RemoveObstacle(name="nothing"))
    with pytest.raises(EventError, match=r"remove_obstacle.* at t = 0\.5 s"):
        sim.run(until=10.0, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        assert trajectory.frames.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("where", ["until", "progress"])
def test_a_predicate_or_callback_that_raises_leaves_a_readable_trajectory_and_a_checkpoint(
    where: str, tmp_path: Path
) -> None:
    def fails(sim: Simulation) -> bool:
        if sim.step_number == 7:
            raise KeyError("who?")
        return False

    sim = simulation()
    with pytest.raises(KeyError):
        sim.run(limit=5.0, record=tmp_path / "run.sqlite", checkpoint=tmp_path / "c.ckpt", **{where: fails})
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        assert trajectory.frames.tolist() == list(range(8))
    fresh = simulation()
    fresh.restore(tmp_path / "c.ckpt")
    assert fresh.step_number == 7


# Ctrl-C -------------------------------------------------------------------------------------------------------------

ENDLESS = """
import sys
import shapely
from tropel import Group, Model, Simulation, World

class Stuck(Model):
    def __init__(self, at):
        self.at = at
    def steer(self, moment, out):
        out.velocity[moment.members] = (0.3, 0.1)
        if moment.step == self.at:
            print("stuck", flush=True)
            while True:
                pass

directory, stuck_at = sys.argv[1], int(sys.argv[2])
world = World(shapely.box(0, 0, 20, 10))
sim = Simulation(world, Group("a", count=10), local=Stuck(stuck_at), dt=0.1)

def tell(sim):
    if sim.step_number == 40:
        print("running", flush=True)

sim.run(
    until=1e9, record=directory + "/run.sqlite", checkpoint=directory + "/c.ckpt", checkpoint_every=1e6, progress=tell
)
print("finished", flush=True)
"""


def start(tmp_path: Path, *, stuck_at: int) -> subprocess.Popen[str]:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), str(stuck_at)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def test_ctrl_c_keeps_trajectory_and_checkpoint_and_is_not_a_success(tmp_path: Path) -> None:
    with start(tmp_path, stuck_at=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "running"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "finished" not in out
    assert "KeyboardInterrupt" in err
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        frames = trajectory.frames.tolist()
        assert frames == list(range(len(frames)))
        assert len(frames) > 40
        assert len(trajectory.frame(frames[-1]).id) == 10
        assert trajectory.summary is None
        last = trajectory.frame(frames[-1]).position
    from tropel.recording.checkpoint import load_checkpoint

    arrays, meta = load_checkpoint(tmp_path / "c.ckpt")
    assert meta["step"] == frames[-1]
    np.testing.assert_allclose(arrays["agents/position"], last)


def test_a_second_ctrl_c_ends_a_model_that_hangs_and_the_trajectory_is_readable(tmp_path: Path) -> None:
    with start(tmp_path, stuck_at=30) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "stuck"
        for _ in range(100):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                continue
    assert process.returncode != 0
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        assert trajectory.frames.tolist() == list(range(31))


def test_after_a_run_ctrl_c_is_what_it_was_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    simulation().run(until=0.3)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ModelError):
        simulation(local=RaisesAt(1)).run(until=1.0)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_in_another_thread_works_and_gives_the_same() -> None:
    hashes: list[str] = []
    thread = threading.Thread(target=lambda: hashes.append(simulation().run(until=1.0).state_hash))
    thread.start()
    thread.join()
    assert hashes == [simulation().run(until=1.0).state_hash]


# Checkpoints --------------------------------------------------------------------------------------------------------


def test_checkpoints_are_written_on_the_way_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "c.ckpt"
    steps: list[int] = []

    def look(sim: Simulation) -> None:
        if path.exists():
            fresh = simulation()
            fresh.restore(path)
            if fresh.step_number not in steps:
                steps.append(fresh.step_number)

    simulation().run(until=1.7, checkpoint=path, checkpoint_every=0.5, progress=look)
    fresh = simulation()
    fresh.restore(path)
    assert steps == [5, 10, 15]
    assert fresh.step_number == 17


def test_a_run_that_goes_on_from_a_checkpoint_ends_like_one_that_never_stopped(tmp_path: Path) -> None:
    through = simulation()
    through.run(until=4.0, record=tmp_path / "through.sqlite")
    first = simulation()
    first.run(until=1.5, checkpoint=tmp_path / "c.ckpt", record=tmp_path / "halves.sqlite")
    second = simulation()
    second.restore(tmp_path / "c.ckpt")
    assert second.run(until=4.0, record=tmp_path / "halves.sqlite").steps == 25
    assert second.state_hash() == through.state_hash()
    with read_trajectory(tmp_path / "through.sqlite") as whole, read_trajectory(tmp_path / "halves.sqlite") as halves:
        assert whole.frames.tolist() == halves.frames.tolist()
        for name, column in whole.table().items():
            np.testing.assert_array_equal(column, halves.table()[name])


def test_the_summary_says_when_half_and_nearly_all_had_left_and_how_fast() -> None:
    """Ten people on a line, two metres apart, leave two seconds apart."""
    world = World(bounds=(0, 0, 40, 4), targets={"gate": Target(position=(30, 2), radius=1.0, absorbs=True)})
    places = [(27.5 - 2 * k, 2.0) for k in range(10)]
    line = Group("line", positions=places, goal="gate", desired_speed=1.0, radius=0.1)
    summary = Simulation(world, line, local=CollisionFreeSpeed(), dt=0.1).run(until="empty", limit=60.0)
    assert summary.evacuated == 10
    assert summary.flows["gate"] == pytest.approx(0.5, rel=0.02)
    assert summary.left_50 is not None
    assert summary.left_95 == summary.evacuation_time
    assert summary.left_95 - summary.left_50 == pytest.approx(10.0, rel=0.02)


def test_a_summary_without_departures_shows_no_shares() -> None:
    sim = simulation()
    summary = sim.run(until=0.2)
    assert (summary.left_50, summary.left_95, summary.flows) == (None, None, {})
    assert summary.table().row_count

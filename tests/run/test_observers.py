"""Observers: what they are told, in which order, when, and what happens when one of them fails."""

from __future__ import annotations

import copy
import doctest
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Group, Hazard, Simulation, World, events, read_trajectory
from tropel.errors import ModelError, ParameterError
from tropel.run import observers
from tropel.run.observers import Every, Observer, Observers

HALL = shapely.box(0, 0, 20, 10)


def simulation(**world: Any) -> Simulation:
    return Simulation(
        World(HALL, doors={"d": [(15, 0), (15, 1)]}, **world),
        Group("people", positions=[(3.0, 3.0), (6.0, 6.0)], goal="none"),
        dt=0.1,
        threads=1,
    )


class Diary(Observer):
    """Notes everything it is told; several may share the notes."""

    def __init__(self, notes: list[Any] | None = None, name: str = "diary", *, trigger: Every | None = None) -> None:
        self.notes: list[Any] = [] if notes is None else notes
        self.name = name
        if trigger is not None:
            self.trigger = trigger

    def begin(self, sim: Simulation) -> None:
        self.notes.append((self.name, "begin", sim.step_number))

    def step_begins(self, sim: Simulation) -> None:
        self.notes.append((self.name, "step begins", sim.step_number))

    def event(self, sim: Simulation, text: str) -> None:
        self.notes.append((self.name, json.loads(text).get("kind"), sim.step_number))

    def deaths(self, sim: Simulation, ids: Any) -> None:
        self.notes.append((self.name, f"deaths of {ids.tolist()}", sim.step_number))

    def step_done(self, sim: Simulation) -> None:
        self.notes.append((self.name, "step done", sim.step_number))

    def flush(self) -> None:
        self.notes.append((self.name, "flush", None))

    def end(self, sim: Simulation, *, whole: bool, summary: Any) -> None:
        how = "whole" if whole else "broken off"
        self.notes.append((self.name, f"end, {how}, {None if summary is None else summary.steps}", sim.step_number))

    def told(self) -> list[tuple[str, Any]]:
        return [(what, step) for name, what, step in self.notes if name == self.name]

    def steps(self) -> list[int]:
        return [step for what, step in self.told() if what == "step done"]


class FailsAt(Observer):
    """One with a mistake that shows in one of its methods."""

    def __init__(self, method: str) -> None:
        setattr(self, method, self._fail)

    def _fail(self, *what: Any, **more: Any) -> None:
        raise ValueError("forgot a case")


# What is told -------------------------------------------------------------------------------------------------------


def test_the_example_of_the_docstring_runs() -> None:
    failed, tried = doctest.testmod(observers)
    assert tried > 5
    assert failed == 0


def test_a_run_is_told_from_its_beginning_to_its_end() -> None:
    sim = simulation(hazards={"fire": Hazard(inner=0.5, position=(3.0, 3.0))})
    sim.at(0.1, events.CloseDoor(door="d"))
    diary = Diary()
    sim.observers.append(diary)
    sim.run(until=0.2)
    assert diary.told() == [
        ("begin", 0),
        ("step begins", 0),
        ("deaths of [0]", 0),
        ("step done", 1),
        ("step begins", 1),
        ("close_door", 1),
        ("step done", 2),
        ("end, whole, 2", 2),
    ]


def test_steps_by_hand_are_told_without_a_beginning_and_an_end() -> None:
    sim, diary = simulation(), Diary()
    sim.observers.append(diary)
    sim.step()
    assert diary.told() == [("step begins", 0), ("step done", 1)]


def test_what_an_event_goes_on_with_is_no_news() -> None:
    sim, diary = simulation(), Diary()
    sim.observers.append(diary)
    sim.every(0.1, lambda sim: None)
    sim.run(until=0.5)
    assert [step for what, step in diary.told() if what == "function"] == [0]


def test_all_are_told_in_the_order_in_which_they_were_appended() -> None:
    sim = simulation()
    notes: list[Any] = []
    for name in ("first", "second", "third"):
        sim.observers.append(Diary(notes, name))
    sim.step()
    assert notes == [(name, what, step) for what, step in (("step begins", 0), ("step done", 1))
                     for name in ("first", "second", "third")]  # fmt: skip


def test_files_are_flushed_before_a_checkpoint_is_written(tmp_path: Path) -> None:
    path = tmp_path / "c.ckpt"

    class Looks(Diary):
        def flush(self) -> None:
            self.notes.append((self.name, f"flush, {path.exists()}", sim.step_number))

    sim, looks = simulation(), Looks()
    sim.observers.append(looks)
    sim.run(until=0.5, checkpoint=path, checkpoint_every=0.3)
    assert [told for told in looks.told() if told[0].startswith("flush")] == [("flush, False", 3), ("flush, True", 5)]


def test_an_observer_changes_nothing_in_the_run() -> None:
    alone, watched = simulation(), simulation()
    watched.observers.append(Diary())
    alone.run(until=1.0)
    watched.run(until=1.0)
    assert watched.state_hash() == alone.state_hash()


# Triggers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "steps"),
    [
        (Every(steps=1), list(range(1, 11))),
        (Every(steps=4), [4, 8]),
        (Every(seconds=0.3), [3, 6, 9]),
        (Every(seconds=0.01), list(range(1, 11))),
        (Every(steps=11), []),
        (Every(seconds=1e9), []),
    ],
)
def test_a_trigger_says_after_which_steps(trigger: Every, steps: list[int]) -> None:
    sim, diary = simulation(), Diary(trigger=trigger)
    sim.observers.append(diary)
    sim.run(until=1.0)
    assert diary.steps() == steps
    assert len([what for what, _ in diary.told() if what == "step begins"]) == 10, "only step_done has a trigger"


def test_steps_are_counted_from_the_start_of_the_simulation() -> None:
    sim, diary = simulation(), Diary(trigger=Every(steps=4))
    sim.run(until=0.3)
    sim.observers.append(diary)
    sim.run(until=1.0)
    assert diary.steps() == [4, 8]


@pytest.mark.parametrize("given", [{}, {"steps": 2, "seconds": 0.1}, {"steps": 0}, {"seconds": -1.0}, {"step": 2}])
def test_a_trigger_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Every(**given)


# Several at once ----------------------------------------------------------------------------------------------------


def test_an_observer_of_ones_own_and_a_recorder_see_the_same_run(tmp_path: Path) -> None:
    class Positions(Observer):
        trigger = Every(seconds=0.2)

        def __init__(self) -> None:
            self.seen: list[Any] = []

        def begin(self, sim: Simulation) -> None:
            self.seen.append(sim.agents.position.copy())

        def step_done(self, sim: Simulation) -> None:
            self.seen.append(sim.agents.position.copy())

    sim, own = simulation(), Positions()
    sim.set_parameter("desired_speed", 1.0)
    sim.at(0.3, events.CloseDoor(door="d"))
    sim.observers.append(own)
    sim.run(until=1.0, record=tmp_path / "run.sqlite", fps=5.0)
    assert list(sim.observers) == [own], "what a run brings along goes with it"
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        assert len(trajectory.frames) == len(own.seen) == 6
        for frame, position in zip(trajectory.frames.tolist(), own.seen, strict=True):
            np.testing.assert_allclose(trajectory.frame(frame).position, position)


def test_observers_among_observers_keep_their_own_triggers() -> None:
    sim, inner = simulation(), Observers()
    often, seldom = Diary(), Diary(trigger=Every(steps=2))
    inner.append(often)
    inner.append(seldom)
    sim.observers.append(inner)
    sim.run(until=0.4)
    assert often.steps() == [1, 2, 3, 4]
    assert seldom.steps() == [2, 4]


def test_one_that_removes_itself_keeps_nobody_from_being_told() -> None:
    class Once(Diary):
        def step_done(self, sim: Simulation) -> None:
            super().step_done(sim)
            sim.observers.remove(self)

    sim, once, other = simulation(), Once(), Diary()
    sim.observers.append(once)
    sim.observers.append(other)
    sim.run(until=0.3)
    assert once.steps() == [1]
    assert other.steps() == [1, 2, 3]


def test_only_observers_can_be_appended() -> None:
    for wrong in (Diary, print, None):
        with pytest.raises(ParameterError, match="subclass of Observer"):
            simulation().observers.append(wrong)  # type: ignore[arg-type]


def test_nobody_observes_the_copy_of_a_simulation() -> None:
    sim, diary = simulation(), Diary()
    sim.observers.append(diary)
    other = copy.deepcopy(sim)
    other.step()
    assert diary.notes == []
    assert list(sim.observers) == [diary]


# Failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "where"), [("step_done", r"step 1 \(t = 0\.1 s\), stage 'record'"), ("step_begins", "step 0 .*'events'")]
)
def test_an_observer_that_raises_ends_the_run_with_all_files_closed(method: str, where: str, tmp_path: Path) -> None:
    sim, diary = simulation(), Diary()
    sim.observers.append(FailsAt(method))
    sim.observers.append(diary)
    with pytest.raises(ModelError, match=f"{where}: ValueError: forgot a case"):
        sim.run(until=1.0, record=tmp_path / "run.sqlite", fps=10.0)
    assert diary.told()[-1][0] == "end, broken off, None"
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        assert trajectory.frames.tolist() == [0]
        assert trajectory.summary is None


def test_one_that_fails_at_the_beginning_or_the_end_keeps_nobody_from_ending(tmp_path: Path) -> None:
    for method in ("begin", "end"):
        sim, before, after = simulation(), Diary(), Diary()
        for observer in (before, FailsAt(method), after):
            sim.observers.append(observer)
        path = tmp_path / f"{method}.sqlite"
        with pytest.raises(ValueError, match="forgot a case"):
            sim.run(until=0.2, record=path)
        assert before.told()[-1][0].startswith("end, whole")
        assert after.told()[-1][0].startswith("end, whole")
        assert len(sim.observers) == 3
        with read_trajectory(path) as trajectory:
            assert (trajectory.summary is None) == (method == "begin")

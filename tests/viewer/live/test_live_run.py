"""A live run is an ordinary run: what is done to it is recorded, and repeating the record gives the same bits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from live_scenes import living, two_rooms, wait_for_step

from tropel import Simulation, events
from tropel.errors import TropelError, ViewError
from tropel.events.base import Event
from tropel.run.observers import Observer
from tropel.viewer.live import disturbances
from tropel.viewer.live.run import Files, LiveRun


def hash_after(sim: Simulation, steps: int, *, record: Path | None = None) -> str:
    if record is not None:
        sim.replay(record)
    while sim.step_number < steps:
        sim.step()
    return sim.state_hash()


def disturbed_everywhere(sim: Simulation) -> list[Event]:
    return [
        *disturbances.obstacle(sim, (6.0, 5.0), radius=0.6),
        *disturbances.fire(sim, (13.0, 8.0), inner=0.5, outer=2.0, replan=True),
        *disturbances.people(sim, (3.0, 7.0), within=2.0, group="people", count=3),
        events.SetParameter(name="desired_speed", value=1.7, group="people"),
    ]


@pytest.mark.parametrize("later", [False, True], ids=["recorded from the start", "recorded from the middle"])
def test_a_disturbed_run_is_repeated_bit_for_bit_from_its_record(later: bool, tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    with living(two_rooms()) as live:
        if not later:
            live.pause()
            live.start_recording(file)
            live.play()
        wait_for_step(live, 5)
        live.ask(lambda sim: live.disturb(*disturbed_everywhere(sim)))
        wait_for_step(live, 12)
        live.ask(lambda sim: live.disturb(*disturbances.door(sim, "middle")))
        wait_for_step(live, 20)
        if later:
            live.start_recording(file)
        live.ask(lambda sim: live.disturb(*disturbances.attractor(sim, (4.0, 4.0), radius=0.5, group=None)))
        wait_for_step(live, 25)
        live.ask(lambda sim: live.disturb(*disturbances.door(sim, "middle")))
        live.ask(lambda sim: live.disturb(*disturbances.move(sim, "obstacle", "obstacle 1", (7.0, 7.0))))
        wait_for_step(live, 31)
        live.ask(lambda sim: live.disturb(*disturbances.remove(sim, "target", "attractor 1")))
        live.ask(lambda sim: live.disturb(*disturbances.remove(sim, "hazard", "fire 1")))
        live.ask(lambda sim: live.disturb(*disturbances.resize(sim, "obstacle", "obstacle 1", 0.9)))
        wait_for_step(live, 45)
        live.pause()
        steps, wanted = live.ask(lambda sim: (sim.step_number, sim.state_hash()))
    assert live.error == ""
    assert hash_after(two_rooms(), steps, record=file) == wanted
    assert hash_after(two_rooms(), steps) != wanted, "the disturbances have changed nothing"


def test_events_written_as_lines_repeat_the_run_too(tmp_path: Path) -> None:
    with living(two_rooms()) as live:
        wait_for_step(live, 3)
        live.ask(lambda sim: live.disturb(*disturbances.obstacle(sim, (8.0, 5.0), radius=1.0)))
        wait_for_step(live, 30)
        live.pause()
        steps, wanted = live.ask(lambda sim: (sim.step_number, sim.state_hash()))
        live.tape.write_events(tmp_path / "events.jsonl")
    assert hash_after(two_rooms(), steps, record=tmp_path / "events.jsonl") == wanted


def test_looking_changes_nothing() -> None:
    from tropel.viewer.colours import choices, values_of
    from tropel.viewer.frame import frame_of
    from tropel.viewer.live.agent_tab import portrait
    from tropel.viewer.overlays.overlay import overlays

    def look(sim: Simulation) -> None:
        frame_of(sim)
        for choice in choices(sim):
            values_of(choice, sim)
        for overlay in overlays():
            overlay.look(sim, 7)
        portrait(sim, 7)

    with living(two_rooms()) as live:
        while live.ask(lambda sim: sim.step_number, seconds=240.0) < 40:
            live.ask(look, seconds=240.0)
        live.pause()
        steps, wanted = live.ask(lambda sim: (sim.step_number, sim.state_hash()))
    assert hash_after(two_rooms(), steps) == wanted


def test_a_paused_run_stands_still_and_single_steps_are_single() -> None:
    with living(two_rooms(), playing=False) as live:
        assert live.ask(lambda sim: sim.step_number) == 0
        for wanted in (1, 2, 3):
            live.single_step()
            wait_for_step(live, wanted)
            assert live.ask(lambda sim: sim.step_number) == wanted
        live.play()
        wait_for_step(live, 10)


def test_a_disturbance_waits_for_the_next_step_and_is_recorded_with_it() -> None:
    with living(two_rooms(), playing=False) as live:
        live.disturb(events.CloseDoor(door="middle"))
        assert live.waiting == 1
        assert live.ask(lambda sim: sim.world.doors["middle"].open)
        assert live.tape.happened == []
        live.single_step()
        wait_for_step(live, 1)
        assert not live.ask(lambda sim: sim.world.doors["middle"].open)
        assert live.waiting == 0
        assert [step for step, _ in live.tape.happened] == [0]
        assert '"close_door"' in live.tape.happened[0][1]


def test_what_still_waits_at_the_end_has_never_happened(tmp_path: Path) -> None:
    files = Files(trajectory=tmp_path / "run.sqlite")
    with living(two_rooms(), playing=False, files=files) as live:
        live.disturb(events.CloseDoor(door="middle"))
        live.single_step()
        wait_for_step(live, 1)
        live.ask(lambda sim: live.disturb(*disturbances.obstacle(sim, (6.0, 5.0), radius=0.6)))
        live.disturb(events.OpenDoor(door="middle"))
        assert live.waiting == 2
    assert live.summary is not None
    assert hash_after(two_rooms(), 1, record=tmp_path / "run.sqlite") == live.summary.state_hash


def test_what_is_about_to_go_cannot_be_taken_away_again_or_moved() -> None:
    with living(two_rooms(), playing=False) as live:
        live.ask(lambda sim: live.disturb(*disturbances.remove(sim, "obstacle", "pillar")))
        for change in (
            lambda sim: disturbances.remove(sim, "obstacle", "pillar"),
            lambda sim: disturbances.move(sim, "obstacle", "pillar", (3.0, 3.0)),
        ):
            with pytest.raises(TropelError, match="no obstacle 'pillar' any more"):
                live.ask(lambda sim, change=change: live.disturb(*change(sim)))
        live.single_step()
        wait_for_step(live, 1)


def test_what_the_scenario_still_needs_is_not_taken_away() -> None:
    sim = two_rooms()
    sim.at(0.5, events.MoveObstacle(name="pillar", position=(15.0, 4.0)))
    sim.at(0.5, events.MoveTarget(name="corner", position=(3.0, 3.0)))
    with living(sim, playing=False) as live:
        with pytest.raises(TropelError, match=r"'pillar' is still needed.*'move obstacle' is scheduled for t = 0\.5 s"):
            live.ask(lambda sim: live.disturb(*disturbances.remove(sim, "obstacle", "pillar")))
        with pytest.raises(TropelError, match="'corner' is still needed"):
            live.ask(lambda sim: live.disturb(*disturbances.remove(sim, "target", "corner")))
        live.ask(lambda sim: live.disturb(*disturbances.resize(sim, "obstacle", "pillar", 0.7)))
        for step in range(1, 8):
            live.single_step()
            wait_for_step(live, step)
        live.ask(lambda sim: live.disturb(*disturbances.remove(sim, "obstacle", "pillar")))
        live.single_step()
        wait_for_step(live, 8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda sim: disturbances.obstacle(sim, (50.0, 5.0), radius=1.0), "outside the world"),
        (lambda sim: disturbances.attractor(sim, (10.0, 2.0), radius=0.5, group=None), "agents cannot stand"),
        (lambda sim: disturbances.attractor(sim, (-1.0, 2.0), radius=0.5, group=None), "outside the walkable area"),
        (lambda sim: disturbances.people(sim, (3.0, 3.0), within=0.5, group="people", count=400), "do not fit"),
        (lambda sim: disturbances.move(sim, "hazard", "fire 9", (3.0, 3.0)), "no hazard 'fire 9'"),
        (lambda sim: disturbances.resize(sim, "target", "corner", 2.0), "cannot be changed"),
        (lambda sim: [events.CloseDoor(door="midle")], "did you mean 'middle'"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_run_goes_on(make: object, message: str) -> None:
    with living(two_rooms(), playing=False) as live:
        with pytest.raises(TropelError, match=message):
            live.ask(lambda sim: live.disturb(*make(sim)))  # type: ignore[operator]
        live.single_step()
        wait_for_step(live, 1)
        assert live.tape.happened == []


def test_a_restart_is_a_fresh_run_of_the_same_or_another_seed() -> None:
    with living(two_rooms(3), build=two_rooms) as live:
        wait_for_step(live, 5)
        live.ask(lambda sim: live.disturb(*disturbances.obstacle(sim, (6.0, 5.0), radius=0.6)))
        wait_for_step(live, 10)
        live.pause()
        for seed, wanted_seed in ((None, 3), (8, 8)):
            live.restart(seed)
            assert live.ask(lambda sim: (sim.step_number, sim.seed)) == (0, wanted_seed)
            live.single_step()
            wait_for_step(live, 1)
            assert live.ask(lambda sim: sim.state_hash()) == hash_after(two_rooms(wanted_seed), 1)
            assert live.tape.happened == []


class Steps(Observer):
    """Notes the steps of every run."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []
        self.events: list[tuple[int, str]] = []

    def begin(self, sim: Simulation) -> None:
        self.runs.append([])

    def event(self, sim: Simulation, text: str) -> None:
        self.events.append((sim.step_number, text))

    def step_done(self, sim: Simulation) -> None:
        self.runs[-1].append(sim.step_number)


def test_an_observer_of_ones_own_sees_what_the_tape_records_and_is_there_after_a_restart(tmp_path: Path) -> None:
    sim, own = two_rooms(), Steps()
    sim.observers.append(own)
    files = Files(trajectory=tmp_path / "run.sqlite", fps=10.0)
    with living(sim, playing=False, files=files) as live:
        live.disturb(events.CloseDoor(door="middle"))
        for wanted in (1, 2):
            live.single_step()
            wait_for_step(live, wanted)
        assert own.events == live.tape.happened != []
        live.restart()
        live.single_step()
        wait_for_step(live, 1)
    assert own.runs == [[1, 2], [1]]
    assert list(sim.observers) == [own]


def test_a_simulation_that_was_only_handed_over_is_restarted_from_what_it_was_built_of() -> None:
    sim = two_rooms(3)
    sim.at(0.4, events.CloseDoor(door="middle"))

    def fresh(seed: int) -> Simulation:
        sim = two_rooms(seed)
        sim.at(0.4, events.CloseDoor(door="middle"))
        return sim

    with living(sim, playing=False) as live:
        for seed in (3, 8, 3):
            live.restart(seed)
            for step in range(1, 9):
                live.single_step()
                wait_for_step(live, step)
            assert live.ask(lambda sim: sim.state_hash()) == hash_after(fresh(seed), 8)


def test_what_was_changed_after_building_comes_back_with_the_same_seed_only() -> None:
    sim = two_rooms(3)
    sim.agents.position[0] = (15.0, 5.0)
    with living(sim, playing=False) as live:
        live.restart()
        assert live.ask(lambda sim: sim.agents.position[0].tolist()) == [15.0, 5.0]
        with pytest.raises(ViewError, match=r"changed after it was built.*build="):
            live.restart(8)
        live.single_step()
        wait_for_step(live, 1)


def test_who_had_run_before_begins_again_where_the_view_began() -> None:
    sim = two_rooms(3)
    hash_after(sim, 5)
    with living(sim, playing=False) as live:
        live.single_step()
        wait_for_step(live, 6)
        live.restart()
        assert live.ask(lambda sim: sim.step_number) == 5
        for step in range(6, 12):
            live.single_step()
            wait_for_step(live, step)
        assert live.ask(lambda sim: sim.state_hash()) == hash_after(two_rooms(3), 11)
        with pytest.raises(ViewError, match=r"had already run for 0\.5 s"):
            live.restart(8)


def test_what_cannot_be_copied_says_why_it_cannot_be_restarted() -> None:
    sim = two_rooms()
    sim.at(1.0, HoldsALock())
    with living(sim, playing=False) as live, pytest.raises(ViewError, match=r"cannot be copied.*lock.*build="):
        live.restart()


class HoldsALock:
    """A function of the simulation that a copy cannot be made of."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, sim: Simulation) -> None:
        with self.lock:
            pass


def test_at_its_end_the_run_pauses_and_can_go_on() -> None:
    with living(two_rooms(), until=1.0) as live:
        wait_for_step(live, 10)
        while not live.ended:
            live.ask(lambda sim: None)
        assert live.ended == "the time is up"
        assert not live.playing
        assert live.ask(lambda sim: sim.step_number) == 10
        live.play()
        wait_for_step(live, 15)
    assert live.summary is not None
    assert live.summary.reason == "the time is up"


def test_an_error_in_the_run_is_kept_and_a_restart_helps() -> None:
    def breaks(sim: Simulation) -> None:
        raise ValueError("the ceiling fell down")

    sim = two_rooms()
    sim.at(0.2, breaks)
    with living(sim, build=two_rooms) as live:
        while not live.error:
            assert live.alive
        assert "the ceiling fell down" in live.error
        with pytest.raises(ViewError, match="ended with an error"):
            live.disturb(events.CloseDoor(door="middle"))
        live.restart()
        wait_for_step(live, 5)
        assert live.error == ""


def test_a_repeated_run_takes_no_disturbances(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    sim = two_rooms()
    sim.replay(tmp_path / "none.jsonl")
    with living(sim, playing=False) as live, pytest.raises(ViewError, match="repeats a recorded one"):
        live.disturb(events.CloseDoor(door="middle"))


def test_stopping_closes_the_file(tmp_path: Path) -> None:
    from tropel import read_trajectory

    file = tmp_path / "run.sqlite"
    with living(two_rooms(), files=Files(trajectory=file, checkpoint=tmp_path / "checkpoint.npz")) as live:
        wait_for_step(live, 12)
    with read_trajectory(file) as recorded:
        assert recorded.people is not None
        assert int(recorded.frames[-1]) >= 12
    resumed = two_rooms()
    resumed.restore(tmp_path / "checkpoint.npz")
    assert resumed.state_hash() == live.summary.state_hash  # type: ignore[union-attr]


def test_the_speed_is_held_by_waiting() -> None:
    with living(two_rooms(), playing=False) as live:
        live.single_step()
        wait_for_step(live, 1)
        live.set_speed(1e-4)
        live.play()
        # Of the next steps only the one that is due at once comes; the other is due in a quarter of an hour.
        wait_for_step(live, 2)
        assert [live.ask(lambda sim: sim.step_number) for _ in range(20)][-1] <= 3


def test_an_end_that_cannot_be_is_said_at_once() -> None:
    with pytest.raises(TropelError, match="limit"):
        LiveRun(two_rooms(), until="empty")


def test_a_file_that_cannot_be_written_is_an_error_of_the_run(tmp_path: Path) -> None:
    with living(two_rooms(), files=Files(trajectory=tmp_path / "missing" / "run.sqlite")) as live:
        while not live.error:
            assert live.alive
        assert "missing" in live.error


def test_a_run_that_has_been_stopped_answers_that() -> None:
    with living(two_rooms(), playing=False) as live:
        live.stop()
        live.join(60.0)
        with pytest.raises(ViewError, match="has been stopped"):
            live.ask(lambda sim: sim.time)


@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("closed", [False, True])
def test_the_page_knows_what_looks_wrong(closed: bool) -> None:
    sim = two_rooms()
    sim.world.set_door("middle", open=not closed)
    with living(sim) as live:
        wait_for_step(live, 2)
        told = live.warnings
    assert len(told) == closed
    assert all("door 'middle' is closed" in text for text in told)

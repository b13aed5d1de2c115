from __future__ import annotations

from typing import Any

import pytest
from recorded_runs import DOOR, SHUT, TWO_ROOMS, MemoryTrajectory, at, scene

from tropel.errors import RecordingError
from tropel.pictures.recorded_world import RecordedWorld
from tropel.recording import RecordedEvent

NOBODY = at([])


def event(frame: int, **what: Any) -> RecordedEvent:
    return RecordedEvent(frame=frame, step=2 * frame - 1, event=what)


def door_scene(**more: Any) -> Any:
    return scene(TWO_ROOMS, doors={"main": {"wkt": DOOR.wkt, "open": True}}, **more)


def test_a_door_is_closed_where_the_recorded_area_has_a_slit() -> None:
    def geometry(k: int) -> str:
        return SHUT.wkt if 3 <= k < 6 else TWO_ROOMS.wkt

    moments = RecordedWorld(MemoryTrajectory(door_scene(), [NOBODY] * 8, geometry=geometry))
    assert [moments.doors(k)["main"] for k in range(8)] == [True] * 3 + [False] * 3 + [True] * 2
    changes = moments.door_changes(range(8))
    assert [(change.door, change.open) for change in changes] == [("main", False), ("main", True)]
    assert [change.time for change in changes] == pytest.approx([0.3, 0.6])


def test_an_event_gives_the_exact_time_at_which_a_door_closed() -> None:
    run = MemoryTrajectory(
        door_scene(),
        [NOBODY] * 8,
        geometry=lambda k: SHUT.wkt if k >= 3 else TWO_ROOMS.wkt,
        events=[event(3, kind="close_door", door="main")],
    )
    (change,) = RecordedWorld(run).door_changes(range(8))
    assert change.time == pytest.approx(5 * 0.05)


def test_in_open_space_doors_follow_the_events() -> None:
    run = MemoryTrajectory(
        door_scene(walkable_wkt=""),
        [NOBODY] * 6,
        events=[event(2, kind="close_door", door="main"), event(4, kind="open_door", door="main")],
    )
    moments = RecordedWorld(run)
    assert [moments.doors(k)["main"] for k in range(6)] == [True, True, False, False, True, True]


def test_slits_of_closed_doors_are_not_part_of_the_area_that_is_drawn() -> None:
    moments = RecordedWorld(MemoryTrajectory(door_scene(), [NOBODY] * 2, geometry=lambda k: SHUT.wkt))
    assert moments.at(1).area_wkt == TWO_ROOMS.wkt


def test_without_doors_the_area_is_the_recorded_one_of_the_frame() -> None:
    areas = [TWO_ROOMS.wkt, SHUT.wkt]
    moments = RecordedWorld(MemoryTrajectory(scene(TWO_ROOMS), [NOBODY] * 2, geometry=lambda k: areas[k]))
    assert [moments.at(k).area_wkt for k in range(2)] == areas


def test_exits_close_and_targets_move_when_events_say_so() -> None:
    run = MemoryTrajectory(
        scene(exits={"east": "POLYGON ((9 2, 10 2, 10 4, 9 2))"}, targets={"a": {"position": [1, 1]}}),
        [NOBODY] * 6,
        events=[
            event(2, kind="close_exit", exit="east"),
            event(3, kind="move_target", name="a", position=[4.0, 5.0]),
            event(4, kind="add_target", name="b", position=[2.0, 2.0]),
            event(5, kind="function", name="something"),
            event(5, kind="remove_target", name="a"),
        ],
    )
    moments = RecordedWorld(run)
    assert [moments.at(k).exits["east"] for k in range(6)] == [True, True, False, False, False, False]
    assert moments.at(2).targets == {"a": (1, 1)}
    assert moments.at(4).targets == {"a": (4.0, 5.0), "b": (2.0, 2.0)}
    assert moments.at(5).targets == {"b": (2.0, 2.0)}


def test_obstacles_that_only_events_move_are_followed() -> None:
    run = MemoryTrajectory(
        scene(obstacles={"pillar": {"radius": 0.5, "position": [2, 2]}}),
        [NOBODY] * 8,
        events=[
            event(2, kind="move_obstacle", name="pillar", position=[3.0, 2.0]),
            event(4, kind="add_obstacle", name="cart", radius=0.2, position=[5.0, 5.0], motion=None),
            event(6, kind="remove_obstacle", name="pillar"),
        ],
    )
    moments = RecordedWorld(run)
    assert moments.obstacles(1) == {"pillar": ((2, 2), 0.5)}
    assert moments.obstacles(2) == {"pillar": ((3.0, 2.0), 0.5)}
    assert moments.obstacles(7) == {"cart": ((5.0, 5.0), 0.2)}


def test_recorded_obstacles_count_more_than_the_scene() -> None:
    run = MemoryTrajectory(
        scene(obstacles={"cart": {"radius": 0.5, "position": [2, 2]}}),
        [NOBODY] * 3,
        obstacles=lambda k: {"cart": {"radius": 0.5, "position": [2.0 + k, 2.0]}},
    )
    assert RecordedWorld(run).obstacles(2) == {"cart": ((4.0, 2.0), 0.5)}


def test_a_damaged_shape_is_an_error_that_names_it() -> None:
    run = MemoryTrajectory(scene(doors={"main": {"wkt": "LINESTRING (1", "open": True}}), [NOBODY])
    with pytest.raises(RecordingError, match="door 'main'"):
        RecordedWorld(run)


def test_an_obstacle_at_the_seam_of_periodic_space_is_seen_on_both_sides() -> None:
    rocks = {"rock": {"radius": 1.0, "position": [0.5, 3.0]}, "inner": {"radius": 1.0, "position": [5.0, 3.0]}}
    torus = scene(walkable_wkt="", sides=["joined", "joined"], obstacles=rocks)
    seen = RecordedWorld(MemoryTrajectory(torus, [NOBODY])).at(0).obstacles
    assert sorted(centre for centre, _ in seen.values()) == [(0.5, 3.0), (5.0, 3.0), (10.5, 3.0)]
    assert len(RecordedWorld(MemoryTrajectory(scene(obstacles=rocks), [NOBODY])).at(0).obstacles) == 2

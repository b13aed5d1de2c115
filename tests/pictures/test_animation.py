from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from recorded_runs import DOOR, SHUT, TWO_ROOMS, MemoryTrajectory, at, distance, rgb, scene, walk

from tropel.errors import ParameterError, RecordingError
from tropel.pictures import animate_run, style
from tropel.pictures.backdrop import lay_out_animation
from tropel.pictures.frames import RunFrames, speeds_in_frame
from tropel.recording import Scene
from tropel.recording.frames import RecordedEvent
from tropel.world.motion import Waypoints, stored_motion


class Shown:
    """An animation read back: its frames as arrays, and how long each is shown [ms]."""

    def __init__(self, path: Path) -> None:
        self.frames: list[NDArray[Any]] = []
        self.durations: list[int] = []
        with Image.open(path) as image:
            self.size = image.size
            self.loop = image.info.get("loop")
            for k in range(getattr(image, "n_frames", 1)):
                image.seek(k)
                self.durations.append(image.info["duration"])
                self.frames.append(np.asarray(image.convert("RGB")).copy())

    def at(self, run: MemoryTrajectory, frame: int, x: float, y: float, view: int = 0, width: int = 500) -> Any:
        """The colour where a point of the world (for a view: right, up) is shown."""
        bounds = np.asarray(run.scene.bounds, dtype=float)
        stage = lay_out_animation(bounds, run.scene, width)
        place = np.zeros(run.scene.dim)
        place[list(stage.views[view].plane)] = x, y
        right, down = stage.views[view].pixels(place)[0]
        left, top = stage.corners[view]
        return self.frames[frame][int(top + down), int(left + right)]


def shown(run: MemoryTrajectory, path: Path, **more: Any) -> Shown:
    return Shown(animate_run(run, path / "run.gif", **{"width": 500, **more}))


def test_a_long_run_plays_in_ten_seconds_of_at_most_120_frames(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(), [at([[1.0 + 0.01 * k, 3.0]]) for k in range(600)])
    film = shown(run, tmp_path)
    assert len(film.frames) == 120
    assert film.durations[:-1] == [80] * 119
    assert 10_000 <= sum(film.durations) <= 12_000
    assert film.size[0] == 500
    assert film.loop == 0


def test_a_short_run_plays_every_frame_in_real_time(tmp_path: Path) -> None:
    film = shown(MemoryTrajectory(scene(), walk(frames=21)), tmp_path)
    assert len(film.frames) == 21
    assert set(film.durations[:-1]) == {100}


def test_length_frame_rate_and_width_can_be_chosen(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(), [at([[1.0 + 0.01 * k, 3.0]]) for k in range(300)])
    film = shown(run, tmp_path, seconds=2.0, fps=20.0, width=320)
    assert len(film.frames) == 40
    assert set(film.durations[:-1]) == {50}
    assert film.size[0] == 320


def test_agents_are_drawn_where_they_are_at_their_true_radius(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(groups=["a", "b"]), [at([[2.0 + 0.2 * k, 3.0]], radius=0.5) for k in range(20)])
    film = shown(run, tmp_path)
    colour = rgb(style.GROUPS[0])
    for k in (0, 7, 19):
        x = 2.0 + 0.2 * k
        # Above and below the middle, where the tick of the heading is not.
        for dy in (-0.35, 0.35):
            assert distance(film.at(run, k, x, 3.0 + dy), colour) < 12
        for dx, dy in ((0.62, 0.0), (-0.62, 0.0), (0.0, 0.62), (0.0, -0.62)):
            assert distance(film.at(run, k, x + dx, 3.0 + dy), rgb(style.FLOOR)) < 12


def test_what_is_read_back_is_what_was_drawn_up_to_the_palette(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(exits={"east": "POLYGON ((9 2, 10 2, 10 4, 9 4, 9 2))"}), walk(count=5, frames=30))
    film = shown(run, tmp_path)
    drawn = RunFrames(run, run.frames, 500, 0.1)
    for k in (0, 13, 29):
        difference = np.abs(film.frames[k].astype(int) - np.asarray(drawn.draw(k)).astype(int)).max(axis=2)
        assert difference.mean() < 1.5
        assert (difference > 40).mean() < 2e-4


def test_groups_have_their_own_colours(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(groups=["east", "west"]), [at([[3.0, 2.0], [7.0, 4.0]], group=[0, 1], radius=0.5)] * 3)
    film = shown(run, tmp_path)
    assert distance(film.at(run, 0, 3.0, 2.3), rgb(style.GROUPS[0])) < 12
    assert distance(film.at(run, 0, 7.0, 4.3), rgb(style.GROUPS[1])) < 12


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded speed", "speed from positions"])
def test_one_group_is_coloured_by_speed(tmp_path: Path, recorded: bool) -> None:
    speed = [0.0, 1.5] if recorded else None
    run = MemoryTrajectory(
        scene(), [at([[3.0, 2.0], [2.0 + 0.15 * k, 4.0]], radius=0.5, speed=speed) for k in range(20)]
    )
    film = shown(run, tmp_path)
    slow, fast = film.at(run, 10, 3.0, 2.3), film.at(run, 10, 3.5, 4.3)
    assert distance(slow, rgb(style.time_colours()(0.0))) < 12
    assert distance(fast, rgb(style.time_colours()(1.0))) < 12


def test_who_jumps_from_cell_to_cell_is_as_fast_as_over_a_second() -> None:
    """A cell of 0.4 m every third frame of a tenth of a second: 1.33 m/s, not 4 m/s and 0."""
    run = MemoryTrajectory(scene(), [at([[1.0 + 0.4 * (k // 3), 3.0]]) for k in range(40)])
    for k in range(12, 40):
        assert speeds_in_frame(run, k, run.frame(k))[0] == pytest.approx(4.0 / 3.0, abs=0.3)
    came = MemoryTrajectory(scene(), [at([], ids=[])] + [at([[1.0 + 0.1 * k, 3.0]]) for k in range(4)])
    assert speeds_in_frame(came, 3, came.frame(3))[0] == pytest.approx(1.0)


def test_a_door_changes_its_look_when_it_closes(tmp_path: Path) -> None:
    run = MemoryTrajectory(
        scene(TWO_ROOMS, doors={"main": {"wkt": DOOR.wkt, "open": True}}),
        [at([[1.0, 1.0]])] * 20,
        geometry=lambda k: SHUT.wkt if k >= 12 else TWO_ROOMS.wkt,
    )
    film = shown(run, tmp_path)
    along = np.linspace(2.2, 3.8, 20)
    for frame, closed in ((0, False), (11, False), (12, True), (19, True)):
        colours = [film.at(run, frame, 5.0, y) for y in along]
        assert all(distance(colour, rgb(style.CLOSED_DOOR)) < 12 for colour in colours) == closed
        assert any(distance(colour, rgb(style.FLOOR)) < 12 for colour in colours) == (not closed)


def test_obstacles_move(tmp_path: Path) -> None:
    run = MemoryTrajectory(
        scene(),
        [at([])] * 20,
        obstacles=lambda k: {"cart": {"radius": 0.4, "position": [2.0 + 0.3 * k, 3.0]}},
    )
    film = shown(run, tmp_path)
    for k in (0, 10, 19):
        assert distance(film.at(run, k, 2.0 + 0.3 * k, 3.0), rgb(style.OBSTACLE)) < 12
        assert distance(film.at(run, k, 2.0 + 0.3 * k - 0.6, 3.0), rgb(style.FLOOR)) < 12


def test_a_moving_target_is_drawn_where_it_is_until_it_is_taken_away(tmp_path: Path) -> None:
    motion = Waypoints(points=((2.0, 2.0), (8.0, 2.0)), speed=1.0)
    entry = {"path": [list(place) for place in motion.path()], "motion": stored_motion(motion), "radius": 0.3}
    removed = RecordedEvent(step=30, frame=15, event={"kind": "remove_target", "name": "guide"})
    run = MemoryTrajectory(scene(targets={"guide": entry}), [at([])] * 20, events=[removed])
    film = shown(run, tmp_path)
    for k in (0, 10, 14):
        x, y = motion.at(run.time(k))[:2]
        assert distance(film.at(run, k, x, y), rgb(style.TARGET)) < 12
    assert distance(film.at(run, 16, *motion.at(run.time(16))[:2]), rgb(style.FLOOR)) < 12
    # Of its way, which is dotted, something is seen as long as it goes it.
    way = [[film.at(run, k, x, 2.0) for x in np.linspace(6.0, 7.5, 60)] for k in (0, 16)]
    seen = [any(distance(colour, rgb(style.TARGET)) < 60 for colour in colours) for colours in way]
    assert seen == [True, False]


def test_the_time_is_written_on_every_frame(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(), [at([])] * 15)
    film = shown(run, tmp_path)
    corner = [frame[:34, -110:] for frame in film.frames]
    assert len(film.frames) == 15
    assert all(np.any(a != b) for a, b in itertools.pairwise(corner))


def test_three_dimensions_are_seen_from_above_and_from_the_side_and_the_nearer_covers_the_other(tmp_path: Path) -> None:
    world = Scene(dim=3, bounds=[[0, 0, 0], [10, 10, 10]], dt=0.05, groups=["a", "b"])
    # The second is higher, and further from an eye at low y.
    frame = at([[5.0, 3.0, 5.0], [5.0, 3.4, 5.4]], group=[0, 1], radius=0.9, dim=3)
    run = MemoryTrajectory(world, [frame] * 2)
    film = shown(run, tmp_path, width=600)
    overlap_above, overlap_side = film.at(run, 0, 4.7, 3.5, 0, 600), film.at(run, 0, 4.7, 5.5, 1, 600)
    assert distance(overlap_above, rgb(style.GROUPS[1])) < 12
    assert distance(overlap_side, rgb(style.GROUPS[0])) < 12


def test_progress_is_told_after_each_frame(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run = MemoryTrajectory(scene(), walk(frames=12))
    shown(run, tmp_path, progress=lambda current, total: told.append((current, total)))
    assert told == [(k, 12) for k in range(1, 13)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "run",
    [
        MemoryTrajectory(scene(), [at([])] * 5),
        MemoryTrajectory(scene(), [at([[2.0, 2.0]])]),
        MemoryTrajectory(scene(groups=[f"group {k}" for k in range(30)]), [at([[2.0, 2.0]], group=[29])] * 2),
        MemoryTrajectory(Scene(dim=2, bounds=[[0, 0], [0, 0]], dt=0.1), [at([[0.0, 0.0]])] * 2),
        MemoryTrajectory(scene(walkable_wkt=""), [at([[2.0, 2.0]]), at([[50.0, 90.0]])]),
    ],
    ids=["nobody", "one frame", "many groups", "no extent", "open space"],
)
def test_unusual_runs_are_animated_without_a_warning(run: MemoryTrajectory, tmp_path: Path) -> None:
    film = shown(run, tmp_path)
    assert 1 <= len(film.frames) <= 5
    assert film.size[0] <= 500


def test_a_tall_map_makes_the_picture_narrower_instead_of_very_tall(tmp_path: Path) -> None:
    import shapely

    film = shown(MemoryTrajectory(scene(shapely.box(0, 0, 4, 60)), walk(frames=3)), tmp_path, width=600)
    assert film.size[0] < 600
    assert film.size[1] < 800


def test_an_earlier_animation_stays_when_drawing_fails_half_way(tmp_path: Path) -> None:
    target = tmp_path / "run.gif"
    target.write_bytes(b"earlier")
    told: list[int] = []
    run = MemoryTrajectory(scene(groups=["a", "b"]), walk(frames=30), fails_after=20)
    with pytest.raises(ValueError, match="cannot read on"):
        animate_run(run, target, width=300, progress=lambda current, total: told.append(current))
    assert len(told) > 5
    assert target.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seconds": 0.0}, "seconds must be"),
        ({"seconds": float("nan")}, "seconds must be"),
        ({"fps": -1.0}, "fps must be"),
        ({"fps": 100.0}, "fps must be"),
        ({"width": 10}, "width must be"),
    ],
)
def test_impossible_parameters_are_refused(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        animate_run(MemoryTrajectory(scene(), walk()), tmp_path / "run.gif", **wrong)
    assert not list(tmp_path.iterdir())


def test_a_run_without_frames_and_a_wrong_name_are_errors(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="has no frames"):
        animate_run(MemoryTrajectory(scene(), []), tmp_path / "run.gif")
    with pytest.raises(RecordingError, match=r"must end in \.gif"):
        animate_run(MemoryTrajectory(scene(), walk()), tmp_path / "run.mp4")
    assert not list(tmp_path.iterdir())

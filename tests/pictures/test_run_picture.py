from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from matplotlib import colormaps
from PIL import Image
from recorded_runs import DOOR, EAST, ROOM, SHUT, TWO_ROOMS, MemoryTrajectory, at, distance, pixel, rgb, scene, walk

from tropel.errors import RecordingError
from tropel.pictures import draw_run, style
from tropel.pictures.run import run_figure
from tropel.recording import RecordedEvent, Scene, open_trajectory, read_trajectory


def one_agent(**more: Any) -> MemoryTrajectory:
    """From (1, 3) to (9, 3) in 8 s."""
    return MemoryTrajectory(scene(**more), [at([[1.0 + 0.1 * k, 3.0]]) for k in range(81)])


def texts(figure: Any) -> str:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in (*axes.texts, axes.title, axes._left_title, *axes.get_yticklabels())]
    return "\n".join(found)


def test_the_picture_is_a_png_of_a_readable_size(tmp_path: Path) -> None:
    target = tmp_path / "run.png"
    assert draw_run(one_agent(), target) == target
    with Image.open(target) as image:
        assert image.format == "PNG"
        assert 700 <= image.width <= 1500
        assert 300 <= image.height <= 1300
        assert len(image.convert("RGB").getcolors(1 << 24) or []) > 50
    assert list(tmp_path.iterdir()) == [target]


def test_floor_wall_and_outside_look_different() -> None:
    with_hole = ROOM - shapely.box(6.0, 4.0, 8.0, 5.0)
    figure: Any = run_figure(MemoryTrajectory(scene(with_hole), [at([])]))
    axes = figure.axes[0]
    floor, wall = pixel(figure, axes, 2.0, 5.0), pixel(figure, axes, 0.0, 5.0)
    outside, hole = pixel(figure, axes, -0.08, 5.0), pixel(figure, axes, 7.0, 4.5)
    assert distance(floor, rgb(style.FLOOR)) == 0
    assert wall.max() < 120
    assert distance(outside, floor) > 15
    assert distance(hole, outside) == 0


def test_a_path_is_drawn_where_the_agent_went_in_the_colour_of_the_time() -> None:
    run = one_agent()
    figure: Any = run_figure(run)
    axes = figure.axes[0]
    assert distance(pixel(figure, axes, 5.0, 3.5), rgb(style.FLOOR)) == 0
    for x in (2.0, 5.0, 8.0):
        share = (x - 1.0) / 8.0
        assert distance(pixel(figure, axes, x, 3.0), rgb(colormaps["viridis"](0.9 * share))) < 25


def test_exits_are_green_and_named_and_grey_when_they_are_closed() -> None:
    closing = [RecordedEvent(frame=1, step=2, event={"kind": "close_exit", "exit": "east"})]
    for events, colour, name in (((), style.EXIT, "east"), (closing, style.CLOSED_EXIT, "east (closed)")):
        run = MemoryTrajectory(scene(exits={"east": EAST.wkt}), [at([]), at([])], events=events)
        figure = run_figure(run)
        assert distance(pixel(figure, figure.axes[0], 9.75, 2.3), rgb(style.exit_fill(colour))) == 0
        assert name in texts(figure).splitlines()


def test_open_and_closed_doors_look_different_and_say_when_they_changed() -> None:
    world = scene(TWO_ROOMS, doors={"main": {"wkt": DOOR.wkt, "open": True}})
    still_open = run_figure(MemoryTrajectory(world, [at([])] * 30, geometry=lambda k: TWO_ROOMS.wkt))
    closes = run_figure(
        MemoryTrajectory(world, [at([])] * 30, geometry=lambda k: SHUT.wkt if k >= 20 else TWO_ROOMS.wkt)
    )
    along = np.linspace(2.2, 3.8, 15)
    shut = [distance(pixel(closes, closes.axes[0], 5.0, y), rgb(style.CLOSED_DOOR)) for y in along]
    assert max(shut) == 0
    gaps = [distance(pixel(still_open, still_open.axes[0], 5.0, y), rgb(style.FLOOR)) for y in along]
    assert min(gaps) < 10
    assert "main\nopen" in texts(still_open)
    assert "main\ncloses at 2 s" in texts(closes)


@pytest.mark.parametrize(("count", "note", "named"), [(9, True, 9), (20, False, 10), (60, False, 0)])
def test_names_of_many_doors_do_not_hide_the_map(count: int, note: bool, named: int) -> None:
    places = [(0.5 + k % 10, 0.5 + 0.8 * (k // 10)) for k in range(count)]
    doors = {
        f"d{k}": {"wkt": shapely.LineString([(x, y), (x + 0.4, y)]).wkt, "open": True}
        for k, (x, y) in enumerate(places)
    }
    figure = run_figure(MemoryTrajectory(scene(doors=doors), [at([])] * 3))
    said = [text.get_text() for text in figure.axes[0].texts if text.get_text().startswith("d")]
    assert all(("\n" in text) == note for text in said)
    assert (len(said) == named) if count != 20 else (len(said) >= named)


def test_obstacles_are_where_they_are_at_the_end_and_targets_are_named() -> None:
    run = MemoryTrajectory(
        scene(obstacles={"cart": {"radius": 0.5, "position": [2, 2]}}, targets={"stage": {"position": [8, 5]}}),
        [at([])] * 11,
        obstacles=lambda k: {"cart": {"radius": 0.5, "position": [2.0 + 0.2 * k, 2.0]}},
    )
    figure: Any = run_figure(run)
    axes = figure.axes[0]
    assert distance(pixel(figure, axes, 4.0, 2.3), rgb(style.OBSTACLE)) == 0
    assert distance(pixel(figure, axes, 2.0, 2.3), rgb(style.FLOOR)) == 0
    assert "stage" in texts(figure)


def test_the_curves_count_who_is_there_and_who_left_up_to_the_end_of_the_run() -> None:
    frames = walk(count=6, frames=30)
    summary = {"agents": 6, "remaining": 0, "simulated_time": 2.95, "exits": {"east": 4, "west": 2}}
    figure: Any = run_figure(MemoryTrajectory(scene(exits={"east": EAST.wkt}), frames, summary=summary))
    there, left = figure.axes[1].get_lines()
    assert there.get_xdata().tolist() == pytest.approx([0.1 * k for k in range(30)] + [2.95])
    assert there.get_ydata().tolist() == [len(frame.id) for frame in frames] + [0]
    assert left.get_ydata().tolist() == [6 - len(frame.id) for frame in frames] + [6]
    said = texts(figure)
    assert "6 agents" in said
    assert "seed 7" in said
    assert "everybody left" in said
    bars = figure.axes[-1].patches
    assert [bar.get_width() for bar in bars] == [4, 2]


def test_many_places_to_leave_through_are_summed_up_in_the_last_bar() -> None:
    summary = {"agents": 210, "remaining": 0, "simulated_time": 1.0, "exits": {f"gate {k}": k for k in range(21)}}
    figure: Any = run_figure(MemoryTrajectory(scene(), walk(), summary=summary))
    widths = [bar.get_width() for bar in figure.axes[-1].patches]
    assert sum(widths) == 210
    assert len(widths) == 9
    assert "13 others" in texts(figure)


def test_a_late_straggler_does_not_press_all_others_into_the_first_colours() -> None:
    crowd = [at([[1.0 + 0.1 * min(k, 80), 1.0 + 0.4 * i] for i in range(10)]) for k in range(400)]
    figure: Any = run_figure(MemoryTrajectory(scene(), crowd))
    near_the_end = pixel(figure, figure.axes[0], 8.6, 1.0)
    assert near_the_end[1] > near_the_end[2] + 40  # green to yellow, though 80 % of the run is still to come


@pytest.mark.parametrize(
    ("shape", "wide"),
    [(shapely.box(0, 0, 60, 6), True), (shapely.box(0, 0, 20, 20), False), (shapely.box(0, 0, 6, 50), False)],
)
@pytest.mark.filterwarnings("error")
def test_curves_are_below_wide_maps_and_beside_others_and_nothing_overlaps(shape: Any, wide: bool) -> None:
    summary = {"agents": 5, "remaining": 0, "simulated_time": 4.0, "exits": {"east": 5}}
    left, bottom, _, _ = shape.bounds
    figure: Any = run_figure(
        MemoryTrajectory(
            scene(shape, exits={"east": shapely.box(left, bottom, left + 1, bottom + 2).wkt}), walk(), summary=summary
        )
    )
    figure.canvas.draw()
    boxes: list[Any] = [axes.get_tightbbox() for axes in figure.axes]
    across, down = figure.get_size_inches() * style.DPI
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= across
        assert box.y1 <= down
    world, curves, strip, bars = boxes
    assert (curves.y1 < world.y0) == wide
    assert (curves.x0 > world.x1) == (not wide)
    for one, other in ((world, curves), (world, bars), (curves, bars), (world, strip), (strip, bars)):
        assert not one.overlaps(other)
    header = figure.texts[1].get_window_extent()
    assert not any(header.overlaps(box) for box in boxes)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "run",
    [
        MemoryTrajectory(scene(), [at([])] * 5, summary={"agents": 0, "remaining": 0, "simulated_time": 0.4}),
        MemoryTrajectory(scene(), [at([[2.0, 2.0]])]),
        MemoryTrajectory(scene(), [at([])]),
        MemoryTrajectory(Scene(dim=2, bounds=[[0, 0], [0, 0]], dt=0.1), [at([[0.0, 0.0]])] * 2),
        MemoryTrajectory(scene(title="costs $5 ^2 $"), walk(count=1)),
    ],
    ids=["nobody", "one frame", "nobody in one frame", "no extent", "dollars"],
)
def test_unusual_runs_are_drawn_without_a_warning(run: MemoryTrajectory, tmp_path: Path) -> None:
    assert draw_run(run, tmp_path / "run.png").stat().st_size > 5000


def test_a_run_in_three_dimensions_is_seen_from_above_and_from_the_side() -> None:
    world = Scene(
        dim=3,
        bounds=[[0, 0, 0], [20, 10, 5]],
        dt=0.05,
        obstacles={"ball": {"radius": 1.0, "position": [15, 8, 2]}},
        targets={"nest": {"position": [18, 2, 4]}},
    )
    figure: Any = run_figure(MemoryTrajectory(world, [at([[1.0 + 0.1 * k, 3.0, 1.0]], dim=3) for k in range(100)]))
    above, side = figure.axes[:2]
    assert (above.get_ylabel(), side.get_ylabel()) == ("y [m]", "z [m]")
    np.testing.assert_allclose(
        above.transData.transform([[1, 0]]) - above.transData.transform([[0, 0]]),
        side.transData.transform([[1, 0]]) - side.transData.transform([[0, 0]]),
    )
    for axes, height in ((above, 3.0), (side, 1.0)):
        assert distance(pixel(figure, axes, 5.0, height), rgb(style.FLOOR)) > 60
        assert distance(pixel(figure, axes, 5.0, height + 1.0), rgb(style.FLOOR)) == 0
    assert distance(pixel(figure, above, 15.0, 8.5), rgb(style.FLOOR)) > 40
    assert distance(pixel(figure, side, 15.0, 2.5), rgb(style.FLOOR)) > 40


def test_a_recorded_file_is_drawn_too(tmp_path: Path) -> None:
    with open_trajectory(tmp_path / "run.sqlite", scene=scene(exits={"east": EAST.wkt}), fps=10.0) as writer:
        for k, frame in enumerate(walk()):
            writer.write(
                k,
                id=frame.id,
                position=frame.position,
                heading=frame.heading,
                group=frame.group,
                radius=frame.radius,
                speed=np.ones(len(frame.id)),
            )
    with read_trajectory(tmp_path / "run.sqlite") as run:
        assert draw_run(run, tmp_path / "run.png").exists()
        assert "interrupted before the end" in texts(run_figure(run))


def test_an_earlier_picture_stays_when_drawing_fails(tmp_path: Path) -> None:
    target = tmp_path / "run.png"
    target.write_bytes(b"earlier")
    with pytest.raises(ValueError, match="cannot read on"):
        draw_run(MemoryTrajectory(scene(), walk(), fails_after=3), target)
    with pytest.raises(RecordingError, match="has no frames"):
        draw_run(MemoryTrajectory(scene(), []), target)
    assert target.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_an_error_and_leaves_no_half_picture(tmp_path: Path) -> None:
    script = f"""
import resource
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from recorded_runs import MemoryTrajectory, scene, walk
from tropel.errors import RecordingError
from tropel.pictures import animate_run, draw_run
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
for draw, name in ((draw_run, "run.png"), (animate_run, "run.gif")):
    try:
        draw(MemoryTrajectory(scene(), walk(frames=5)), Path({str(tmp_path)!r}) / name)
    except RecordingError as error:
        assert "cannot write the picture" in str(error), error
    else:
        raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert not list(tmp_path.iterdir())


def test_impossible_names_of_pictures_are_refused_before_any_work(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(), walk(), fails_after=0)
    with pytest.raises(RecordingError, match=r"must end in \.png"):
        draw_run(run, tmp_path / "run.jpg")
    with pytest.raises(RecordingError, match="does not exist, create it first"):
        draw_run(run, tmp_path / "nowhere" / "run.png")
    (tmp_path / "dir.png").mkdir()
    with pytest.raises(RecordingError, match="it is a directory"):
        draw_run(run, tmp_path / "dir.png")


def test_importing_loads_no_drawing_library_and_drawing_touches_no_global_state(tmp_path: Path) -> None:
    script = f"""
import sys
import tropel.pictures
assert not {{"matplotlib", "PIL"}} & set(sys.modules)
sys.path.insert(0, {str(Path(__file__).parent)!r})
import matplotlib
# Asking for the backend would choose one, and load pyplot.
names = set(matplotlib.rcParams) - {{"backend"}}
before = {{name: matplotlib.rcParams[name] for name in names}}
from recorded_runs import MemoryTrajectory, scene, walk
tropel.pictures.draw_run(MemoryTrajectory(scene(), walk()), {str(tmp_path / "run.png")!r})
assert "matplotlib.pyplot" not in sys.modules
assert all(matplotlib.rcParams[name] == before[name] for name in names)
"""
    subprocess.run([sys.executable, "-c", script], check=True)

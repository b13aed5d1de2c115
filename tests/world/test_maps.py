"""Moving AI maps and PNG floor plans as worlds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw

from tropel.errors import GeometryError, ParameterError
from tropel.world.maps import moving_ai_cells, outline, read_moving_ai, read_picture, read_plan

SMALL = """type octile
height 3
width 4
map
..@@
.GST
@WO.
"""


def joined_squares(free: np.ndarray) -> shapely.Geometry:
    row, column = np.nonzero(free)
    top = len(free) - row
    return shapely.union_all(shapely.box(column, top - 1, column + 1, top))


@given(arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 8))).filter(np.any))
def test_the_outline_is_the_union_of_the_squares(free: np.ndarray) -> None:
    area = outline(free)
    assert area.is_valid
    squares = joined_squares(free)
    assert area.equals(squares)
    assert area.geom_type == squares.geom_type
    corners = len(shapely.get_coordinates(area))
    assert corners == len(shapely.get_coordinates(squares.normalize().simplify(0)))  # none in the middle of an edge


def test_cells_that_touch_at_a_corner_stay_apart() -> None:
    assert len(shapely.get_parts(outline(np.array([[True, False], [False, True]])))) == 2


def test_a_large_map_keeps_its_area() -> None:
    free = np.random.default_rng(3).random((512, 512)) < 0.7
    area = outline(free, scale=0.5)
    assert area.area == pytest.approx(0.25 * free.sum(), rel=1e-12)
    assert area.is_valid


def test_a_moving_ai_map_becomes_a_world_with_its_first_row_on_top(tmp_path: Path) -> None:
    (tmp_path / "small.map").write_text(SMALL)
    world = read_plan(tmp_path / "small.map", scale=2.0).world(targets={"spot": (1.0, 5.0)})
    assert world.bounds.tolist() == [[0.0, 0.0], [8.0, 6.0]]
    assert world.walkable.area == 4.0 * 6
    for x, y, inside in [(1, 5, True), (3, 5, True), (5, 5, False), (5, 3, True), (7, 3, False), (3, 1, False)]:
        assert world.walkable.covers(shapely.Point(x, y)) is inside


def test_swamp_is_walked_on_and_water_is_not() -> None:
    cells = moving_ai_cells(SMALL, source="small.map")
    assert cells.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]]


def test_line_ends_of_other_systems_and_blank_lines_at_the_end_are_fine() -> None:
    text = SMALL.replace("\n", "\r\n") + "\r\n\r\n"
    np.testing.assert_array_equal(moving_ai_cells(text, source="a"), moving_ai_cells(SMALL, source="a"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type octile", "type foo", r"bad\.map, line 1: expected 'type octile', found 'type foo'"),
        ("height 3", "height " + "9" * 5000, r"bad\.map, line 2: height must be a positive number of cells"),
        ("type octile", "octile", r"bad\.map, line 1: expected 'type octile', found 'octile'"),
        ("height 3", "height three", r"bad\.map, line 2: height must be a positive number of cells, not 'three'"),
        ("height 3", "height", r"bad\.map, line 2: expected 'height NUMBER'"),
        ("width 4", "width -4", r"bad\.map, line 3: width must be"),
        ("map\n", "", r"bad\.map, line 4: expected 'map', found '\.\.@@'"),
        (".GST", ".GS", r"bad\.map, line 6: a row of 3 cells, but the header gives width 4"),
        (".GST", ".GxT", r"bad\.map, line 6, column 3: 'x' is not a known terrain"),
        ("@WO.\n", "", r"bad\.map, line 6: the map ends too early: 2 rows, but the header gives 3"),
        ("@WO.", "@WO.\n....", r"bad\.map, line 8: the map goes on too long"),
        ("height 3\nwidth 4", "height 99999\nwidth 99999", r"bad\.map: 99999 × 99999 cells are too many"),
        ("..@@\n.GST\n@WO.", "@@@@\n@@@@\n@@@@", r"bad\.map: no cell is walkable"),
    ],
)
def test_errors_of_map_files_name_file_and_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "bad.map").write_text(SMALL.replace(old, new))
    with pytest.raises(GeometryError, match=message):
        read_moving_ai(tmp_path / "bad.map")


def test_files_that_are_no_maps_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.map").write_bytes(b"\xff\xfe")
    (tmp_path / "a.png").write_bytes(b"not a picture")
    for name, message in [("a.map", "ASCII"), ("none.map", "No such file"), ("a.txt", r"\.map .* or a \.png")]:
        with pytest.raises(GeometryError, match=message):
            read_plan(tmp_path / name)
    with pytest.raises(GeometryError, match="not a picture"):
        read_plan(tmp_path / "a.png", scale=1.0)
    with pytest.raises(GeometryError, match="metres per pixel"):
        read_plan(tmp_path / "a.png")
    with pytest.raises(ParameterError, match="positive number of metres"):
        read_plan(tmp_path / "a.map", scale=0.0)
    with pytest.raises(ParameterError, match=r"wall_below: only for PNG floor plans, which .*a\.map is not"):
        read_plan(tmp_path / "a.map", wall_below=0.4)


def draw_room(path: Path) -> None:
    """Two rooms of 48 by 58 pixels with a doorway between them, and green exits at both ends."""
    picture = Image.new("RGB", (100, 60), "white")
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, 99, 59), outline="black")
    pen.rectangle((49, 0, 50, 59), fill="#202020")
    pen.rectangle((49, 10, 50, 19), fill="white")
    pen.rectangle((0, 30, 0, 39), fill="#00ff00")
    pen.rectangle((99, 40, 99, 49), fill="#08f808")
    picture.save(path)


def test_a_floor_plan_has_walls_where_it_is_dark_and_exits_where_it_is_coloured(tmp_path: Path) -> None:
    draw_room(tmp_path / "plan.png")
    plan = read_picture(tmp_path / "plan.png", scale=0.1, exits={"out": "#00ff00"})
    assert plan.walkable.area == pytest.approx(0.01 * (2 * 48 * 58 + 2 * 10 + 2 * 10))
    assert {name: [round(v, 9) for v in exit.bounds] for name, exit in plan.exits.items()} == {
        "out_1": [0.0, 2.0, 0.1, 3.0],
        "out_2": [9.9, 1.0, 10.0, 2.0],
    }
    world = plan.world()
    assert set(world.exits) == {"out_1", "out_2"}
    assert len(world.segments) == len(shapely.get_coordinates(plan.walkable)) - 1


def test_green_is_as_walkable_as_any_light_colour_without_exits(tmp_path: Path) -> None:
    draw_room(tmp_path / "plan.png")
    assert read_picture(tmp_path / "plan.png", scale=0.1).exits == {}


def test_no_exit_replaces_another_of_its_name(tmp_path: Path) -> None:
    draw_room(tmp_path / "plan.png")
    with Image.open(tmp_path / "plan.png") as picture:
        picture.putpixel((20, 20), (255, 0, 0))
        picture.save(tmp_path / "two.png")
    colours = {"out": "#00ff00", "out_1": "#ff0000"}
    with pytest.raises(GeometryError, match="exit 'out_1' exists twice: as a patch of 'out' and of 'out_1'"):
        read_picture(tmp_path / "two.png", scale=0.1, exits=colours)
    plan = read_picture(tmp_path / "plan.png", scale=0.1, exits={"out": "#00ff00"})
    with pytest.raises(GeometryError, match="exit 'out_2' exists twice: the map has an exit of that name"):
        plan.world(exits={"out_2": shapely.box(1, 1, 2, 2)})


def test_a_floor_plan_of_sixteen_bits_is_read_as_it_looks(tmp_path: Path) -> None:
    grey = np.full((10, 10), 250, dtype=np.uint16)
    grey[:, :5] = 60
    Image.fromarray(grey * 257).save(tmp_path / "plan.png")
    assert read_picture(tmp_path / "plan.png", scale=1.0).walkable.bounds == (5.0, 0.0, 10.0, 10.0)


def test_what_is_transparent_counts_as_paper(tmp_path: Path) -> None:
    picture = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    ImageDraw.Draw(picture).rectangle((0, 0, 4, 9), fill=(0, 0, 0, 255))
    picture.save(tmp_path / "plan.png")
    assert read_picture(tmp_path / "plan.png", scale=1.0).walkable.bounds == (5.0, 0.0, 10.0, 10.0)


def test_slanted_walls_become_straight(tmp_path: Path) -> None:
    picture = Image.new("L", (101, 101), 255)
    ImageDraw.Draw(picture).polygon([(0, 100), (100, 100), (100, 0)], fill=0)
    picture.save(tmp_path / "slope.png")
    stairs = read_picture(tmp_path / "slope.png", scale=0.1).walkable
    straight = read_picture(tmp_path / "slope.png", scale=0.1, straighten=0.75).walkable
    assert len(stairs.exterior.coords) > 150
    assert len(straight.exterior.coords) < 8
    assert shapely.hausdorff_distance(stairs.exterior, straight.exterior) < 0.1


def test_missing_colours_and_black_pictures_are_told(tmp_path: Path) -> None:
    draw_room(tmp_path / "plan.png")
    with pytest.raises(GeometryError, match="exit 'way': no pixel has the colour blue"):
        read_picture(tmp_path / "plan.png", scale=0.1, exits={"way": "blue"})
    with pytest.raises(ParameterError, match="'greenish' is not a colour"):
        read_picture(tmp_path / "plan.png", scale=0.1, exits={"way": "greenish"})
    with pytest.raises(ParameterError, match="brightness"):
        read_picture(tmp_path / "plan.png", scale=0.1, wall_below=128)
    for pixels, says in ((-1.0, "straighten must be a number of pixels"), (np.nan, "finite"), (np.inf, "finite")):
        with pytest.raises(ParameterError, match=says):
            read_picture(tmp_path / "plan.png", scale=0.1, straighten=pixels)
    Image.new("L", (5, 5), 0).save(tmp_path / "black.png")
    with pytest.raises(GeometryError, match="no pixel is walkable"):
        read_picture(tmp_path / "black.png", scale=0.1)

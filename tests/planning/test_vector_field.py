"""Painted vector fields: arrays, functions, strokes, images, masks and blends, and the planner that follows them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy.interpolate import RegularGridInterpolator

from tropel import Direct, Group, World
from tropel.agents.population import Population
from tropel.agents.state import AgentState
from tropel.contracts import Guidance, Moment, Planner
from tropel.errors import GeometryError, ParameterError
from tropel.planning.painted import ArrayField, FunctionField, PaintedField, Stroke, image_field
from tropel.planning.vector_field import Blend, VectorField
from tropel.testing import check_planner

Floats = NDArray[np.float64]
HALL = shapely.box(0, 0, 30, 20)


def crowd(positions: Any) -> tuple[AgentState, World]:
    world = World(HALL, targets={"bar": (25.0, 10.0)})
    population = Population(world, [Group("all", positions=positions, goal="bar")], seed=0)
    population.spawn_all(())
    return population.state, world


def directions(planner: Any, positions: Any) -> Floats:
    state, world = crowd(positions)
    moment, out = Moment.of(state, world), Guidance(directions=np.full_like(state.position, 9.0))
    planner.prepare(moment)
    planner.direct(moment, out)
    return out.directions


def east(points: Floats) -> Floats:
    return np.broadcast_to([1.0, 0.0], points.shape)


def north(points: Floats) -> Floats:
    return np.broadcast_to([0.0, 1.0], points.shape)


EAST, NORTH = FunctionField(east), FunctionField(north)


@pytest.mark.parametrize("dim", [2, 3])
def test_arrays_are_interpolated_between_centres_as_scipy_does(dim: int) -> None:
    random = np.random.default_rng(3)
    shape = (4, 5, 6)[-dim:]
    vectors = random.uniform(-1, 1, (*shape, dim))
    field = ArrayField(vectors, origin=(1.0, -2.0, 0.5)[:dim], cell=0.5)
    axes = [field.origin[dim - 1 - a] + (np.arange(n) + 0.5) * 0.5 for a, n in enumerate(shape)]
    low, high = [axis[0] for axis in axes][::-1], [axis[-1] for axis in axes][::-1]
    points = random.uniform(low, high, (300, dim))
    expected = RegularGridInterpolator(axes, vectors)(points[:, ::-1])
    np.testing.assert_allclose(field.at(points), expected, atol=1e-12)


def test_outside_of_an_array_nothing_is_painted_and_its_border_reaches_to_the_edge() -> None:
    field = ArrayField(np.ones((2, 3, 2)), origin=(1.0, 1.0), cell=1.0)
    points = np.array([[1.01, 1.01], [3.99, 2.99], [0.99, 1.5], [4.01, 2.0], [2.0, 3.01]])
    np.testing.assert_allclose(field.at(points), [[1, 1], [1, 1], [0, 0], [0, 0], [0, 0]])


@given(seed=st.integers(0, 10_000), width=st.floats(0.0, 3.0), falloff=st.floats(0.01, 2.0))
@settings(max_examples=40, deadline=None)
def test_a_stroke_runs_along_its_line_and_fades_with_the_distance(seed: int, width: float, falloff: float) -> None:
    random = np.random.default_rng(seed)
    line = random.uniform(0, 10, (4, 2))
    points = random.uniform(-2, 12, (60, 2))
    vectors = Stroke(line, width=width, falloff=falloff, strength=0.8).at(points)
    away = shapely.distance(shapely.LineString(line), shapely.points(points))
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[away < 0.5 * width] == pytest.approx(0.8)
    assert not lengths[away > 0.5 * width + falloff + 1e-9].any()
    between = (away > 0.5 * width) & (away < 0.5 * width + falloff)
    order = np.argsort(away[between])
    assert (np.diff(lengths[between][order]) <= 1e-12).all()
    ways = np.diff(line, axis=0) / np.linalg.norm(np.diff(line, axis=0), axis=1)[:, None]
    for vector, length in zip(vectors, lengths, strict=True):
        assert length < 1e-12 or np.isclose(ways @ vector / length, 1.0).any()


def test_strokes_work_in_three_dimensions() -> None:
    stroke = Stroke([(0, 0, 0), (0, 0, 4)], width=1.0, falloff=0.0)
    np.testing.assert_allclose(stroke.at(np.array([[0.3, 0.0, 2.0], [0.6, 0.0, 2.0]])), [[0, 0, 1], [0, 0, 0]])


def test_sums_masks_and_over() -> None:
    left = shapely.box(0, 0, 10, 20)
    points = np.array([[5.0, 5.0], [15.0, 5.0]])
    np.testing.assert_allclose((0.5 * EAST + NORTH * 0.25).at(points), [[0.5, 0.25]] * 2)
    np.testing.assert_allclose(EAST.masked(left).at(points), [[1, 0], [0, 0]])
    np.testing.assert_allclose(EAST.masked(left, inside=False).at(points), [[0, 0], [1, 0]])
    np.testing.assert_allclose(EAST.over(NORTH, region=left).at(points), [[1, 0], [0, 1]])
    np.testing.assert_allclose(EAST.masked(left).over(NORTH).at(points), [[1, 0], [0, 1]])


def test_a_mask_with_a_hole_agrees_with_shapely() -> None:
    ring = shapely.Point(10, 10).buffer(6).difference(shapely.Point(10, 10).buffer(3))
    points = np.random.default_rng(0).uniform(0, 20, (500, 2))
    painted = EAST.masked(ring).at(points).any(axis=1)
    assert np.array_equal(painted, shapely.contains(ring, shapely.points(points)))


def test_on_grid_keeps_the_field_at_the_centres() -> None:
    swirl = FunctionField(lambda p: np.stack([-p[:, 1], p[:, 0]], axis=-1) / 40.0)
    grid = swirl.on_grid((0, 0), (30, 20), cell=0.5)
    assert grid.vectors.shape == (40, 60, 2)
    points = np.random.default_rng(1).uniform((1, 1), (29, 19), (100, 2))
    np.testing.assert_allclose(grid.at(points), swirl.at(points), atol=1e-12)  # linear, so interpolation is exact


def test_image_with_red_and_green_as_directions(tmp_path: Path) -> None:
    pixels = np.zeros((2, 3, 4), dtype=np.uint8)
    pixels[...] = (128, 128, 77, 255)
    pixels[0, 0] = (255, 128, 0, 255)  # top left: east
    pixels[1, 2] = (128, 1, 0, 51)  # bottom right: south, a fifth as strong
    Image.fromarray(pixels).save(tmp_path / "field.png")
    field = image_field(tmp_path / "field.png", cell=2.0, origin=(10.0, 5.0), encoding="xy")
    centres = np.array([[11.0, 8.0], [15.0, 6.0], [13.0, 8.0]])
    np.testing.assert_allclose(field.at(centres), [[1, 0], [0, -0.2], [0, 0]], atol=1e-12)


def test_image_with_hue_as_angle_agrees_with_colorsys(tmp_path: Path) -> None:
    import colorsys

    random = np.random.default_rng(5)
    pixels = random.integers(0, 256, (6, 7, 3), dtype=np.uint8)
    pixels[0, :3] = ((0, 0, 0), (255, 255, 255), (90, 90, 90))
    Image.fromarray(pixels).save(tmp_path / "field.png")
    vectors = image_field(tmp_path / "field.png", cell=1.0).vectors
    for row in range(6):
        for column in range(7):
            hue, saturation, value = colorsys.rgb_to_hsv(*(pixels[row, column] / 255.0))
            angle, strength = 2.0 * np.pi * hue, saturation * value
            expected = strength * np.array([np.cos(angle), np.sin(angle)])
            np.testing.assert_allclose(vectors[5 - row, column], expected, atol=1e-9)


def test_an_image_of_sixteen_bits_means_what_one_of_eight_does(tmp_path: Path) -> None:
    grey = np.array([[0, 64, 128], [192, 255, 1]], dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "8.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "16.png")
    eight, sixteen = (image_field(tmp_path / name, cell=1.0, encoding="xy").vectors for name in ("8.png", "16.png"))
    np.testing.assert_array_equal(eight, sixteen)


def test_agents_follow_what_is_painted_and_stand_where_nothing_is() -> None:
    lane = Stroke([(0, 5), (30, 5)], width=2.0, falloff=0.0)
    out = directions(VectorField(3.0 * lane), [(4, 5), (4, 10)])
    np.testing.assert_allclose(out, [[1, 0], [0, 0]])
    half = directions(VectorField(0.5 * lane), [(4, 5)])
    np.testing.assert_allclose(half, [[0.5, 0]])


def test_the_fallback_directs_those_for_whom_nothing_is_painted() -> None:
    lane = Stroke([(0, 5), (0, 15)], width=40.0, falloff=0.0).masked(shapely.box(0, 0, 10, 20))
    for fallback in (Direct(), "direct"):
        out = directions(VectorField(lane, fallback=fallback), [(4, 10), (15, 10)])
        np.testing.assert_allclose(out, [[0, 1], [1, 0]])


def test_strokes_lie_over_the_image_and_both_over_the_field(tmp_path: Path) -> None:
    Image.new("RGB", (10, 20), (0, 255, 255)).save(tmp_path / "west.png")  # cyan: to the left
    planner = VectorField(
        EAST,
        image=tmp_path / "west.png",
        cell=1.0,
        strokes=[{"points": [(0, 5), (0, 15)], "width": 4.0, "falloff": 0.0}],
    )
    np.testing.assert_allclose(directions(planner, [(1, 10), (6, 10), (20, 10)]), [[0, 1], [-1, 0], [1, 0]], atol=1e-12)


def test_blend_is_the_weighted_mean_of_those_who_say_something() -> None:
    painted = VectorField(NORTH.masked(shapely.box(0, 0, 10, 20)))
    out = directions(Blend([(0.7, Direct()), (0.3, painted)]), [(5, 10), (15, 10)])
    np.testing.assert_allclose(out, [[0.7, 0.3], [1.0, 0.0]], atol=1e-12)


def test_blends_can_be_written_with_names_and_tables_alone() -> None:
    table = {"model": "vector_field", "strokes": [{"points": [(0, 0), (0, 20)], "width": 60.0}]}
    out = directions(Blend([(0.7, "direct"), (0.3, table)]), [(5, 10)])
    np.testing.assert_allclose(out, [[0.7, 0.3]], atol=1e-12)
    nested = {"model": "blend", "parts": [(0.5, "direct"), (0.5, table)]}
    out = directions(Blend([(0.4, "direct"), (0.6, nested)]), [(5, 10)])
    np.testing.assert_allclose(out, [[0.7, 0.3]], atol=1e-12)


def test_opposite_directions_slow_people_down() -> None:
    out = directions(Blend([(3, VectorField(EAST)), (1, VectorField(-1.0 * EAST))]), [(5, 10)])
    np.testing.assert_allclose(out, [[0.5, 0.0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: VectorField(Stroke([(1, 1), (9, 6)], width=3.0), fallback=Direct()),
        lambda: Blend([(0.5, Direct()), (0.5, VectorField(np.ones((5, 8, 2)), cell=2.0))]),
    ],
)
def test_the_contract_of_planners_holds(make: Any) -> None:
    check_planner(make, dims=(2,))


def test_three_dimensional_fields_keep_the_contract_too() -> None:
    check_planner(lambda: VectorField(lambda p: p / 100.0, fallback="direct"), dims=(3,))


def test_parameters_tell_fields_apart() -> None:
    texts = {
        VectorField(field).parameters
        for field in (
            ArrayField(np.zeros((2, 2, 2)), cell=1.0),
            ArrayField(np.ones((2, 2, 2)), cell=1.0),
            *(EAST, NORTH, 2.0 * NORTH, EAST.masked(HALL)),
        )
    }
    assert len(texts) == 6
    assert VectorField(EAST, fallback="direct").parameters != VectorField(EAST).parameters


def test_a_blend_keeps_the_states_of_its_parts_apart() -> None:
    class Counting(Planner):
        def __init__(self) -> None:
            self.calls = np.zeros(1)

        def direct(self, moment: Moment, out: Guidance) -> None:
            self.calls += 1

        def state(self) -> dict[str, Any]:
            return {"calls": self.calls}

        def restore(self, stored: dict[str, Any]) -> None:
            self.calls = stored["calls"]

    first, second = Counting(), Counting()
    second.calls += 5
    stored = Blend([(1, first), (1, second)]).state()
    fresh = Blend([(1, Counting()), (1, Counting())])
    fresh.restore(stored)
    assert [planner.calls[0] for _, planner in fresh.parts] == [0, 5]


def wrong(points: Floats) -> Floats:
    return points[:, :1]


def undefined(points: Floats) -> Floats:
    return points * np.nan


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ArrayField(np.zeros((3, 4)), cell=1.0), r"\(ny, nx, 2\) or \(nz, ny, nx, 3\), not \(3, 4\)"),
        (lambda: ArrayField(np.full((1, 1, 2), np.nan), cell=1.0), r"first bad value is at \(0, 0, 0\)"),
        (lambda: ArrayField(np.zeros((1, 1, 2)), cell=0.0), "ArrayField: cell must be a positive number"),
        (lambda: ArrayField(np.zeros((1, 1, 2)), origin=(0, 0, 0), cell=1.0), "origin of a painted 2D array"),
        (lambda: Stroke([(0, 0)]), "two or more finite points"),
        (lambda: Stroke([(0, 0), (1, 1), (1, 1)]), r"point \(1.0, 1.0\) twice in a row"),
        (lambda: Stroke([(0, 0), (1, 1)], width=-1), "width of a stroke"),
        (lambda: Stroke([(0, 0), (1, 1)], width=0, falloff=0), "paints nothing"),
        (lambda: Stroke([(0, 0), (1, 1, 1)]), "two or more finite points"),
        (lambda: Stroke([(0, 0), (1, 1)], width="wide"), "width of a stroke .* not 'wide'"),  # type: ignore[arg-type]
        (lambda: Stroke([(0, 0), (1, 1)], strength="much"), "strength of a stroke"),  # type: ignore[arg-type]
        (lambda: EAST.on_grid((0, 0), (np.inf, 1), cell=1.0), "each a finite number"),
        (lambda: EAST.on_grid((0, 0), (1, 1), cell="fine"), "cell must be a positive number"),  # type: ignore[arg-type]
        (lambda: EAST.masked(shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])), "Self-intersection"),
        (lambda: EAST.masked("door"), "region must be Polygon"),  # type: ignore[arg-type]
        (lambda: EAST * np.inf, "finite number"),
        (lambda: FunctionField(3), "needs a function"),  # type: ignore[arg-type]
        (lambda: image_field("nowhere.png", cell=1.0), "no image 'nowhere.png'"),
        (lambda: image_field(__file__, cell=1.0), "not a picture in a format that can be read"),
        (lambda: image_field(__file__, cell=1.0, encoding="hues"), "did you mean 'hue'"),
        (lambda: VectorField(), "nothing to follow"),
        (lambda: VectorField(np.zeros((2, 2, 2))), "needs its `cell`"),
        (lambda: VectorField(3.0, cell=1.0), r"\(ny, nx, 2\) or \(nz, ny, nx, 3\), not 3.0"),
        (lambda: VectorField([[1.0], [1.0, 2.0]], cell=1.0), r"numbers of the shape"),  # type: ignore[list-item]
        (lambda: VectorField("a.png", cell=1.0), r"pass image='a\.png'"),
        (lambda: VectorField(Stroke([(0, 0), (1, 1)]), cell=1.0), "already in metres"),
        (lambda: VectorField(strokes=[Stroke([(0, 0), (1, 1)])], origin=(1.0, 1.0)), "already in metres"),
        (lambda: VectorField(strokes=[{"points": [(0, 0), (1, 1)], "breadth": 2}]), "stroke 0: .*breadth"),
        (lambda: VectorField(EAST, fallback="flowfield"), "did you mean 'flow_field'"),
        (lambda: VectorField(EAST, fallback=3), "must be a planner"),
        (lambda: Blend([(1.0, {"model": "harmonics"})]), "did you mean 'harmonic'"),
        (lambda: Blend([(1.0, {"model": "harmonic", "wall": "fixed"})]), "planner 'harmonic': .*wall"),
        (lambda: Blend([]), "at least one planner"),
        (lambda: Blend([(0.0, Direct())]), "weight above 0"),
        (lambda: Blend([Direct()]), r"pair \(weight, planner\)"),  # type: ignore[list-item]
        (lambda: directions(VectorField(wrong), [(1, 1)]), "one vector per point"),
        (lambda: directions(VectorField(undefined), [(1, 1)]), "not finite"),
        (lambda: directions(VectorField(np.zeros((2, 2, 2, 3)), cell=1.0), [(1, 1)]), "3D array .* 2D world"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_grid_larger_than_memory_is_refused() -> None:
    with pytest.raises(GeometryError, match="memory"):
        EAST.on_grid((0, 0), (1e6, 1e6), cell=0.01)


def test_the_origin_of_an_array_may_be_an_array() -> None:
    planner = VectorField(np.ones((2, 2, 2)), origin=np.array([10.0, 5.0]), cell=1.0)
    np.testing.assert_allclose(directions(planner, [(11, 6), (1, 1)]), [[0.5**0.5, 0.5**0.5], [0, 0]])


def test_a_field_may_be_undefined_where_nobody_stands() -> None:
    def vortex(points: Floats) -> Floats:
        return np.stack([-points[:, 1], points[:, 0]], axis=-1) / np.linalg.norm(points, axis=1)[:, None]

    for field in (FunctionField(vortex), 0.5 * FunctionField(vortex) + 0.5 * FunctionField(vortex)):
        np.testing.assert_allclose(directions(VectorField(field), [(3, 4)]), [[-0.8, 0.6]])


def test_a_field_of_ones_own_needs_only_at() -> None:
    class Whirl(PaintedField):
        def at(self, points: Floats) -> Floats:
            return np.stack([-(points[:, 1] - 10.0), points[:, 0] - 15.0], axis=-1)

    out = directions(VectorField(Whirl()), [(15, 4), (20, 10)])
    np.testing.assert_allclose(out, [[1, 0], [0, 1]], atol=1e-12)


def test_a_painted_field_that_does_not_say_what_is_painted_cannot_be_made() -> None:
    class Blank(PaintedField):
        pass

    with pytest.raises(TypeError, match=r"Blank.*at"):
        Blank()

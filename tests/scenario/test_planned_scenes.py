"""The scenes that need planning: with a field everybody arrives, without one people are caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from PIL import Image

from tropel.errors import ScenarioError
from tropel.planning.fields import cache as plan_cache
from tropel.planning.fields.field import GridField
from tropel.planning.fields.planner import FieldPlanner
from tropel.scenario import Scenario, load_builtin, parse_scenario
from tropel.scenario.plan import Plan, draw_scenario_fields, make_plan, read_world
from tropel.scenario.schema import LayerSpec
from tropel.world import World
from tropel.world.raster import Raster

#: How many agents of each scene the short tests run, and how many of them are caught at least without planning.
FEWER = {"u_room": (40, 40), "maze_small": (16, 10), "maze_large": (30, 25), "theatre": (120, 40), "office": (60, 40)}
LONG_SEEDS = range(4)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plan_cache.VARIABLE, str(tmp_path / "plans"))


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    agents: int
    left: int  #: still there at the end
    time: float  #: [s]


def changed(name: str, *, count: int | None = None, planner: str | None = None) -> Scenario:
    scenario = load_builtin(name)
    spec = scenario.spec
    if count is not None:
        spec = spec.model_copy(update={"groups": [spec.groups[0].model_copy(update={"count": count})]})
    if planner is not None:
        spec = spec.model_copy(update={"planning": LayerSpec(model=planner)})
    return replace(scenario, spec=spec)


def run(scenario: Scenario, *, seed: int | None = None, limit: float | None = None) -> Outcome:
    sim = scenario.build(seed=seed)
    agents = len(sim.agents)
    sim.run(until="empty", limit=scenario.spec.limit if limit is None else limit)
    return Outcome(agents=agents, left=len(sim.agents), time=sim.time)


@pytest.mark.parametrize("name", FEWER)
def test_everybody_arrives_with_a_field_and_many_are_caught_without(name: str) -> None:
    count, caught = FEWER[name]
    outcome = run(changed(name, count=count), seed=3)
    assert (outcome.agents, outcome.left) == (count, 0)
    without = run(changed(name, count=count, planner="direct"), seed=3, limit=1.5 * outcome.time)
    assert without.left >= caught


@pytest.mark.long
@pytest.mark.parametrize("name", FEWER)
def test_everybody_arrives_whatever_the_seed(name: str) -> None:
    outcomes = [run(load_builtin(name), seed=seed) for seed in LONG_SEEDS]
    assert [outcome.left for outcome in outcomes] == [0] * len(LONG_SEEDS)
    assert {outcome.agents for outcome in outcomes} == {sum(g.count for g in load_builtin(name).spec.groups)}


def test_the_theatre_seats_six_hundred_and_all_of_its_exits_are_used() -> None:
    scenario = changed("theatre", count=200)
    assert load_builtin("theatre").spec.groups[0].count == 600
    sim = scenario.build(seed=1)
    summary = sim.run(until="empty", limit=scenario.spec.limit)
    assert set(summary.exits) == {"stage_left", "stage_right", "back_left", "back_right"}
    assert min(summary.exits.values()) >= 20


@pytest.mark.parametrize("name", FEWER)
def test_every_place_of_a_scene_has_a_way_to_its_exits(name: str) -> None:
    sim = load_builtin(name).build(threads=1)
    (planner,) = [layer for layer in sim.all_layers() if isinstance(layer, FieldPlanner)]
    assert [lost.cells for lost in planner.unreachable().values()] == [0]


def test_one_maze_has_a_harmonic_field_and_the_other_a_flow_field() -> None:
    assert load_builtin("maze_small").spec.planning.model == "harmonic"
    assert load_builtin("maze_large").spec.planning.model == "flow_field"


def test_the_field_of_a_scene_is_drawn_beside_its_run(tmp_path: Path) -> None:
    (picture,) = draw_scenario_fields(load_builtin("u_room"), tmp_path)
    assert picture == tmp_path / "field.png"
    with Image.open(picture) as image:
        assert min(image.size) > 500
    assert draw_scenario_fields(load_builtin("hall"), tmp_path) == []


HALL = """
name = "hall"
[world]
walkable = { box = [0.0, 0.0, 8.0, 6.0] }
[world.exits]
east = { box = [7.0, 2.0, 8.0, 4.0] }
[world.targets]
bar = { position = [4.0, 5.0] }
"""
STROKE = "strokes = [{ points = [[1.0, 1.0], [3.0, 1.0]] }]"


def group(name: str, x: float, planning: str = "") -> str:
    return f'[[groups]]\nname = "{name}"\npositions = [[{x}, 1.0]]\n{planning}\n'


@pytest.mark.parametrize(
    ("rest", "names"),
    [
        (
            '[planning]\nmodel = "blend"\nparts = [[0.7, "flow_field"], [0.3, { model = "harmonic" }]]\n'
            + group("a", 1.0),
            ["field_1.png", "field_2.png"],
        ),
        (
            f'[planning]\nmodel = "vector_field"\n{STROKE}\n'
            'fallback = { model = "blend", parts = [[1.0, "flow_field"]] }\n' + group("a", 1.0),
            ["field.png"],
        ),
        (
            "".join(group(name, x, 'planning = { model = "flow_field" }') for name, x in (("a", 1.0), ("b", 2.0))),
            ["field.png"],
        ),
        (
            group("a", 1.0, 'planning = { model = "flow_field" }')
            + group("b", 2.0, 'planning = { model = "flow_field", clearance = 0.3 }'),
            ["field_1.png", "field_2.png"],
        ),
        (
            '[planning]\nmodel = "flow_field"\n'
            + "".join(
                f'[[sources]]\ngroup = "a"\nrate = 1.0\ngoal = "{goal}"\nregion = {{ box = [1.0, 1.0, 3.0, 3.0] }}\n'
                for goal in ("nearest exit", "bar", "none")
            ),
            ["field_1.png", "field_2.png"],
        ),
    ],
    ids=["in a blend", "behind a painted field", "equal ones once", "others twice", "of sources"],
)
def test_every_field_that_somebody_follows_is_drawn_once(tmp_path: Path, rest: str, names: list[str]) -> None:
    scenario = parse(HALL + rest, tmp_path)
    assert [path.name for path in draw_scenario_fields(scenario, tmp_path)] == names


# Plans without a scenario ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["goal", "other"])
def test_planning_to_a_place_leaves_the_world_as_it_was(name: str) -> None:
    world = World(shapely.box(0, 0, 6, 6), targets={name: (2.0, 2.0)}, exits={"goal_2": shapely.box(5, 2, 6, 4)})
    for place in ((1.0, 1.0), (3.0, 3.0)):
        plan = make_plan(world, goal=place)
        assert plan.goal == f"({place[0]:g}, {place[1]:g})"
        assert plan.field.goal[tuple(plan.field.raster.index_of(place))]
    assert list(world.targets) == [name]
    assert list(world.goal_numbers) == ["goal_2", name]


def test_what_is_lost_in_space_is_a_volume() -> None:
    raster = Raster(origin=np.zeros(3), cell=2.0, free=np.ones((2, 2, 2), dtype=bool), clearance=0.2)
    nowhere = np.full(raster.shape, -np.inf)
    field = GridField(raster=raster, goal=nowhere > 0, value=nowhere, vectors=np.zeros((2, 2, 2, 3)))
    world = World.box((0, 0, 0), (4, 4, 4))
    table = Plan(world=world, field=field, planner="harmonic", goal="nowhere", seconds=0.0).table()
    said = [str(text) for column in table.columns for text in column.cells]
    assert "around (1, 1, 1): 8 cells, 64 m³" in said


def test_a_folder_named_like_a_built_in_scenario_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "u_room").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_world("u_room")[1] == load_builtin("u_room").spec.title


# Maps in scenario files -----------------------------------------------------------------------------------------

ROOM = """
name = "room"
[world]
map = {map}
[world.targets]
spot = {{ position = [0.5, 0.5], absorbs = true }}
[[groups]]
name = "people"
count = 1
goal = "spot"
radius = 0.2
"""


def parse(text: str, folder: Path) -> Scenario:
    return parse_scenario(text, source="room.toml", folder=folder)


def test_a_scenario_may_take_its_walls_from_a_map(tmp_path: Path) -> None:
    (tmp_path / "l.map").write_text("type octile\nheight 2\nwidth 2\nmap\n.@\n..\n")
    world = parse(ROOM.format(map='"l.map"'), tmp_path).world()
    assert world.walkable.equals(shapely.box(0, 0, 2, 2) - shapely.box(1, 1, 2, 2))
    twice = parse(ROOM.format(map='{ file = "l.map", scale = 2.0 }'), tmp_path).world()
    assert twice.walkable.area == 12.0


def test_a_scenario_may_take_walls_and_exits_from_a_picture(tmp_path: Path) -> None:
    picture = Image.new("RGB", (8, 4), "white")
    picture.putpixel((7, 3), (255, 0, 0))
    picture.save(tmp_path / "plan.png")
    text = ROOM.format(map='{ file = "plan.png", scale = 0.5, exits = { out = "#ff0000" } }')
    world = parse(text, tmp_path).world()
    assert world.exits["out"].polygon.equals(shapely.box(3.5, 0.0, 4.0, 0.5))
    own = text + "[world.exits]\nout = { box = [0.0, 0.0, 1.0, 1.0] }\n"
    with pytest.raises(ScenarioError, match=r"line 13: world\.exits\.out: exit 'out' exists twice: the map has"):
        parse(own, tmp_path).world()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('"none.map"', r"room\.toml, line 4: world\.map: cannot read the map .*none\.map"),
        ('"bad.map"', r"room\.toml, line 4: world\.map: .*bad\.map, line 5: a row of 1 cells"),
        ('{ file = "bad.map", scale = 0 }', r"line 4: world\.map.*scale.* greater than 0"),
        ('{ file = "bad.map", wall_below = 0.4 }', r"line 4: world\.map: wall_below: only for PNG"),
        ('{ file = "bad.png" }', r"line 4: world\.map: .*metres per pixel"),
        ('{ file = "bad.map", scal = 1 }', r"scal: unknown key; did you mean 'scale'"),
        ('"a.map"\nwalkable = { box = [0, 0, 1, 1] }', r"exactly one of walkable or map"),
    ],
)
def test_errors_in_maps_name_the_scenario_s_line_and_the_map_s(tmp_path: Path, said: str, message: str) -> None:
    (tmp_path / "bad.map").write_text("type octile\nheight 1\nwidth 2\nmap\n.\n")
    with pytest.raises(ScenarioError, match=message):
        parse(ROOM.format(map=said), tmp_path).world()


@pytest.mark.parametrize("shape", ["file = 'none.wkt'", "wkt = 'POLYGON((0 0, 1'", "wkt = 'POINT(0 0)'"])
def test_errors_of_shapes_name_their_place_once(tmp_path: Path, shape: str) -> None:
    text = ROOM.format(map='"a.map"').replace('map = "a.map"', f"walkable = {{ {shape} }}")
    with pytest.raises(ScenarioError) as caught:
        parse(text, tmp_path).world()
    assert str(caught.value).count("world.walkable") == 1
    assert str(caught.value).count("room.toml") == 1

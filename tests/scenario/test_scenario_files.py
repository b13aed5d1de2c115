"""Scenario files: what is read, and how errors are told."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel.errors import ScenarioError
from tropel.scenario import builtin_names, load_builtin, load_scenario, parse_scenario
from tropel.scenario.locate import line_of
from tropel.scenario.schema import ScenarioSpec

ROOM = """
name = "room"
dt = 0.1

[world]
walkable = { box = [0.0, 0.0, 10.0, 10.0] }

[world.exits]
east = { box = [9.0, 4.0, 10.0, 6.0] }

[world.doors]
gate = { line = [[5.0, 0.0], [5.0, 10.0]] }

[[groups]]
name = "people"
count = 5
desired_speed = 1.2
"""


def parse(text: str):
    return parse_scenario(text, source="room.toml", folder=Path())


def error_of(text: str, *, build: bool = False) -> str:
    """The message of the error that reading a text gives; with `build`, the text is read without one."""
    if build:
        scenario = parse(text)
        with pytest.raises(ScenarioError) as caught:
            scenario.build()
    else:
        with pytest.raises(ScenarioError) as caught:
            parse(text)
    return str(caught.value)


@pytest.mark.parametrize("name", builtin_names())
def test_every_builtin_scenario_builds_and_moves(name):
    sim = load_builtin(name).build()
    sim.run(until=1.0)
    assert sim.time == pytest.approx(1.0, abs=sim.dt)


def test_the_demo_scene_is_among_the_builtin_ones():
    assert "hall" in builtin_names()


def test_a_scenario_becomes_the_simulation_it_describes():
    sim = parse(ROOM).build(seed=4, threads=1)
    assert (len(sim.agents), sim.dt, sim.seed, sim.threads) == (5, 0.1, 4, 1)
    assert sim.groups == ["people"]
    assert set(sim.agents.desired_speed) == {1.2}
    assert list(sim.world.exits) == ["east"]
    assert not sim.world.doors["gate"].open


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "desired_speed = 1.2",
            "desired_sped = 1.2",
            ["line 17", "groups[0].desired_sped", "did you mean 'desired_speed'"],
        ),
        ("dt = 0.1", "dt = 0.0", ["line 3", "dt = 0.0", "greater than 0"]),
        ("dt = 0.1", "dt = nan", ["line 3", "dt", "finite"]),
        ("count = 5", "count = -1", ["line 16", "groups[0].count = -1"]),
        ("count = 5", "", ["groups[0]", "exactly one of count, density or positions"]),
        ('name = "room"', "", ["name", "is missing"]),
        ("box = [0.0, 0.0, 10.0, 10.0]", "box = [0.0, 0.0, 10.0]", ["line 6", "world.walkable"]),
        ("box = [0.0, 0.0, 10.0, 10.0]", "bux = [0.0, 0.0, 10.0, 10.0]", ["world.walkable.bux", "did you mean 'box'"]),
        ("desired_speed = 1.2", "desired_speed = { kind = 'norml', mean = 1 }", ["norml", "did you mean 'normal'"]),
        ("desired_speed = 1.2", "desired_speed = { kind = 'normal', mean = 1 }", ["desired_speed", "sd", "is missing"]),
    ],
)
def test_an_error_names_line_key_value_and_remedy(old, new, expected):
    assert old in ROOM
    message = error_of(ROOM.replace(old, new))
    assert message.startswith("room.toml")
    for part in expected:
        assert part in message


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        (
            '[[events]]\nat = 1.0\nkind = "open_door"\ndoor = "gat"\n',
            ["line 21", "events[0].door", "did you mean 'gate'"],
        ),
        ('[local]\nmodel = "sek"\n', ["line 19", "local.model", "did you mean 'seek'"]),
        ('[local]\nmodel = "seek"\ntime_gp = 1\n', ["local", "time_gp", "did you mean 'time_gap'"]),
        ('[local]\nmodel = "no_such_package:Thing"\n', ["local.model", "no_such_package"]),
        ('[planning]\nmodel = "tropel.planning.direct:Nothing"\n', ["planning.model", "Nothing"]),
    ],
)
def test_what_only_building_can_find_out_is_told_in_the_same_way(addition, expected):
    message = error_of(ROOM + addition, build=True)
    assert message.startswith("room.toml")
    for part in expected:
        assert part in message


def test_engine_errors_get_the_line_of_what_they_name():
    message = error_of(ROOM.replace("[9.0, 4.0, 10.0, 6.0]", "[19.0, 4.0, 20.0, 6.0]"), build=True)
    assert "line 9" in message
    assert "world.exits.east" in message
    assert "outside the walkable area" in message


def test_all_problems_of_a_file_are_told_at_once():
    text = ROOM.replace("dt = 0.1", "dt = -1.0").replace("desired_speed", "desird_speed")
    assert error_of(text).count("room.toml") == 2


@pytest.mark.parametrize("text", ["", "a = [", "a = 1\na = 2", "x" * 1000, "[" * 5000])
def test_nonsense_is_refused_with_a_scenario_error(text):
    error_of(text)


def test_unreadable_files_are_refused(tmp_path):
    for path, word in [(tmp_path / "none.toml", "No such file"), (tmp_path, "directory")]:
        with pytest.raises(ScenarioError, match=word):
            load_scenario(path)
    (tmp_path / "binary.toml").write_bytes(b"\x80\x81\x82")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load_scenario(tmp_path / "binary.toml")


def test_a_huge_file_is_refused_without_reading_it(tmp_path):
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(1 << 36)
    with pytest.raises(ScenarioError, match="too large"):
        load_scenario(tmp_path / "huge.toml")


def test_shapes_come_from_files_beside_the_scenario(tmp_path):
    (tmp_path / "area.wkt").write_text("POLYGON ((0 0, 8 0, 8 6, 0 6, 0 0))")
    geojson = {
        "type": "Feature",
        "properties": {},
        "geometry": {"type": "Polygon", "coordinates": [[[7, 2], [8, 2], [8, 4], [7, 2]]]},
    }
    (tmp_path / "out.geojson").write_text(json.dumps(geojson))
    text = ROOM.replace("{ box = [0.0, 0.0, 10.0, 10.0] }", '{ file = "area.wkt" }')
    text = text.replace("{ box = [9.0, 4.0, 10.0, 6.0] }", '{ file = "out.geojson" }')
    (tmp_path / "room.toml").write_text(text)
    world = load_scenario(tmp_path / "room.toml").build().world
    assert world.walkable.area == pytest.approx(48.0)
    assert world.exits["east"].polygon.area == pytest.approx(1.0)
    (tmp_path / "area.wkt").unlink()
    with pytest.raises(ScenarioError, match=r"area\.wkt"):
        load_scenario(tmp_path / "room.toml").build()


def test_several_shapes_are_joined_and_holes_are_cut_out():
    text = ROOM.replace(
        "walkable = { box = [0.0, 0.0, 10.0, 10.0] }",
        "walkable = [{ box = [0.0, 0.0, 10.0, 10.0] }, { box = [10.0, 4.0, 12.0, 6.0] }]\n"
        "holes = [{ circle = [3.0, 3.0, 1.0] }, { polygon = [[6.0, 6.0], [7.0, 6.0], [6.0, 7.0]] }]",
    )
    area = parse(text).build().world.walkable.area
    assert area == pytest.approx(104.0 - 3.12 - 0.5, abs=0.02)


def test_groups_may_have_layers_of_their_own():
    text = ROOM + '[groups.local]\nmodel = "seek"\ntime_gap = 2.0\n[[groups]]\nname = "others"\ncount = 3\n'
    sim = parse(text).build()
    own, shared = sim.layers.models
    assert own.parameters.time_gap == 2.0
    assert shared.parameters.time_gap != 2.0


def test_a_3d_world_refuses_2d_parts():
    text = ROOM.replace("walkable = { box = [0.0, 0.0, 10.0, 10.0] }", "box = { low = [0,0,0], high = [5,5,5] }")
    assert "3D box has no walls, exits, doors" in error_of(text)


def test_the_exported_schema_accepts_the_builtin_scenarios_keys():
    schema = ScenarioSpec.model_json_schema()
    assert {"name", "world", "groups", "events"} <= set(schema["properties"])
    assert "CloseDoorAt" in schema["$defs"]
    assert schema["additionalProperties"] is False


def test_lines_are_found_in_nested_and_repeated_tables():
    text = "a = 1\n[t]\nb = 2\n[[g]]\nc = 3\n[[g]]\nc = 4\n[g.inner]\nd = 5\n"
    assert line_of(text, ("a",)) == 1
    assert line_of(text, ("t", "b")) == 3
    assert line_of(text, ("g", 0, "c")) == 5
    assert line_of(text, ("g", 1, "c")) == 7
    assert line_of(text, ("g", 1, "inner", "d")) == 9
    assert line_of(text, ("g", 1, "unknown")) == 6
    assert line_of(text, ("nowhere",)) is None


def test_a_file_may_say_that_collisions_are_not_watched():
    assert parse(ROOM).build().collision_watch is not None
    assert parse("watch_collisions = false\n" + ROOM).build().collision_watch is None


def test_collisions_of_a_flock_are_watched_only_if_the_file_says_so():
    flock = ROOM + '\n[local]\nmodel = "flocking"\n'
    assert parse(flock).build().collision_watch is None
    assert parse("watch_collisions = true\n" + flock).build().collision_watch is not None


# Scattered obstacles ----------------------------------------------------------------------------------------------

STONES = """
[world.scatter.stones]
count = 12
radius = { kind = "uniform", low = 0.2, high = 0.5 }
region = { box = [1.0, 1.0, 8.0, 9.0] }
gap = 0.3
"""


def test_scattered_obstacles_keep_their_distance_from_each_other_and_from_all_else():
    text = ROOM + "[world.targets]\ntent = { position = [2.0, 2.0], radius = 1.0 }\n"
    text += "[world.obstacles]\ntree = { radius = 0.4, position = [3.0, 7.0] }\n" + STONES
    world = parse(text).build().world
    assert world.obstacles.names == ["tree", *(f"stones_{number}" for number in range(1, 13))]
    stones = [
        shapely.Point(place).buffer(radius, quad_segs=64)
        for place, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True)
    ]
    for one, other in combinations(stones, 2):
        assert one.distance(other) > 0.299
    around = [world.walkable.exterior, world.doors["gate"].line, world.exits["east"].polygon]
    around.append(shapely.Point(2.0, 2.0).buffer(1.0, quad_segs=64))
    for stone in stones[1:]:
        assert 0.199 < np.sqrt(stone.area / np.pi) < 0.501
        assert shapely.box(1.0, 1.0, 8.0, 9.0).covers(stone.centroid)
        assert min(stone.distance(thing) for thing in around) > 0.299


def test_scattered_obstacles_depend_on_their_own_seed_and_not_on_that_of_the_run():
    def places(text, seed):
        return parse(text).build(seed=seed).world.obstacles.position

    here = places(ROOM + STONES, 1)
    np.testing.assert_array_equal(here, places(ROOM + STONES, 2))
    assert not np.isclose(here, places(ROOM + STONES + "seed = 7\n", 1)).any()
    assert not np.isclose(here, places(ROOM + STONES.replace("stones", "rocks"), 1)).any()


def test_obstacles_are_scattered_in_a_box_of_space():
    text = 'name = "space"\n[world]\nbox = { low = [0, 0, 0], high = [9, 9, 9] }\n'
    text += "[world.scatter.balls]\ncount = 20\nradius = 0.5\nregion = { low = [1, 1, 5], high = [8, 8, 8] }\n"
    text += '[[groups]]\nname = "flyers"\ncount = 3\n'
    place = parse(text).build().world.obstacles.position
    assert place.shape == (20, 3)
    assert (place >= (1, 1, 5)).all()
    assert (place <= (8, 8, 8)).all()
    assert min(np.linalg.norm(a - b) for a, b in combinations(place, 2)) >= 1.0
    assert "its region is a shape in 2D" in error_of(
        text.replace("{ low = [1, 1, 5], high = [8, 8, 8] }", "{ box = [1, 1, 8, 8] }")
    )


def test_columns_reach_from_the_floor_to_the_ceiling_of_a_box():
    text = 'name = "hall"\n[world]\nbox = { low = [0, 0, 1], high = [20, 20, 9] }\n'
    text += "[world.columns.column]\nradius = 1.0\nplaces = [[5, 5], [12, 8]]\n"
    text += '[[groups]]\nname = "flyers"\ncount = 3\n'
    obstacles = parse(text).build().world.obstacles
    balls = obstacles.position
    assert set(map(tuple, balls[:, :2].tolist())) == {(5.0, 5.0), (12.0, 8.0)}
    # Nowhere thinner than 97 % of its width, from bottom to top.
    points = np.column_stack([np.full(100, 5.96), np.full(100, 5.0), np.linspace(1.0, 9.0, 100)])
    assert (np.linalg.norm(points[:, None] - balls, axis=2).min(axis=1) < 1.0).all()
    flat = 'name = "flat"\n[world]\nbounds = [0, 0, 9, 9]\n[world.columns.c]\nradius = 1.0\nplaces = [[5, 5]]\n'
    assert "columns stand in a 3D box" in error_of(flat + '[[groups]]\nname = "a"\ncount = 1\n')


def test_a_file_says_what_colours_mean():
    assert parse(ROOM + '[recording]\ncolours = "heading"\n').build().scene.extra == {"colours": "heading"}
    assert parse(ROOM).build().scene.extra == {}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("count = 12", "count = 500", ["line 19", "world.scatter.stones", "of 500 obstacles", "use fewer or smaller"]),
        ("{ box = [1.0, 1.0, 8.0, 9.0] }", "'medow'", ["world.scatter.stones", "there is no region 'medow'"]),
        ("[1.0, 1.0, 8.0, 9.0]", "[20.0, 1.0, 28.0, 9.0]", ["world.scatter.stones", "outside the walkable area"]),
        ("low = 0.2", "low = -0.4", ["world.scatter.stones", "radius must be positive"]),
    ],
)
def test_scattered_obstacles_that_find_no_room_are_refused(old, new, expected):
    assert old in STONES
    message = error_of(ROOM + STONES.replace(old, new), build=True)
    for part in expected:
        assert part in message


def test_an_unknown_key_of_an_event_is_compared_with_the_keys_of_its_own_kind():
    said = error_of(ROOM + '[[events]]\nat = 1.0\nkind = "remove_obstacle"\nname = "cart"\ndelya = 2.0\n')
    assert "events[0].delya: unknown key; known: at, kind, name" in said
    said = error_of(ROOM + '[[events]]\nat = 1.0\nkind = "add_hazard"\nname = "f"\nposition = [1.0, 1.0]\niner = 2.0\n')
    assert "events[0].iner: unknown key; did you mean 'inner'?" in said


def test_an_unknown_key_of_a_squad_is_compared_with_those_of_squads():
    said = error_of(ROOM + '[[groups]]\nname = "alpha"\ncount = 2\nsquad = { sihgt = 3.0 }\n')
    assert "squad.sihgt: unknown key; did you mean 'sight'?" in said

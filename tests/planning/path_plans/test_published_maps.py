"""Value maps in a running simulation: vetoes, moving maps, audiences, events and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from tropel import (
    Disc,
    Door,
    FlowField,
    Group,
    Lattice,
    Openness,
    Orbit,
    PathPlans,
    Seek,
    Simulation,
    ValueMap,
    Waypoints,
    World,
    events,
)
from tropel.errors import CheckpointError, ParameterError, ScenarioError
from tropel.scenario.loading import parse_scenario

Floats = NDArray[np.float64]


def corridor(
    maps: dict[str, Any] | None = None, *, count: int = 30, groups: tuple[str, ...] = ("people",), threads: int = 1
) -> Simulation:
    """A corridor of 50 × 15 cells with the exit at its east end."""
    world = World(shapely.box(0, 0, 20, 6), exits={"east": shapely.box(19.6, 0, 20, 6)})
    start = shapely.box(0, 0, 4, 6)
    agents = [Group(name, count=count, region=start, desired_speed=1.2) for name in groups]
    return Simulation(
        world, agents, planning=PathPlans(value_maps=maps or {}), local=Lattice(), dt=0.25, seed=4, threads=threads
    )


def places(sim: Simulation, seconds: float = 40.0) -> list[tuple[float, Floats, NDArray[np.int32]]]:
    """Time, positions and groups after each step."""
    found = []
    while len(sim.agents) and sim.time < seconds:
        sim.step()
        found.append((sim.time, sim.agents.position.copy(), sim.agents.group.copy()))
    return found


def inside(place: Floats, low: tuple[float, float], high: tuple[float, float]) -> NDArray[np.bool_]:
    return np.asarray(((place > low) & (place < high)).all(axis=1))


BLOCK = {"origin": (8.0, 2.0), "cell": 2.0}


def ever_inside_the_block(sim: Simulation) -> bool:
    return any(inside(place, (8.0, 2.0), (12.0, 4.0)).any() for _, place, _ in places(sim))


def test_nobody_enters_cells_that_an_array_vetoes_and_all_arrive() -> None:
    sim = corridor({"block": ValueMap([[0.0, 0.0]], **BLOCK)})
    assert not ever_inside_the_block(sim)
    assert len(sim.agents) == 0
    assert ever_inside_the_block(corridor())
    assert ever_inside_the_block(corridor({"block": ValueMap([[1.0, 1.0]], **BLOCK)}))


def test_a_function_vetoes_too() -> None:
    def block(points: Floats) -> Floats:
        return np.where(inside(points, (8.0, 2.0), (12.0, 4.0)), 0.0, 1.0)

    assert not ever_inside_the_block(corridor({"block": ValueMap(block)}))


def test_a_value_map_for_one_group_leaves_others_alone() -> None:
    maps = {"block": ValueMap([[0.0, 0.0]], **BLOCK, group="shy")}
    went: set[int] = set()
    for _, place, group in places(corridor(maps, groups=("bold", "shy"))):
        went |= set(group[inside(place, (8.0, 2.0), (12.0, 4.0))].tolist())
    assert went == {0}


def nearest_to(sim: Simulation, motion: Waypoints) -> float:
    """How near anybody comes to a place that moves, as it was when people decided [m]."""
    return min(
        float(np.linalg.norm(place - motion.at(time - sim.dt), axis=1).min())
        for time, place, _ in places(sim, 20.0)
        if len(place)
    )


SWEEP = Waypoints(points=((18.0, 1.0), (2.0, 5.0)), speed=0.5)


def test_a_moving_value_map_repels_where_it_is() -> None:
    repelled = nearest_to(corridor({"beast": ValueMap(Disc(inner=0.8, outer=3.0), motion=SWEEP)}), SWEEP)
    assert nearest_to(corridor(), SWEEP) < 0.5 < repelled


def test_a_value_map_that_moves_by_a_function_is_the_same() -> None:
    told = corridor({"beast": ValueMap(Disc(inner=0.8, outer=3.0), motion=SWEEP)})
    called = corridor({"beast": ValueMap(Disc(inner=0.8, outer=3.0), motion=lambda time: SWEEP.at(time))})
    told.run(until=8.0)
    called.run(until=8.0)
    np.testing.assert_array_equal(told.agents.position, called.agents.position)


def beside_walls(sim: Simulation) -> float:
    """Share of people within half a metre of the corridor's sides, after the start."""
    near = [np.abs(place[place[:, 0] > 6.0, 1] - 3.0) > 2.5 for _, place, _ in places(sim)]
    return float(np.concatenate(near).mean())


def test_openness_keeps_people_away_from_walls() -> None:
    assert beside_walls(corridor({"open": ValueMap(Openness(reach=2.0, least=0.05))})) < 0.5 * beside_walls(corridor())


def test_openness_follows_a_door_that_closes() -> None:
    world = World(
        shapely.box(0, 0, 8, 8),
        exits={"out": shapely.box(7.6, 0, 8, 8)},
        doors={"door": Door([(4.0, 0.0), (4.0, 4.0)], open=True)},
    )
    planner = PathPlans(value_maps={"open": ValueMap(Openness(reach=1.2, least=0.2))})
    people = Group("people", count=3, region=shapely.box(0, 5, 2, 8))
    sim = Simulation(world, people, planning=planner, local=Lattice(), dt=0.25)
    sim.step()
    assert sim.ground is not None
    before = sim.ground.filters["value map open"].log_value.copy()
    sim.at(sim.time, events.CloseDoor(door="door"))
    sim.step()
    after = sim.ground.filters["value map open"].log_value
    assert before.shape == after.shape
    assert (before != after).any()


def test_value_map_come_and_go_by_events_and_functions() -> None:
    sim = corridor()
    sim.at(1.0, events.AddValueMap(name="block", values=((0.0,),), origin=(8.0, 2.0), cell=2.0, group="people"))
    sim.at(2.0, events.RemoveValueMap(name="block"))
    sim.run(until=1.5)
    ground = sim.ground
    assert ground is not None
    assert "value map block" in ground.filters
    sim.run(until=2.5)
    assert not ground.filters
    sim.add_value_map("wave", ValueMap(lambda points, time: np.full(len(points), 0.5), every=1.0))
    sim.step()
    assert list(ground.filters) == ["value map wave"]
    sim.remove_value_map("wave")
    sim.step()
    assert not ground.filters


def busy(threads: int = 1, *, with_function: bool = True) -> Simulation:
    sim = corridor(
        {
            "beast": ValueMap(Disc(inner=0.4, outer=2.0), motion=SWEEP),
            "wave": ValueMap(lambda points, time: 0.5 + 0.5 * np.cos(points[:, 0] + time) ** 2, every=0.5),
            "first": ValueMap(Openness(), group="people"),
        },
        count=60,
        threads=threads,
    )
    sim.at(1.0, events.RemoveValueMap(name="first"))
    orbit = Orbit(center=(10, 3), radius=2.0, period=6.0)
    sim.at(1.5, events.AddValueMap(name="cart", values=((0.2, 0.0), (1.0, 0.3)), cell=0.7, motion=orbit))
    if with_function:
        sim.add_value_map("swing", ValueMap(Disc(outer=1.0), motion=_swing))
    return sim


def _swing(time: float) -> tuple[float, float]:
    return 12.0, 3.0 + 2.0 * np.sin(time)


def test_a_resume_has_the_same_bits(tmp_path: Path) -> None:
    whole, half = busy(), busy()
    half.run(until=4.0)
    half.save(tmp_path / "half.npz")
    resumed = busy()
    resumed.restore(tmp_path / "half.npz")
    assert resumed.state_hash() == half.state_hash()
    whole.run(until=8.0)
    resumed.run(until=8.0)
    assert resumed.state_hash() == whole.state_hash()


def test_a_resume_without_the_function_is_refused(tmp_path: Path) -> None:
    sim = busy()
    sim.run(until=1.0)
    sim.save(tmp_path / "x.npz")
    with pytest.raises(CheckpointError, match="value map 'swing' is or moves by a function"):
        busy(with_function=False).restore(tmp_path / "x.npz")


def test_a_resume_with_other_value_map_is_refused(tmp_path: Path) -> None:
    sim = corridor({"block": ValueMap([[0.0]], **BLOCK)})
    sim.save(tmp_path / "x.npz")
    with pytest.raises(CheckpointError, match="belongs to another simulation"):
        corridor({"block": ValueMap([[0.1]], **BLOCK)}).restore(tmp_path / "x.npz")


def test_nonsense_is_refused_where_it_is_said() -> None:
    with pytest.raises(ParameterError, match=r"value map 'block' is for the group 'peple'.*did you mean 'people'"):
        corridor({"block": ValueMap([[0.0]], **BLOCK, group="peple")})
    with pytest.raises(ParameterError, match=r"value_maps must be a table by name, each ValueMap.*'block'"):
        PathPlans(value_maps={"block": 3.0})  # type: ignore[dict-item]
    with pytest.raises(ParameterError, match="value map 'block' has no 'orogin'; did you mean 'origin'"):
        PathPlans(value_maps={"block": {"values": [[0.0]], "orogin": (0, 0)}})
    sim = corridor({"block": ValueMap([[0.0]], **BLOCK)})
    with pytest.raises(ParameterError, match="there is a value map 'block' already"):
        sim.add_value_map("block", ValueMap([[0.0]], **BLOCK))
    with pytest.raises(ParameterError, match="there is no value map 'blck'; did you mean 'block'"):
        sim.remove_value_map("blck")
    with pytest.raises(ParameterError, match="there is no group 'peple'"):
        sim.at(0.0, events.AddValueMap(name="x", values=((0.0,),), group="peple"))
    with pytest.raises(ParameterError, match="there is no value map 'blck'; did you mean 'block'"):
        sim.at(0.0, events.RemoveValueMap(name="blck"))
    walkers = Simulation(sim.world, Group("people", count=1), planning=FlowField(), local=Seek())
    with pytest.raises(ParameterError, match="no planner here publishes value maps; plan with PathPlans"):
        walkers.at(0.0, events.RemoveValueMap(name="block"))


FILE = """
name = "x"
dt = 0.25
[world]
walkable = { box = [0.0, 0.0, 20.0, 6.0] }
exits = { east = { box = [19.6, 0.0, 20.0, 6.0] } }
[[groups]]
name = "people"
count = 5
[planning]
model = "path_plans"
[planning.value_maps]
block = { values = [[0.0, 0.5]], origin = [8.0, 2.0], cell = 2.0 }
open = { values = { kind = "openness", reach = 1.0, least = 0.5 } }
[planning.value_maps.beast]
values = { kind = "disc", outer = 2.0 }
motion = { kind = "waypoints", points = [[1.0, 1.0], [9.0, 5.0]], speed = 1.0 }
[local]
model = "lattice"
[[events]]
at = 0.5
kind = "add_value_map"
name = "late"
values = { kind = "disc", inner = 0.5, outer = 1.5 }
position = [12.0, 3.0]
"""


def test_files_hold_value_maps() -> None:
    sim = parse_scenario(FILE, source="x.toml", folder=Path()).build()
    sim.run(until=1.0)
    assert sim.ground is not None
    assert set(sim.ground.filters) == {"value map block", "value map open", "value map beast", "value map late"}
    with pytest.raises(ScenarioError, match=r"value map 'open': .*least"):
        parse_scenario(FILE.replace("least = 0.5", "least = 5"), source="x.toml", folder=Path()).build()

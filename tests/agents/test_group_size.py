"""Groups and sources of any size and radius: refused at once, or placed with work that has an end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Group, Obstacle, Simulation, Source, World
from tropel.agents import spawn
from tropel.agents import spawn as group_size
from tropel.agents.distributions import Normal, Uniform
from tropel.agents.room import Region
from tropel.agents.spawn import spawn_positions
from tropel.errors import ScenarioError, SpawnError, TropelError
from tropel.scenario.loading import parse_scenario


def _placed(world: World, radius: Any, count: int = 3, **more: Any) -> np.ndarray:
    told: dict[str, Any] = {"taken": np.empty((0, world.dim)), "taken_radius": np.empty(0), **more}
    radius = np.broadcast_to(np.asarray(radius, dtype=np.float64), (count,))
    return spawn_positions(world, count=count, radius=radius, region=None, seed=0, who="crowd", **told)


@pytest.fixture
def no_darts(monkeypatch: pytest.MonkeyPatch) -> None:
    def thrown(*_: Any) -> int:
        raise AssertionError("darts were thrown")

    monkeypatch.setattr(spawn, "_throw_darts", thrown)


@pytest.mark.parametrize("radius", [-1.0, 0.0, -math.inf, math.inf, math.nan, [0.2, -0.2, 0.2]])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.usefixtures("no_darts")
def test_a_radius_that_no_body_has_is_refused(radius: Any, partial: bool) -> None:
    with pytest.raises(SpawnError, match="group 'crowd': the radius of a body must be a positive length"):
        _placed(World(shapely.box(0, 0, 10, 10)), radius, partial=partial)


@pytest.mark.parametrize("radius", [1e-300, 1e-12, 1e-6])
def test_bodies_may_be_as_small_as_they_like(radius: float) -> None:
    assert _placed(World(shapely.box(0, 0, 10, 10)), radius).shape == (3, 2)


@pytest.mark.parametrize("radius", [5.1, 1e6, 1e150])
def test_a_body_larger_than_the_world_is_refused(radius: float) -> None:
    with pytest.raises(SpawnError, match=r"group 'crowd'.* do not fit .* about 0 do"):
        _placed(World(shapely.box(0, 0, 10, 10)), radius)


def test_small_bodies_without_any_room_do_not_fill_the_memory_with_places() -> None:
    """A world full of a stone has 10^13 sites for bodies of a micrometre, all of them taken."""
    world = World(shapely.box(0, 0, 10, 10), obstacles={"stone": Obstacle(radius=8.0, position=(5.0, 5.0))})
    with pytest.raises(SpawnError, match="about 0 do"):
        _placed(world, 1e-6)


@pytest.mark.parametrize("group", [{"radius": -1.0}, {"parameters": {"radius": -1.0}}, {"radius": Normal(-1.0, 0.1)}])
def test_a_group_with_a_negative_radius_is_refused(group: dict[str, Any]) -> None:
    with pytest.raises(TropelError, match="radius"):
        Simulation(World(shapely.box(0, 0, 10, 10)), Group("crowd", count=3, **group))


@pytest.mark.parametrize("radius", [0.2, Uniform(0.2, 0.3), Normal(0.25, 0.01, low=0.2)])
@pytest.mark.parametrize("many", [{"count": 1_000_000}, {"count": 10**9}, {"density": 1e5}, {"density": 1e9}])
@pytest.mark.usefixtures("no_darts")
def test_far_too_many_are_refused_before_anything_is_drawn_for_them(
    many: dict[str, Any], radius: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "values", lambda *_, **__: pytest.fail("values were drawn"))
    with pytest.raises(SpawnError, match=r"group 'crowd': .* do not fit into the walkable area .* at most \d+ do"):
        Simulation(World(shapely.box(0, 0, 12, 8)), Group("crowd", radius=radius, **many))


@pytest.mark.parametrize("many", [{"count": 10**15}, {"density": 1e300}])
def test_numbers_that_nobody_means_are_refused_with_the_group(many: dict[str, Any]) -> None:
    with pytest.raises(TropelError, match=r"group 'crowd': .* at most 1,000,000,000"):
        Group("crowd", **many)


def test_more_than_memory_holds_are_refused_before_anything_is_drawn_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Group, "values", lambda *_, **__: pytest.fail("values were drawn"))
    monkeypatch.setattr("tropel.foundation.memory.memory_available", lambda: 1e9)
    with pytest.raises(SpawnError, match=r"group 'crowd': 10,000,000 agents would need .* use fewer agents"):
        Simulation(World(shapely.box(0, 0, 1e5, 1e5)), Group("crowd", count=10_000_000))


@pytest.mark.parametrize("radius", ["0.2", '{ kind = "normal", mean = 0.2, sd = 0.01 }'])
def test_a_count_without_sense_names_file_line_and_key(radius: str) -> None:
    text = f"""name = "crowded"
[world]
walkable = {{ box = [0, 0, 12, 8] }}
[[groups]]
name = "few"
count = 3
[[groups]]
name = "many"
count = 1000000000000000
radius = {radius}
"""
    with pytest.raises(ScenarioError, match=r"^crowded\.toml, line 7: groups\[1\]: group 'many': .*1,?000"):
        parse_scenario(text, source="crowded.toml", folder=Path()).build()


@pytest.mark.usefixtures("no_darts")
def test_a_crowd_too_dense_for_darts_goes_to_the_sites_at_once() -> None:
    side = 40.0
    count = int(0.8 * side**2 / (math.pi * 0.2**2))
    assert _placed(World(shapely.box(0, 0, side, side)), 0.2, count).shape == (count, 2)


@pytest.mark.parametrize(
    "world",
    [
        World(shapely.box(0, 0, 3, 2)),
        World(shapely.box(0, 0, 30, 0.41)),
        World(shapely.MultiPolygon([shapely.box(k, 0, k + 0.5, 0.5) for k in range(9)])),
        World(bounds=(0, 0, 3, 2)),
        World.box((0, 0, 0), (2, 2, 2)),
        World.box((0, 0, 0), (2, 2, 2), open=True),
    ],
)
def test_no_packing_exceeds_what_a_region_can_hold(world: World) -> None:
    """The bound is compared with the densest lattice, which the sites are taken from."""
    radius = 0.2
    room = spawn.Room(world, None, "crowd", radius)
    sites = spawn._hexagonal_sites(room, radius, np.empty((0, world.dim)), np.empty(0), most=1 << 20)
    assert 0 < len(sites) <= Region(world, None, "crowd").most(radius) <= 40 * len(sites)


def test_newcomers_into_a_full_region_are_refused_whatever_their_radii(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies of a thousand sizes are in the way: they are not looked at once for every size."""
    searches = 0
    inside = spawn.inside_discs

    def counted(*told: Any) -> Any:
        nonlocal searches
        searches += 1
        return inside(*told)

    monkeypatch.setattr(spawn, "inside_discs", counted)
    places = np.stack(np.meshgrid(np.arange(32), np.arange(32)), axis=-1).reshape(-1, 2) * 0.3 + 0.35
    taken = {"taken": places, "taken_radius": np.linspace(0.14, 0.149, len(places))}
    with pytest.raises(SpawnError, match="about 0 do"):
        _placed(World(shapely.box(0, 0, 10, 10)), 0.2, 5, **taken)
    assert searches == 1


@pytest.mark.parametrize("arrivals", ["even", "random"])
@pytest.mark.parametrize("rate", [1e6, 1e9])
def test_a_source_tries_no_more_newcomers_than_its_region_holds(
    arrivals: Any, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    values = Source.values

    def counted(self: Source, *, ids: Any, **told: Any) -> Any:
        nonlocal most
        most = max(most, len(ids))
        return values(self, ids=ids, **told)

    monkeypatch.setattr(Source, "values", counted)
    monkeypatch.setattr(group_size, "_MANY_WAITING", 100)
    source = Source("crowd", rate=rate, region=shapely.box(1, 1, 3, 3), arrivals=arrivals)
    sim = Simulation(World(shapely.box(0, 0, 10, 10)), [source], dt=0.05)
    for _ in range(3):
        sim.step()
    assert 0 < len(sim.agents) <= most <= 100
    assert sim.population.waiting[0] + len(sim.agents) == pytest.approx(0.15 * rate, rel=0.01)


def test_a_rate_that_cannot_be_counted_is_refused() -> None:
    with pytest.raises(TropelError, match=r"rate must be positive and at most 1e\+09 per second"):
        Source("crowd", rate=1e12, region=shapely.box(1, 1, 3, 3))

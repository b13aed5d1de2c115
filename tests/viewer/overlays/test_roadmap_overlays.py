"""Roadmaps on the page: edges, paths with subgoals and their weights, blocked edges, and the graph over doors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from overlay_scenes import walkers

import tropel
from tropel.viewer.overlays.overlay import Canvas
from tropel.viewer.overlays.roadmap import (
    DOOR_GRAPH,
    PATHS,
    ROADMAP,
    draw_doors,
    draw_paths,
    draw_roadmap,
    look_at_doors,
    look_at_paths,
    look_at_roadmap,
)
from tropel.world import Door, Obstacle, Target, Waypoints, World


class Lines:
    """Stands for viser's scene: the segments by name."""

    def __init__(self) -> None:
        self.drawn: dict[str, Any] = {}

    def add_line_segments(self, name: str, ends: Any, **look: Any) -> None:
        self.drawn[name] = np.asarray(ends)

    def remove_by_name(self, name: str) -> None:
        self.drawn.pop(name, None)


def two_rooms(planner: tropel.Planner, *, held: bool = False) -> tropel.Simulation:
    """Two rooms with two doors, of which one is shut; a cart goes up and down, and a wall of people may stand ahead."""
    cart = Obstacle(radius=0.7, motion=Waypoints(points=((3.0, 1.0), (3.0, 9.0)), speed=0.9))
    world = World(
        shapely.box(0, 0, 12, 10),
        walls=[[(6, 0), (6, 4)], [(6, 5.5), (6, 8)], [(6, 9.5), (6, 10)]],
        doors={"near": Door([(6, 4), (6, 5.5)], open=True), "far": Door([(6, 8), (6, 9.5)])},
        obstacles={} if held else {"cart": cart},
        targets={"goal": Target(position=(10, 5), radius=0.5)},
    )
    groups = [
        tropel.Group(
            "leader", positions=[[1.0, 5.0] if held else [1.0, 1.0]], goal="goal", radius=0.2, sense_radius=2.0
        )
    ]
    if held:
        crowd = [[5.0, 4.0 + 0.5 * k] for k in range(4)]
        groups.append(tropel.Group("crowd", positions=crowd, goal="none", radius=0.26))
    return tropel.Simulation(world, groups, planning=planner, dt=0.05, seed=2)


def drawn(draw: Any, sim: tropel.Simulation, seen: Any) -> dict[str, Any]:
    lines = Lines()
    draw(Canvas(scene=lines, path="/o", world=sim.scene), seen)
    return {name.removeprefix("/o/"): ends for name, ends in lines.drawn.items()}


@pytest.mark.parametrize("planner", [tropel.Roadmap, tropel.AdaptiveRoadmap, tropel.Rooms])
def test_the_edges_of_all_roadmaps_are_drawn(planner: type) -> None:
    made = planner()
    sim = two_rooms(made)
    seen = look_at_roadmap(sim, None)
    assert seen is not None
    edges = drawn(draw_roadmap, sim, seen)["edges"]
    charts = made.charts.values()
    assert len(edges) == sum(len(chart.graph.edges) for chart in charts) > 50
    nodes = np.vstack([chart.graph.nodes for chart in charts]).astype(np.float32)
    ends = {tuple(place) for place in edges[:, :, :2].reshape(-1, 2).tolist()}
    assert ends <= {tuple(place) for place in nodes.tolist()}
    assert ROADMAP.legend is not None
    assert f"{len(edges):,} edges" in ROADMAP.legend(seen)


def test_the_path_is_drawn_from_leg_to_leg_with_a_ring_at_its_subgoal() -> None:
    made = tropel.AdaptiveRoadmap()
    sim = two_rooms(made)
    sim.run(until=0.5)
    seen = look_at_paths(sim, None)
    assert seen is not None
    lines = drawn(draw_paths, sim, seen)
    travellers = made.travellers
    way = travellers.way[0, : travellers.count[0]]
    assert np.allclose(lines["paths"][:, 0, :2], way[:-1], atol=1e-5)
    assert np.allclose(lines["paths"][:, 1, :2], way[1:], atol=1e-5)
    ring = lines["subgoals"][:, :, :2].reshape(-1, 2)
    away = np.linalg.norm(ring - way[travellers.index[0]], axis=1)
    assert np.ptp(away) < 0.1 * away.mean()
    assert look_at_paths(sim, 10**6) is not None  # whoever has no path: everybody's are shown


def test_the_ring_of_a_subgoal_that_is_not_reached_grows_with_its_weight() -> None:
    sim = two_rooms(tropel.AdaptiveRoadmap(patience=6.0), held=True)
    sizes, weights = [], []
    for _ in range(300):
        sim.step()
        seen = look_at_paths(sim, None)
        if seen is not None and len(seen[0].points):
            ring = drawn(draw_paths, sim, seen)["subgoals"][:, :, :2].reshape(-1, 2)
            sizes.append(float(np.ptp(ring[:, 0])))
            weights.append(seen[0].weight)
    assert max(weights) > 0.5
    heavy, light = sizes[int(np.argmax(weights))], sizes[int(np.argmin(weights))]
    assert heavy > 1.5 * light
    assert PATHS.legend is not None
    assert "%" in PATHS.legend(look_at_paths(sim, None))


def test_blocked_edges_are_those_that_are_marked() -> None:
    made = tropel.AdaptiveRoadmap(smooth=False)
    sim = two_rooms(made)
    most = 0
    for _ in range(300):
        sim.step()
        person, seen = made.travellers.people[0], look_at_paths(sim, None)
        if seen is None:
            continue
        blocked = drawn(draw_paths, sim, seen).get("blocked", np.empty((0, 2, 3)))
        graph = made.charts[person.radius, person.place].graph
        assert np.allclose(blocked[:, :, :2], graph.nodes[graph.edges[person.marked]], atol=1e-5)
        most = max(most, len(blocked))
    assert most > 0


def test_the_graph_over_doors_shows_which_edges_are_shut() -> None:
    made = tropel.Rooms()
    world = World(
        shapely.box(0, 0, 15, 5),
        walls=[[(5, 0), (5, 2)], [(5, 3), (5, 5)], [(10, 0), (10, 2)], [(10, 3), (10, 5)]],
        doors={"west": Door([(5, 2), (5, 3)], open=True), "east": Door([(10, 2), (10, 3)], open=True)},
        targets={"goal": Target(position=(14, 2.5), radius=0.4)},
    )
    people = tropel.Group("people", positions=[[1.0, 2.5]], goal="goal", radius=0.2)
    sim = tropel.Simulation(world, people, planning=made, dt=0.05)
    lines = drawn(draw_doors, sim, look_at_doors(sim, None))
    assert sorted(lines["open"][0][:, 0].tolist()) == [5.0, 10.0]
    assert "shut" not in lines
    world.set_door("east", open=False)
    sim.step()
    lines = drawn(draw_doors, sim, look_at_doors(sim, None))
    assert "open" not in lines
    assert len(lines["shut"]) == 1
    assert DOOR_GRAPH.legend is not None
    assert "1 behind shut doors" in DOOR_GRAPH.legend(look_at_doors(sim, None))


def test_they_are_offered_with_a_roadmap_only() -> None:
    assert ROADMAP.fits(two_rooms(tropel.Roadmap()))
    assert PATHS.fits(two_rooms(tropel.AdaptiveRoadmap()))
    assert DOOR_GRAPH.fits(two_rooms(tropel.Rooms()))
    assert not DOOR_GRAPH.fits(two_rooms(tropel.Roadmap()))
    assert not ROADMAP.fits(walkers(5))

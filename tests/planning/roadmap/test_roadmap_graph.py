"""Roadmaps: every edge is free, A* equals Dijkstra, components are right, and samples are where they belong."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest
import shapely
from cluttered_worlds import ball_box, cluttered_room, exact_gap
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from tropel._kernels.philox import random_key
from tropel.errors import GeometryError
from tropel.planning.roadmap.building import add_nodes, build_graph
from tropel.planning.roadmap.chart import rounded_radius
from tropel.planning.roadmap.graph import FOUND, NO_PATH, RUNNING, begin_search, found_path, go_on_searching
from tropel.planning.roadmap.sampling import free_samples
from tropel.planning.roadmap.space import FreeSpace
from tropel.world import Obstacle, World

RADIUS = 0.25


@pytest.mark.parametrize("sampling", ["mixed", "uniform", "obstacles", "bridge"])
def test_a_body_fits_along_every_edge(sampling: str) -> None:
    for seed in range(4):
        world = cluttered_room(seed)
        space = FreeSpace.of(world, RADIUS)
        graph = build_graph(space, samples=200, neighbours=6, sampling=sampling, seed=seed)
        begin, end = graph.nodes[graph.edges[:, 0]], graph.nodes[graph.edges[:, 1]]
        assert len(graph.nodes) == 200
        assert len(graph.edges) > 200
        assert (exact_gap(world, begin, end, doors=False) > RADIUS - 1e-9).all()
        for number, door in enumerate(world.doors.values()):
            near = shapely.distance(shapely.linestrings(np.stack([begin, end], axis=1)), door.line) < RADIUS - 1e-9
            assert np.array_equal(near, (graph.doors == number).any(axis=1))


def test_a_body_fits_along_every_edge_in_3d_and_along_added_ones() -> None:
    world = ball_box(2)
    space = FreeSpace.of(world, RADIUS)
    graph = build_graph(space, samples=150, neighbours=6, sampling="mixed", seed=1)
    add_nodes(space, graph, free_samples(space, 20, sampling="uniform", key=random_key(9, "more")), 6)
    assert len(graph.nodes) == 170
    share = np.linspace(0.0, 1.0, 400)[None, :, None]
    ends = graph.nodes[graph.edges]
    line = ends[:, :1] + share * (ends[:, 1:] - ends[:, :1])
    for place, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True):
        assert (np.linalg.norm(line - place, axis=2) > radius + RADIUS - 1e-9).all()
    assert (line > RADIUS - 1e-9).all()
    assert (line < np.array([8.0, 6.0, 4.0]) - RADIUS + 1e-9).all()


def test_each_node_is_joined_to_its_nearest_that_can_be_reached() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    graph = build_graph(FreeSpace.of(world, 0.1), samples=120, neighbours=5, sampling="uniform", seed=3)
    away = np.linalg.norm(graph.nodes[:, None] - graph.nodes[None], axis=2)
    wanted = {tuple(sorted((k, int(j)))) for k in range(120) for j in np.argsort(away[k])[1:6]}
    assert {tuple(edge) for edge in graph.edges.tolist()} >= wanted


def test_samples_of_the_kinds_are_where_they_belong() -> None:
    """Two rooms joined by a passage: samples near obstacles are nearer to walls, bridge samples are in the passage."""
    area = shapely.union_all([shapely.box(0, 0, 8, 8), shapely.box(8, 3.6, 12, 4.4), shapely.box(12, 0, 20, 8)])
    world = World(area)
    space = FreeSpace.of(world, 0.25)
    samples = {
        kind: free_samples(space, 300, sampling=kind, key=random_key(1, kind))
        for kind in ("uniform", "obstacles", "bridge")
    }
    assert all(space.is_free(points).all() for points in samples.values())
    gap = {kind: shapely.distance(shapely.points(points), area.boundary) for kind, points in samples.items()}
    passage = {kind: ((points[:, 0] > 8) & (points[:, 0] < 12)).mean() for kind, points in samples.items()}
    assert np.median(gap["obstacles"]) < 0.6 * np.median(gap["uniform"])
    assert passage["bridge"] > 0.5 > 0.05 > passage["uniform"]


def test_samples_depend_on_seed_and_number_alone() -> None:
    space = FreeSpace.of(cluttered_room(1), RADIUS)
    one, again, other = (build_graph(space, samples=80, neighbours=4, sampling="mixed", seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.nodes, again.nodes)
    assert np.array_equal(one.edges, again.edges)
    assert not np.array_equal(one.nodes, other.nodes)


def test_no_room_for_a_body_is_an_error_after_a_bounded_number_of_tries() -> None:
    world = World(shapely.box(0, 0, 1, 1), obstacles={"all": Obstacle(radius=1.0, position=(0.5, 0.5))})
    with pytest.raises(GeometryError, match=r"no room for a body of 0\.1 m radius"):
        build_graph(FreeSpace.of(world, 0.1), samples=50, neighbours=4, sampling="mixed", seed=1)


def searched(graph, first, last, blocked, most=1 << 40):  # type: ignore[no-untyped-def]
    to_goal = np.full(len(graph.nodes), np.inf)
    to_goal[last] = 0.0
    search = begin_search(graph, first=np.array([first]), cost=np.zeros(1), to_goal=to_goal,
                          goal=graph.nodes[last : last + 1], blocked=blocked)  # fmt: skip
    steps, status = 0, RUNNING
    while status == RUNNING:
        status, work = go_on_searching(graph, search, most)
        assert work <= most
        steps += 1
    return status, search, steps


def test_a_star_equals_dijkstra_with_blocked_edges_and_in_small_portions() -> None:
    rng = np.random.default_rng(5)
    for seed in range(3):
        graph = build_graph(FreeSpace.of(cluttered_room(seed), RADIUS), samples=250, neighbours=5, sampling="mixed",
                            seed=seed)  # fmt: skip
        blocked = (rng.random(len(graph.edges)) < 0.35).astype(np.uint8)
        free = graph.edges[blocked == 0]
        matrix = coo_array((graph.length[blocked == 0], (free[:, 0], free[:, 1])), shape=(250, 250)).tocsr()
        for first, last in rng.integers(0, 250, (40, 2)).tolist():
            status, search, _ = searched(graph, first, last, blocked)
            expected = dijkstra(matrix, directed=False, indices=first)[last]
            assert status == (FOUND if np.isfinite(expected) else NO_PATH)
            if status == FOUND:
                path = found_path(search)
                assert search.cost[-1] == pytest.approx(expected, abs=1e-12)
                assert path[0] == first
                assert path[-1] == last
                assert all(graph.edge_between(a, b) >= 0 for a, b in itertools.pairwise(path.tolist()))
                bit, in_bits, steps = searched(graph, first, last, blocked, most=3)
                assert bit == FOUND
                assert np.array_equal(found_path(in_bits), path)
                assert steps >= search.size[1] // 3


def test_components_are_those_of_networkx_largest_first() -> None:
    graph = build_graph(FreeSpace.of(cluttered_room(3), 0.45), samples=150, neighbours=3, sampling="uniform", seed=1)
    theirs = networkx.Graph(graph.edges.tolist())
    theirs.add_nodes_from(range(150))
    label = graph.components()
    assert {frozenset(np.flatnonzero(label == k)) for k in range(label.max() + 1)} == {
        frozenset(found) for found in networkx.connected_components(theirs)
    }
    assert (np.diff(np.bincount(label)) <= 0).all()


@pytest.mark.parametrize(
    ("radius", "rounded"),
    [(0.0, 0.0), (0.3, 0.3), (0.25, 0.25), (0.301, 0.31), (0.0213, 0.022), (1.0, 1.0), (12.1, 13.0)],
)
def test_radii_are_rounded_up_to_two_digits(radius: float, rounded: float) -> None:
    assert rounded_radius(radius) == pytest.approx(rounded)
    assert rounded_radius(radius) >= radius - 1e-9

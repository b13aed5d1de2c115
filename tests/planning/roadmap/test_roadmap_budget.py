"""Re-planning never stalls a step: work is divided over steps, is the same after a resume, and stays in its budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from cluttered_worlds import cluttered_room

import tropel
from tropel._kernels.philox import random_key
from tropel.errors import ParameterError
from tropel.planning.roadmap.building import begin_growth, build_graph, empty_graph
from tropel.planning.roadmap.chart import LEAST_BUDGET
from tropel.planning.roadmap.shortening import Going, Shortening
from tropel.planning.roadmap.space import FreeSpace, no_motion
from tropel.world import Door, Obstacle, Target, Waypoints, World

RADIUS = 0.25


def busy_hall(planner: tropel.Planner, *, seed: int = 1) -> tropel.Simulation:
    """Two halls joined by doors that open and close, full of carts; people of two widths, some of them latecomers."""
    carts = {
        f"cart {k}": Obstacle(
            radius=0.5, motion=Waypoints(points=((2.5 + 1.9 * k, 1.0), (2.5 + 1.9 * k, 9.0)), speed=0.8 + 0.1 * k)
        )
        for k in range(8)
    }
    world = World(
        shapely.box(0, 0, 20, 10),
        walls=[[(10, 0), (10, 2)], [(10, 3.5), (10, 6.5)], [(10, 8), (10, 10)]],
        doors={"south": Door([(10, 2), (10, 3.5)], open=True), "north": Door([(10, 6.5), (10, 8)], open=True)},
        obstacles=carts,
        targets={"goal": Target(position=(18.5, 5), radius=0.4)},
    )
    narrow = tropel.Group("narrow", count=4, region=shapely.box(0.5, 0.5, 1.6, 9.5), goal="goal", radius=0.2,
                          sense_radius=2.5)  # fmt: skip
    wide = tropel.Group("wide", count=2, region=shapely.box(0.5, 0.5, 1.6, 9.5), goal="goal", radius=0.3,
                        sense_radius=2.5, delay=3.0)  # fmt: skip
    sim = tropel.Simulation(world, [narrow, wide], planning=planner, local=tropel.Seek(), dt=0.05, seed=seed)
    for k in range(6):
        event = tropel.events.CloseDoor if k % 2 == 0 else tropel.events.OpenDoor
        sim.at(2.0 + 3.0 * k, event(door="south" if k < 4 else "north"))
    return sim


PLANNERS: dict[str, Callable[..., tropel.Planner]] = {
    "roadmap": tropel.Roadmap,
    "adaptive": tropel.AdaptiveRoadmap,
    "adaptive, few samples": lambda **given: tropel.AdaptiveRoadmap(**{"samples": 40, **given}),
    # So many that a query takes more than the least budget.
    "rooms": lambda **given: tropel.Rooms(**{"samples": 150, **given}),
}


@pytest.mark.parametrize("make", PLANNERS.values(), ids=PLANNERS)
@pytest.mark.parametrize("budget", [LEAST_BUDGET, 333])
def test_nobody_uses_more_than_its_budget_in_a_step(make: Callable[..., tropel.Planner], budget: int) -> None:
    planner: Any = make(budget=budget)
    sim = busy_hall(planner)
    most, total, before = 0, 0, planner.spent["units"]
    for _ in range(500):
        sim.step()
        most = max(most, int(planner.travellers.used.max(initial=0)))
        total += int(planner.travellers.used.sum())
    assert 0.5 * budget < most <= budget
    assert total == planner.spent["units"] - before


def under_way(planner: Any) -> set[str]:
    """What is being worked on between two steps."""
    people, charts = planner.travellers.people, planner.charts.values()
    found = {name for name in ("query", "rejoining", "gross") if any(getattr(p, name) is not None for p in people)}
    found |= {f"growing {chart.growing.stage}" for chart in charts if chart.growing is not None}
    found |= {"shortening" for p in people if p.query is not None and p.query.shortening is not None}
    return found | {"checks" for p in people if p.checks}


@pytest.mark.parametrize("make", PLANNERS.values(), ids=PLANNERS)
def test_a_resume_in_the_middle_of_any_work_gives_the_same_bits(
    make: Callable[..., tropel.Planner], tmp_path: Path
) -> None:
    """A checkpoint is saved whenever something else is under way than before."""
    planner: Any = make(budget=LEAST_BUDGET)
    sim = busy_hall(planner)
    saved: dict[str, int] = {}
    while sim.step_number < 420:
        sim.step()
        new = under_way(planner) - set(saved)
        if new:
            sim.save(tmp_path / f"{sim.step_number}.ckpt")
            saved |= dict.fromkeys(new, sim.step_number)
    end = sim.state_hash()
    wanted = {"roadmap": {"query", "shortening", "growing 0"}, "adaptive": {"query", "rejoining", "growing 0"}}
    if isinstance(planner, tropel.Rooms):
        assert {"query", "growing 0", "growing 1"} <= set(saved)
    else:
        assert wanted["adaptive" if isinstance(planner, tropel.AdaptiveRoadmap) else "roadmap"] <= set(saved)
    for step in sorted(set(saved.values())):
        resumed = busy_hall(make(budget=LEAST_BUDGET))
        resumed.restore(tmp_path / f"{step}.ckpt")
        resumed.run(until=sim.time)
        assert resumed.state_hash() == end, f"resumed in step {step}: {[k for k in saved if saved[k] == step]}"


@pytest.mark.parametrize("most", [7, 100])
def test_a_roadmap_that_grows_in_portions_is_the_same(most: int) -> None:
    for seed in range(3):
        space = FreeSpace.of(cluttered_room(seed), RADIUS)
        whole = build_graph(space, samples=120, neighbours=5, sampling="mixed", seed=seed)
        graph, steps = empty_graph(2), 0
        growth = begin_growth(space, samples=120, neighbours=5, sampling="mixed", key=random_key(seed, "roadmap"))
        while not growth.done:
            assert growth.go_on(space, graph, most) <= most
            growth = growth if growth.done else type(growth).of(growth.record(), graph)
            steps += 1
        assert steps > 3
        assert np.array_equal(graph.nodes, whole.nodes)
        assert np.array_equal(graph.edges, whole.edges)
        assert np.array_equal(graph.doors, whole.doors)


def test_a_path_that_is_cut_short_in_portions_is_the_same() -> None:
    space = FreeSpace.of(cluttered_room(2), RADIUS)
    graph = build_graph(space, samples=150, neighbours=6, sampling="mixed", seed=2)
    walk, here = [0], 0
    for _ in range(30):  # a walk along edges, with loops
        links = graph.links
        here = int(links.to[links.start[here] + len(walk) % (links.start[here + 1] - links.start[here])])
        walk.append(here)
    going, points = Going(radius=RADIUS, first=RADIUS, last=RADIUS), graph.nodes[walk]
    whole, parts = (Shortening.begin(points, turns=3) for _ in range(2))
    whole.go_on(going, space.solid, no_motion(2), 1 << 40)
    while not parts.done:
        assert parts.go_on(going, space.solid, no_motion(2), 5) <= 5
    assert np.array_equal(whole.points, parts.points)
    assert len(whole.points) < len(points)


def test_a_budget_that_is_too_small_for_the_smallest_part_of_the_work_is_an_error() -> None:
    for planner in (tropel.Roadmap, tropel.AdaptiveRoadmap, tropel.Rooms):
        with pytest.raises(ParameterError, match="budget must be a whole number of at least 100"):
            planner(budget=99)

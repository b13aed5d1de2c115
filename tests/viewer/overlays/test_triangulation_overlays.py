"""The triangulation and the near set on the page: drawn as the environment has them, and offered only with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from overlay_scenes import steps, walkers

import tropel
from tropel.viewer.overlays.overlay import Canvas
from tropel.viewer.overlays.triangulation import (
    MOST_EDGES,
    NEAR_SET,
    TRIANGULATION,
    draw_near_set,
    draw_triangulation,
    look_at_near_set,
    look_at_triangulation,
)


class Lines:
    """Stands for viser's scene: the segments by name."""

    def __init__(self) -> None:
        self.drawn: dict[str, Any] = {}

    def add_line_segments(self, name: str, ends: Any, **look: Any) -> None:
        self.drawn[name] = np.asarray(ends)

    def remove_by_name(self, name: str) -> None:
        self.drawn.pop(name, None)


def hall() -> tropel.Simulation:
    world = tropel.World(
        shapely.box(0.0, 0.0, 10.0, 6.0),
        walls=[[(5.0, 0.0), (5.0, 4.0)]],
        exits={"out": shapely.box(9.0, 2.0, 10.0, 4.0)},
    )
    people = tropel.Group("people", count=30, region=shapely.box(0.0, 0.0, 9.0, 6.0))
    return steps(tropel.Simulation(world, people, environment=tropel.Kinetic(visibility="approachable"), seed=1), 3)


def test_all_edges_are_drawn_and_walls_apart() -> None:
    sim = hall()
    seen = look_at_triangulation(sim, None)
    assert seen is not None
    lines = Lines()
    canvas = Canvas(scene=lines, path="/overlay", world=sim.scene)
    draw_triangulation(canvas, seen)
    assert len(lines.drawn["/overlay/edges"]) == len(seen.edges) <= MOST_EDGES
    drawn = lines.drawn["/overlay/walls"]
    inner = [line for line in drawn.tolist() if line[0][0] == line[1][0] == 5.0]
    assert len(inner) == 1
    assert TRIANGULATION.legend is not None
    assert "walls" in TRIANGULATION.legend(seen)


def test_the_near_set_is_that_of_the_selected_agent() -> None:
    sim = hall()
    agent = int(sim.agents.id[4])
    seen = look_at_near_set(sim, agent)
    assert seen is not None
    lines = Lines()
    draw_near_set(Canvas(scene=lines, path="/overlay", world=sim.scene), seen)
    assert len(lines.drawn["/overlay/known"]) == len(seen.known)
    assert len(lines.drawn["/overlay/crossing"]) == len(seen.crossing) > 0
    assert look_at_near_set(sim, None) is None
    assert look_at_near_set(sim, 10**6) is None


def test_they_are_offered_with_a_triangulation_only() -> None:
    assert TRIANGULATION.fits(hall())
    assert NEAR_SET.fits(hall())
    assert not TRIANGULATION.fits(walkers(5))
    box = tropel.World.box((0.0,) * 3, (5.0,) * 3)
    birds = tropel.Simulation(box, tropel.Group("birds", count=5), environment=tropel.Kinetic())
    assert not TRIANGULATION.fits(birds)

"""Overlays about roadmaps: edges, paths with subgoals, weights and blocked edges, and the graph over doors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.offers import OfferedRoadmap, RoadmapPath, offered
from tropel.pictures import style
from tropel.viewer.frame import in_space
from tropel.viewer.overlays.agents import dashed_ring
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.shapes3d import instance_colours, rgb_array

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]

#: More edges than this would be a grey sheet, and slow to send.
MOST_EDGES = 30_000
#: Paths that are drawn at the same time.
MOST_PATHS = 200
_ABOVE = 0.9
_PATH, _BLOCKED, _HEAVY, _GROSS, _SHUT = (
    style.OPEN_DOOR, style.CLOSED_DOOR, style.TARGET, style.GROUPS[1], style.CLOSED_EXIT,
)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn:
    """Segments of one or two kinds."""

    first: Floats  #: (E, 2, dim) [m]
    second: Floats


def _offers(sim: Simulation) -> list[OfferedRoadmap]:
    return offered(sim.all_layers(), OfferedRoadmap)


def _has_roadmap(sim: Simulation) -> bool:
    return bool(_offers(sim))


def _has_doors(sim: Simulation) -> bool:
    return any(len(part) for offer in _offers(sim) for part in offer.gross())


def look_at_roadmap(sim: Simulation, selected: int | None) -> Drawn | None:
    """The edges of all roadmaps, unless there are too many to be seen."""
    edges = [offer.edges() for offer in _offers(sim)]
    found = np.concatenate(edges) if edges else np.empty((0, 2, sim.world.dim))
    return Drawn(first=found, second=found[:0]) if 0 < len(found) <= MOST_EDGES else None


def look_at_doors(sim: Simulation, selected: int | None) -> Drawn | None:
    """The edges of the graph over doors: those that can be used, and the others."""
    parts = [offer.gross() for offer in _offers(sim)]
    if not any(len(part) for pair in parts for part in pair):
        return None
    return Drawn(first=np.concatenate([one for one, _ in parts]), second=np.concatenate([two for _, two in parts]))


def look_at_paths(sim: Simulation, selected: int | None) -> list[RoadmapPath] | None:
    """The paths of everybody, or of the selected agent if it has one."""
    paths = [path for offer in _offers(sim) for path in offer.paths()]
    own = [path for path in paths if path.agent == selected]
    return (own or paths)[:MOST_PATHS] or None


def draw_roadmap(canvas: Canvas, seen: Drawn) -> None:
    _lines(canvas, "edges", seen.first, style.FAINT_INK, height=canvas.height, thickness=1.0)


def draw_doors(canvas: Canvas, seen: Drawn) -> None:
    _lines(canvas, "open", seen.first, _GROSS, height=_ABOVE, thickness=2.0)
    _lines(canvas, "shut", seen.second, _SHUT, height=_ABOVE, thickness=1.0)


def draw_paths(canvas: Canvas, seen: Sequence[RoadmapPath]) -> None:
    legs = [np.stack([path.points[:-1], path.points[1:]], axis=1) for path in seen if len(path.points) > 1]
    dim = seen[0].blocked.shape[2]
    _lines(canvas, "paths", np.concatenate([np.empty((0, 2, dim)), *legs]), _PATH, height=_ABOVE, thickness=2.5)
    blocked = np.concatenate([path.blocked for path in seen])
    _lines(canvas, "blocked", blocked, _BLOCKED, height=_ABOVE, thickness=3.0)
    rings = [_ring(canvas, path) for path in seen if len(path.points)]
    _segments(canvas, "subgoals", np.concatenate([np.empty((0, 2, 3)), *rings]), _HEAVY, 2.0)


def _ring(canvas: Canvas, path: RoadmapPath) -> Floats:
    """A ring around the subgoal, which grows with its weight."""
    low, high = np.reshape(canvas.world.bounds, (2, -1))
    size = 0.012 * float(np.max(high - low)) * (1.0 + 2.0 * min(path.weight, 1.0))
    place = in_space(path.points[path.subgoal][None])[0] + np.array([0.0, 0.0, _ABOVE])
    return np.asarray(dashed_ring(place.astype(np.float32), size), dtype=np.float64)


def _lines(canvas: Canvas, name: str, ends: Floats, colour: str, *, height: float, thickness: float) -> None:
    lifted: NDArray[Any] = in_space(ends.reshape(-1, ends.shape[2])).reshape(-1, 2, 3)
    if ends.shape[2] == 2:
        lifted = lifted + np.array([0.0, 0.0, height], dtype=np.float32)
    _segments(canvas, name, lifted, colour, thickness)


def _segments(canvas: Canvas, name: str, ends: NDArray[Any], colour: str, thickness: float) -> None:
    if not len(ends):
        canvas.scene.remove_by_name(f"{canvas.path}/{name}")
        return
    colours = np.broadcast_to(instance_colours(rgb_array([colour])), (len(ends), 2, 3))
    canvas.scene.add_line_segments(
        f"{canvas.path}/{name}", ends.astype(np.float32), colors=colours, thickness=thickness, thickness_units="screen"
    )


def _square(colour: str) -> str:
    return f'<span style="color:{colour}">■</span>'


def _roadmap_legend(seen: Drawn | None) -> str:
    return f"Nothing to show, or more than {MOST_EDGES:,} edges." if seen is None else f"{len(seen.first):,} edges"


def _paths_legend(seen: Sequence[RoadmapPath] | None) -> str:
    if not seen:
        return "No agent has a path."
    blocked = sum(len(path.blocked) for path in seen)
    heaviest = max(path.weight for path in seen)
    return (
        f"{_square(_PATH)} {len(seen)} paths, {_square(_HEAVY)} subgoals (the heaviest weighs {heaviest:.0%} of what "
        f"is allowed), {_square(_BLOCKED)} {blocked} blocked edges"
    )


def _doors_legend(seen: Drawn | None) -> str:
    if seen is None:
        return "No doors."
    return f"{_square(_GROSS)} {len(seen.first)} edges, {_square(_SHUT)} {len(seen.second)} behind shut doors"


ROADMAP = Overlay(name="roadmap", title="Roadmap", look=look_at_roadmap, draw=draw_roadmap, legend=_roadmap_legend,
                  seconds=1.0, fits=_has_roadmap)  # fmt: skip
PATHS = Overlay(name="paths", title="Paths and subgoals", look=look_at_paths, draw=draw_paths, legend=_paths_legend,
                seconds=0.1, fits=_has_roadmap)  # fmt: skip
DOOR_GRAPH = Overlay(name="door graph", title="Graph over doors", look=look_at_doors, draw=draw_doors,
                     legend=_doors_legend, seconds=0.5, fits=_has_doors)  # fmt: skip

"""Overlays about agents: links from the selected agent to those it senses, and trails.

Trails show where agents were in the last few simulated seconds. Their points are taken after steps, a fixed simulated
time apart, so that a trail goes around corners however fast the run is and however rarely a page draws.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.in_view import rows_in_view
from tropel.pictures import style
from tropel.viewer.frame import in_space
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.shapes3d import instance_colours, rgb_array
from tropel.world.periodic import nearest_images

if TYPE_CHECKING:
    from tropel.simulation import Simulation


Floats = NDArray[np.float64]

#: A plan is seen from above: links are drawn above bodies [m].
_ABOVE = 0.9


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """The agents that one agent knows of."""

    here: Floats  #: where it is [m]
    rows: NDArray[np.int64]  #: of the sensed agents, ascending
    there: Floats  #: where they are [m]; across the seam of periodic space, their nearest images
    reach: float  #: how far it senses [m]


def links_of(sim: Simulation, selected: int | None) -> Links | None:
    """The agents that the selected agent knows of. They are found for this agent alone: neighbour lists of all agents
    would cost more, and the grid that makes them belongs to the run."""
    agents = sim.agents
    found = [] if selected is None else np.flatnonzero(agents.id == selected).tolist()
    if not found:
        return None
    row = found[0]
    if not sim.layers.models[int(agents.group[row])].declares.senses:
        return None
    rows = rows_in_view(row, sim.environment.known_to(row, agents, sim.world), agents, sim.world)
    straight = agents.position[rows] - agents.position[row]
    there = agents.position[rows] + (nearest_images(straight, sim.world.period) - straight)
    reach = float(agents.sense_radius[row])
    return Links(here=agents.position[row].copy(), rows=rows, there=there, reach=reach)


def draw_links(canvas: Canvas, seen: Links) -> None:
    flat = len(seen.here) == 2
    lift = np.array([0.0, 0.0, _ABOVE if flat else 0.0], dtype=np.float32)
    here, there = in_space(seen.here[None]) + lift, in_space(seen.there) + lift
    ends = np.stack([np.broadcast_to(here, there.shape), there], axis=1)
    if flat:
        ends = np.concatenate([ends, dashed_ring(here[0], seen.reach)])
    colours = np.broadcast_to(instance_colours(rgb_array([style.INK])), (len(ends), 2, 3))
    if not len(ends):
        canvas.clear()
        return
    node = canvas.nodes.get("links")
    if node is not None and len(node.points) == len(ends):
        node.points = ends
        return
    canvas.nodes["links"] = canvas.scene.add_line_segments(
        f"{canvas.path}/links", ends, colors=colours, thickness=1.4, thickness_units="screen"
    )


def dashed_ring(middle: NDArray[np.float32], radius: float) -> NDArray[np.float32]:
    """A dashed circle: every second segment of it."""
    angle = np.linspace(0.0, 2.0 * np.pi, 97)
    around = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(97)]) * radius + middle
    return np.stack([around[:-1:2], around[1::2]], axis=1).astype(np.float32)


def _links_legend(seen: Links | None) -> str:
    if seen is None:
        return "Select an agent that senses others."
    square = f'<span style="color:{style.INK}">■</span>'
    return f"{square} {len(seen.rows)} that it knows of within {seen.reach:.3g} m"


def _somebody_senses(sim: Simulation) -> bool:
    return sim.layers.somebody_senses


LINKS = Overlay(
    name="neighbour links",
    title="Neighbours",
    look=links_of,
    draw=draw_links,
    legend=_links_legend,
    seconds=0.1,
    fits=_somebody_senses,
)

#: Length of trails, and the time between two of their points [s].
SECONDS = 8.0
APART = 0.2
#: In larger crowds only some agents have a trail.
MOST = 400
_HEIGHT = 0.11


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Where some agents were at a time."""

    id: NDArray[np.int64]
    position: Floats
    group: NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Piece:
    """What agents walked between two points in time."""

    ends: Floats  #: (N, 2, dim): from, to [m]
    group: NDArray[np.int32]


def piece_between(before: Points, now: Points, *, bounds: Floats) -> Piece:
    """The paths of the agents present at both times."""
    _, was, row = np.intersect1d(before.id, now.id, assume_unique=True, return_indices=True)
    ends = np.stack([before.position[was], now.position[row]], axis=1)
    way = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    # An agent that is suddenly far away has not walked there.
    walked = (way > 0.0) & (way < 0.25 * float((bounds[1] - bounds[0]).max()))
    return Piece(ends=ends[walked], group=now.group[row][walked])


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """All current pieces of trails."""

    ends: Floats
    group: NDArray[np.int32]
    age: Floats  #: 0 for the newest pieces, up to 1 for the oldest
    groups: int
    followed: int  #: number of agents with a trail
    people: int


def seen_of(pieces: Sequence[Piece], *, groups: int, followed: int, people: int) -> Seen | None:
    """All pieces together, from the oldest to the newest; None if no agent walked."""
    there = [piece for piece in pieces if len(piece.ends)]
    if not there:
        return None
    back = range(len(pieces), 0, -1)
    return Seen(
        ends=np.concatenate([piece.ends for piece in there]),
        group=np.concatenate([piece.group for piece in there]),
        age=np.concatenate([np.full(len(p.ends), k / len(pieces)) for k, p in zip(back, pieces, strict=True)]),
        groups=groups,
        followed=followed,
        people=people,
    )


class Trails:
    """Remembers where agents have been since it was switched on."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque(maxlen=round(SECONDS / APART))
        self._sim: object = None
        self._every = 1  # agents whose id is a multiple of this have a trail
        self._due = 0
        self._last: Points | None = None

    def after_step(self, sim: Simulation, selected: int | None) -> None:
        """Take the next points if they are due."""
        if sim is not self._sim:
            self._sim, self._last, self._due = sim, None, 0
            self._pieces.clear()
        if sim.step_number < self._due:
            return
        self._due = sim.step_number + max(1, round(APART / sim.dt))
        agents = sim.agents
        self._every = max(self._every, math.ceil(len(agents) / MOST))
        rows = np.flatnonzero((agents.id % self._every == 0) | (agents.id == (-1 if selected is None else selected)))
        now = Points(id=agents.id[rows], position=agents.position[rows], group=agents.group[rows])
        if self._last is not None:
            self._pieces.append(piece_between(self._last, now, bounds=sim.world.bounds))
        self._last = now

    def look(self, sim: Simulation, selected: int | None) -> Seen | None:
        if sim is not self._sim or self._last is None:
            return None
        return seen_of(self._pieces, groups=len(sim.groups), followed=len(self._last.id), people=len(sim.agents))


def draw_trails(canvas: Canvas, seen: Seen) -> None:
    """Draw trails in the colours of the groups, the older the paler."""
    points = in_space(seen.ends)
    if seen.ends.shape[-1] == 2:
        points[..., 2] = _HEIGHT
    colour = rgb_array(style.group_colours(seen.groups))[seen.group].astype(np.float64)
    pale = (0.85 * seen.age)[:, None]
    mixed = (1.0 - pale) * colour + pale * rgb_array([style.FLOOR])
    colours = np.repeat(instance_colours(mixed.round().astype(np.uint8))[:, None], 2, axis=1)
    canvas.scene.add_line_segments(
        f"{canvas.path}/trails", points, colors=colours, thickness=2.0, thickness_units="screen"
    )


def trails_legend(seen: Seen | None) -> str:
    if seen is None:
        return "No agent has moved."
    who = "all agents" if seen.followed >= seen.people else f"{seen.followed:,} of {seen.people:,} agents"
    return f"The last {SECONDS:g} simulated seconds of {who}"


def _anew() -> Overlay:
    memory = Trails()
    return Overlay(
        name="trails",
        title="Trails",
        look=memory.look,
        draw=draw_trails,
        legend=trails_legend,
        after_step=memory.after_step,
        seconds=0.25,
        anew=_anew,
    )


TRAILS = _anew()

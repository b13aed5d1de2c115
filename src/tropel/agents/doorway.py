"""A door that closes on people: whoever stands exactly on its line steps back to the side it came from.

Somebody on the line belongs to neither side, and no move away from there would keep clear of the closed door.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.predicates import segments_touch
from tropel._kernels.walls import WallGrid, chord_blocked
from tropel.agents.state import AgentState
from tropel.world import World

Floats = NDArray[np.float64]

#: How far they step back [m]; the smaller ones serve where another wall is nearer than that.
_STEPS_BACK = (1e-3, 1e-5, 1e-7)


def step_off(state: AgentState, world: World, door: str, *, dt: float) -> None:
    """Clear the line of a door that is about to close; `dt` [s] is the step in which they came. The dead stay."""
    segments = world.door_segments(door)
    standing = np.zeros(len(state), dtype=np.bool_)
    _on_any(state.position, segments, standing)
    walls = world.wall_grid(1.0)
    for row in np.flatnonzero(standing & (state.dead == 0)):
        place = state.position[row]
        for back in _ways_back(place, -dt * state.velocity[row], segments):
            aside = place + back
            if _clear(*place, *aside, segments, walls):
                state.position[row] = aside
                world.wrap(state.position[row : row + 1])
                break


def _ways_back(place: Floats, back: Floats, segments: Floats) -> Iterator[Floats]:
    """First the way it came, then straight off the line: to the side it came from, and at last to the other one."""
    length = float(np.hypot(*back))
    if length > 0.0:
        for step in _STEPS_BACK:
            yield back * (min(step, length) / length)
    for x0, y0, x1, y1 in segments:
        if not segments_touch(*place, *place, x0, y0, x1, y1):
            continue
        normal = np.array([y0 - y1, x1 - x0]) / np.hypot(x1 - x0, y1 - y0)
        if float(normal @ back) < 0.0:
            normal = -normal
        for side in (normal, -normal):
            for step in _STEPS_BACK:
                yield step * side


@kernel
def _on_any(position, segments, out):
    for i in range(position.shape[0]):
        x, y = position[i, 0], position[i, 1]
        for s in range(segments.shape[0]):
            if segments_touch(x, y, x, y, segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]):
                out[i] = True


@kernel
def _clear(x: float, y: float, px: float, py: float, segments: Floats, walls: WallGrid) -> bool:
    """Whether the step to p crosses no wall and no other piece of the door, and leaves those (x, y) is on."""
    if chord_blocked(x, y, px, py, walls):
        return False
    for s in range(segments.shape[0]):
        x0, y0, x1, y1 = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        on_it = segments_touch(x, y, x, y, x0, y0, x1, y1)
        if segments_touch(px, py, px, py, x0, y0, x1, y1) or (
            not on_it and segments_touch(x, y, px, py, x0, y0, x1, y1)
        ):
            return False
    return True

"""The overlay of knowledge: who has learnt something that was not known at first, by seeing it or by being told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tropel.viewer.frame import in_space
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.shapes3d import rgb_array

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: How the news was learnt, and its mark: colours that no group has, and different shapes and sizes, so that colour is
#: not the only sign. Nobody that knows nothing new is marked.
_TOLD, _SAW = 1, 2
COLOURS = {_TOLD: "#5b2a86", _SAW: "#d50000"}
_MARKS: dict[int, tuple[str, Literal["circle", "diamond"], float]] = {
    _TOLD: ("told", "circle", 1.0),
    _SAW: ("saw", "diamond", 2.0),
}
#: A plan is seen from above: marks are drawn above bodies [m].
_ABOVE = 0.95


@dataclass(frozen=True, eq=False, kw_only=True)
class Learnt:
    """Where the agents are that know something new, and how they learnt it."""

    position: NDArray[np.float64]
    how: NDArray[np.int8]
    size: float  #: of a mark [m]
    nothing: int  #: how many know nothing new


def look_at_knowledge(sim: Simulation, selected: int | None) -> Learnt | None:
    """Who knows something that was not known at first."""
    if sim.layers.knowledge is None or not len(sim.agents):
        return None
    how = sim.layers.knowledge.how_learnt()
    rows = np.flatnonzero(how > 0)
    size = 1.4 * float(np.median(sim.agents.radius))
    return Learnt(position=sim.agents.position[rows].copy(), how=how[rows], size=size, nothing=int((how == 0).sum()))


def draw_knowledge(canvas: Canvas, seen: Learnt) -> None:
    if not len(seen.how):
        canvas.clear()
        return
    flat = seen.position.shape[1] == 2
    lift = np.array([0.0, 0.0, _ABOVE if flat else 0.0], dtype=np.float32)
    for how, (name, shape, times) in _MARKS.items():
        places = in_space(seen.position[seen.how == how]) + lift
        if not len(places):
            canvas.scene.remove_by_name(f"{canvas.path}/{name}")
            continue
        colours = np.tile(rgb_array([COLOURS[how]]), (len(places), 1))
        canvas.scene.add_point_cloud(
            f"{canvas.path}/{name}", places, colors=colours, point_size=times * seen.size, point_shape=shape
        )


def _legend(seen: Learnt | None) -> str:
    if seen is None:
        return "Nobody is there."
    saw, told = (
        f'<span style="color:{COLOURS[how]}">{sign}</span> {int((seen.how == how).sum())}'
        for how, sign in ((_SAW, "◆"), (_TOLD, "●"))
    )
    return f"{saw} have seen something new, {told} were told; {seen.nothing} know nothing new"


KNOWLEDGE = Overlay(
    name="knowledge",
    title="Knowledge",
    look=look_at_knowledge,
    draw=draw_knowledge,
    legend=_legend,
    seconds=0.2,
    fits=lambda sim: sim.layers.knowledge is not None,
)

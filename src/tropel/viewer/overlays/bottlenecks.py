"""Bottlenecks: where paths narrow, how wide they are, and how many people are counted there.

If congestion is not watched, nothing has searched for bottlenecks yet. Then they are found here, once, and again when
the plans have changed. That happens on the simulation's thread although it takes a moment: parallel kernels in two
threads at a time are not safe with every threading layer of Numba.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import shapely

from tropel.contracts.offers import BottleneckPlace, OfferedBottlenecks, OfferedCongestion, offered
from tropel.pictures import style
from tropel.viewer.overlays.overlay import Canvas, Overlay
from tropel.viewer.shapes3d import instance_colours, rgb_array

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Further bottlenecks have no text next to them.
_MOST_LABELS = 40
_HEIGHT = 0.12


@dataclass(frozen=True, eq=False, kw_only=True)
class Marked:
    """A bottleneck, and the count there if it is watched."""

    bottleneck: BottleneckPlace
    count: int | None = None  #: people, at the last count
    full: float = math.inf  #: it is congested above this number [people]
    congested: bool = False
    area: float = 0.0  #: side of the watched square [m]

    @property
    def text(self) -> str:
        wide = f"{self.bottleneck.width:.2g} m" if math.isfinite(self.bottleneck.width) else "open"
        if self.count is None:
            return wide
        return f"{wide} · {self.count}/{self.full:.0f}" + (" full" if self.congested else "")


class Bottlenecks:
    """Finds bottlenecks while it is switched on."""

    def __init__(self) -> None:
        self._version: tuple[object, ...] = ()
        self._found: list[Marked] = []

    def look(self, sim: Simulation, selected: int | None = None) -> list[Marked] | None:
        if watched := offered(sim.planners.values(), OfferedCongestion):
            return [marked for each in watched for marked in _marked(each)]
        places = offered(sim.planners.values(), OfferedBottlenecks)
        if not places:
            return None
        version = (places[0].version(), sim)
        if version != self._version:
            self._found = [Marked(bottleneck=each) for each in places[0].find()]
            self._version = version
        return self._found


def draw_bottlenecks(canvas: Canvas, marked: list[Marked]) -> None:
    """Draw each passage with its text, and again only when something has changed."""
    key = [(each.bottleneck, each.text) for each in marked]
    if canvas.nodes.get("drawn") == key:
        return
    canvas.clear()
    canvas.nodes["drawn"] = key
    _draw_lines(canvas, marked)
    _draw_texts(canvas, marked)


def _bottlenecks_legend(marked: list[Marked] | None) -> str:
    if not marked:
        return "There are none."
    if marked[0].count is None:
        return f"{len(marked)}, with their widths"
    full = sum(each.congested for each in marked)
    return f"{len(marked)}, {full} of them full: width · people counted / people allowed"


def _marked(watched: OfferedCongestion) -> list[Marked]:
    return [
        Marked(
            bottleneck=each.bottleneck,
            count=each.count,
            full=each.full,
            congested=each.congested,
            area=each.area,
        )
        for each in watched.counted()
    ]


def _draw_lines(canvas: Canvas, marked: list[Marked]) -> None:
    """Lines across passages, rings where there is none. Full ones also have a ring, not only another colour."""
    lines: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for each in marked:
        if each.bottleneck.passage is not None:
            lines[each.congested].append(np.array(each.bottleneck.passage)[None])
        if each.bottleneck.passage is None or each.congested:
            reach = 0.5 * min(each.bottleneck.width, each.area or 2.0)
            ring = shapely.get_coordinates(shapely.Point(each.bottleneck.position).buffer(reach).exterior)
            lines[each.congested].append(np.stack([ring[:-1], ring[1:]], axis=1))
    for congested, pieces in lines.items():
        if pieces:
            flat = np.concatenate(pieces)
            points = np.concatenate([flat, np.full((len(flat), 2, 1), _HEIGHT)], axis=-1)
            colour = style.CLOSED_DOOR if congested else style.INK
            canvas.scene.add_line_segments(
                f"{canvas.path}/{'full' if congested else 'free'}",
                points.astype(np.float32),
                colors=np.broadcast_to(instance_colours(rgb_array([colour])), (len(flat), 2, 3)),
                thickness=5.0 if congested else 3.0,
                thickness_units="screen",
            )


def _draw_texts(canvas: Canvas, marked: list[Marked]) -> None:
    for number, each in enumerate(marked[:_MOST_LABELS]):
        canvas.scene.add_label(
            f"{canvas.path}/text {number}",
            each.text,
            position=(*each.bottleneck.position, _HEIGHT),
            anchor="bottom-center",
            font_screen_scale=0.9,
        )


def _anew() -> Overlay:
    memory = Bottlenecks()
    return Overlay(
        name="bottlenecks",
        title="Bottlenecks",
        look=memory.look,
        draw=draw_bottlenecks,
        legend=_bottlenecks_legend,
        seconds=1.0,
        fits=lambda sim: bool(offered(sim.planners.values(), OfferedBottlenecks)),
        anew=_anew,
    )


BOTTLENECKS = _anew()

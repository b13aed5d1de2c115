"""The tab "Plots": evacuated over time, flow through each exit, mean speed, and what a step takes.

uPlot draws them: it comes with viser's page and is made for lines that grow. They are brought up to date about once a
second while the run goes on and a page is open; what they show is in `plot_history.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.pictures import style
from tropel.viewer.plot_history import Curves, History, evacuated, exit_flows, shown_exits

if TYPE_CHECKING:
    from tropel.simulation import Simulation
    from tropel.viewer.page import Page

_SECONDS = 1.0
#: Of a plot [pixels].
_HEIGHT = 165
_FONT = "12px sans-serif"
#: Lines differ in colour and in dashes.
_DASHES: tuple[tuple[float, ...], ...] = ((), (8.0, 4.0), (2.0, 3.0), (10.0, 3.0, 2.0, 3.0))


class Plots:
    """Four plots that follow the run."""

    def __init__(self, page: Page) -> None:
        from tropel.viewer.page import Watch

        self.history = History()
        gui, live = page.server.gui, page.live
        self._plots: list[tuple[Plot, Callable[[Simulation], Curves]]] = []
        if shown_exits(live.sim):
            self._add(evacuated, gui, title="Evacuated", unit="people")
            self._add(_flows, gui, title="Flow through exits", unit="people/s")
        self._add(lambda sim: self.history.speed(), gui, title="Mean speed", unit="m/s", many=False)
        self._add(lambda sim: self.history.step_time(), gui, title="Time of a step by stage", unit="ms")
        live.observers.append(self.history)
        page.watch(Watch(look=self._look, show=self._show, seconds=_SECONDS))

    def _add(
        self, curves: Callable[[Simulation], Curves], gui: Any, *, title: str, unit: str, many: bool = True
    ) -> None:
        self._plots.append((Plot(gui, title=title, unit=unit, many=many), curves))

    def _look(self, sim: Simulation) -> list[Curves]:
        return [curves(sim) for _, curves in self._plots]

    def _show(self, seen: list[Curves]) -> None:
        for (plot, _), curves in zip(self._plots, seen, strict=True):
            plot.show(curves)


def _flows(sim: Simulation) -> Curves:
    return exit_flows(sim, shown_exits(sim))


class Plot:
    """Lines over simulated time."""

    def __init__(self, gui: Any, *, title: str, unit: str, many: bool) -> None:
        self._names: list[str] = [""]
        self.handle = gui.add_uplot(
            _data(Curves(time=np.empty(0), lines={"": np.empty(0)})),
            series=_series([""]),
            title=title,
            scales={"x": {"time": False}, "y": {"range": {"min": _FROM_ZERO, "max": _WITH_ROOM}}},
            axes=(_axis("simulated time [s]", size=34), _axis(unit, size=44)),
            # What a plot with one line shows is in its title.
            legend={"show": many, "live": False},
            cursor={"drag": {"x": True, "y": False}},
            height=_HEIGHT,
            padding=(8, 14, 0, 2),
        )

    def show(self, curves: Curves) -> None:
        names = list(curves.lines)
        if names != self._names:
            self._names = names
            self.handle.series = _series(names)
        self.handle.data = _data(curves)


#: uPlot's way to say: always from zero, and a tenth more than the highest value.
_FROM_ZERO = {"pad": 0.0, "soft": 0.0, "mode": 1}
_WITH_ROOM = {"pad": 0.1, "soft": 0.1, "mode": 1}


def _data(curves: Curves) -> tuple[np.ndarray, ...]:
    if not len(curves.time):
        return (np.zeros(1), *(np.zeros(1) for _ in curves.lines))
    return (curves.time, *curves.lines.values())


def _series(names: list[str]) -> tuple[dict[str, Any], ...]:
    lines = [
        {
            "label": style.shortened(name, 18),
            "stroke": style.GROUPS[k % len(style.GROUPS)],
            "width": 2.0,
            "dash": _DASHES[k % len(_DASHES)],
            "points": {"show": False},
        }
        for k, name in enumerate(names)
    ]
    return ({"label": "time"}, *lines)


def _axis(label: str, *, size: float) -> dict[str, Any]:
    return {"label": label, "font": _FONT, "labelFont": _FONT, "labelSize": 18.0, "size": size}

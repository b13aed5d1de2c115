"""The tab "Plots": evacuated over time, flow through each exit, mean speed, and the time of a step.

`History` covers the whole run within a fixed number of notes. It notes mean speed and stage times while the run goes
on. When there are too many notes, it drops every second one and takes them half as often from then on. The population
knows who left when and where; departures are counted in intervals when a plot needs them.

uPlot draws the lines: it comes with viser's page and is made for lines that grow. The plots are updated about once a
second while the run goes on and a page is open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.run.observers import Observer
from tropel.run.stages import STAGES

if TYPE_CHECKING:
    from tropel.simulation import Simulation
    from tropel.viewer.live.page import Page


Floats = NDArray[np.float64]

#: Most notes that are kept, and the simulated time between two of them at first [s].
MOST_NOTES = 240
_FIRST_INTERVAL = 0.5
#: Flows are means over at least this time [s].
_FLOW_SECONDS = 2.0
#: The first steps compile kernels, so their times are not representative.
_FIRST_STEPS = 2
#: Further exits are shown together.
MOST_EXITS = 6
#: Stages with a line of their own; the rest is shown together.
OWN_LINE = ("planning", "environment", "local", "integrate")
OTHERS = "others"


@dataclass(frozen=True, eq=False, kw_only=True)
class Curves:
    """Lines over the same times."""

    time: Floats  #: [s]
    lines: dict[str, Floats]


class History(Observer):
    """Notes about a run."""

    def __init__(self, most: int = MOST_NOTES) -> None:
        self._most = most
        self._forget(None)

    def _forget(self, sim: Simulation | None) -> None:
        self._sim = sim
        self._every = 0  # steps
        self._time: list[float] = []
        self._speed: list[float] = []
        self._steps: list[int] = []
        self._seconds: list[list[float]] = []  # of each stage, since the first note

    def begin(self, sim: Simulation) -> None:
        self.step_done(sim)

    def step_done(self, sim: Simulation) -> None:
        """Take a note if one is due."""
        if sim is not self._sim:
            self._forget(sim)
            self._first_step = sim.step_number
            self._every = max(1, round(_FIRST_INTERVAL / sim.dt))
        done = sim.step_number - self._first_step
        if done < _FIRST_STEPS or (self._steps and sim.step_number - self._steps[-1] < self._every):
            return
        self._time.append(sim.time)
        self._steps.append(sim.step_number)
        self._speed.append(mean_speed(sim))
        self._seconds.append([sim.timing.seconds[stage] for stage in STAGES])
        if len(self._time) > self._most:
            for notes in (self._time, self._steps, self._speed, self._seconds):
                del notes[1::2]
            self._every *= 2

    # Data for the plots, on the simulation's thread -------------------------------------------------------------

    def speed(self) -> Curves:
        """Mean speed of living agents [m/s]."""
        speed = np.array(self._speed)
        known = np.isfinite(speed)
        return Curves(time=np.array(self._time)[known], lines={"mean speed": speed[known]})

    def step_time(self) -> Curves:
        """Time per step of each stage [ms], as means between two notes."""
        spent = np.array(self._seconds).reshape(-1, len(STAGES))
        per_step = 1e3 * np.diff(spent, axis=0) / np.diff(np.array(self._steps))[:, None]
        lines = {stage: per_step[:, STAGES.index(stage)] for stage in OWN_LINE}
        rest = [k for k, stage in enumerate(STAGES) if stage not in OWN_LINE]
        return Curves(time=np.array(self._time[1:]), lines=lines | {OTHERS: per_step[:, rest].sum(axis=1)})


def mean_speed(sim: Simulation) -> float:
    """Mean speed of living agents [m/s]; NaN if there are none."""
    living = sim.agents.dead == 0
    if not living.any():
        return float("nan")
    return float(np.sqrt((sim.agents.velocity[living] ** 2).sum(axis=1)).mean())


def evacuated(sim: Simulation, most: int = MOST_NOTES) -> Curves:
    """How many agents have left and died, at `most` + 1 times from the start until now."""
    time = np.linspace(0.0, sim.time, most + 1) if sim.time > 0.0 else np.zeros(1)
    left = np.sort(sim.population.departures()["time"])
    lines = {"left": _until(left, time, sim.dt)}
    died = np.sort(sim.population.deaths()["time"])
    return Curves(time=time, lines=lines | ({"died": _until(died, time, sim.dt)} if len(died) else {}))


def _until(moments: Floats, time: Floats, dt: float) -> Floats:
    # Times are multiples of dt; half a step is more than any rounding.
    return np.searchsorted(moments, time + 0.5 * dt, side="right").astype(np.float64)


def shown_exits(sim: Simulation) -> list[str]:
    """Exits and absorbing targets with a line of their own, in the order of the world."""
    names = [*sim.world.exits, *(name for name, target in sim.world.targets.items() if target.absorbs)]
    return names if len(names) <= MOST_EXITS else names[: MOST_EXITS - 1]


def exit_flows(sim: Simulation, names: list[str], most: int = MOST_NOTES) -> Curves:
    """People per second through each exit [1/s], as means over equal intervals; exits without a line are combined."""
    end = max(sim.time, sim.dt)
    # Whole steps, otherwise an interval with one more step than the next would seem to have a larger flow.
    steps = max(1, round(_FLOW_SECONDS / sim.dt))
    while sim.step_number / steps > most:
        steps *= 2
    interval = steps * sim.dt
    count = int(end / interval + 1e-9)
    if not count:
        return Curves(time=np.empty(0), lines={name: np.empty(0) for name in names})
    departures = sim.population.departures()
    # Agents that left at the very end of an interval count in it.
    number = np.ceil(departures["time"] / interval - 1e-6).astype(np.int64) - 1
    whole = (number >= 0) & (number < count)
    lines = {}
    for name in names:
        own = whole & (departures["goal"] == sim.world.goal_numbers[name])
        lines[name] = np.bincount(number[own], minlength=count) / interval
    all_lines = np.bincount(number[whole], minlength=count) / interval
    rest = all_lines - sum(lines.values(), start=np.zeros(count))
    if len(names) < len(sim.world.exits) or rest.any():
        lines[OTHERS] = np.maximum(rest, 0.0)
    return Curves(time=np.asarray((np.arange(count) + 0.5) * interval), lines=lines)


_SECONDS = 1.0
#: Height of a plot [pixels].
_HEIGHT = 165
_FONT = "12px sans-serif"
#: Lines differ in colour and in dashes.
_DASHES: tuple[tuple[float, ...], ...] = ((), (8.0, 4.0), (2.0, 3.0), (10.0, 3.0, 2.0, 3.0))


class Plots:
    """Four plots that follow the run."""

    def __init__(self, page: Page) -> None:
        from tropel.viewer.live.page import Watch

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
            # The title already names what a plot with one line shows.
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


#: uPlot's notation for: always from zero, and up to a tenth above the highest value.
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

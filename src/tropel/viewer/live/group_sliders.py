"""Sliders for the parameters of a group while it runs: speed, personality, and those of its model."""

from __future__ import annotations

import math
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel import events
from tropel.agents.personality import TRAITS
from tropel.agents.state import CORE_COLUMNS, Column
from tropel.errors import TropelError
from tropel.events.base import Event

if TYPE_CHECKING:
    from tropel.simulation import Simulation
    from tropel.viewer.live.page import Page

Floats = NDArray[np.float64]

#: A slider reaches up to this multiple of what agents have at first.
_UP_TO = 3.0
_STEPS = 100
#: Sliders follow the run this often, except one that a user has just moved [s].
_FOLLOW_EVERY, _LEFT_ALONE = 1.0, 3.0
#: How far above an excluded limit a slider begins, if not at a hundredth.
_LEAST_ABOVE = {"radius": 0.05}
#: How far agents may sense, and move in a step, as a share of a period (step and radius together have a quarter); and
#: how far they may walk in a step, as a share of a cell.
_SIGHT, _STEP, _JUMP = 0.49, 0.12, 0.99


class GroupSliders:
    """One slider per parameter that can be set, for the chosen group."""

    def __init__(self, page: Page) -> None:
        from tropel.viewer.live.page import Watch

        self._page = page
        self._sliders: dict[str, Any] = {}
        self._shown: dict[str, float] = {}
        self._touched: dict[str, float] = {}
        gui, sim = page.server.gui, page.live.sim
        self._of_group = {name: {column.name for column in offered(sim, name)} for name in sim.groups}
        with gui.add_folder("A group"):
            self._group = gui.add_dropdown("Group", tuple(sim.groups))
            self._group.on_update(lambda event: self.show_values(event.client))
            for column in all_offered(sim):
                self._add(column, sim)
            self._as_model = gui.add_button(
                "Use the model's values", hint="Agents with values of their own get those of their model again."
            )
            self._as_model.on_click(lambda event: self._give_back(event.client))
        self._offer()
        page.watch(Watch(look=self._look, show=self._follow, seconds=_FOLLOW_EVERY))

    def _add(self, column: Column, sim: Simulation) -> None:
        low, high = reach_of(column, sim)
        value = _between(low, middle_of(column.name, sim, self.group), high)
        # With a word joiner, otherwise the line would break within the unit.
        unit = column.unit.replace("/", "/\u2060")
        label = column.name.replace("_", " ") + (f" [{unit}]" if unit else "")
        slider = self._page.server.gui.add_slider(
            label, low, high, (high - low) / _STEPS, value, hint=column.about.partition("; nan")[0] or None
        )
        self._sliders[column.name] = slider
        self._shown[column.name] = slider.value

        @slider.on_update
        def set_it(event: Any) -> None:
            # A slider that this code moved triggers an update too.
            if event.client is None or slider.value == self._shown[column.name]:
                return
            self._shown[column.name] = slider.value
            self._touched[column.name] = perf_counter()
            self._page.panel.tools.disturb(
                lambda sim: [events.SetParameter(name=column.name, value=float(slider.value), group=self.group)],
                event.client,
            )

    @property
    def group(self) -> str:
        return str(self._group.value)

    def show_values(self, client: Any = None) -> None:
        """Set the sliders to the values of the chosen group."""
        self._offer()
        try:
            seen = self._page.live.ask(self._look)
        except TropelError as error:
            self._page.say(str(error), client=client, bad=True)
            return
        self._touched.clear()
        self._follow(seen)

    def _offer(self) -> None:
        """Show only the sliders for parameters of the chosen group's layers."""
        own = self._of_group.get(self.group, set())
        for name, slider in self._sliders.items():
            slider.visible = name in own
        declared = self._page.live.sim.agents.declared
        self._as_model.visible = any(math.isnan(declared[name].default) for name in own)

    def _look(self, sim: Simulation) -> tuple[str, dict[str, float]]:
        group = self.group
        return group, {name: middle_of(name, sim, group) for name in self._of_group.get(group, ())}

    def _follow(self, seen: tuple[str, dict[str, float]]) -> None:
        """Show the current values, unless changes are pending."""
        group, values = seen
        if group != self.group or self._page.live.waiting:
            return
        now = perf_counter()
        for name, value in values.items():
            slider = self._sliders[name]
            shown = _between(slider.min, value, slider.max)
            if now - self._touched.get(name, -math.inf) > _LEFT_ALONE and shown != slider.value:
                self._shown[name] = shown
                slider.value = shown

    def _give_back(self, client: Any) -> None:
        self._touched.clear()
        self._page.panel.tools.disturb(lambda sim: given_back(sim, self.group), client)


def given_back(sim: Simulation, group: str) -> list[Event]:
    """Events that clear a group's own values of parameters for which its model has one."""
    rows = sim.population.members([sim.groups.index(group)])
    names = [column.name for column in offered(sim, group) if math.isnan(column.default)]
    own = [name for name in names if not np.isnan(sim.agents.columns[name][rows]).all()]
    return [events.SetParameter(name=name, value="default", group=group) for name in own]


def offered(sim: Simulation, group: str) -> list[Column]:
    """Single-number parameters that events may set and the group's layers read, personality first."""
    number = sim.groups.index(group)
    theirs = {c.name for c in CORE_COLUMNS}
    declares = sim.layers.models[number].declares
    if declares.placing.body is not None:
        theirs.remove("radius")  # the model determines the width of bodies
    if not declares.senses:
        theirs.remove("sense_radius")
    for layer in (sim.layers.planners[number], sim.layers.models[number]):
        theirs |= {column.name for column in layer.declares.columns}
    return [column for column in all_offered(sim) if column.name in theirs]


def all_offered(sim: Simulation) -> list[Column]:
    """Parameters offered for any group, without what models only remember."""
    single = [column for column in sim.population.settable().values() if not column.whole]
    bodies = {column.name for column in CORE_COLUMNS}
    return sorted(single, key=lambda c: (c.name != "desired_speed", c.name not in TRAITS, c.name in bodies))


def in_force(name: str, sim: Simulation, group: str) -> Floats:
    """A parameter of all agents in a group, with the model's value where they have none of their own."""
    number = sim.groups.index(group)
    rows = sim.population.members([number])
    for layer in (sim.layers.models[number], sim.layers.planners[number]):
        if name in (column.name for column in layer.declares.columns):
            return np.asarray(layer.in_force(sim.agents, name))[rows]
    return np.asarray(sim.agents.columns[name][rows])


def reach_of(column: Column, sim: Simulation) -> tuple[float, float]:
    """The range of a slider, without values that the layers would refuse."""
    values = np.concatenate([in_force(column.name, sim, group) for group in sim.groups])
    values = np.append(values, column.default)
    values = values[np.isfinite(values)]
    most = float(np.abs(values).max(initial=0.0))
    high = _readable(_UP_TO * most) if most > 0.0 else 1.0
    low = 0.0 if math.isfinite(column.low) or not (values < 0.0).any() else -high
    if column.above is not None:
        low = column.above + _LEAST_ABOVE.get(column.name, 0.01)
    low, high = max(low, column.low), min(high, column.high)
    return low, min(high, *(_readable(limit) for limit in _limits(column.name, sim)))


def _limits(name: str, sim: Simulation) -> list[float]:
    """Limits of cells and periodic space: agents may not jump over a cell in a step, or be met on two sides."""
    limits = [math.inf]
    if name == "desired_speed":
        limits += [_JUMP * model.longest_step / sim.dt for model in sim.layers.models]
    if sim.world.is_periodic:
        shortest = sim.world.shortest_period
        if name in ("sense_radius", "flee_radius"):
            limits.append(_SIGHT * shortest)
        if name == "desired_speed":
            limits.append(_STEP * shortest / sim.dt)
        if name == "radius":
            limits.append(_STEP * shortest)
    return limits


def middle_of(name: str, sim: Simulation, group: str) -> float:
    """The median of a parameter in a group."""
    values = in_force(name, sim, group)
    middle = float(np.median(values)) if len(values) else sim.agents.declared[name].default
    return middle if math.isfinite(middle) else 0.0


def _between(low: float, value: float, high: float) -> float:
    return min(max(_readable(value), low), high)


def _readable(value: float) -> float:
    """Rounded to three digits."""
    return float(f"{value:.3g}")

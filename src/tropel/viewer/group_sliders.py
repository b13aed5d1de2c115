"""Sliders for what a group is like: speed, personality, and whatever else its model has, while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tropel import events
from tropel.agents.personality import TRAITS
from tropel.errors import TropelError

if TYPE_CHECKING:
    from tropel.agents.state import Column
    from tropel.simulation import Simulation
    from tropel.viewer.page import Page

#: A slider reaches up to so many times what agents have at first.
_UP_TO = 3.0
_STEPS = 100


class GroupSliders:
    """One slider per parameter that can be set, for the group that is chosen."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._sliders: dict[str, Any] = {}
        self._shown: dict[str, float] = {}
        gui, sim = page.server.gui, page.live.sim
        with gui.add_folder("A group"):
            self._group = gui.add_dropdown("Group", tuple(sim.groups))
            self._group.on_update(lambda event: self.show_values(event.client))
            for column in offered(sim):
                self._add(column, sim)

    def _add(self, column: Column, sim: Simulation) -> None:
        low, high = reach_of(column, sim)
        value = _readable(float(np.clip(middle_of(column.name, sim, self.group), low, high)))
        label = column.name.replace("_", " ") + (f" [{column.unit}]" if column.unit else "")
        slider = self._page.server.gui.add_slider(
            label, low, high, (high - low) / _STEPS, value, hint=column.about or None
        )
        self._sliders[column.name] = slider
        self._shown[column.name] = slider.value

        @slider.on_update
        def set_it(event: Any) -> None:
            # A slider that was moved by us says so too.
            if event.client is None or slider.value == self._shown[column.name]:
                return
            self._shown[column.name] = slider.value
            self._page.panel.tools.disturb(
                lambda sim: [events.SetParameter(name=column.name, value=float(slider.value), group=self.group)],
                event.client,
            )

    @property
    def group(self) -> str:
        return str(self._group.value)

    def show_values(self, client: Any = None) -> None:
        """Bring the sliders to what the chosen group has."""
        try:
            values = self._page.live.ask(lambda sim: {name: middle_of(name, sim, self.group) for name in self._sliders})
        except TropelError as error:
            self._page.say(str(error), client=client, bad=True)
            return
        for name, value in values.items():
            slider = self._sliders[name]
            slider.value = _readable(float(np.clip(value, slider.min, slider.max)))
            self._shown[name] = slider.value


def offered(sim: Simulation) -> list[Column]:
    """Parameters of one number each that events may set, personality first."""
    settable = [sim.agents.declared[name] for name in sim.population.settable()]
    single = [c for c in settable if not c.vector and not c.width and np.dtype(c.dtype).kind == "f"]
    return sorted(single, key=lambda column: (column.name != "desired_speed", column.name not in TRAITS))


def reach_of(column: Column, sim: Simulation) -> tuple[float, float]:
    """From where to where a slider goes."""
    if column.name in TRAITS:
        return 0.0, 1.0
    values = sim.agents.columns[column.name]
    most = float(np.abs(values).max(initial=abs(column.default)))
    high = _readable(_UP_TO * most) if most > 0.0 else 1.0
    low = 0.05 if column.name == "radius" else 0.0
    return (-high if (values < 0.0).any() else low), high


def middle_of(name: str, sim: Simulation, group: str) -> float:
    """What half of a group have less of."""
    rows = sim.population.members([sim.groups.index(group)])
    return float(np.median(sim.agents.columns[name][rows])) if len(rows) else sim.agents.declared[name].default


def _readable(value: float) -> float:
    """With three digits at most."""
    return float(f"{value:.3g}")

"""What agents are coloured by: their group, or a number per agent on a scale that is readable with any colour vision.

The legends for the panel are here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import goal_name
from tropel.agents.squads.columns import ORDERS, ROLES
from tropel.agents.state import NEAREST_EXIT, NO_GOAL, POINT, Column
from tropel.contracts import Planner
from tropel.contracts.offers import OfferedField, offered
from tropel.pictures import style
from tropel.viewer.frame import Frame
from tropel.viewer.shapes3d import rgb_array
from tropel.world.goals import distance_to_shape, shape_of_goal
from tropel.world.periodic import nearest_images

if TYPE_CHECKING:
    from tropel.simulation import Simulation


Floats = NDArray[np.float64]
Colours = NDArray[np.uint8]

GROUP = "group"
SPEED = "speed"
DENSITY = "density"
TIME_TO_EXIT = "time to exit"
#: These are always offered; columns come after them.
ALWAYS = (GROUP, SPEED, DENSITY, TIME_TO_EXIT)
_UNITS = {SPEED: "m/s", DENSITY: "1/m²", TIME_TO_EXIT: "s"}
_NOT_OFFERED = frozenset({"id", "group", "position", "velocity", "heading", "dead"})
#: Side of the squares in which people are counted for the density, three by three of them [m].
_SQUARE = 2.0 / 3.0


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What the first and the last colour stand for, or what each colour does."""

    low: float
    high: float
    unit: str
    names: tuple[str, ...] = ()  #: of the states 0, 1, …, which have a colour each; empty for other numbers
    nameless: bool = False  #: whether some agents are in no state

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.low:.3g} to {self.high:.3g}{unit}"


def choices(sim: Simulation) -> list[str]:
    """What agents of a simulation can be coloured by."""
    return [*ALWAYS, *(name for name, column in sim.agents.declared.items() if _is_offered(column))]


def _is_offered(column: Column) -> bool:
    return column.name not in _NOT_OFFERED and not column.vector and not column.width


def unit_of(choice: str, sim: Simulation) -> str:
    if choice in _UNITS:
        return "1/m³" if choice == DENSITY and sim.world.dim == 3 else _UNITS[choice]
    return sim.agents.declared[choice].unit if choice in sim.agents.declared else ""


def names_of(choice: str, sim: Simulation) -> tuple[str, ...]:
    """What the whole numbers of a choice stand for, from 0 on; nothing for other numbers."""
    board = sim.population.tasks
    if choice == "task" and board is not None:
        return tuple(posted.name for posted in board.posted)
    of_squads = {} if sim.population.squads is None else {"role": ROLES, "order": ORDERS}
    return (of_squads | sim.layers.named_states).get(choice, ())


def values_of(choice: str, sim: Simulation) -> Floats | None:
    """The number per agent that its colour shows; None for groups, NaN for agents without one."""
    agents = sim.agents
    if choice == GROUP:
        return None
    if choice == SPEED:
        return np.asarray(np.linalg.norm(agents.velocity, axis=1))
    if choice == DENSITY:
        return density_around(agents.position)
    if choice == TIME_TO_EXIT:
        return time_to_exit(sim)
    return agents.columns[choice].astype(np.float64)


def colours_of(
    frame: Frame, *, groups: int, unit: str = "", scale: Scale | None = None, names: tuple[str, ...] = ()
) -> tuple[Colours, Scale | None]:
    """A colour per agent, and the scale if they show a number: the given one, or from the smallest to the largest.

    With `names` the numbers are states: each has its own colour, the same in all frames. Negative numbers are no state.
    """
    if frame.value is None:
        return rgb_array(style.group_colours(groups))[frame.group], None
    value = frame.value
    known = np.isfinite(value)
    if names:
        known &= (value >= 0) & (value < len(names))
        colours = rgb_array(style.group_colours(len(names)))[np.where(known, value, 0).astype(np.int64)]
        colours[~known] = _grey()
        return colours, Scale(low=0.0, high=len(names) - 1.0, unit="", names=names, nameless=not known.all())
    if not known.any():
        return np.full((len(value), 3), _grey(), dtype=np.uint8), scale or Scale(low=0.0, high=0.0, unit=unit)
    if scale is None:
        scale = Scale(low=float(value[known].min()), high=float(value[known].max()), unit=unit)
    width = scale.high - scale.low
    share = np.clip((value - scale.low) / width, 0.0, 1.0) if width > 0.0 else np.zeros_like(value)
    table = (style.time_colours()(np.linspace(0.0, 1.0, 256))[:, :3] * 255.0).round().astype(np.uint8)
    colours = table[(np.where(known, share, 0.0) * 255.0).astype(np.int64)]
    colours[~known] = _grey()
    return colours, scale


def _grey() -> tuple[int, ...]:
    return tuple(rgb_array([style.OBSTACLE])[0].tolist())


def density_around(position: Floats) -> Floats:
    """People per m² (per m³ in space) in the three by three squares around each agent."""
    if not len(position):
        return np.empty(0)
    cell = np.floor((position - position.min(axis=0)) / _SQUARE).astype(np.int64) + 1
    counts = np.zeros(cell.max(axis=0) + 2)
    np.add.at(counts, tuple(cell.T), 1.0)
    for axis in range(position.shape[1]):
        counts = counts + np.roll(counts, 1, axis) + np.roll(counts, -1, axis)
    return np.asarray(counts[tuple(cell.T)] / (3.0 * _SQUARE) ** position.shape[1])


def time_to_exit(sim: Simulation) -> Floats:
    """The remaining path at the desired speed [s]: along the planner's field, or straight where it has none."""
    agents = sim.agents
    way = np.full(len(agents), np.nan)
    for number, name in enumerate(sim.groups):
        rows = sim.population.members([number])
        for goal in np.unique(agents.goal[rows]).tolist():
            heading_there = rows[agents.goal[rows] == goal]
            if goal == POINT:
                offset = agents.goal_point[heading_there] - agents.position[heading_there]
                way[heading_there] = np.linalg.norm(nearest_images(offset, sim.world.period), axis=1)
            elif goal != NO_GOAL:
                way[heading_there] = _way_left(sim, sim.planners[name], goal, agents.position[heading_there])
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = way / agents.desired_speed
    return np.where(np.isfinite(seconds), seconds, np.nan)


def _way_left(sim: Simulation, planner: Planner, goal: int, position: Floats) -> Floats:
    fields = [each for each in offered([planner], OfferedField) if each.alone]
    field = fields[0].field(goal_name(sim.world, goal)) if fields else None
    if field is not None and (length := field.length) is not None:
        return np.asarray(length[tuple(field.raster.index_of(position).T)])
    goals = sim.world.goals()
    wanted = goals.is_exit != 0 if goal == NEAREST_EXIT else goals.is_target != 0
    if goal >= 0:
        wanted = np.arange(len(goals.is_exit)) == goal
    nearest = np.full(len(position), np.inf)
    names = {number: name for name, number in sim.world.goal_numbers.items()}
    for number in np.flatnonzero(wanted & (goals.usable != 0)).tolist():
        if not goals.is_target[number]:
            away = distance_to_shape(shape_of_goal(sim.world, names[number]), position)
        else:
            offset = nearest_images(goals.position[number] - position, sim.world.period)
            away = np.linalg.norm(offset, axis=1) - goals.radius[number]
        nearest = np.minimum(nearest, np.maximum(away, 0.0))
    return nearest


# Legends for the panel.
#: Further groups are not listed.
_MOST_GROUPS = 12


def group_legend(groups: Sequence[str]) -> str:
    """A coloured square per group."""
    lines = [_entry(colour, plain(name)) for colour, name in zip(style.group_colours(len(groups)), groups, strict=True)]
    more = [f"and {len(lines) - _MOST_GROUPS} more"] if len(lines) > _MOST_GROUPS else []
    return "  \n".join(lines[:_MOST_GROUPS] + more)


def _entry(colour: str, text: str) -> str:
    return f'<span style="color:{colour}">■</span> {text}'


def colour_bar(scale: Scale) -> str:
    """The colours from low to high, between the two numbers; a coloured square per state if they have names."""
    if scale.names:
        nameless = f"  \n{_entry(style.OBSTACLE, 'none')}" if scale.nameless else ""
        return group_legend(scale.names) + nameless
    colours = [style.hex_colour(style.time_colours()(k / 11.0)) for k in range(12)]
    bar = "".join(f'<span style="color:{colour}">█</span>' for colour in colours)
    return f"{scale.low:.3g} {bar} {scale.high:.3g} {scale.unit}"


def plain(text: str) -> str:
    """Text escaped so that it is not read as markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()#+-.!<>|~" else letter for letter in text)

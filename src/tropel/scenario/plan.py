"""Planning without a simulation: from a map to a field, its statistics and its picture."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.agents.goals import goal_name, goal_number
from tropel.agents.state import NO_GOAL, AgentState
from tropel.contracts import Moment
from tropel.contracts.offers import FieldOnRaster, OfferedField, offered
from tropel.errors import ParameterError, ScenarioError, suggest
from tropel.registry import PLANNERS
from tropel.scenario.loading import Scenario, builtin_names, named_scenario, verification_names
from tropel.simulation import Simulation
from tropel.world import Target, World, shapes
from tropel.world.maps import read_plan
from tropel.world.shapes import read_shape_file

if TYPE_CHECKING:
    from rich.table import Table

    from tropel.pictures.field import FieldValues
    from tropel.recording import Scene

#: Planners that `tropel plan` supports: those that solve a field from the map alone.
FIELDS = ("flow_field", "harmonic")
#: Cells along the longer side of a large map, if no cell size is given.
_CELLS_ALONG = 1200
_LEAST_CELL = 0.2
_GOAL = "goal"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A planned field, and the time it took."""

    world: World
    field: FieldOnRaster
    planner: str  #: its name in scenario files
    goal: str  #: the goal that the field leads to
    seconds: float  #: time for the raster and for solving the field
    title: str = ""

    @property
    def free(self) -> int:
        return int(self.field.raster.free.sum())

    @property
    def reachable_share(self) -> float:
        """Share of the free cells from which a path leads to the goal."""
        return float(self.field.reachable.sum()) / max(self.free, 1)

    def table(self) -> Table:
        """The statistics as a table for the terminal."""
        from rich.table import Table

        raster, lost = self.field.raster, self.field.unreachable()
        table = Table(title=self.title or None, show_header=False)
        size = " × ".join(str(count) for count in reversed(raster.shape))
        table.add_row("planner", f"{self.planner}, to {self.goal}")
        table.add_row("cells", f"{size} of {raster.cell:g} m, {raster.clearance:g} m from walls")
        table.add_row("free", f"{self.free:,} ({self.free / raster.free.size:.1%} of the cells)")
        table.add_row("reachable", f"{self.reachable_share:.1%} of the free cells")
        for place, cells in lost.pairs[:5]:
            at = ", ".join(f"{c:.4g}" for c in place)
            size = f"{cells * raster.cell**raster.dim:.3g} {'m²' if raster.dim == 2 else 'm³'}"
            table.add_row("no path from", f"around ({at}): {cells:,} cells, {size}")
        if len(lost.regions) > 5:
            table.add_row("", f"and {len(lost.regions) - 5} more regions")
        table.add_row("planned in", f"{self.seconds:.2f} s")
        return table

    def scene(self) -> Scene:
        """The world in the form that pictures take."""
        return Simulation(self.world, [], title=self.title).scene

    def facts(self) -> list[str]:
        """Facts for the caption of the picture."""
        raster = self.field.raster
        size = " × ".join(str(count) for count in reversed(raster.shape))
        said = [f"{self.planner.replace('_', ' ')} to {self.goal}", f"{size} cells of {raster.cell:g} m"]
        lost = self.free - int(self.field.reachable.sum())
        return [*said, f"{lost / self.free:.1%} of the free cells have no path"] if lost else said


def parse_place(text: str) -> tuple[float, float]:
    """A place from the command line: x,y in metres."""
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"'{text}' is not a place; write x,y in metres, such as 12.5,3") from None
    return x, y


def read_world(source: str | Path, *, scale: float | None = None) -> tuple[World, str]:
    """The world in a map (.map, .png), a WKT or GeoJSON file, a scenario file or a built-in scenario, and its title."""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in (".map", ".png"):
        return read_plan(path, scale=scale).world(), path.stem
    if scale is not None:
        raise ParameterError(f"a scale is for maps of cells (.map) and pictures (.png); {path} is already in metres")
    if suffix in (".wkt", ".json", ".geojson"):
        return World(_polygon_in(path)), path.stem
    names = [*builtin_names(), *verification_names()]
    if suffix != ".toml" and not path.is_file() and str(source) not in names:
        raise ScenarioError(
            f"cannot find {path}; give a map (.map, .png), a .wkt or .geojson file, a scenario file (.toml) or a "
            f"built-in scenario ({suggest(str(source), names)})"
        )
    scenario = named_scenario(path)
    return scenario.world(), scenario.spec.title or scenario.name


def _polygon_in(path: Path) -> Any:
    return shapes.polygon(read_shape_file(path), str(path))


def make_plan(
    world: World,
    *,
    planner: str = "flow_field",
    goal: tuple[float, float] | None = None,
    cell: float | None = None,
    clearance: float = 0.2,
    title: str = "",
) -> Plan:
    """Plan the path to a place (x, y) [m], or to the nearest exit or target of the world if no place is given.

    A place becomes a target in the plan's own copy of the world.
    """
    if planner not in FIELDS:
        known = [*FIELDS, "roadmap", "adaptive_roadmap", "rooms"]
        raise ParameterError(f"there is no field '{planner}' to plan with; {suggest(planner, known)}")
    if goal is not None:
        world = copy.deepcopy(world)
        name, said = _free_name(world), f"({goal[0]:g}, {goal[1]:g})"
        world.add_target(name, Target(position=goal, radius=0.0))
    elif world.exits:
        name = said = "nearest exit"
    elif world.targets:
        name = said = "nearest target"
    else:
        raise ParameterError("this world has no exits and no targets; give the goal as x,y in metres")
    cell = _fitting_cell(world) if cell is None else cell
    made = PLANNERS.make({"model": planner, "cell": cell, "clearance": clearance})
    begun = perf_counter()
    made.prepare(Moment.of(AgentState(world.dim), world))
    field = made.field(name)
    return Plan(world=world, field=field, planner=planner, goal=said, seconds=perf_counter() - begun, title=title)


def _free_name(world: World) -> str:
    names = (_GOAL if number == 1 else f"{_GOAL}_{number}" for number in itertools.count(1))
    return next(name for name in names if name not in world.goal_numbers)


def _fitting_cell(world: World) -> float:
    """A cell size that suits people, or a larger one if the map would have too many cells."""
    longest = float((world.bounds[1] - world.bounds[0]).max())
    return max(_LEAST_CELL, float(f"{longest / _CELLS_ALONG:.2g}"))


def draw_plan(plan: Plan, path: Path) -> Path:
    """Draw a planned field over its world."""
    from tropel.pictures.field import draw_field

    if plan.world.dim != 2:
        raise ParameterError("only 2D fields can be drawn")
    return draw_field(plan.scene(), values_of(plan.field), path, title=plan.title, facts=plan.facts())


def values_of(field: FieldOnRaster) -> FieldValues:
    """A field in the form that pictures take: coloured by path length, or by the logarithm that the solver gives."""
    from tropel.pictures.field import FieldValues

    length = field.length
    far, means = (-field.value, "how far from the goal:  −ln u") if length is None else (length, "path to the goal [m]")
    return FieldValues(
        origin=field.raster.origin,
        cell=field.raster.cell,
        free=field.raster.free,
        reachable=field.reachable,
        vectors=np.asarray(field.directions(), dtype=np.float64),
        far=far,
        far_means=means,
    )


# Fields of a scenario -------------------------------------------------------------------------------------------


def draw_scenario_fields(scenario: Scenario, folder: Path) -> list[Path]:
    """Draw the fields that groups and sources of a scenario follow at its start: field.png, or one file per goal.

    Fields inside a blend, or behind a painted field, are drawn as they are; equal ones only once. A scenario that
    names no such planner has none. Cached fields are read from the cache.
    """
    from tropel.pictures.field import draw_field

    named = [scenario.spec.planning, *(group.planning for group in scenario.spec.groups)]
    if {planner.model for planner in named if planner is not None} <= {"direct"}:
        return []
    sim = scenario.build(threads=1)
    if sim.world.dim != 2:
        return []
    fields = list(_fields(sim))
    drawn = []
    for number, (planner, goal, field) in enumerate(fields):
        name = "field.png" if len(fields) == 1 else f"field_{number + 1}.png"
        plan = Plan(world=sim.world, field=field, planner=planner, goal=goal, seconds=0.0, title=sim.title)
        drawn.append(draw_field(sim.scene, values_of(field), folder / name, title=sim.title, facts=plan.facts()))
    return drawn


def _fields(sim: Simulation) -> Iterator[tuple[str, str, FieldOnRaster]]:
    """Every field once: the name of its planner, its goal, and the field."""
    seen = set()
    for group, followed in sim.planners.items():
        newcomers = [source.goal for source in sim.population.sources if source.group == group]
        for offer in offered([followed], OfferedField):
            kind = type(offer.planner)
            name = PLANNERS.name_of(kind) or kind.__name__
            for goal in newcomers:
                if (number := goal_number(sim.world, goal, f"group '{group}'")) > NO_GOAL:
                    offer.field(goal_name(sim.world, number))
            for goal in offer.goals():
                known = (offer.planner.describe(), goal)
                if known not in seen:
                    seen.add(known)
                    yield name, goal, offer.field(goal)

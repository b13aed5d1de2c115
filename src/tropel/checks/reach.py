"""People that cannot reach their goals, now or in a later stage, and why: the check that depends on no planner."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.groups import Source
from tropel.agents.room import region_area
from tropel.agents.stages.agendas import NOTHING
from tropel.agents.state import NO_GOAL, POINT
from tropel.checks.finding import Finding, at, named, people
from tropel.checks.free_space import THIN, CellSpace, FreeSpace
from tropel.checks.later import Later
from tropel.checks.subjects import alive, goal_names, goal_text, newcomers, walks_freely, walks_on_cells
from tropel.world.goals import shape_of_goal

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Spaces for different radii that are looked at to tell which of many different bodies fit through.
_MOST_RADII = 40
#: Separate places for which the reason is found out, the largest first, and closed doors that are tried for each.
_MOST_PLACES, _MOST_DOORS = 16, 20
#: How exactly the radius that fits through a passage is found [m]. Radii are multiples of this, so that bodies of
#: different widths are compared in the same spaces.
_EXACT = 5e-4
#: Above this share of a source's region from which no path leads to the goal, it is said.
_SMALL_SHARE = 0.01

#: Reasons that a function of the user's may do away with.
_NOT_FOR_EVER = ("door", "obstacles")
_NONE: frozenset[str] = frozenset()
_REMEDY = {
    "door": "open it from the start or with an event, or place them elsewhere",
    "narrow": "widen the passage, or give them a smaller radius",
    "obstacles": "move an obstacle, or place them elsewhere",
    "pieces": "connect the pieces of the walkable area, or place them elsewhere",
    "walls": "leave a gap in the walls, or place them elsewhere",
    "other": "see to the places with the most people first; then the reasons for these are found out",
}


@dataclass(frozen=True)
class Body:
    """What decides where somebody gets: how wide it is, whether it walks on cells, and its goal."""

    radius: float
    cell: float | None
    goal: int


def cut_off(sim: Simulation) -> NDArray[np.bool_]:
    """For each agent, whether it is alive, wants to get to a goal that can be used, and has no path to it now."""
    return _Reach(sim).cut_off


def check_reach(sim: Simulation, later: Later) -> Iterator[Finding]:
    """People, and newcomers of sources, that have no path to their goal, and people that have none to a later one."""
    if sim.world.dim == 3 or sim.world.is_periodic:
        return
    reach = _Reach(sim)
    yield from reach.findings(later)
    for goal, rows in _goals_of_later_stages(sim):
        goals = np.full(len(sim.agents), NO_GOAL)
        goals[rows[~reach.cut_off[rows]]] = goal
        yield from _Reach(sim, goals=goals, spaces=reach.spaces, when=", where they go later,").findings(later)
    for source in sim.population.sources:
        yield from reach.of_source(source, later)


def _goals_of_later_stages(sim: Simulation) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each goal that comes later in somebody's list of stages, and whose.

    Whoever gets to two goals from here gets from one to the other, so all are looked for from where people are now.
    """
    agents, agendas = sim.agents, sim.population.agendas
    going: dict[int, list[NDArray[np.int64]]] = {}
    for number in np.unique(agents.agenda[agents.agenda != NOTHING]).tolist():
        agenda = agendas[number]
        theirs = agents.agenda == number
        for place, planned in enumerate(agenda.planned):
            aim = planned.stage.goal(planned.aims)
            # A stage with a condition may be over though nobody arrives.
            if aim is None or aim.number == POINT or planned.stage.until is not None:
                continue
            coming = theirs & (agents.goal != aim.number) & (agenda.repeat | (agents.stage < place))
            going.setdefault(aim.number, []).append(np.flatnonzero(coming))
    for goal, rows in sorted(going.items()):
        yield goal, np.unique(np.concatenate(rows))


class _Reach:
    """Who gets where in the world as it is now; spaces are computed once. Goals are the present ones, unless told."""

    def __init__(
        self,
        sim: Simulation,
        *,
        goals: NDArray[np.int64] | None = None,
        spaces: dict[Any, FreeSpace | CellSpace] | None = None,
        when: str = "",
    ) -> None:
        self.sim, self.world, self._when = sim, sim.world, when
        self.goal = np.asarray(sim.agents.goal) if goals is None else goals
        self.position = np.asarray(sim.agents.position)
        self.spaces: dict[Any, FreeSpace | CellSpace] = {} if spaces is None else spaces
        groups = range(len(sim.groups))
        cells = [walks_on_cells(sim, group) for group in groups]
        free = np.array([walks_freely(sim, group) for group in groups], dtype=bool)
        self.cells = cells
        self.radius = np.where(free[sim.agents.group], sim.agents.radius, THIN) if len(groups) else np.empty(0)
        self.cut_off = np.zeros(len(sim.agents), dtype=bool)
        if self.world.dim == 3 or self.world.is_periodic:
            return
        wanting = alive(sim) & (self.goal > NO_GOAL)
        for goal, cell in itertools.product(np.unique(self.goal[wanting]).tolist(), set(cells)):
            in_cell = np.array([each == cell for each in cells])[sim.agents.group]
            rows = np.flatnonzero(wanting & (self.goal == goal) & in_cell)
            if len(rows) and goal_names(self.world, goal):
                self.cut_off[self._blocked(rows, cell, goal)] = True

    # Who ----------------------------------------------------------------------------------------------------------

    def _blocked(self, rows: NDArray[np.int64], cell: float | None, goal: int) -> NDArray[np.int64]:
        """Which of these agents do not reach the goal.

        Who gets through with a wide body gets through with a smaller one, so usually the largest and the smallest
        radius decide for everybody. Otherwise the agents are halved by their radii until all are told apart.
        """
        radii = self.radius[rows]
        blocked: list[int] = []
        waiting = [(rows, float(radii.max()))]
        for turn in range(_MOST_RADII):
            if not waiting:
                break
            rows, radius = waiting.pop()
            there = self.reaches(self.position[rows], Body(radius, cell, goal))
            own = self.radius[rows]
            blocked += rows[(own >= radius) & ~there].tolist()
            for unknown in (rows[(own < radius) & ~there], rows[(own > radius) & there]):
                if len(unknown):
                    following = radii.min() if turn == 0 else np.median(self.radius[unknown])
                    waiting.append((unknown, float(following)))
        return np.array(sorted(blocked), dtype=np.int64)

    def space(
        self, body: Body, *, opened: frozenset[str] = _NONE, without: frozenset[str] = _NONE
    ) -> FreeSpace | CellSpace:
        key = (body.radius, body.cell, opened, without)
        if key not in self.spaces:
            # Cells without some obstacles are not needed: where there is any path then, it is said that this may help.
            self.spaces[key] = (
                FreeSpace(self.world, body.radius, opened=opened, without=without, around=self.position)
                if body.cell is None or without
                else CellSpace(self.world, body.cell, opened=opened)
            )
        return self.spaces[key]

    def reaches(
        self,
        points: NDArray[np.float64],
        body: Body,
        *,
        opened: frozenset[str] = _NONE,
        without: frozenset[str] = _NONE,
        exits: frozenset[str] = _NONE,
    ) -> NDArray[np.bool_]:
        """From which points a body gets to its goal; `exits` count as open."""
        space = self.space(body, opened=opened, without=without)
        good = self.pieces_with_goal(space, body, exits=exits)
        return np.ones(len(points), dtype=bool) if good is None else np.isin(space.piece_of(points), list(good))

    def pieces_with_goal(
        self, space: FreeSpace | CellSpace, body: Body, *, exits: frozenset[str] = _NONE
    ) -> set[int] | None:
        """The pieces from which a goal is reached; None for a target that moves and may be met anywhere."""
        good: set[int] = set()
        for shape in self._goal_shapes(body, exits=exits):
            if shape is None:
                return None
            good.update(space.pieces_at(shape).tolist())
        return good

    def _goal_shapes(self, body: Body, *, exits: frozenset[str] = _NONE) -> Iterator[Any]:
        """Where the centre of a body has reached each of its goals; None for a target that moves."""
        for name in goal_names(self.world, body.goal, opened=exits):
            if name not in self.world.targets:
                shape = shape_of_goal(self.world, name)
                yield shape if shape.area > 0.0 else shape.buffer(body.radius)
                continue
            target = self.world.targets[name]
            # At a target that does not absorb, people stop when their bodies reach it.
            reach = target.radius + (THIN if target.absorbs else body.radius)
            place = self.world.goals().position[self.world.goal_numbers[name]]
            yield None if target.motion is not None else shapely.Point(place).buffer(reach)

    # Why ----------------------------------------------------------------------------------------------------------

    def findings(self, later: Later) -> Iterator[Finding]:
        told: dict[tuple[int, int, str, str], list[list[int]]] = {}
        reasons: dict[tuple[int, int, str, str], str] = {}
        for number, rows in enumerate(self._places()):
            body = self._body(rows[0])
            known = number < _MOST_PLACES
            kind, why = self.reason(self.position[rows[0]], body) if known else ("other", "there is no path")
            # Each closed door is a finding of its own; narrow passages and walls are told with the worst example.
            key = (int(self.sim.agents.group[rows[0]]), body.goal, kind, why if kind == "door" else "")
            told.setdefault(key, []).append(rows)
            reasons.setdefault(key, why)
        for key, places in told.items():
            group, goal, kind, _ = key
            rows, why = list(itertools.chain(*places)), reasons[key]
            more = f" and {len(places) - 1} more place{'s' * (len(places) > 2)}" if len(places) > 1 else ""
            name, place = self.sim.groups[group], self.position[rows[0]]
            gets_there = functools.partial(self._gets_there, rows[0])
            until = self._until(gets_there, kind, name, later)
            yield Finding(
                code=f"no_path_{kind}",
                message=f"{people(len(rows))} of group '{name}' cannot reach {goal_text(self.world, goal)}{self._when} "
                f"from around {at(place)}{more}: {why}{until}",
                remedy=_REMEDY[kind],
                severity="note" if until else "warning",
                group=name,
                agents=len(rows),
                place=tuple(map(float, place)),
            )

    def _gets_there(self, row: int, **ways: frozenset[str]) -> bool:
        return bool(self.reaches(self.position[row][None], self._body(row), **ways).all())

    def _body(self, row: int) -> Body:
        return Body(float(self.radius[row]), self.cells[self.sim.agents.group[row]], int(self.goal[row]))

    def _places(self) -> list[list[int]]:
        """The agents that are cut off, by group, goal and the piece that they are in; most agents first."""
        places: dict[tuple[int, ...], list[int]] = {}
        agents = self.sim.agents
        for group, goal in sorted(set(zip(agents.group.tolist(), self.goal.tolist(), strict=True))):
            rows = np.flatnonzero(self.cut_off & (agents.group == group) & (self.goal == goal))
            if len(rows):
                widest = Body(float(self.radius[rows].max()), self.cells[group], goal)
                pieces = self.space(widest).piece_of(self.position[rows])
                for row, piece in zip(rows.tolist(), pieces.tolist(), strict=True):
                    places.setdefault((group, goal, piece), []).append(row)
        return sorted(places.values(), key=len, reverse=True)

    def reason(self, point: NDArray[np.float64], body: Body) -> tuple[str, str]:
        """Why a body does not get from a point to its goal: a kind of reason, and the reason itself."""
        here = point[None]
        doors = self._doors_in_the_way(here, body)
        if doors:
            closed = "is" if len(doors) == 1 else "are"
            return "door", f"the {named('door', doors)} {closed} closed"
        thin = Body(THIN, None, body.goal)
        if self.reaches(here, thin).all():
            if body.cell is not None:
                return "narrow", f"every path has a passage that no free cell of {body.cell:g} m leads through"
            width = 2.0 * self._widest(here, body)
            return "narrow", (
                f"every path has a passage of at most {width:.2f} m, and their bodies are "
                f"{2.0 * body.radius:.2f} m wide"
            )
        if len(self.world.obstacles) and self.reaches(here, thin, without=frozenset(self.world.obstacles.names)).all():
            return "obstacles", "obstacles block every path"
        parts = shapely.get_parts(self.world.walkable) if self.world.walkable is not None else []
        if len(parts) > 1:
            own = parts[shapely.distance(parts, shapely.Point(point)).argmin()]
            if not any(own.intersects(shape) for shape in self._goal_shapes(body)):
                return "pieces", f"the walkable area is in {len(parts)} pieces that are not connected"
        return "walls", "walls block every path"

    def _doors_in_the_way(self, here: NDArray[np.float64], body: Body) -> list[str]:
        """Closed doors that have to be opened, as few as possible; none if that does not help."""
        closed = [name for name, door in self.world.doors.items() if not door.open]
        if not closed or not self.reaches(here, body, opened=frozenset(closed)).all():
            return []
        lines = [self.world.doors[name].line for name in closed]
        order = np.argsort(shapely.distance(lines, shapely.Point(here[0])), kind="stable")
        near = [closed[k] for k in order[:_MOST_DOORS]]
        for name in near:
            if self.reaches(here, body, opened=frozenset([name])).all():
                return [name]
        needed = set(closed)
        for name in reversed(near):
            if self.reaches(here, body, opened=frozenset(needed - {name})).all():
                needed.remove(name)
        return [name for name in closed if name in needed]

    def _widest(self, here: NDArray[np.float64], body: Body) -> float:
        """The largest radius that gets through [m]."""
        low, high = 0, 1 << math.ceil(math.log2(body.radius / _EXACT))
        while high - low > 1:
            middle = (low + high) // 2
            fits = middle * _EXACT < body.radius and self.reaches(here, Body(middle * _EXACT, None, body.goal)).all()
            low, high = (middle, high) if fits else (low, middle)
        return low * _EXACT

    def _until(self, gets_there: Callable[..., bool], kind: str, group: str, later: Later) -> str:
        """The scheduled change that will help, for the message; empty if there is none."""
        opened = frozenset(name for name in later.doors if not self.world.doors[name].open)
        ways = {"opened": opened, "without": frozenset(later.obstacles), "exits": frozenset(later.exits)}
        if any(ways.values()) and gets_there(**ways):
            first = min(time for some in (later.doors, later.exits, later.obstacles) for time in some.values())
            return f" (until events change that, from {first:g} s on)"
        if (time := later.goal_of(group)) is not None:
            return f" (until they get another goal at {time:g} s)"
        if later.function is not None and kind in _NOT_FOR_EVER:
            return f" (unless a function changes that, from {later.function:g} s on)"
        return ""

    # Sources ------------------------------------------------------------------------------------------------------

    def of_source(self, source: Source, later: Later) -> Iterator[Finding]:
        """Whether newcomers find a path from everywhere in the region of their source."""
        group = self.sim.groups.index(source.group)
        sample = newcomers(self.sim, source)
        goal = int(sample["goal"][0])
        if goal <= NO_GOAL or not goal_names(self.world, goal):
            return
        radius = float(np.median(sample["radius"])) if walks_freely(self.sim, group) else THIN
        body = Body(radius, self.cells[group], goal)
        region = region_area(self.world, source.region, source.group)
        share = self._share(region, body)
        if math.isnan(share) or share >= 1.0 - _SMALL_SHARE:
            return
        place = shapely.get_coordinates(region.representative_point())[0]
        until = self._until(
            lambda **ways: self._share(region, body, **ways) >= 1.0 - _SMALL_SHARE, "door", source.group, later
        )
        yield Finding(
            code="no_path_source",
            message=f"newcomers of group '{source.group}' cannot reach {goal_text(self.world, goal)} from "
            f"{1.0 - share:.0%} of the region of their source, around {at(place)}{until}",
            remedy="open a door, connect the region to the goal, or move the source",
            severity="note" if until else "warning",
            group=source.group,
            place=tuple(map(float, place)),
        )

    def _share(
        self,
        region: Any,
        body: Body,
        *,
        opened: frozenset[str] = _NONE,
        without: frozenset[str] = _NONE,
        exits: frozenset[str] = _NONE,
    ) -> float:
        """The share of a region from which a body gets to its goal."""
        space = self.space(body, opened=opened, without=without)
        good = self.pieces_with_goal(space, body, exits=exits)
        return 1.0 if good is None else space.share(region, good)

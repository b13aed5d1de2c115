"""Planners that follow a field on a raster of the world: what they share, whatever solves the field.

There is one field per distinct goal ("nearest exit" is the union of all open exits, nearest along the field). Fields
are solved before the first step and for new goals, and solved again or repaired when a door, a static obstacle, a
hazard that planners avoid or a goal has changed. They are functions of the world as it is, so checkpoints need not
store them. Close to the goal, and where it is in clear sight, agents go straight to it.
"""

from __future__ import annotations

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.arriving import at_goal
from tropel.agents.goals import Aim, goal_number
from tropel.agents.state import CHOSEN_EXIT, NEAREST_EXIT, NO_GOAL, POINT, AgentState, Floats
from tropel.agents.towards_goal import towards_goal
from tropel.contracts import Belief, Guidance, Moment, Planner, Rows
from tropel.contracts.beliefs import AS_IT_IS
from tropel.contracts.distances import OfferedDistance
from tropel.contracts.offers import OfferedField
from tropel.errors import GeometryError, ParameterError
from tropel.foundation.arguments import LARGEST_LENGTH, Length, checked_arguments
from tropel.foundation.long_work import report
from tropel.foundation.memory import require_memory
from tropel.foundation.quantities import Quantity
from tropel.planning.fields import cache as plan_cache
from tropel.planning.fields.exit_choice import NONE, ExitChoice
from tropel.planning.fields.field import GridField, Unreachable
from tropel.planning.fields.goals import goal_cells, goals_among, numbers_of, room_for_error, spec_of
from tropel.world import World
from tropel.world.raster import Raster, larger_cells, planned_hazards, rasterise, what_is_drawn, with_hazards

#: Memory for fields to single exits [bytes]; where they need more, people take the nearest.
_MOST_BYTES = 1e9

#: The distance to walls that the centre of a body keeps.
Clearance = Annotated[float, Quantity(name="clearance", low=0.0, high=LARGEST_LENGTH, unit="m")]


@dataclass(kw_only=True)
class _Plan:
    """The field to one goal, and what it was made for."""

    numbers: NDArray[np.int64]
    spec: Any
    field: GridField
    sight: NDArray[np.int16] | None
    moves: bool  #: whether the goal moves by itself


class FieldPlanner(Planner):
    """Follow a field to the goal in the agents' `goal` column; stand where there is no path.

    `cell` [m] is the size of the raster's cells and `clearance` [m] the distance to walls that the centre of a body
    keeps where it can. With `line_of_sight`, agents that see the goal go straight to it. With `cache`, fields are kept
    on disk for the next run.

    Your own planner implements `solve`. Fields on disk are found by its name and `parameters`, so if it uses the cache,
    its `parameters` must change whenever `solve` changes.
    """

    @checked_arguments
    def __init__(
        self, *, cell: Length = 0.2, clearance: Clearance = 0.2, line_of_sight: bool = True, cache: bool = False
    ) -> None:
        self.cell = float(cell)
        self.clearance = float(clearance)
        self.line_of_sight = bool(line_of_sight)
        self.cache = bool(cache)
        self._exit_choice = ExitChoice()
        self._choices: set[int] = set()  #: exits with a field that nobody has as a goal
        self.streams = False  #: whether people in a crowd walk around corners side by side; in 2D
        self._world: World | None = None
        self._raster: Raster | None = None
        self._plans: dict[int, _Plan] = {}
        self._drawn: tuple[bytes, ...] = ()
        self._bare: tuple[World, tuple[bytes, ...], Raster] | None = None  #: a raster without hazards, and of what
        self._kept_up_with: tuple[Any, ...] = ()
        self._by_belief: dict[bytes, FieldPlanner] = {}  #: planners of worlds that are not as agents believe
        self._is_believed = False

    # Methods of a kind of field ---------------------------------------------------------------------------------

    @abstractmethod
    def solve(self, raster: Raster, goal: NDArray[np.bool_]) -> GridField:
        """The field that leads to the cells where `goal` is true (all of them free; there may be none)."""

    def solve_many(self, raster: Raster, goals: Sequence[NDArray[np.bool_]]) -> list[GridField]:
        """One field per goal. Override this if solving several together is cheaper."""
        solved = []
        for number, goal in enumerate(goals):
            report(f"{type(self).__name__}: fields", number, len(goals))
            solved.append(self.solve(raster, goal))
        report(f"{type(self).__name__}: fields", len(goals), len(goals))
        return solved

    def repair(self, field: GridField, raster: Raster, goal: NDArray[np.bool_]) -> GridField:
        """The field after cells or goal have changed, with the same bits as `solve`, which is the default."""
        return self.solve(raster, goal)

    @property
    def parameters(self) -> str:
        """Everything that changes directions; part of digests. Kinds of fields add their own."""
        return f"cell={self.cell!r}, clearance={self.clearance!r}, line_of_sight={self.line_of_sight!r}"

    def bytes_per_cell(self, dim: int) -> float:
        """Memory of a field and its sight cache per cell [bytes]. Kinds of fields add their own."""
        return 13.0 + 12.0 * dim

    def goes_straight(self, field: GridField) -> bool:
        """Whether agents in sight of the goal should leave the field."""
        return self.line_of_sight

    # Calls from the simulation ----------------------------------------------------------------------------------

    def prepare(self, moment: Moment) -> None:
        """Rasterise the world and solve the field of every goal that agents have."""
        self._begin(moment.world)
        goals = np.unique(moment.state.goal).tolist()
        self._add_plans(goals)
        if NEAREST_EXIT in goals:
            self._add_choices(self._exits_to_choose())

    def _begin(self, world: World) -> None:
        """Rasterise the world; there are no plans yet."""
        self._world = world
        self._plans = {}
        self._choices = set()
        self._by_belief = {}
        self._kept_up_with = ()
        self._drawn = self.what_is_drawn(world)
        self._raster = self.draw(world)
        if not self._raster.free.any():
            raise GeometryError(f"{type(self).__name__}: {room_for_error(self._raster)}")

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write a unit vector (or zero) for each member."""
        if moment.beliefs is None:
            self._direct(moment, out)
            return
        parts = moment.beliefs.by_world(moment.members)
        current = {part.key for part in parts}
        for key in [key for key in self._by_belief if key not in current][: max(len(self._by_belief) - 32, 0)]:
            del self._by_belief[key]
        for part in parts:
            own = replace(moment, members=part.rows, world=part.world, beliefs=None)
            (self if part.key == AS_IT_IS else self._believer(part))._direct(own, out)

    def _believer(self, belief: Belief) -> FieldPlanner:
        """A planner like this one for the world as some believe it to be."""
        known = self._by_belief.get(belief.key)
        if known is None or known._world is not belief.world:
            known = copy.copy(self)
            known._is_believed = True
            known._exit_choice, known._bare = ExitChoice(), None
            known._begin(belief.world)
            self._by_belief[belief.key] = known
        return known

    def _direct(self, moment: Moment, out: Guidance) -> None:
        state, members, world = moment.state, moment.members, self._known()[0]
        self._keep_up()
        present = goals_among(state.goal, members, world)
        self._add_plans(present)
        for goal in present:
            rows = members if len(present) == 1 else members[state.goal[members] == goal]
            if goal == POINT:
                # A field each would cost too much, and points are usually in sight.
                towards_goal(state, rows, world.goals(), out.directions)
                continue
            if goal == NEAREST_EXIT:
                rows = self._choose_exits(moment, rows, out)
            self._follow(goal, rows, state, out.directions)

    def _follow(self, goal: int, rows: Rows, state: AgentState, directions: Floats) -> None:
        plan, world = self._plans.get(goal), self._known()[0]
        if plan is None:
            directions[rows] = 0.0
            return
        plan.field.follow(state.position, rows, world, world.goals(), plan.numbers, plan.sight, directions)
        # Streams would wash away what keeps paths from hazards, and take long to find for a goal that moves.
        if self.streams and plan.field.raster.cost is None and not plan.moves:
            plan.field.follow_streams(state, rows, directions)
        if world.goals().is_line[plan.numbers].any():
            directions[rows[at_goal(state, world, rows)]] = 0.0

    def _choose_exits(self, moment: Moment, rows: Rows, out: Guidance) -> Rows:
        """Let people choose between exits and direct them there. Returns the others, which go to the nearest."""
        chosen = out.memory.get(CHOSEN_EXIT.name)
        if CHOSEN_EXIT not in self.declares.memory or chosen is None:
            return rows  # outside of simulations nobody has any memory
        exits = self._exits_to_choose()
        if not exits:
            chosen[rows] = NONE
            return rows
        self._add_choices(exits)
        self._exit_choice.choose(moment, rows, {number: self._plans[number].field for number in exits}, chosen)
        for number in exits:
            self._follow(number, rows[chosen[rows] == number], moment.state, out.directions)
        return rows[chosen[rows] == NONE]

    def _add_choices(self, exits: Sequence[int]) -> None:
        """Make sure that each of these exits has a plan."""
        self._choices.update(number for number in exits if number not in self._plans)
        self._make_plans(exits)

    def _exits_to_choose(self) -> list[int]:
        """The open exits, if there are several and not too many: each needs a field of its own."""
        if CHOSEN_EXIT not in self.declares.memory:
            return []
        world, raster = self._known()
        exits = numbers_of(NEAREST_EXIT, world).tolist()
        most = _MOST_BYTES / (raster.free.size * self.bytes_per_cell(raster.dim))
        return exits if 2 <= len(exits) <= most else []

    # Queries ----------------------------------------------------------------------------------------------------

    def draw(self, world: World) -> Raster:
        """The raster that fields are solved on."""
        return with_hazards(self.without_hazards(world), world)

    def without_hazards(self, world: World) -> Raster:
        """The same without hazards. It is kept, because a fire that grows changes only a few cells of it."""
        drawn = what_is_drawn(world, hazards=False)
        if self._bare is None or self._bare[0] is not world or self._bare[1] != drawn:
            raster = rasterise(world, cell=self.cell, clearance=self.clearance, hazards=False)
            self._bare = world, drawn, raster
        return self._bare[2]

    def what_is_drawn(self, world: World) -> tuple[bytes, ...]:
        """Everything that `draw` depends on and that may change."""
        if self.publishes_ground():
            return what_is_drawn(world)  # the cells of a crowd, which show hazards exactly as they are
        planned = planned_hazards(world, step=self.cell)
        return *what_is_drawn(world, hazards=False), planned.position.tobytes(), planned.inner.tobytes()

    def field(self, goal: str) -> GridField:
        """The field to a goal by name, or to the "nearest exit" or "nearest target"; for pictures and reports."""
        number = goal_number(self._known()[0], goal, type(self).__name__)
        if number <= NO_GOAL:
            raise ParameterError(f"{type(self).__name__} has no field for the goal '{goal}'")
        self._keep_up()
        self._add_plans([number])
        return self._plans[number].field

    def goals(self) -> tuple[str, ...]:
        """Names of the goals that have a field."""
        self._keep_up()
        return tuple(self._name(goal) for goal in self._shown())

    def offers(self) -> tuple[object, ...]:
        field = OfferedField(planner=self, goals=self.goals, field=self.field, draw=self.draw)
        return field, OfferedDistance(length=self.length_to)

    def length_to(self, aim: Aim, positions: Floats, radius: float) -> Floats | None:
        """The lengths of paths to a place [m]; None for points, to which nobody follows a field."""
        if aim.number <= NO_GOAL:
            return None
        self._keep_up()
        self._add_plans([aim.number])
        return self._plans[aim.number].field.length_from(positions)

    def unreachable(self) -> dict[str, Unreachable]:
        """For each goal with a field, the places from which no path leads to it."""
        self._keep_up()
        return {self._name(goal): self._plans[goal].field.unreachable() for goal in self._shown()}

    def _shown(self) -> list[int]:
        """Goals with a field, without exits that are only there to be chosen: "nearest exit" stands for them."""
        return [goal for goal in self._plans if goal not in self._choices]

    # Keeping up with the world ----------------------------------------------------------------------------------

    def _keep_up(self) -> None:
        """Apply what has changed since the last step: doors and obstacles, then goals."""
        world, raster = self._known()
        goals = world.goals()
        # Comparing what is drawn is slow; these values tell whether it can have changed.
        now = world.blocking.tobytes(), world.obstacles.version, world.hazards.version, goals.position.tobytes()
        if self._kept_up_with and self._kept_up_with[0] is goals and self._kept_up_with[1] == now:
            return
        self._kept_up_with = goals, now
        drawn = self.what_is_drawn(world)
        redrawn = drawn != self._drawn
        if redrawn:
            raster = self._raster = self.draw(world)
            self._drawn = drawn
        for goal, plan in list(self._plans.items()):
            numbers = numbers_of(goal, world)
            spec = spec_of(numbers, world)
            if not redrawn and spec == plan.spec:
                continue
            cells = goal_cells(numbers, world, raster, strict=False)
            field = plan.field
            if redrawn or not np.array_equal(cells, field.goal):
                field = self.repair(field, raster, cells)
            self._plans[goal] = self._plan(numbers, spec, field)

    def _add_plans(self, goals: Sequence[int]) -> None:
        """Make sure that each of these goals has a plan."""
        self._choices.difference_update(goals)
        self._make_plans(goals)

    def _make_plans(self, goals: Sequence[int]) -> None:
        new = [goal for goal in goals if goal > NO_GOAL and goal not in self._plans]
        if not new:
            return
        world, raster = self._known()
        self._require_memory(len(new), raster)
        numbers = [numbers_of(goal, world) for goal in new]
        # A place that somebody believes to be walled in is no error.
        cells = [goal_cells(each, world, raster, strict=not self._is_believed) for each in numbers]
        fields = self._solved(raster, cells)
        for goal, each, field in zip(new, numbers, fields, strict=True):
            self._plans[goal] = self._plan(each, spec_of(each, world), field)

    def _require_memory(self, goals: int, raster: Raster) -> None:
        """Refuse fields that would not fit into memory, before the first of them is solved."""
        needed = float(goals) * raster.free.size * self.bytes_per_cell(raster.dim)
        size = " × ".join(str(n) for n in reversed(raster.shape))
        enough = larger_cells(raster.cell, raster.dim, needed)
        require_memory(
            needed,
            f"{type(self).__name__}: fields to {goals} goal{'s' * (goals != 1)} on {size} cells of {raster.cell:g} m",
            f'use {enough}, or fewer goals (one field leads to the "nearest exit", however many there are)',
            error=GeometryError,
        )

    def _plan(self, numbers: NDArray[np.int64], spec: Any, field: GridField) -> _Plan:
        sight = field.new_sight() if self.goes_straight(field) else None
        targets = self._known()[0].targets
        moves = any(targets[name].motion is not None for name in map(self._name, numbers.tolist()) if name in targets)
        return _Plan(numbers=numbers, spec=spec, field=field, sight=sight, moves=moves)

    def _solved(self, raster: Raster, cells: Sequence[NDArray[np.bool_]]) -> list[GridField]:
        """Fields from the cache on disk if it has them, the others solved together."""
        if not self.cache:
            return self.solve_many(raster, cells)
        digests = [self._digest(raster, goal) for goal in cells]
        found = [plan_cache.load(digest) for digest in digests]
        missing = [k for k, arrays in enumerate(found) if arrays is None]
        solved = dict(zip(missing, self.solve_many(raster, [cells[k] for k in missing]), strict=True))
        for k, field in solved.items():
            plan_cache.store(digests[k], _to_arrays(field))
        return [
            solved[k] if arrays is None else _from_arrays(arrays, raster, cells[k]) for k, arrays in enumerate(found)
        ]

    def _digest(self, raster: Raster, goal: NDArray[np.bool_]) -> str:
        kind = type(self)
        text = f"{kind.__module__}.{kind.__qualname__}({self.parameters}) {raster.digest()}"
        return hashlib.sha256(text.encode() + np.packbits(goal).tobytes()).hexdigest()

    def _known(self) -> tuple[World, Raster]:
        if self._world is None or self._raster is None:
            raise RuntimeError(f"{type(self).__name__}.prepare(moment) must be called first")
        return self._world, self._raster

    def _name(self, goal: int) -> str:
        names = {number: name for name, number in self._known()[0].goal_numbers.items()}
        return names.get(goal, "nearest exit" if goal == NEAREST_EXIT else "nearest target")


def _to_arrays(field: GridField) -> dict[str, NDArray[Any]]:
    return {
        "value": field.value,
        "vectors": field.vectors,
        "metres_per_value": np.array(field.metres_per_value),
        "straighten": np.array(field.straighten),
    }


def _from_arrays(arrays: dict[str, NDArray[Any]], raster: Raster, goal: NDArray[np.bool_]) -> GridField:
    return GridField(
        raster=raster,
        goal=goal,
        value=arrays["value"],
        vectors=arrays["vectors"],
        metres_per_value=float(arrays["metres_per_value"]),
        straighten=bool(arrays["straighten"]),
    )

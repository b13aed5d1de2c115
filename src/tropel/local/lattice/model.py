"""The lattice crowd: agents on square cells, one each, that step to the cell with the highest value.

Banerjee, Abukmail & Kraemer, "Layered intelligence for agent-based crowd simulation", SIMULATION 85 (2009), 621–633.
Numbers in brackets are the paper's equations. The paper speaks of layers of the terrain (path-plan layer, occupancy
layer and others). All values are logarithms, so that products become sums.

An agent compares the eight cells around it and takes the one where the product of all values is largest (1):

- the path plan of its goal, gamma^(length of the path);
- the occupancy map (2): 0 where an agent stands, else separation^k with k agents in the nine cells around it
  (`separation` is ½ in the paper). The agent's own cell counts as occupied: it stays only if all others are vetoed.
  Otherwise the crowd freezes;
- the filters that reach there: hazards, congestion, value maps (`world/ground.py`);
- its bonds to family or leader (`bonds.py`).

Among cells of equal value the nearer ones are preferred, and among those one is drawn at random. (The paper draws among
all. Then agents zigzag towards wide goals, to which neighbouring cells are equally near, and take up to a sixth more
time.)

**Time.** Agents have real speeds in m/s. Each keeps a time credit, which grows by dt per step. A move costs its length
divided by the agent's speed, and the rest of the credit is kept. A blocked agent saves up credit for one move at most.
So dt times the largest speed must not exceed a cell. Along the eight directions of the lattice, path lengths are exact.
Between them, the shortest path over cells is up to 8 % longer than the straight line, which no model on such cells can
avoid.

**Conflicts.** All agents decide by the same frozen occupancy, and only for cells that are free in it. So no agent
enters a cell in the step in which another leaves it, two agents never swap places, and decisions do not depend on the
order of agents. If several agents want the same cell, or two want to cross each other's diagonal move, each draws a
random number, a function of seed, agent and step alone. The agent with the lowest draw among all that it is in conflict
with goes, the others stay. An agent gains no advantage from its id, place, direction, thread or an earlier draw, so
each of n agents has the chance 1/n: that makes it fair. (Random sequential updates are equally fair, but not parallel;
a fixed order is neither.)

**Headway.** By the paper's rule alone a door of one metre lets 3.4 to 4.6 people per second pass, twice as many as
people do, and a corridor is too fast at every density above one per square metre. So a cell stays empty for a while
after an agent has left it (`headways.py`); an agent that wants it waits. `headway = 0` is the paper's rule.

**Others.** Agents of other models are bodies, not cells. A cell counts as occupied if a body as wide as the cell would
overlap them, either where they are or along the path they take in this step if they keep their velocity. The same holds
for the dead and for moving obstacles. This crowd moves before the others do (`run/phases.py`), which then keep clear of
it.

**Velocity.** Positions jump from cell to cell. `velocity` does not: after a move it is the agent's speed in the
direction of that move. It becomes zero when the time for the next move has come and none is possible. So each move
counts for its true duration, and velocities add up to the path.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_moves import STRAIGHT
from tropel._kernels.philox import random_key
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, AgentState, Column, Steered
from tropel.agents.towards_goal import offset_to_goal
from tropel.contracts import Follows, Model, ModelDeclaration, Moment, Moves
from tropel.contracts.layers import Behaviours
from tropel.contracts.offers import OfferedOccupancy
from tropel.errors import ModelError, ParameterError, named_parameters
from tropel.foundation.quantities import number
from tropel.local.lattice.bonds import BOND_COLUMNS, NO_BONDS, BondFinder, Bonds
from tropel.local.lattice.cells import (
    BORDER,
    NOWHERE,
    TILE_BITS,
    CellAgents,
    FilterTiles,
    GroundArrays,
    filter_tiles,
    locate,
    mark,
    mark_bodies,
    sort_by_tile,
)
from tropel.local.lattice.headways import CellHeadways
from tropel.local.lattice.placing import OnCells
from tropel.local.lattice.step import ARRIVED, step_on_cells
from tropel.world import World
from tropel.world.goals import GoalArrays
from tropel.world.ground import Ground
from tropel.world.raster import Raster

#: Agents are sorted by place again after this many steps, or earlier if agents have come or left.
_SORT_EVERY = 32


@named_parameters
@dataclass(frozen=True, kw_only=True)
class LatticeParameters:
    """Parameters of `Lattice`."""

    cell: float = number(0.4, above=0.0, unit="m", about="length of a cell's edge")
    separation: float = number(
        0.5, above=0.0, high=1.0, about="factor on the value of a cell per agent around it; 1 to ignore others"
    )
    headway: float = number(
        0.7,
        low=0.0,
        high=60.0,
        unit="s",
        about="how long 0.4 m of width stay empty after an agent has left them; 0 for the paper's rule",
    )
    headway_spread: float = number(0.3, low=0.0, high=1.0, about="share of the headway that is random")
    family_reach: float = number(
        6.0, above=0.0, unit="m", about="distance from the centre of their family within which agents are drawn to it"
    )
    family_strength: float = number(9.0, low=0.0, about="exponent of the family's bond; 0 to ignore the family")
    leader_length: float = number(
        3.0, above=0.0, unit="m", about="half the length of the leader's axis, which lies along its heading"
    )
    leader_width: float = number(
        5.0, above=0.0, unit="m", about="distance from that axis within which followers are drawn to it"
    )
    leader_strength: float = number(8.0, low=0.0, about="exponent of the leader's bond; 0 to ignore the leader")


class Lattice(Model):
    """Agents on cells that step to the cell with the highest value; needs a planner that publishes a ground.

    Use the same `Lattice` for all groups that share a world.
    """

    def __init__(self, **parameters: Any) -> None:
        self.parameters = LatticeParameters(**parameters)
        self.declares = ModelDeclaration(
            columns=BOND_COLUMNS,
            memory=(Column(name="credit", unit="s", about="time saved up for the next move on the lattice"),),
            moves=Moves.EXACTLY,
            follows=Follows.GROUND,
            senses=False,
            phase=0,
            alone_in_phase=True,
            solid_bodies=True,
            placing=OnCells(self.parameters.cell),
        )
        self.behaviours: Behaviours = Behaviours("separation", "bonds")  #: what can be switched off during a run
        self.decisions = 0  #: how many agents decided in the last step
        self.moves = 0  #: how many moved
        self._world: World | None = None
        self._ids: NDArray[np.int64] | None = None
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)  #: members, ordered by where they stand
        self._places: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._age = 0  #: steps since rows were sorted
        self._others_marked = False  #: whether the occupancy map has bodies that move without notice
        self._ground: GroundArrays | None = None
        self._parts: tuple[Any, ...] = ()  #: the parts of the ground that the arrays were made from
        self._counts: tuple[int, ...] = ()
        self._tiles: FilterTiles | None = None
        self._tiles_of: tuple[int, Any] = (-1, None)
        self._headways = CellHeadways(self.parameters.headway, self.parameters.headway_spread)
        self._bonds = BondFinder(
            family_reach=self.parameters.family_reach,
            family_strength=self.parameters.family_strength,
            leader_length=self.parameters.leader_length,
            leader_width=self.parameters.leader_width,
            leader_strength=self.parameters.leader_strength,
        )

    @property
    def longest_step(self) -> float:
        """One cell: agents never jump over one."""
        return self.parameters.cell

    def prepare(self, moment: Moment) -> None:
        """Take over the ground that the planner has published."""
        self._world = moment.world
        self._key = random_key(moment.seed, "lattice")
        self.behaviours.begin()
        self._ids = self._ground = None
        self._others_marked = False
        published = self._published_ground(moment)
        self._current_arrays(published)
        rows, columns = published.raster.shape
        around = (rows + 2 * BORDER) * (columns + 2 * BORDER)
        # Words of eight bytes are read from two cells to the left of an agent.
        self.occupied = np.zeros(around + 8, dtype=np.uint8)  #: the occupancy map, with a border of two cells
        self._headways.begin(around)
        self._claim = np.zeros(around + 8, dtype=np.uint8)  # the move that the agent on a cell wants to make, plus 1
        self._lots = np.zeros(around, dtype=np.uint32)  # the draws of agents in conflict

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write position, velocity, heading and credit of the members into `out`."""
        state, members, dt, step = moment.state, moment.members, moment.dt, moment.step
        published = self._published_ground(moment)
        ground = self._current_arrays(published)
        self._keep_occupancy(state, members, ground, dt)
        crowd = CellAgents(
            state.id,
            state.position,
            state.desired_speed,
            moment.waiting,
            state.goal,
            state.group,
            state.credit,
            state.velocity,
        )
        count = len(members)
        choice, goes = np.empty(count, dtype=np.uint8), np.empty(count, dtype=np.uint8)
        credit = out.memory["credit"]
        self.decisions, arrived, self.moves, hasty = step_on_cells(
            self._rows, self._places, crowd, ground, self._known_world().wall_grid(1.0), self.occupied,
            self._filters(published), self._bonds_now(state), self._headways.at(published.raster, self._known_world()),
            self._key, step, dt, self._claim, self._lots, choice, goes, out.position, out.velocity, out.heading,
            credit)  # fmt: skip
        if hasty:
            fastest = float(state.desired_speed[members].max())
            longest = math.floor(1e4 * self.parameters.cell / fastest) / 1e4  # rounded up, it would be too long again
            raise ModelError(
                f"a step of dt = {dt:g} s is too long for {hasty} agents on cells of {self.parameters.cell:g} m; "
                f"the fastest walks {fastest:g} m/s, so dt must be at most {longest:g} s"
            )
        if arrived:
            self._step_into_goals(state, np.sort(self._rows[choice == ARRIVED]), dt, out)

    def set_behaviour(self, name: str, on: bool) -> None:
        """Without "separation", agents ignore how many others stand around a cell; without "bonds", their bonds."""
        self.behaviours.switch(name, on)

    def state(self) -> dict[str, NDArray[Any]]:
        return {**self.behaviours.state(), **self._headways.state()}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        closed_until = self._headways.read(stored)
        self.behaviours.restore(stored)
        self._headways.put_back(closed_until)

    def offers(self) -> tuple[object, ...]:
        return (OfferedOccupancy(raster=self._raster, occupied=self._occupied_cells),)

    def _raster(self) -> Raster:
        assert self._parts
        raster: Raster = self._parts[0]
        return raster

    def _occupied_cells(self) -> NDArray[np.bool_]:
        """The occupancy map without its border."""
        rows, columns = (length + 2 * BORDER for length in self._raster().shape)
        around = self.occupied[: rows * columns].reshape(rows, columns)
        return np.asarray(around[BORDER:-BORDER, BORDER:-BORDER] != 0)

    # Caches between steps ---------------------------------------------------------------------------------------

    def _published_ground(self, moment: Moment) -> Ground:
        ground = moment.guidance.ground
        if ground is None:
            raise ParameterError("Lattice needs a ground; use a planner that publishes one, such as PathPlans")
        if abs(ground.raster.cell - self.parameters.cell) > 1e-12:
            raise ParameterError(
                f"Lattice has cells of {self.parameters.cell:g} m, but its planner has {ground.raster.cell:g} m; "
                f"set both to the same size"
            )
        return ground

    def _current_arrays(self, ground: Ground) -> GroundArrays:
        """The ground as kernels read it, rebuilt only after its planner has published another one."""
        parts = ground.raster, ground.moves, ground.short_lengths(), ground.plan_of_goal
        counts = len(ground.plan_of_goal), len(self._known_world().goal_numbers), self.behaviours["separation"]
        if self._ground is None or self._counts != counts or not all(map(operator.is_, parts, self._parts)):
            self._ground, self._parts, self._counts = self._new_arrays(ground), parts, counts
        return self._ground

    def _new_arrays(self, ground: Ground) -> GroundArrays:
        raster = ground.raster
        rows, columns = raster.shape
        highest = max(ground.plan_of_goal, default=NO_GOAL)
        plans = np.full(max(highest, len(self._known_world().goal_numbers)) - NO_GOAL + 1, NOWHERE, dtype=np.int64)
        for goal, plan in ground.plan_of_goal.items():
            plans[goal - NO_GOAL] = plan
        return GroundArrays(
            x=float(raster.origin[0]),
            y=float(raster.origin[1]),
            cell=raster.cell,
            rows=rows,
            columns=columns,
            free=raster.free.reshape(-1),
            moves=ground.moves.reshape(-1),
            lengths=ground.short_lengths(),
            margin=ground.margin,
            plan_of_goal=plans,
            path_weight=ground.log_gamma / STRAIGHT * 2.0**ground.dropped_bits,
            crowd_weight=math.log(self.parameters.separation) if self.behaviours["separation"] else 0.0,
        )

    def _known_world(self) -> World:
        assert self._world is not None
        return self._world

    def _keep_occupancy(self, state: AgentState, members: NDArray[np.int64], ground: GroundArrays, dt: float) -> None:
        """Update the occupancy map where needed: after agents have come or left, or bodies of other models moved."""
        self._age += 1
        if self._ids is not state.id or len(self._rows) != len(members):
            self._renew_rows(state, members, ground)
            moved = 1
        elif self._age > _SORT_EVERY:
            self._sort(state, members, ground)
            moved = 1
        else:
            moved = locate(self._rows, state.position, ground, self._places)
        obstacles = self._known_world().obstacles
        others = len(members) < len(state) or bool(obstacles.moving)
        if moved or others or self._others_marked:
            self.occupied.fill(0)
            mark(self._places, ground.columns, self.occupied)
        if others:
            rows = np.setdiff1d(np.arange(len(state)), members, assume_unique=True)
            mark_bodies(rows, state.position, state.velocity, state.radius, dt, ground, self.occupied)
            moving = np.array(obstacles.moving_rows, dtype=np.int64)
            mark_bodies(moving, obstacles.position, obstacles.velocity, obstacles.radius, dt, ground, self.occupied)
        self._others_marked = others

    def _renew_rows(self, state: AgentState, members: NDArray[np.int64], ground: GroundArrays) -> None:
        """List members after agents came or left. If few left, the order of the others stays good enough, unsorted."""
        fewer = len(self._rows) - len(members)
        if len(members) == len(state) and 0 <= fewer < len(members) // 8 and self._age <= _SORT_EVERY:
            self._rows = self._rows[self._rows < len(members)]
        if len(members) == len(state) == len(self._rows) and self._age <= _SORT_EVERY:
            self._places = np.empty_like(self._rows)
            locate(self._rows, state.position, ground, self._places)
            self._ids = state.id
        else:
            self._sort(state, members, ground)

    def _sort(self, state: AgentState, members: NDArray[np.int64], ground: GroundArrays) -> None:
        """Order members by tiles of the ground. The order changes times, not results."""
        places = np.full(len(members), NOWHERE, dtype=np.int64)
        locate(members, state.position, ground, places)
        rows, columns = ground.rows >> TILE_BITS, ground.columns >> TILE_BITS
        self._rows, self._places = np.empty_like(members), np.empty_like(places)
        tally = np.zeros((rows + 1) * (columns + 1) + 1, dtype=np.int64)
        sort_by_tile(members, places, columns + 1, tally, self._rows, self._places)
        self._ids, self._age = state.id, 0

    def _filters(self, ground: Ground) -> FilterTiles:
        if self._tiles is None or self._tiles_of != (ground.version, ground):
            # Sums of floats depend on their order, and the order in which filters were added is lost on a resume.
            self._tiles = filter_tiles([ground.filters[name] for name in sorted(ground.filters)], ground.raster.shape)
            self._tiles_of = (ground.version, ground)
        return self._tiles

    def _bonds_now(self, state: AgentState) -> Bonds:
        return self._bonds.bonds(state) if self.behaviours["bonds"] else NO_BONDS

    def _step_into_goals(self, state: AgentState, rows: NDArray[np.int64], dt: float, out: Steered) -> None:
        """Agents on the last cell of their path, but outside an exit smaller than a cell, step into the exit."""
        goals = self._known_world().goals()
        goal = _number_of_goal(state.position[rows], state.goal[rows], goals)
        # A closed exit admits no agents, and an agent standing in it would share its cell with others.
        lets_in = (goal == NEAREST_EXIT) | ((goal >= 0) & ((goals.absorbs & goals.usable)[np.maximum(goal, 0)] > 0))
        rows, goal = rows[lets_in], goal[lets_in]
        if not rows.size:
            return
        offset = offset_to_goal(state.position[rows], goal, goals)
        away = np.linalg.norm(offset, axis=1)
        rows, offset, away = rows[away > 0.0], offset[away > 0.0], away[away > 0.0]
        cost = away / state.desired_speed[rows]
        credit = state.credit[rows] + dt
        goes = credit >= cost
        out.memory["credit"][rows] = np.where(goes, credit - cost, credit)
        out.heading[rows] = offset / away[:, None]
        out.velocity[rows] = out.heading[rows] * state.desired_speed[rows, None]
        out.position[rows[goes]] = (state.position[rows] + offset)[goes]


def _number_of_goal(position: NDArray[np.float64], goal: NDArray[np.int32], goals: GoalArrays) -> NDArray[np.int32]:
    """Goals with "nearest target" replaced by its number, since some targets absorb agents and others do not."""
    meant = goal.copy()
    targets = np.flatnonzero((goals.is_target == 1) & (goals.usable == 1))
    rows = np.flatnonzero(goal == NEAREST_TARGET)
    if rows.size and targets.size:
        away = np.linalg.norm(position[rows, None] - goals.position[targets], axis=2)
        meant[rows] = targets[away.argmin(axis=1)]
    return meant

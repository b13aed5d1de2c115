"""PathPlans: path plans for a lattice crowd, one per goal, published on the ground for the local layer to read.

Banerjee, Abukmail & Kraemer, SIMULATION 85 (2009), sections 3 to 6. The cells are those that agents stand on
(`world/raster.py`), and the plans come from `planning/flow/path_plan.py`. Changes of doors, static obstacles and
permanent hazards repair the plans; everything temporary is a filter on top (`world/ground.py`).

Agents with other models may follow the same planner; for them it is a flow field on coarse cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_moves import DIAGONAL, FAR
from tropel._kernels.grid_raster import mark_points
from tropel.agents.state import AgentState
from tropel.contracts import Guidance, Moment
from tropel.contracts.layers import Behaviours
from tropel.contracts.offers import OfferedBottlenecks
from tropel.errors import ParameterError
from tropel.foundation.arguments import Length, checked_arguments
from tropel.foundation.renamed import warn
from tropel.foundation.stored_arrays import taken
from tropel.planning.fields.goals import goals_among
from tropel.planning.flow.model import FlowField, TerrainFactor
from tropel.planning.flow.path_plan import Discount, PathPlan
from tropel.planning.path_plans.bottlenecks import Bottleneck, find_bottlenecks
from tropel.planning.path_plans.congestion import Congestion, CongestionWatch
from tropel.planning.path_plans.detours import Detours
from tropel.planning.path_plans.published_maps import PublishedMaps
from tropel.world import World
from tropel.world.ground import Ground
from tropel.world.influence import HazardFilters
from tropel.world.raster import Raster, cells_now
from tropel.world.value_maps import ValueMap


class PathPlans(FlowField):
    """Publish the shortest paths to all goals on the ground; 2D.

    `cell` [m] must be that of the lattice. `gamma` is the discount per cell of path length: how much nearer a cell must
    be to make up for one more neighbour. Above 0.78 a neighbour outweighs any progress. `equal_moves` counts diagonal
    moves like straight ones (the paper's MDP instead of its semi-MDP), `corner_cutting` allows them past a blocked
    cell. `terrain` makes paths longer, as for `FlowField`. With `congestion`, agents avoid bottlenecks that are full:
    true, or the parameters of `Congestion`. `value_maps` give the value of places, by name; others can be added later.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        cell: Length = 0.4,
        gamma: Discount = 0.6,
        equal_moves: bool = False,
        corner_cutting: bool = False,
        terrain: TerrainFactor | None = None,
        congestion: Congestion | Mapping[str, Any] | bool = False,
        value_maps: Mapping[str, ValueMap | Mapping[str, Any]] | None = None,
        layers: Mapping[str, ValueMap | Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(
            cell=cell,
            clearance=0.5 * cell,
            gamma=gamma,
            equal_moves=equal_moves,
            corner_cutting=corner_cutting,
            terrain=terrain,
            streams=False,
            choose_exits=False,
        )
        self.congestion = _congestion(congestion)
        self.watch: CongestionWatch | None = None  #: counts agents at bottlenecks, if congestion is avoided
        self.keep_history = False  #: whether `watch` stores its counts
        self._maps = PublishedMaps(_maps_given(value_maps, layers))
        self._frame = 0
        self._detours = None if self.congestion is None else Detours(area=self.congestion.area)
        self._stale = False  # whether plans may have changed while bottlenecks were not monitored
        self._published: tuple[object, ...] = ()  #: the raster and the plans that have been published
        self._ground: Ground | None = None
        self._hazards = HazardFilters()
        watching = () if self.congestion is None else ("congestion",)
        self.behaviours: Behaviours = Behaviours(
            "hazard influence", "value maps", *watching
        )  #: what can be switched off during a run

    @property
    def parameters(self) -> str:
        return f"{super().parameters}, congestion={self.congestion}, value_maps=({self._maps.parameters})"

    def bytes_per_cell(self, dim: int) -> float:
        # All plans once more in one array, and their short lengths.
        return super().bytes_per_cell(dim) + 12.0

    def draw(self, world: World) -> Raster:
        return cells_now(world, self.cell)

    def prepare(self, moment: Moment) -> None:
        super().prepare(moment)
        self.watch, self._frame = None, 0
        self._maps.begin()
        self.behaviours.begin()
        self._ground = None
        self._publish_filters(moment.state, self._publish())
        self._warn_of_the_lost(moment.state)

    @property
    def ground(self) -> Ground | None:
        return self._ground

    @property
    def value_maps(self) -> PublishedMaps:  # type: ignore[override]
        return self._maps

    def publish(self, moment: Moment, out: Guidance) -> None:
        """Update the ground for the members; their model reads it."""
        state, members = moment.state, moment.members
        self._keep_up()
        present = goals_among(state.goal, members, self._known()[0])
        self._add_plans(present)
        # Not only recent changes count: other callers may have requested plans that the ground did not need then.
        if [id(part) for part in self._published] != [id(part) for part in (self._raster, *self._plans.values())]:
            self._publish()
        self._publish_filters(state, self._published_ground())
        raster = self._known()[1]
        if self._stale and self._watches():
            self._watch_bottlenecks(self._published_ground())
        if self.watch is not None and self._watches() and self.watch.is_due(self._frame):
            occupied = np.zeros(raster.shape, dtype=np.uint8)
            mark_points(state.position, members, raster.origin, raster.cell, occupied)
            self.watch.look(self._frame, occupied)
        self._plan_detours()
        self._frame += 1
        out.ground = self._ground

    def _publish_filters(self, state: AgentState, ground: Ground) -> None:
        world = self._known()[0]
        self._hazards.update(world, ground, far=self.behaviours["hazard influence"])
        self._maps.publish(ground, state.group_names, world.time, on=self.behaviours["value maps"])

    def set_behaviour(self, name: str, on: bool) -> None:
        """Without "congestion" agents ignore full bottlenecks; without "hazard influence" all but the inner discs."""
        self.behaviours.switch(name, on)
        if name == "congestion" and not on and self.watch is not None:
            self.watch.rest()
            self._stale = True
            self._plan_detours()

    def _watches(self) -> bool:
        return self.behaviours.get("congestion", False)

    def _publish(self) -> Ground:
        """Publish the plans that have changed, without detours, and watch their bottlenecks."""
        if self._detours is not None:
            self._detours.clear()
        known = {id(plan) for plan in self._published}
        changed = [row for row, plan in enumerate(self._plans.values()) if id(plan) not in known]
        ground = self._write_plans(changed)
        self._published = (self._raster, *self._plans.values())
        if self._watches():
            self._watch_bottlenecks(ground)
        return ground

    def _write_plans(self, changed: Sequence[int]) -> Ground:
        """Put the plans on the ground: all in one array; each `PathPlan` repairs its own part of it.

        Detours come after the others. `changed` are the rows whose lengths are other ones now.
        """
        raster = self._known()[1]
        plans = self._solvers()
        detours = self._detours.plans if self._detours is not None else {}
        all_plans = [*plans.values(), *detours.values()]
        ground = self._ground
        longest_move = max((plan.longest_move for plan in all_plans), default=DIAGONAL)
        same_units = ground is not None and ground.longest_move == longest_move
        if ground is None or any(plan.units.base is not ground.units for plan in all_plans):
            same_units = False
            units = np.empty((len(all_plans), *raster.shape), dtype=np.int64)
            for row, plan in enumerate(all_plans):
                units[row] = plan.units
                plan.units = units[row]
            if ground is None:
                nothing = np.zeros(raster.shape, dtype=np.uint8)
                ground = Ground(raster=raster, moves=nothing, log_gamma=self._log_gamma, units=units)
            ground.units = units
        ground.raster, ground.drawn, ground.longest_move = raster, self._drawn, longest_move
        for plan in plans.values():
            ground.moves = plan.moves
        ground.plan_of_goal = {goal: row for row, goal in enumerate(plans, start=len(plans) if detours else 0)}
        self._ground = ground
        ground.renew_short_lengths(changed if same_units else None)
        return ground

    def _solvers(self) -> dict[int, PathPlan]:
        return {goal: solved.field.solver for goal, solved in self._plans.items()}

    def _plan_detours(self) -> None:
        """Let agents plan around the waits at congested bottlenecks, as they are now."""
        if self.watch is None or self.watch.queues is None or self._detours is None:
            return
        changed, plans = self._detours.update(self.watch.waits()), len(self._plans)
        # After a resume the ground may still show the detours of before.
        shown = any(row >= plans for row in self._published_ground().plan_of_goal.values())
        if changed or shown != bool(self._detours.plans):
            self._write_plans(range(plans, plans + len(self._detours.plans)))

    def _watch_bottlenecks(self, ground: Ground) -> None:
        self._stale = False
        bottlenecks = self._find_bottlenecks()
        if self.watch is None:
            self.watch = CongestionWatch(ground, bottlenecks, self.congestion, keep_history=self.keep_history)
        else:
            self.watch.replan(ground, bottlenecks)
        if self.watch.parameters.replan and self._detours is not None:
            raster = self._known()[1]
            self._detours.begin(self._solvers(), bottlenecks, raster, self._terrain_factors(raster))
            self.watch.queues = self._detours.queues()

    def _terrain_factors(self, raster: Raster) -> NDArray[np.float64] | None:
        factors = self._factors(raster)
        return None if factors is None else np.asarray(factors, dtype=np.float64)

    def offers(self) -> tuple[object, ...]:
        places = OfferedBottlenecks(version=self._version_of_plans, find=self._find_bottlenecks)
        watched = () if self.watch is None else self.watch.offers()
        return (*super().offers(), places, *watched)

    def _version_of_plans(self) -> object:
        return self._published_ground().drawn, tuple(self._plans)

    def _find_bottlenecks(self) -> list[Bottleneck]:
        """The bottlenecks of the plans without detours."""
        without = {goal: row for row, goal in enumerate(self._plans)}
        return find_bottlenecks(replace(self._published_ground(), plan_of_goal=without))

    def _published_ground(self) -> Ground:
        assert self._ground is not None
        return self._ground

    def state(self) -> dict[str, NDArray[Any]]:
        """Value maps that were added, and the state of the counts at bottlenecks; the rest follows from the world."""
        watched = {} if self.watch is None else {"frame": np.array(self._frame), **self.watch.state()}
        return {
            **self._maps.state(),
            **self.behaviours.state(),
            **{f"watch/{name}": array for name, array in watched.items()},
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        maps, off = self._maps.read(stored), self.behaviours.read(stored)
        if self.watch is not None:
            told = {name.removeprefix("watch/"): a for name, a in stored.items() if name.startswith("watch/")}
            frame, watched = int(taken(told, "frame", dtype="int64", shape=(), low=0)), self.watch.read(told)
        # Everything has been read without errors; changes start here.
        self._maps.put_back(maps)
        self.behaviours.put_back(off)
        if self.watch is not None:
            self._frame = frame
            self.watch.put_back(watched)
            self._stale = True

    def _warn_of_the_lost(self, state: AgentState) -> None:
        """Warn how many agents have no path to their goal in the present world, and where they are."""
        raster = self._known()[1]
        for goal, plan in self._plans.items():
            rows = np.flatnonzero(state.goal == goal)
            index = raster.index_of(state.position[rows])
            lost = rows[plan.field.solver.units[index[:, 0], index[:, 1]] >= FAR]
            if lost.size:
                low, high = state.position[lost].min(axis=0), state.position[lost].max(axis=0)
                warnings.warn(
                    f"{lost.size} of {rows.size} agents have no path to '{self._name(goal)}' as the world is now; they "
                    f"stand between ({low[0]:.4g}, {low[1]:.4g}) and ({high[0]:.4g}, {high[1]:.4g}) and wait there",
                    stacklevel=2,
                )


def _maps_given(maps: Mapping[str, Any] | None, layers: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The maps given as `value_maps`, or under their old name."""
    if layers is None:
        return maps or {}
    if maps is not None:
        raise ParameterError("PathPlans: layers is the old name of value_maps; give only value_maps")
    warn("PathPlans(layers=…)", "value_maps", stacklevel=4)
    return layers


def _congestion(given: Congestion | Mapping[str, Any] | bool) -> Congestion | None:
    if isinstance(given, Congestion):
        return given
    if isinstance(given, Mapping):
        return Congestion(**given)
    return Congestion() if given else None

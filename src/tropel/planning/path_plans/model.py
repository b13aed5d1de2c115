"""PathPlans: path plans for a lattice crowd, one per goal, published on the ground for the local layer to read.

Banerjee, Abukmail & Kraemer, SIMULATION 85 (2009), sections 3 to 6. The cells are those that agents stand on
(`world/raster.py`), and the plans come from `planning/flow/path_plan.py`. Changes of doors, static obstacles and
permanent hazards repair the plans; everything temporary is a filter on top (`world/ground.py`).

Agents with other models may follow the same planner; for them it is a flow field on coarse cells.

The file begins with the value maps that a planner publishes as filters (`PublishedMaps`); the planner follows.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_moves import DIAGONAL, FAR
from tropel._kernels.grid_raster import mark_points
from tropel.agents.state import AgentState
from tropel.contracts import Guidance, Moment
from tropel.contracts.layers import Behaviours
from tropel.contracts.offers import OfferedBottlenecks
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.arguments import Length, checked_arguments
from tropel.foundation.renamed import warn
from tropel.foundation.stored_arrays import taken
from tropel.planning.fields.goals import goals_among
from tropel.planning.flow.model import FlowField, TerrainFactor
from tropel.planning.flow.path_plan import Discount
from tropel.planning.path_plans.bottlenecks import Bottleneck, find_bottlenecks
from tropel.planning.path_plans.congestion import Congestion, CongestionWatch
from tropel.world import World
from tropel.world.ground import Ground
from tropel.world.influence import HazardFilters
from tropel.world.raster import Raster, cells_now
from tropel.world.value_maps import ValueMap

# Value maps become filters on the ground (`world/ground.py`). A filter is rebuilt only if its map has moved, its time
# has come, or the cells have been redrawn.


#: Prefix of the filters' names, so that they cannot clash with those of hazards and congestions.
_PREFIX = "value map "


class PublishedMaps:
    """Value maps by name: those declared at the start, and those added and removed since."""

    def __init__(self, declared: Mapping[str, ValueMap | Mapping[str, Any]]) -> None:
        if not isinstance(declared, Mapping):
            raise ParameterError(
                f"value maps must be given by name, as {{name = {{values = …}}}}, not {declared!r:.40}"
            )
        self._declared = {name: _value_map(name, each) for name, each in declared.items()}
        self.begin()

    def begin(self) -> None:
        """Start again with the declared maps."""
        self._maps = dict(self._declared)
        self._published: dict[str, tuple[ValueMap, tuple[float, ...]]] = {}
        self._raster: Raster | None = None

    @property
    def names(self) -> list[str]:
        return list(self._maps)

    @property
    def parameters(self) -> str:
        return "; ".join(f"{name}: {value_map.parameters}" for name, value_map in self._declared.items())

    def add(self, name: str, value_map: ValueMap) -> None:
        if name in self._maps:
            raise ParameterError(f"there is a value map '{name}' already; remove it first or choose another name")
        self._maps[name] = _value_map(name, value_map)

    def remove(self, name: str) -> None:
        if name not in self._maps:
            raise ParameterError(f"there is no value map '{name}'; {suggest(name, self._maps)}")
        del self._maps[name]

    def publish(self, ground: Ground, groups: Sequence[str], time: float, *, on: bool = True) -> None:
        """Update the filters on the ground; there are none unless `on`."""
        wanted = self._maps if on else {}
        if ground.raster is not self._raster:
            self._raster = ground.raster
            self._published.clear()
        for name in [name.removeprefix(_PREFIX) for name in ground.filters if name.startswith(_PREFIX)]:
            if name not in wanted:
                ground.drop_filter(_PREFIX + name)
        self._published = {name: published for name, published in self._published.items() if name in wanted}
        for name, value_map in wanted.items():
            now = (value_map, value_map.moment(time))
            if self._published.get(name) == now:
                continue
            new = value_map.filter(ground.raster, now[1], group=_number(value_map.group, groups, name), name=name)
            if new is None:
                ground.drop_filter(_PREFIX + name)
            else:
                ground.set_filter(_PREFIX + name, new)
            self._published[name] = now

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """The present maps: a mark for declared ones, plain data for others, and only the name for functions."""
        stored = {name: self._stored(name, value_map) for name, value_map in self._maps.items()}
        return {"value_maps": np.frombuffer(json.dumps(stored).encode(), dtype=np.uint8)}

    def _stored(self, name: str, value_map: ValueMap) -> Any:
        if self._declared.get(name) is value_map:
            return "declared"
        return {"function": value_map.parameters} if value_map.holds_function else value_map.stored()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` returned; if it cannot be read, nothing is changed."""
        self.put_back(self.read(stored))

    def read(self, stored: Mapping[str, NDArray[Any]]) -> dict[str, ValueMap]:
        """The maps that `state` returned; functions are taken from the maps that the script has added."""
        text = taken(stored, "value_maps", dtype="uint8", shape=(None,)).tobytes()
        try:
            told = json.loads(text)
            return {name: self._read_map(name, entry) for name, entry in told.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"'value_maps' in it cannot be read ({type(error).__name__}: {error})") from error

    def _read_map(self, name: str, entry: Any) -> ValueMap:
        if entry == "declared":
            return self._declared[name]
        if "function" in entry:
            if name not in self._maps or self._maps[name].parameters != entry["function"]:
                raise ParameterError(
                    f"value map '{name}' is or moves by a function that this script does not define; add the same "
                    f"map before restoring"
                )
            return self._maps[name]
        return _value_map(name, entry)

    def put_back(self, maps: Mapping[str, ValueMap]) -> None:
        self._maps = dict(maps)


def _value_map(name: str, given: Any) -> ValueMap:
    if isinstance(given, ValueMap):
        return given
    if not isinstance(given, Mapping):
        raise ParameterError(f"value map '{name}' must be given as ValueMap(…), not {given!r}")
    known = list(inspect.signature(ValueMap).parameters)
    for key in given:
        if key not in known:
            raise ParameterError(f"value map '{name}' has no '{key}'; {suggest(key, known)}")
    if "values" not in given:
        raise ParameterError(f"value map '{name}': its values are missing; add them as values = …")
    try:
        return ValueMap(**given)
    except ParameterError as error:
        raise ParameterError(f"value map '{name}': {error}") from error


def _number(group: str | None, groups: Sequence[str], name: str) -> int:
    if group is None:
        return -1
    if group not in groups:
        raise ParameterError(
            f"value map '{name}' is for the group '{group}', which does not exist; {suggest(group, groups)}"
        )
    return list(groups).index(group)


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
        )
        self.congestion = _congestion(congestion)
        self.watch: CongestionWatch | None = None  #: counts agents at bottlenecks, if congestion is avoided
        self.keep_history = False  #: whether `watch` stores its counts
        self._maps = PublishedMaps(_maps_given(value_maps, layers))
        self._frame = 0
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

    def _watches(self) -> bool:
        return self.behaviours.get("congestion", False)

    def _publish(self) -> Ground:
        """Publish the plans: all in one array; each `PathPlan` repairs its own part of it."""
        raster = self._known()[1]
        plans = {goal: solved.field.solver for goal, solved in self._plans.items()}
        ground = self._ground
        longest_move = max((plan.longest_move for plan in plans.values()), default=DIAGONAL)
        same_units = ground is not None and ground.longest_move == longest_move
        if ground is None or any(plan.units.base is not ground.units for plan in plans.values()):
            same_units = False
            units = np.empty((len(plans), *raster.shape), dtype=np.int64)
            for row, plan in enumerate(plans.values()):
                units[row] = plan.units
                plan.units = units[row]
            if ground is None:
                nothing = np.zeros(raster.shape, dtype=np.uint8)
                ground = Ground(raster=raster, moves=nothing, log_gamma=self._log_gamma, units=units)
            ground.units = units
        ground.raster, ground.drawn, ground.longest_move = raster, self._drawn, longest_move
        for plan in plans.values():
            ground.moves = plan.moves
        ground.plan_of_goal = {goal: row for row, goal in enumerate(plans)}
        self._ground = ground
        known = {id(plan) for plan in self._published}
        changed = [row for row, plan in enumerate(self._plans.values()) if id(plan) not in known]
        ground.renew_short_lengths(changed if same_units else None)
        self._published = (self._raster, *self._plans.values())
        if self._watches():
            self._watch_bottlenecks(ground)
        return ground

    def _watch_bottlenecks(self, ground: Ground) -> None:
        self._stale = False
        bottlenecks = find_bottlenecks(ground)
        if self.watch is None:
            self.watch = CongestionWatch(ground, bottlenecks, self.congestion, keep_history=self.keep_history)
        else:
            self.watch.replan(ground, bottlenecks)

    def offers(self) -> tuple[object, ...]:
        places = OfferedBottlenecks(version=self._version_of_plans, find=self._find_bottlenecks)
        watched = () if self.watch is None else self.watch.offers()
        return (*super().offers(), places, *watched)

    def _version_of_plans(self) -> object:
        ground = self._published_ground()
        return ground.drawn, tuple(sorted(ground.plan_of_goal.items()))

    def _find_bottlenecks(self) -> list[Bottleneck]:
        return find_bottlenecks(self._published_ground())

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

"""Path-plan layers for a lattice crowd: one per goal, laid on the ground for the local layer to read.

Banerjee, Abukmail & Kraemer, SIMULATION 85 (2009), sections 3 to 6. The cells are those people stand on
(`world/raster.py`), the layers those of `path_plan.py`. Doors, static obstacles and permanent hazards change
the layers by repair; everything that passes is a filter on top (`world/ground.py`).

Agents with other models may follow the same plan; for them it is a flow field on coarse cells.
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
from tropel.foundation.stored_arrays import taken
from tropel.planning.fields.goals import goals_among
from tropel.planning.flow.model import FlowField
from tropel.planning.flow.model import Terrain as TerrainFactor
from tropel.planning.flow.path_plan import Discount
from tropel.planning.path_plans.bottlenecks import Bottleneck, find_bottlenecks
from tropel.planning.path_plans.congestion import Congestion, CongestionWatch
from tropel.world import World
from tropel.world.ground import Terrain
from tropel.world.influence import HazardLayers
from tropel.world.raster import Raster, cells_now
from tropel.world.value_maps import Layer

# The layers of a user's own that lie on the ground, brought up to date in every step.
#
# Each becomes a filter of `world/ground.py`, made anew only when it has moved, its time has come, or the cells have
# been drawn anew.


#: Names of the filters begin so, that they cannot meet those of hazards and congestions.
_PREFIX = "layer "


class LaidLayers:
    """Layers by name: those declared at first, and those added and removed since."""

    def __init__(self, declared: Mapping[str, Layer | Mapping[str, Any]]) -> None:
        if not isinstance(declared, Mapping):
            raise ParameterError(f"layers are given by their names, as {{name = {{values = …}}}}, not {declared!r:.40}")
        self._declared = {name: _layer(name, each) for name, each in declared.items()}
        self.begin()

    def begin(self) -> None:
        """Start anew with what was declared."""
        self._layers = dict(self._declared)
        self._laid: dict[str, tuple[Layer, tuple[float, ...]]] = {}
        self._raster: Raster | None = None

    @property
    def names(self) -> list[str]:
        return list(self._layers)

    @property
    def parameters(self) -> str:
        return "; ".join(f"{name}: {layer.parameters}" for name, layer in self._declared.items())

    def add(self, name: str, layer: Layer) -> None:
        if name in self._layers:
            raise ParameterError(f"there is a layer '{name}' already; remove it first or choose another name")
        self._layers[name] = _layer(name, layer)

    def remove(self, name: str) -> None:
        if name not in self._layers:
            raise ParameterError(f"there is no layer '{name}'; {suggest(name, self._layers)}")
        del self._layers[name]

    def lay(self, ground: Terrain, groups: Sequence[str], time: float, *, on: bool = True) -> None:
        """Bring the filters on the ground up to date; there are none while they are not `on`."""
        wanted = self._layers if on else {}
        if ground.raster is not self._raster:
            self._raster = ground.raster
            self._laid.clear()
        for name in [name.removeprefix(_PREFIX) for name in ground.filters if name.startswith(_PREFIX)]:
            if name not in wanted:
                ground.drop_filter(_PREFIX + name)
        self._laid = {name: laid for name, laid in self._laid.items() if name in wanted}
        for name, layer in wanted.items():
            now = (layer, layer.moment(time))
            if self._laid.get(name) == now:
                continue
            new = layer.filter(ground.raster, now[1], group=_number(layer.group, groups, name), name=name)
            if new is None:
                ground.drop_filter(_PREFIX + name)
            else:
                ground.set_filter(_PREFIX + name, new)
            self._laid[name] = now

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Which layers there are: a mark for those declared, plain data for others, and only the name of functions."""
        stored = {name: self._stored(name, layer) for name, layer in self._layers.items()}
        return {"layers": np.frombuffer(json.dumps(stored).encode(), dtype=np.uint8)}

    def _stored(self, name: str, layer: Layer) -> Any:
        if self._declared.get(name) is layer:
            return "declared"
        return {"function": layer.parameters} if layer.holds_function else layer.stored()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave; nothing is changed when it cannot be read."""
        self.put_back(self.read(stored))

    def read(self, stored: Mapping[str, NDArray[Any]]) -> dict[str, Layer]:
        """The layers that `state` gave; functions are found again among the layers that the script has added."""
        text = taken(stored, "layers", dtype="uint8", shape=(None,)).tobytes()
        try:
            told = json.loads(text)
            return {name: self._read_layer(name, entry) for name, entry in told.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"'layers' in it cannot be read ({type(error).__name__}: {error})") from error

    def _read_layer(self, name: str, entry: Any) -> Layer:
        if entry == "declared":
            return self._declared[name]
        if "function" in entry:
            if name not in self._layers or self._layers[name].parameters != entry["function"]:
                raise ParameterError(
                    f"layer '{name}' is or moves by a function that this script does not define; add the same "
                    f"layer before restoring"
                )
            return self._layers[name]
        return _layer(name, entry)

    def put_back(self, layers: Mapping[str, Layer]) -> None:
        self._layers = dict(layers)


def _layer(name: str, given: Any) -> Layer:
    if isinstance(given, Layer):
        return given
    if not isinstance(given, Mapping):
        raise ParameterError(f"layer '{name}' must be given as Layer(…), not {given!r}")
    known = list(inspect.signature(Layer).parameters)
    for key in given:
        if key not in known:
            raise ParameterError(f"layer '{name}' has no '{key}'; {suggest(key, known)}")
    if "values" not in given:
        raise ParameterError(f"layer '{name}': its values are missing")
    try:
        return Layer(**given)
    except ParameterError as error:
        raise ParameterError(f"layer '{name}': {error}") from error


def _number(group: str | None, groups: Sequence[str], name: str) -> int:
    if group is None:
        return -1
    if group not in groups:
        raise ParameterError(f"layer '{name}' is for the group '{group}', which is not there; {suggest(group, groups)}")
    return list(groups).index(group)


class PathPlans(FlowField):
    """Lay the shortest ways to all goals on the ground; 2D.

    `cell` [m] must be that of the lattice. `gamma` is the discount per cell of way: how much nearer a cell must be to
    make up for a neighbour more. Above 0.78 a neighbour outweighs any progress. `equal_moves` counts diagonal moves
    like straight ones (the paper's MDP instead of its semi-MDP), `corner_cutting` allows them past a blocked cell.
    `terrain` makes ways longer, as for `FlowField`. With `congestion` bottlenecks that are full are shunned: true, or
    the parameters of `Congestion`. `layers` are layers of the user's own, by name; others can be added later.
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
        layers: Mapping[str, Layer | Mapping[str, Any]] | None = None,
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
        self.watch: CongestionWatch | None = None  #: counts people at bottlenecks, where congestion is shunned
        self.keep_history = False  #: whether `watch` remembers what it counted
        self.layers = LaidLayers(layers or {})
        self._frame = 0
        self._stale = False  # whether plans may have changed while nobody watched bottlenecks
        self._laid: tuple[object, ...] = ()  #: the raster and the plans that have been published
        self._ground: Terrain | None = None
        self._hazards = HazardLayers()
        watching = () if self.congestion is None else ("congestion",)
        self.behaviours: Behaviours = Behaviours(
            "hazard influence", "user layers", *watching
        )  #: what can be switched off while it runs

    @property
    def parameters(self) -> str:
        return f"{super().parameters}, congestion={self.congestion}, layers=({self.layers.parameters})"

    def bytes_per_cell(self, dim: int) -> float:
        # All layers once more in one array, and their short lengths.
        return super().bytes_per_cell(dim) + 12.0

    def draw(self, world: World) -> Raster:
        return cells_now(world, self.cell)

    def prepare(self, moment: Moment) -> None:
        super().prepare(moment)
        self.watch, self._frame = None, 0
        self.layers.begin()
        self.behaviours.begin()
        self._ground = None
        self._lay_filters(moment.state, self._lay())
        self._warn_of_the_lost(moment.state)

    @property
    def ground(self) -> Terrain | None:
        return self._ground

    @property
    def ground_layers(self) -> LaidLayers:  # type: ignore[override]
        return self.layers

    def lay(self, moment: Moment, out: Guidance) -> None:
        """Bring the layers up to date for these agents; the local layer reads them from the ground."""
        state, members = moment.state, moment.members
        self._keep_up()
        present = goals_among(state.goal, members, self._known()[0])
        self._add_plans(present)
        # Not only what has changed just now: others may have had plans made that nobody needed on the ground then.
        if [id(part) for part in self._laid] != [id(part) for part in (self._raster, *self._plans.values())]:
            self._lay()
        self._lay_filters(state, self._laid_ground())
        raster = self._known()[1]
        if self._stale and self._watches():
            self._watch_bottlenecks(self._laid_ground())
        if self.watch is not None and self._watches() and self.watch.is_due(self._frame):
            occupied = np.zeros(raster.shape, dtype=np.uint8)
            mark_points(state.position, members, raster.origin, raster.cell, occupied)
            self.watch.look(self._frame, occupied)
        self._frame += 1
        out.ground = self._ground

    def _lay_filters(self, state: AgentState, ground: Terrain) -> None:
        world = self._known()[0]
        self._hazards.update(world, ground, far=self.behaviours["hazard influence"])
        self.layers.lay(ground, state.group_names, world.time, on=self.behaviours["user layers"])

    def set_behaviour(self, name: str, on: bool) -> None:
        """Without "congestion" no bottleneck is shunned; without "hazard influence" people just keep out of hazards."""
        self.behaviours.switch(name, on)
        if name == "congestion" and not on and self.watch is not None:
            self.watch.rest()
            self._stale = True

    def _watches(self) -> bool:
        return self.behaviours.get("congestion", False)

    def _lay(self) -> Terrain:
        """Publish the layers: all in one array, of which each `FlowLayer` has its own part to repair."""
        raster = self._known()[1]
        layers = {goal: plan.field.solver for goal, plan in self._plans.items()}
        ground = self._ground
        longest_move = max((layer.longest_move for layer in layers.values()), default=DIAGONAL)
        same_units = ground is not None and ground.longest_move == longest_move
        if ground is None or any(layer.units.base is not ground.units for layer in layers.values()):
            same_units = False
            units = np.empty((len(layers), *raster.shape), dtype=np.int64)
            for row, layer in enumerate(layers.values()):
                units[row] = layer.units
                layer.units = units[row]
            if ground is None:
                nothing = np.zeros(raster.shape, dtype=np.uint8)
                ground = Terrain(raster=raster, moves=nothing, log_gamma=self._log_gamma, units=units)
            ground.units = units
        ground.raster, ground.drawn, ground.longest_move = raster, self._drawn, longest_move
        for layer in layers.values():
            ground.moves = layer.moves
        ground.plan_of_goal = {goal: row for row, goal in enumerate(layers)}
        self._ground = ground
        known = {id(plan) for plan in self._laid}
        changed = [row for row, plan in enumerate(self._plans.values()) if id(plan) not in known]
        ground.renew_short_ways(changed if same_units else None)
        self._laid = (self._raster, *self._plans.values())
        if self._watches():
            self._watch_bottlenecks(ground)
        return ground

    def _watch_bottlenecks(self, ground: Terrain) -> None:
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
        ground = self._laid_ground()
        return ground.drawn, tuple(sorted(ground.plan_of_goal.items()))

    def _find_bottlenecks(self) -> list[Bottleneck]:
        return find_bottlenecks(self._laid_ground())

    def _laid_ground(self) -> Terrain:
        assert self._ground is not None
        return self._ground

    def state(self) -> dict[str, NDArray[Any]]:
        """Layers that were added, and what the next look at the bottlenecks depends on; the rest follows the world."""
        watched = {} if self.watch is None else {"frame": np.array(self._frame), **self.watch.state()}
        return {
            **self.layers.state(),
            **self.behaviours.state(),
            **{f"watch/{name}": array for name, array in watched.items()},
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        layers, off = self.layers.read(stored), self.behaviours.read(stored)
        if self.watch is not None:
            told = {name.removeprefix("watch/"): a for name, a in stored.items() if name.startswith("watch/")}
            frame, watched = int(taken(told, "frame", dtype="int64", shape=(), low=0)), self.watch.read(told)
        # All of it can be read: nothing is changed before.
        self.layers.put_back(layers)
        self.behaviours.put_back(off)
        if self.watch is not None:
            self._frame = frame
            self.watch.put_back(watched)
            self._stale = True

    def _warn_of_the_lost(self, state: AgentState) -> None:
        """Say how many agents have no way to their goal as the world is now, and where they are."""
        raster = self._known()[1]
        for goal, plan in self._plans.items():
            rows = np.flatnonzero(state.goal == goal)
            index = raster.index_of(state.position[rows])
            lost = rows[plan.field.solver.units[index[:, 0], index[:, 1]] >= FAR]
            if lost.size:
                low, high = state.position[lost].min(axis=0), state.position[lost].max(axis=0)
                warnings.warn(
                    f"{lost.size} of {rows.size} agents have no way to '{self._name(goal)}' as the world is now; they "
                    f"stand between ({low[0]:.4g}, {low[1]:.4g}) and ({high[0]:.4g}, {high[1]:.4g}) and wait there",
                    stacklevel=2,
                )


def _congestion(given: Congestion | Mapping[str, Any] | bool) -> Congestion | None:
    if isinstance(given, Congestion):
        return given
    if isinstance(given, Mapping):
        return Congestion(**given)
    return Congestion() if given else None

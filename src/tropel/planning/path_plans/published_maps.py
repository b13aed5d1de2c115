"""Value maps as filters on the ground (`world/ground.py`).

A filter is rebuilt only if its map has moved, its time has come, or the cells have been redrawn.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.stored_arrays import taken
from tropel.world.ground import Ground
from tropel.world.raster import Raster
from tropel.world.value_maps import ValueMap

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

"""The layers of a user's own that lie on the ground, brought up to date in every step.

Each becomes a filter of `world/terrain.py`, made anew only when it has moved, its time has come, or the cells have been
drawn anew.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.stored_arrays import taken
from tropel.world.raster import Raster
from tropel.world.terrain import Terrain
from tropel.world.user_layers import Layer

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

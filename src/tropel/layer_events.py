"""Layers of the user's own that come and go while the simulation runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tropel.event_base import Event, GroupName, Named
from tropel.field_types import Finite
from tropel.world.limits import Coordinate, PositiveLength
from tropel.world.motion import Motion
from tropel.world.user_layers import Disc, Layer, Openness

if TYPE_CHECKING:
    from tropel.simulation import Simulation

_Worth = Annotated[Finite, Field(ge=0.0, le=1.0)]
_Profile = Annotated[Disc | Openness, Field(discriminator="kind")]
_Place = tuple[Coordinate, Coordinate]


class AddLayer(Event):
    """Lay down a layer on the ground for those who follow it: values from 0 (a veto) to 1, a disc, or openness."""

    kind: Literal["add_layer"] = "add_layer"
    name: Annotated[str, Named("layer", "adds")]
    values: tuple[tuple[_Worth, ...], ...] | _Profile
    origin: _Place | None = None
    cell: PositiveLength | None = None
    position: _Place | None = None
    motion: Motion | None = None
    group: GroupName = None
    spares_inside: bool = False

    def check(self, sim: Simulation, step: int) -> None:
        layer, ground = self._layer(), sim.ground
        if ground is not None:
            layer.filter(ground.raster, layer.moment(step * sim.dt), group=0, name=self.name)

    def apply(self, sim: Simulation) -> None:
        sim.add_layer(self.name, self._layer())

    def _layer(self) -> Layer:
        return Layer(
            self.values,
            origin=self.origin,
            cell=self.cell,
            position=self.position,
            motion=self.motion,
            group=self.group,
            spares_inside=self.spares_inside,
        )


class RemoveLayer(Event):
    """Take a layer away."""

    kind: Literal["remove_layer"] = "remove_layer"
    name: Annotated[str, Named("layer", "removes")]

    def apply(self, sim: Simulation) -> None:
        sim.remove_layer(self.name)

"""Events that change what agents avoid: hazards that break out, move, grow and end, and value maps that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tropel.events.base import Event, GroupName, Named
from tropel.foundation.field_types import Finite, NotNegative, PositiveFinite
from tropel.foundation.renamed import current
from tropel.world import Hazard
from tropel.world.motion import Motion, PointField
from tropel.world.shapes import Coordinate, PositiveLength
from tropel.world.value_maps import Disc, Openness, ValueMap

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class HazardFields(BaseModel):
    """The fields of a hazard in events and scenario files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inner: Annotated[PositiveFinite, Field(description="agents within this distance die [m]")]
    outer: Annotated[PositiveFinite | None, Field(description="avoided up to here [m]; default: 4 times inner")] = None
    position: PointField | None = None
    motion: Motion | None = None
    intensity: Annotated[NotNegative, Field(description="how sharply it is avoided; 1 is mild")] = 1.0
    type: Annotated[str, Field(description='what it is: "fire", "rubble", "explosion", …')] = "fire"
    growth: Annotated[NotNegative, Field(description="of the inner radius [m/s]; the outer keeps its ratio")] = 0.0
    largest: Annotated[PositiveFinite | None, Field(description="inner radius at which it stops growing [m]")] = None
    until: Annotated[PositiveFinite | None, Field(description="simulated time at which it is over [s]")] = None
    replan: Annotated[bool, Field(description="planners find paths around it")] = False
    deadly: bool = True

    def made(self) -> Hazard:
        told = {name: getattr(self, name) for name in HazardFields.model_fields if name != "type"}
        return Hazard(kind=self.type, **told)


class AddHazard(HazardFields, Event):
    """Let a hazard break out: fire, rubble, an explosion."""

    kind: Literal["add_hazard"] = "add_hazard"
    name: Annotated[str, Named("hazard", "adds", until="until")]

    def check(self, sim: Simulation, step: int) -> None:
        sim.world.hazards.check(self.name, self.made(), time=step * sim.dt)

    def apply(self, sim: Simulation) -> None:
        sim.world.hazards.add(self.name, self.made(), time=sim.time, dt=sim.dt)


class MoveHazard(Event):
    """Move a hazard to another place, where it stays."""

    kind: Literal["move_hazard"] = "move_hazard"
    name: Annotated[str, Named("hazard")]
    position: PointField

    def check(self, sim: Simulation, step: int) -> None:
        sim.world.hazards.check(self.name, Hazard(inner=1.0, position=self.position))

    def apply(self, sim: Simulation) -> None:
        if sim.is_put_out(self.name):
            return
        sim.world.hazards.move(self.name, self.position, time=sim.time, dt=sim.dt)


class GrowHazard(Event):
    """Give a hazard another size; the outer radius keeps its ratio unless it is given."""

    kind: Literal["grow_hazard"] = "grow_hazard"
    name: Annotated[str, Named("hazard")]
    inner: PositiveFinite
    outer: PositiveFinite | None = None

    def check(self, sim: Simulation, step: int) -> None:
        grown = sim.events.foreseen("hazard", self.name, step, sim.world.hazards)
        (grown or Hazard(inner=self.inner, position=(0.0, 0.0))).resized(self.inner, self.outer)

    def apply(self, sim: Simulation) -> None:
        if sim.is_put_out(self.name):
            return
        sim.world.hazards.grow(self.name, inner=self.inner, outer=self.outer, time=sim.time, dt=sim.dt)


class RemoveHazard(Event):
    """Extinguish a hazard, or clear it away."""

    kind: Literal["remove_hazard"] = "remove_hazard"
    name: Annotated[str, Named("hazard", "removes")]

    def apply(self, sim: Simulation) -> None:
        if sim.is_put_out(self.name):
            return
        sim.world.hazards.remove(self.name)


_Worth = Annotated[Finite, Field(ge=0.0, le=1.0)]
_Profile = Annotated[Disc | Openness, Field(discriminator="kind")]
_Place = tuple[Coordinate, Coordinate]
_OLD_KINDS = {"add_layer": "add_value_map", "remove_layer": "remove_value_map"}


def _current_kind(kind: str) -> str:
    return current(kind, _OLD_KINDS, "the event")


class AddValueMap(Event):
    """Publish a value map on the ground for models that follow it: values from 0 (a veto) to 1, a disc, or openness."""

    kind: Annotated[Literal["add_value_map", "add_layer"], AfterValidator(_current_kind)] = "add_value_map"
    name: Annotated[str, Named("value map", "adds")]
    values: tuple[tuple[_Worth, ...], ...] | _Profile
    origin: _Place | None = None
    cell: PositiveLength | None = None
    position: _Place | None = None
    motion: Motion | None = None
    group: GroupName = None
    spares_inside: bool = False

    def check(self, sim: Simulation, step: int) -> None:
        value_map, ground = self._value_map(), sim.ground
        if ground is not None:
            value_map.filter(ground.raster, value_map.moment(step * sim.dt), group=0, name=self.name)

    def apply(self, sim: Simulation) -> None:
        sim.add_value_map(self.name, self._value_map())

    def _value_map(self) -> ValueMap:
        return ValueMap(
            self.values,
            origin=self.origin,
            cell=self.cell,
            position=self.position,
            motion=self.motion,
            group=self.group,
            spares_inside=self.spares_inside,
        )


class RemoveValueMap(Event):
    """Remove a value map."""

    kind: Annotated[Literal["remove_value_map", "remove_layer"], AfterValidator(_current_kind)] = "remove_value_map"
    name: Annotated[str, Named("value map", "removes")]

    def apply(self, sim: Simulation) -> None:
        sim.remove_value_map(self.name)

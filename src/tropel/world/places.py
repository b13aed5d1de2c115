"""Places: where agents can be sent. A named exit, target, region, door or room, or a point.

`Place(door="main")` is the same in Python and in files, where it is the table `{ door = "main" }`. Usually the name
alone is enough (`"main"`), or the coordinates alone (`[3.0, 4.0]`); `as_place` reads all of these.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, WithJsonSchema, model_validator

from tropel.errors import GeometryError, ParameterError, readable_errors, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE, numbers_in
from tropel.world import shapes
from tropel.world.motion import PointField

if TYPE_CHECKING:
    from tropel.world.world import World

#: Kinds of named places. A bare name means the first of these that has it.
NAMED = ("exit", "target", "region", "room", "door")
#: Points nearer to a wall than this lie on it [m].
_ON_THE_WALL = 1e-9
_EXPECTED = 'the name of a place, a point such as [3.0, 4.0], or a table such as { door = "main" }'


@readable_errors
class Place(BaseModel):
    """Somewhere to go: exactly one of a named exit, target, region, door or room, and a point [m]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exit: str | None = None
    target: str | None = None
    region: str | None = None
    room: str | None = None
    door: str | None = None
    point: PointField | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Place:
        given = [name for name in (*NAMED, "point") if getattr(self, name) is not None]
        if len(given) != 1:
            what = " and ".join(given) if given else "nothing"
            raise ValueError(f"a place is exactly one of {', '.join(NAMED)} or point, not {what}")
        return self

    @property
    def kind(self) -> str:
        """Which of the fields is given."""
        return next(name for name in (*NAMED, "point") if getattr(self, name) is not None)

    @property
    def name(self) -> str:
        """The name; empty for a point."""
        return "" if self.point is not None else str(getattr(self, self.kind))

    @property
    def key(self) -> str:
        """A text that no other place of a world has: exits and targets by name, others with what they are."""
        return self.name if self.kind in ("exit", "target") else f"{self.kind} {self.name}"

    def __str__(self) -> str:
        return point_text(self.point) if self.point is not None else f"{self.kind} '{self.name}'"

    def to_file(self) -> dict[str, Any]:
        """The table that a file holds."""
        return self.model_dump(mode="json", exclude_none=True)


def named_place(kind: str, name: str) -> Place:
    """The place of a kind with a name."""
    return Place.model_validate({kind: name})


#: Anything that names a place: a name, a point or a `Place`.
PlaceLike = Annotated[str | Place | Sequence[float] | Mapping[str, Any], CHECKED_ELSEWHERE]


def point_text(point: Iterable[float]) -> str:
    return f"({', '.join(f'{c:g}' for c in point)})"


def as_place(told: Any, what: str = "a goal") -> str | Place:
    """A `Place`, or a name as it is, because only a world knows what it names."""
    if isinstance(told, str | Place):
        return told
    if isinstance(told, Mapping):
        try:
            return Place.model_validate(dict(told))
        except ValidationError as error:
            said = error.errors()[0]
            where = f"{'.'.join(map(str, said['loc']))}: " if said["loc"] else ""
            why = str(said["msg"]).removeprefix("Value error, ")
            known = suggest(str(said["loc"][-1]), (*NAMED, "point")) if said["type"] == "extra_forbidden" else ""
            raise ParameterError(f"{what}: {where}{why}{'; ' if known else ''}{known}") from None
    numbers = numbers_in(told)
    if numbers is None or numbers.ndim != 1 or len(numbers) not in (2, 3):
        raise ParameterError(f"{what} is {_EXPECTED}, not {reprlib.repr(told)}")
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{what}: the coordinates of a point are finite numbers, not {reprlib.repr(told)}")
    return Place(point=tuple(numbers.tolist()))


def _from_file(told: Any) -> str | Place:
    try:
        return as_place(told)
    except ParameterError as error:
        raise ValueError(str(error)) from None


_POINT_SCHEMA = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}
_TABLE_SCHEMA = {
    "type": "object",
    "properties": {**{kind: {"type": "string"} for kind in NAMED}, "point": _POINT_SCHEMA},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}

#: A place in a field of an event or a file.
PlaceField = Annotated[
    Any,
    PlainValidator(_from_file),
    WithJsonSchema({"anyOf": [{"type": "string"}, _POINT_SCHEMA, _TABLE_SCHEMA]}),
]


# Places of a world ----------------------------------------------------------------------------------------------------


def names_of(world: World, kind: str) -> Iterable[str]:
    """The names of a kind of place in a world."""
    regions: Iterable[str] = world.region_boxes if world.dim == 3 else world.regions
    known: dict[str, Iterable[str]] = {
        "exit": world.exits,
        "target": world.targets,
        "region": regions,
        "room": world.rooms,
        "door": world.doors,
    }
    return known[kind]


def all_names(world: World) -> set[str]:
    """Every name that a place of the world has."""
    return {name for kind in NAMED for name in names_of(world, kind)}


def names_another_place(world: World, name: str) -> bool:
    """Whether a name is that of a place that is not a target; targets may come and go, the others stay."""
    kind, _, rest = name.partition(" ")
    if kind in NAMED[2:] and rest in names_of(world, kind):
        return True
    return any(name in names_of(world, kind) for kind in NAMED if kind != "target")


def find_place(world: World, told: PlaceLike, who: str) -> Place:
    """The place of a world that is meant; raises if there is none, or if a name is that of several places."""
    place = as_place(told, who)
    if isinstance(place, Place):
        if place.point is not None:
            check_point(world, place.point, who)
        elif place.name not in names_of(world, place.kind):
            known = suggest(place.name, names_of(world, place.kind))
            raise ParameterError(f"{who}: there is no {place.kind} '{place.name}'; {known}")
        return place
    for kind in ("exit", "target"):
        if place in names_of(world, kind):
            return named_place(kind, place)
    kinds = [kind for kind in NAMED[2:] if place in names_of(world, kind)]
    if len(kinds) > 1:
        tables = " or ".join(f'{{ {kind} = "{place}" }}' for kind in kinds)
        raise ParameterError(f"{who}: '{place}' is the name of a {' and a '.join(kinds)}; say which: {tables}")
    if not kinds:
        raise ParameterError(f"{who}: there is no place '{place}'; {suggest(place, all_names(world))}")
    return named_place(kinds[0], place)


def check_point(world: World, point: Sequence[float], who: str) -> NDArray[np.float64]:
    """The coordinates of a point, checked: inside the world, and neither on a wall nor in a standing obstacle."""
    place = shapes.point(point, who, dim=world.dim)
    at = point_text(place)
    world.check_inside(place, f"{who}: the point")
    if world.dim == 2 and _to_segments(place, world.segments[world.blocking != 0]) < _ON_THE_WALL:
        raise GeometryError(f"{who}: the point {at} lies on a wall or a closed door; choose a place beside it")
    for name, obstacle in world.obstacles.items():
        stands = obstacle.position is not None
        if stands and np.linalg.norm(place - np.asarray(obstacle.position)) < obstacle.radius:
            raise GeometryError(f"{who}: the point {at} lies inside the obstacle '{name}'; choose a place beside it")
    return place


def _to_segments(point: NDArray[np.float64], segments: NDArray[np.float64]) -> float:
    """The distance from a point to the nearest of some segments [m]."""
    begin, along = segments[:, :2], segments[:, 2:] - segments[:, :2]
    length2 = np.maximum((along**2).sum(axis=1), 1e-300)
    share = np.clip(((point - begin) * along).sum(axis=1) / length2, 0.0, 1.0)
    return float(np.linalg.norm(begin + share[:, None] * along - point, axis=1).min(initial=np.inf))

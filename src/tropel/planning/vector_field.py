"""Following a painted vector field, a plan that is drawn instead of computed (LAYERS section 6); blends of planners.

    lane = Stroke([(0, 2), (20, 2)], width=2)
    VectorField(lane + 0.5 * ArrayField(vectors, cell=0.5), fallback=FlowField())

Vectors longer than 1 are shortened to 1; shorter ones mean to go slower. Where nothing is painted, agents stand or
follow the fallback. Painted fields ignore walls: agents that follow one into a wall stop there.

`Blend`, the weighted mean of several planners, comes first; `VectorField` follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.contracts import Declaration, Guidance, Moment, Planner
from tropel.contracts.offers import OfferedPainting, inner_offers
from tropel.errors import ParameterError, is_finite
from tropel.foundation.arguments import Length, checked_arguments
from tropel.planning.painted import (
    ArrayField,
    FunctionField,
    PaintedField,
    Stroke,
    ask,
    described,
    evaluate,
    image_field,
)
from tropel.registry import PLANNERS

# Blends of planners: 0.7 of a flow field and 0.3 of a painted field.
#
# The direction is the weighted mean of the planners that give one at a place. Where a planner gives zero, the others
# count fully, so agents do not slow down because a field has gaps. Directions that contradict each other make a shorter
# vector, and agents go slower there.


class Blend(Planner):
    """A weighted mean of planners, given as pairs (weight, planner).

    A planner may be a name such as "flow_field", or a table {"model": "harmonic", "walls": "reflecting"}, the form that
    scenario files use.
    """

    @checked_arguments
    def __init__(self, parts: Sequence[Any]) -> None:
        if not len(parts):
            raise ParameterError("Blend needs at least one planner, as pairs (weight, planner)")
        self.parts: list[tuple[float, Planner]] = []
        for number, part in enumerate(parts):
            if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != 2:
                raise ParameterError(f"part {number} of a Blend must be a pair (weight, planner), not {part!r}")
            weight, planner = part
            if not (is_finite(weight) and weight > 0.0):
                raise ParameterError(f"part {number} of a Blend needs a weight above 0, not {weight!r}")
            self.parts.append((float(weight), planner_named(planner, f"part {number} of a Blend")))
        self.inner = tuple(planner for _, planner in self.parts)
        self.declares: Declaration = declared_by(self.inner)

    @property
    def parameters(self) -> str:
        return ", ".join(f"{weight!r} {planner.describe()}" for weight, planner in self.parts)

    def offers(self) -> tuple[object, ...]:
        return inner_offers(self.inner)

    def prepare(self, moment: Moment) -> None:
        """Prepare all planners, once before the first step."""
        for _, planner in self.parts:
            planner.prepare(moment)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write the weighted mean of the planners' directions for the members."""
        members = moment.members
        total = np.zeros((len(members), out.directions.shape[1]))
        weights = np.zeros(len(members))
        own = replace(out, directions=np.zeros_like(out.directions))
        for weight, planner in self.parts:
            own.directions[members] = 0.0
            planner.direct(moment, own)
            said = own.directions[members]
            total += weight * said
            weights += weight * said.any(axis=1)
        out.directions[members] = total / np.where(weights > 0.0, weights, 1.0)[:, None]

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            f"{number}.{name}": array
            for number, (_, planner) in enumerate(self.parts)
            for name, array in planner.state().items()
        }

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        for number, (_, planner) in enumerate(self.parts):
            head = f"{number}."
            planner.restore({name.removeprefix(head): array for name, array in stored.items() if name.startswith(head)})


def planner_named(planner: Any, what: str) -> Planner:
    """A planner by its short name, or by a table with its name as `model` and its parameters; others are returned."""
    if isinstance(planner, str):
        planner = {"model": planner}
    found = PLANNERS.make(planner) if isinstance(planner, Mapping) else planner
    if not isinstance(found, Planner):
        raise ParameterError(f"{what} must be a planner, of a class that extends tropel.Planner, not {found!r}")
    return found


def declared_by(planners: Sequence[Planner]) -> Declaration:
    """The declaration of a planner that calls others: all their columns, and only the space that all others support."""
    return Declaration(
        columns=tuple(dict.fromkeys(column for planner in planners for column in planner.declares.columns)),
        memory=tuple(dict.fromkeys(column for planner in planners for column in planner.declares.memory)),
        periodic_space=all(planner.declares.periodic_space for planner in planners),
    )


#: Vectors shorter than this count as nothing painted.
_NOTHING = 1e-9


class VectorField(Planner):
    """Follow the direction that is painted where an agent stands.

    The field is a `PaintedField`, a function of points, or an array with `origin` and `cell`. It may also be given as
    `strokes` (points, width, strength and falloff of each) and as an `image` (with `origin`, `cell` and `encoding`),
    the form that scenario files use. Strokes lie over the image, and both over the field. `fallback` is a planner, or
    the name of one, for places where nothing is painted.
    """

    @checked_arguments
    def __init__(
        self,
        field: PaintedField | Callable[[NDArray[np.float64]], ArrayLike] | ArrayLike | None = None,
        *,
        origin: Sequence[float] | None = None,
        cell: Length | None = None,
        strokes: Sequence[Stroke | Mapping[str, Any]] = (),
        image: str | Path | None = None,
        encoding: str = "hue",
        fallback: Any = None,
    ) -> None:
        if image is None and not _is_array(field) and not (origin is None and cell is None):
            raise ParameterError(
                "VectorField: origin and cell give the place of an array or an image; strokes, functions and painted "
                "fields are already in metres; leave origin and cell out"
            )
        layers: list[PaintedField] = []
        if strokes:
            layers.append(_drawn(strokes))
        if image is not None:
            pixel = _needed(cell, "an image")
            layers.append(image_field(image, cell=pixel, origin=origin, encoding=encoding))
        if field is not None:
            layers.append(_as_field(field, origin, cell))
        if not layers:
            raise ParameterError("VectorField has nothing to follow: give it a field, strokes or an image")
        self.field = layers[-1]
        for layer in reversed(layers[:-1]):
            self.field = layer.over(self.field)
        self.fallback = None if fallback is None else planner_named(fallback, "the fallback of VectorField")
        self.inner = () if self.fallback is None else (self.fallback,)
        # In a periodic world the field is only evaluated inside the bounds.
        self.declares: Declaration = declared_by(self.inner)

    @property
    def parameters(self) -> str:
        behind = "" if self.fallback is None else f", fallback={self.fallback.describe()}"
        return f"{described(self.field)}{behind}"

    def offers(self) -> tuple[object, ...]:
        return (OfferedPainting(at=self._painted), *inner_offers(self.inner))

    def _painted(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.field.at(points), dtype=np.float64)

    def prepare(self, moment: Moment) -> None:
        """Prepare the fallback and check the field, once before the first step."""
        if self.fallback is not None:
            self.fallback.prepare(moment)
        # A field of the wrong shape or dimension raises now. It need not be defined here: agents may never stand there.
        with np.errstate(all="ignore"):
            ask(self.field, moment.world.bounds)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write the painted vectors, or those of the fallback, for the members."""
        members = moment.members
        vectors = evaluate(self.field, moment.state.position[members])
        lengths = np.linalg.norm(vectors, axis=1)
        painted = lengths > _NOTHING
        out.directions[members] = np.where(painted[:, None], vectors, 0.0) / np.maximum(lengths, 1.0)[:, None]
        if self.fallback is not None and not painted.all():
            self.fallback.direct(replace(moment, members=members[~painted]), out)

    def state(self) -> dict[str, NDArray[Any]]:
        return {} if self.fallback is None else self.fallback.state()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        if self.fallback is not None:
            self.fallback.restore(stored)


def _drawn(strokes: Sequence[Stroke | Mapping[str, Any]]) -> PaintedField:
    drawn: PaintedField | None = None
    for number, stroke in enumerate(strokes):
        if isinstance(stroke, Stroke):
            one = stroke
        elif isinstance(stroke, Mapping):
            try:
                one = Stroke(**stroke)
            except TypeError as error:
                raise ParameterError(f"stroke {number}: {str(error).removeprefix('Stroke.__init__() ')}") from None
        else:
            raise ParameterError(f"stroke {number} must be a Stroke, or a table of points and width, not {stroke!r}")
        drawn = one if drawn is None else drawn + one
    assert drawn is not None
    return drawn


def _as_field(
    field: PaintedField | Callable[[NDArray[np.float64]], ArrayLike] | ArrayLike,
    origin: Sequence[float] | None,
    cell: float | None,
) -> PaintedField:
    if isinstance(field, PaintedField):
        return field
    if callable(field):
        return FunctionField(field)
    if isinstance(field, (str, Path)):
        raise ParameterError(f"VectorField: to follow a painted image, pass image={str(field)!r} and its cell")
    return ArrayField(field, origin=origin, cell=_needed(cell, "an array"))


def _is_array(field: Any) -> bool:
    return field is not None and not isinstance(field, PaintedField) and not callable(field)


def _needed(cell: float | None, what: str) -> float:
    if cell is None:
        raise ParameterError(f"VectorField: {what} needs its `cell`, the size of a cell or pixel in metres")
    return cell

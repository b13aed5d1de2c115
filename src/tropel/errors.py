"""The error tree. Every message says what was wrong, where, and what to do about it.

After the error classes come `suggest`, which proposes the nearest known name, and the class decorators that turn wrong
parameters into errors of this tree.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import re
import reprlib
import typing
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

_C = TypeVar("_C", bound=type)


class TropelError(Exception):
    """Anything that tropel itself finds wrong; catch this to catch all of its errors."""


class GeometryError(TropelError):
    """A shape in the world that cannot be used."""


class PathError(TropelError):
    """A goal that cannot be reached from where an agent starts, whatever doors are open."""


class SpawnError(TropelError):
    """Agents that cannot be placed where they should be."""


class ParameterError(TropelError):
    """A parameter with an impossible value or name: a negative radius, a time step of zero, an unknown name."""


class UnknownNameError(ParameterError, KeyError):
    """A lookup by name that finds nothing."""

    __str__ = Exception.__str__  # KeyError's own would put the message in quotes


class ScenarioError(TropelError):
    """A scenario file that cannot be read or does not make sense."""


class EventError(TropelError):
    """An event that cannot be applied when it is due."""


class RecordingError(TropelError):
    """A trajectory that cannot be written or read; everything written before stays readable."""


class CheckpointError(TropelError):
    """A checkpoint that cannot be read, or does not belong to this simulation."""


class ModelError(TropelError):
    """A planner, environment or steering model that broke its contract in the middle of a run."""


class ViewError(TropelError):
    """A page that cannot be shown, or something on it that cannot be done."""


class MissingExtraError(TropelError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}': install it with  pip install 'tropel[{extra}]'")


def suggest(name: str, known: Iterable[str]) -> str:
    """The tail of an error about an unknown name: the nearest known name, or all of them if none is near."""
    names = sorted(map(str, known))
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(names)}" if names else "none are defined"


def named_parameters(cls: _C) -> _C:
    """Class decorator for dataclasses of parameters: an unknown keyword is an error that suggests the near miss.

    Numbers that fields declare (`quantities.number`), and the types of all other fields (`arguments.py`), are checked
    before `__post_init__` runs, which only needs to check what the values mean.
    """
    from tropel.foundation.arguments import check_values, plain_values
    from tropel.foundation.quantities import check_numbers

    original = cls.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        known = [field.name for field in dataclasses.fields(self) if field.init]
        for name in named:
            if name not in known:
                raise ParameterError(f"{cls.__name__} has no parameter '{name}'; {suggest(name, known)}")
        first = [field.name for field in dataclasses.fields(self) if field.init and not field.kw_only]
        given = {**dict(zip(first, values, strict=False)), **named}
        check_numbers(type(self), given)
        check_values(type(self), given)
        given = plain_values(type(self), given)
        ordered = [given[name] for name in first[: len(values)]]
        original(self, *ordered, *values[len(ordered) :], **{name: given[name] for name in named})

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def readable_errors(cls: _C) -> _C:
    """Class decorator for pydantic models and dataclasses: a wrong value passed from Python is a ParameterError.

    Its message is one line with the class, the field and what is allowed. Files are checked without calling `__init__`,
    so errors in a scenario are still reported with file and line.
    """
    from pydantic import ValidationError

    original = cls.__init__  # type: ignore[misc]

    # `wraps` also copies the mark that tells pydantic this is its own `__init__`, which files need not call.
    @functools.wraps(original)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        fields = _fields(type(self))
        if values and not dataclasses.is_dataclass(self):
            raise ParameterError(f"{type(self).__name__}: give each value by its name: {_names(fields)}")
        try:
            original(self, *values, **named)
        except ValidationError as error:
            given = {**dict(zip(fields, values, strict=False)), **named}
            raise ParameterError(_one_line(type(self).__name__, fields, given, error.errors())) from None

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def _fields(kind: type) -> dict[str, Any]:
    """The fields that can be given, with their types."""
    if dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind, include_extras=True)
        return {field.name: types[field.name] for field in dataclasses.fields(kind)}
    models: dict[str, Any] = kind.model_fields  # type: ignore[attr-defined]
    return {name: field.annotation for name, field in models.items()}


def _names(fields: Iterable[str]) -> str:
    """The fields that a caller can give; `kind` is for files."""
    return ", ".join(name for name in fields if name != "kind")


def _one_line(kind: str, fields: Mapping[str, Any], given: Mapping[str, Any], problems: Iterable[Any]) -> str:
    """What pydantic found, each wrong value once: all alternatives of a union belong to the same value."""
    said: list[str] = []
    wrong: dict[str, tuple[Any, list[str]]] = {}
    for problem in problems:
        where = problem["loc"]
        if problem["type"] == "missing":
            said.append(f"'{where[-1]}' is missing")
        elif problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            said.append(f"there is no parameter '{where[-1]}'; {suggest(str(where[-1]), set(fields) - {'kind'})}")
        elif problem["type"] == "unexpected_positional_argument":
            said.append(f"too many values; the only fields are {_names(fields)}")
        elif not where:
            said.append(_wanted(problem, None))
        else:
            field = list(fields)[where[0]] if isinstance(where[0], int) else str(where[0])
            path = _path(field, where[1:], given.get(field))
            wrong.setdefault(path, (problem["input"], []))[1].append(_wanted(problem, fields.get(field)))
    for path, (value, wanted) in wrong.items():
        if any(other.startswith((f"{path}[", f"{path}.")) for other in wrong):
            continue  # the problem further inside is the reason
        first, *others = dict.fromkeys(wanted)
        alternatives = [other.removeprefix("should be ") for other in others]
        said.append(f"{path} = {reprlib.repr(value)}: {' or '.join([first, *alternatives])}")
    return f"{kind}: {'; '.join(dict.fromkeys(said))}"


def _wanted(problem: Any, annotation: Any) -> str:
    """What is allowed, in pydantic's words or as the names of the classes that can be given."""
    classes = " or ".join(f"{name}(…)" for name in _classes_in(annotation))
    if classes and problem["type"].endswith(("_attributes_type", "model_type", "dataclass_type", "tag_invalid")):
        return f"should be {classes}"
    message = (
        str(problem["msg"]).removeprefix("Value error, ").replace("a valid ", "a ").replace(" after validation", "")
    )
    return re.sub(r"^\w+ should ", "should ", message).partition(", unable to")[0]


def _path(field: str, inner: Sequence[Any], value: Any) -> str:
    """The part of pydantic's location that exists in the value; names of union members are left out."""
    text = field
    for part in inner:
        if isinstance(part, int) and isinstance(value, Sequence) and part < len(value):
            text, value = f"{text}[{part}]", value[part]
        elif isinstance(value, Mapping) and part in value:
            text, value = f"{text}.{part}", value[part]
    return text


def _classes_in(annotation: Any) -> list[str]:
    if inspect.isclass(annotation) and hasattr(annotation, "__pydantic_fields__"):
        return [annotation.__name__]
    return [name for part in getattr(annotation, "__args__", ()) for name in _classes_in(part)]


def is_finite(value: object) -> bool:
    """Whether it is a number that is neither infinite nor nan; for checks of parameters that may be anything."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False

"""One tree of errors. Every message says what was wrong, where, and what to do about it."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Iterable
from typing import Any, TypeVar

_C = TypeVar("_C", bound=type)


class TropelError(Exception):
    """Anything that tropel itself finds wrong; catch this to catch them all."""


class GeometryError(TropelError):
    """A shape of the world that cannot be used."""


class SpawnError(TropelError):
    """Agents that cannot be placed where they were asked for."""


class ParameterError(TropelError):
    """A parameter outside its meaning: a negative radius, a time step of zero, an unknown name."""


class ScenarioError(TropelError):
    """A scenario file that cannot be read or does not make sense."""


class EventError(TropelError):
    """An event that cannot be applied when its time has come."""


class RecordingError(TropelError):
    """A trajectory that cannot be written or read; what was written before stays readable."""


class CheckpointError(TropelError):
    """A checkpoint that cannot be read, or does not belong to this simulation."""


class ModelError(TropelError):
    """A planner, environment or steering model that broke its contract in the middle of a run."""


class MissingExtraError(TropelError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}': install it with  pip install 'tropel[{extra}]'")


def suggest(name: str, known: Iterable[str]) -> str:
    """The tail of an error about an unknown name: the nearest known one, or all of them when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(names)}" if names else "none are defined"


def named_parameters(cls: _C) -> _C:
    """Class decorator for dataclasses of parameters: an unknown keyword is an error that suggests the near miss."""
    original = cls.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        known = [field.name for field in dataclasses.fields(self) if field.init]
        for name in named:
            if name not in known:
                raise ParameterError(f"{cls.__name__} has no parameter '{name}'; {suggest(name, known)}")
        original(self, *values, **named)

    cls.__init__ = checked  # type: ignore[misc]
    return cls

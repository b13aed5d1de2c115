"""Checks of arguments according to their annotations: a value of the wrong type is an error that names the argument.

`@checked_arguments` is for functions and methods that users call, `check_values` for dataclasses of parameters
(`named_parameters` in `errors.py` calls it), so that everything annotated is checked:

| annotation | accepts |
|---|---|
| `float` | finite numbers, including NumPy's; neither booleans nor strings |
| `int` | whole numbers that fit into 64 bits |
| `bool`, `str`, `Literal[…]`, classes | exactly that; `np.bool_` is a boolean |
| `Sequence[float]`, `tuple[float, ...]` | lists, tuples and arrays of such items |
| `Mapping[str, float]` | tables of such keys and values |
| `Callable[…]` | functions, but not classes |
| `Annotated[float, Quantity(…)]` | numbers within limits, such as `Positive` and `Length` |
| `Annotated[…, CHECKED_ELSEWHERE]`, `Any` | everything: the code behind it has more specific checks |

NumPy's numbers become Python's, so that kernels need not be compiled again for them; everything else stays as it is. A
call costs a few microseconds more, so functions that are called for each agent are not decorated.
"""

from __future__ import annotations

import functools
import inspect
import os
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Callable as CallableABC
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, is_finite
from tropel.foundation.quantities import Quantity, quantity_of

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Marks arguments that are not checked here, because the code that gets them can give a better error message.
CHECKED_ELSEWHERE = "checked elsewhere"

#: Lengths and coordinates [m] and times [s] beyond this are mistakes, and their squares would soon be infinite.
LARGEST_LENGTH = 1e9
LATEST = 1e12
_SMALLEST_INT, _LARGEST_INT = -(2**63), 2**63 - 1


def _limited(unit: str = "", **limits: float) -> Quantity:
    return Quantity(name="", unit=unit, **limits)  # type: ignore[arg-type]


Positive = Annotated[float, _limited(above=0.0)]
Length = Annotated[float, _limited(unit="m", above=0.0, high=LARGEST_LENGTH)]
Seconds = Annotated[float, _limited(unit="s", above=0.0, high=LATEST)]  #: a duration
SimulatedTime = Annotated[float, _limited(unit="s", low=-LATEST, high=LATEST)]  #: a simulated time [s]
Count = Annotated[int, _limited(low=0)]
PositiveCount = Annotated[int, _limited(low=1)]
PathLike = str | os.PathLike[str]


# Kinds of values ----------------------------------------------------------------------------------------------------


def is_boolean(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def plain(value: Any) -> Any:
    """A NumPy number as a Python number; anything else as it is."""
    return value.item() if isinstance(value, np.number | np.bool_) else value


def is_whole_number(value: object) -> bool:
    return isinstance(value, Integral) and not is_boolean(value) and _SMALLEST_INT <= int(value) <= _LARGEST_INT


def numbers_in(values: Any) -> NDArray[np.float64] | None:
    """The given values as an array of numbers; None if that is impossible, such as for strings or booleans."""
    if isinstance(values, str | bytes | Mapping | set | frozenset | type) or callable(values):
        return None
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        return None
    if array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        return None
    # Among a few numbers there may be a boolean, which NumPy has turned into a number already.
    if isinstance(values, Sequence) and len(values) <= 3 and any(is_boolean(value) for value in values):
        return None
    return array.astype(np.float64)


# Kinds of annotations -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """What is accepted, and the wording for it in messages."""

    accepts: Callable[[Any], bool]
    says: str


def _quantity(quantity: Quantity, *, whole: bool) -> _Kind:
    quantity = replace(quantity, whole=whole)

    def accepts(value: Any) -> bool:
        is_one = is_whole_number(value) if whole else is_finite(value)
        return is_one and not quantity.is_wrong(np.array(float(value)))

    return _Kind(accepts, quantity.allowed)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _is_list(value: Any) -> bool:
    """Arrays of numbers count as lists; arrays of strings and objects are usually mistakes."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and value.dtype.kind in "iuf"
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_PLAIN: dict[Any, _Kind] = {
    float: _Kind(is_finite, "a finite number"),
    int: _Kind(is_whole_number, "a whole number"),
    bool: _Kind(is_boolean, "True or False"),
    str: _Kind(lambda value: isinstance(value, str), "a string"),
    type(None): _Kind(lambda value: value is None, "None"),
    np.ndarray: _Kind(lambda value: isinstance(value, np.ndarray), "an array"),
}


def _kind(annotation: Any) -> _Kind | None:
    """The kind of an annotation; None if everything is accepted."""
    if annotation is Any:
        return None
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        return _any_of([_kind(part) for part in arguments])
    if origin is Literal:
        return _Kind(lambda value: _is_among(value, arguments), " or ".join(repr(choice) for choice in arguments))
    if origin is CallableABC:
        return _Kind(_is_function, "a function")
    if origin is os.PathLike:
        return _Kind(lambda value: isinstance(value, os.PathLike), "a path")
    if origin in (Sequence, tuple, list):
        return _list_of(arguments)
    if origin is Iterable:
        return _Kind(lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes), "a list")
    if origin in (Mapping, dict):
        return _table_of(*arguments)
    if origin is np.ndarray:
        return _PLAIN[np.ndarray]
    if inspect.isclass(annotation) and annotation is not object and not getattr(annotation, "_is_protocol", False):
        return _Kind(lambda value: isinstance(value, annotation), f"{annotation.__name__}(…)")
    return None


def _annotated(inner: Any, more: Sequence[Any]) -> _Kind | None:
    if CHECKED_ELSEWHERE in more:
        return None
    for told in more:
        if isinstance(told, Quantity):
            return _quantity(told, whole=inner is int)
    return _kind(inner)


def _any_of(kinds: Sequence[_Kind | None]) -> _Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    said = list(dict.fromkeys(kind.says for kind in known))
    return _Kind(lambda value: any(kind.accepts(value) for kind in known), " or ".join(said))


def _list_of(arguments: tuple[Any, ...]) -> _Kind:
    fixed = len(arguments) > 1 and arguments[-1] is not Ellipsis
    if fixed:
        items = [_kind(argument) for argument in arguments]

        def has_each(value: Any) -> bool:
            return (
                _is_list(value)
                and len(value) == len(items)
                and all(kind is None or kind.accepts(part) for kind, part in zip(items, value, strict=True))
            )

        return _Kind(has_each, f"({', '.join('…' if kind is None else kind.says for kind in items)})")
    kind = _kind(arguments[0]) if arguments else None
    if kind is None:
        return _Kind(_is_list, "a list")

    def accepts(value: Any) -> bool:
        if isinstance(value, np.ndarray) and kind is _PLAIN[str]:
            return False
        return _is_list(value) and all(kind.accepts(part) for part in value)

    return _Kind(accepts, f"a list, each {kind.says}")


def _table_of(key: Any = Any, value: Any = Any) -> _Kind:
    keys, values = _kind(key), _kind(value)

    def accepts(table: Any) -> bool:
        return isinstance(table, Mapping) and all(
            (keys is None or keys.accepts(name)) and (values is None or values.accepts(entry))
            for name, entry in table.items()
        )

    return _Kind(accepts, "a table by name" if values is None else f"a table by name, each {values.says}")


def _is_among(value: Any, choices: Sequence[Any]) -> bool:
    """Not `in`, because the `==` of an array or another unusual value may return anything."""
    return any(type(value) is type(choice) and value == choice for choice in choices)


# Decorators ---------------------------------------------------------------------------------------------------------


def check_values(kind: type, given: Mapping[str, Any]) -> None:
    """Raise if a value does not match the annotation of the field of that name in a class."""
    known = _kinds_of_class(kind)
    for name, value in given.items():
        _check(kind.__name__.removesuffix("Parameters"), name, value, known.get(name))


def plain_values(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a dataclass of parameters holds: for a 1 instead of 1.0, kernels would be compiled again."""
    quantities = {field.name: quantity_of(field) for field in fields(kind)}
    return {name: _as_declared(quantities[name], value) for name, value in given.items()}


def _as_declared(quantity: Quantity | None, value: Any) -> Any:
    return plain(value) if quantity is None or quantity.whole or value is None else float(value)


def checked_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorator for functions and methods: arguments that do not match their annotations are a ParameterError."""
    positional = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]

    @functools.wraps(function)
    def checked(*values: _P.args, **named: _P.kwargs) -> _R:
        known = _kinds_of_function(function)
        # An object under construction is named by its own class, even if a parent's `__init__` checks the arguments.
        who = type(values[0]).__name__ if function.__name__ == "__init__" else function.__qualname__
        for name, value in (*zip(positional, values, strict=False), *named.items()):
            if name in known:
                _check(who, name, value, known[name])
        return function(*map(plain, values), **{name: plain(value) for name, value in named.items()})

    return checked


def _check(who: str, name: str, value: Any, kind: _Kind | None) -> None:
    if kind is not None and not kind.accepts(value):
        raise ParameterError(f"{who}: {name} must be {kind.says}, not {reprlib.repr(value)}")


@functools.cache
def _kinds_of_class(kind: type) -> dict[str, _Kind | None]:
    found: dict[str, _Kind | None] = {}
    for parent in reversed(kind.__mro__):
        for name, annotation in inspect.get_annotations(parent).items():
            found[name] = _kind(_resolved(annotation, parent.__module__))
    return found


@functools.cache
def _kinds_of_function(function: Callable[..., Any]) -> dict[str, _Kind | None]:
    return {
        name: _kind(_resolved(annotation, function.__module__))
        for name, annotation in inspect.get_annotations(function).items()
        if name != "return"
    }


def _resolved(annotation: Any, module: str) -> Any:
    """An annotation as the object it names; names that exist only for type checkers stand for anything."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(vars(sys.modules[module])))
    except NameError:
        return Any

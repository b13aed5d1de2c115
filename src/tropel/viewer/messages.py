"""Whether what a page sends is a message that viser knows, with values of the declared types.

viser takes messages as they come: a wrong type is an exception somewhere in its handlers, nan a radius of nothing, and
a name of a property sets any attribute. The declarations are those of viser's own message classes.
"""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

#: Deeper than anything that a page sends.
_DEEPEST = 12


def trouble_with(received: Any, *, kinds: Mapping[str, type], element: Callable[[str], Any]) -> str:
    """What is wrong with something that a page has sent, nothing if it is a message.

    `kinds` are the classes of messages by name, `element` finds an element of the panel by its identity.
    """
    import msgspec

    if not isinstance(received, bytes):
        return "that is text"
    try:
        told = msgspec.msgpack.decode(received)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return "that is not MessagePack"
    if not isinstance(told, dict) or not isinstance(name := told.pop("type", None), str):
        return "without a type"
    if name not in kinds:
        return "of an unknown type"
    declared = _declared(kinds[name])
    if not all(key in declared and _fits(value, declared[key]) and _is_plain(value) for key, value in told.items()):
        return "with a wrong value"
    if any(key not in told for key in _required(kinds[name])):
        return "of which a part is missing"
    if name == "GuiUpdateMessage" and not _is_value_of(element(told["uuid"]), told["updates"]):
        return "with a wrong value"
    return ""


@functools.cache
def _declared(kind: type) -> dict[str, Any]:
    """Types of the fields of a message."""
    fields: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", {})
    return {name: hint for name, hint in typing.get_type_hints(kind).items() if name in fields}


@functools.cache
def _required(kind: type) -> list[str]:
    import dataclasses

    missing = dataclasses.MISSING
    fields: Any = dataclasses.fields(kind)
    return [f.name for f in fields if f.init and f.default is missing and f.default_factory is missing]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, as viser reads it: JavaScript has one kind of number."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return value in parts if isinstance(value, str | int | float | bool) else False
    if origin is tuple:
        if not isinstance(value, list):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(_fits(each, parts[0]) for each in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if hint in (float, int):
        return isinstance(value, int | float) and not isinstance(value, bool)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether all numbers in a value are finite, and not too large for one."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return all(_is_plain(each, depth + 1) for each in inner)
    return True


def _is_value_of(element: Any, updates: dict[str, Any]) -> bool:
    """Whether an update sets nothing but the value of an element, to one of its kind and within its limits."""
    if set(updates) != {"value"}:
        return False
    if element is None:
        return True  # one that is gone: viser knows what to do
    value, now = updates["value"], element.value
    if isinstance(now, bool) or isinstance(value, bool):
        return isinstance(now, bool) == isinstance(value, bool)
    if isinstance(now, int | float):
        least, most = getattr(element, "min", None), getattr(element, "max", None)
        is_number = isinstance(value, int | float)
        return is_number and (least is None or value >= least) and (most is None or value <= most)
    return isinstance(value, list if isinstance(now, tuple) else type(now))

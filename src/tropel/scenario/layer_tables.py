"""The JSON schema of layers in scenario files: a table per planner, environment and model, with its parameters.

The type of a parameter comes from its declaration in the layer: the field of its dataclass, or the argument of its
constructor. Parts of a type that a file cannot hold, such as functions, are left out.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import CoreSchema

from tropel.foundation.quantities import Quantity, quantity_of
from tropel.registry import Entry, Kind

_OWN_CLASS = {
    "title": "A class of your own",
    "description": "must be allowed from outside the file, with --allow-imports",
    "type": "object",
    "properties": {"model": {"type": "string", "pattern": r"^[\w.]+:\w+$"}},
    "required": ["model"],
}


def layer_tables(kind: Kind) -> classmethod[Any, Any, dict[str, Any]]:
    """A `__get_pydantic_json_schema__` for layers of a kind; they are imported when the schema is requested."""

    def tables(cls: type, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        own = [handler(table_of(entry).__pydantic_core_schema__) for entry in kind.values()]
        names = {"title": "By name alone", "enum": [entry.name for entry in kind.values()]}
        return {"title": kind.what.capitalize(), "anyOf": [names, *own, _OWN_CLASS]}

    return classmethod(tables)


def table_of(entry: Entry) -> type[BaseModel]:
    """The table of one layer, as a pydantic model."""
    layer = entry.load()
    fields: dict[str, Any] = {"model": (Literal[entry.name], ...)}
    for name, (annotation, default, about) in _parameters(layer, entry.load_parameters()).items():
        fields[name] = (Annotated[annotation, Field(description=about or None)], default)
    made: type[BaseModel] = create_model(
        layer.__name__,
        __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True),
        __doc__=(layer.__doc__ or "").partition("\n\n")[0],
        **fields,
    )
    return made


def _parameters(layer: type, dataclass: type | None) -> dict[str, tuple[Any, Any, str]]:
    """Type, default and help text of each parameter, by name."""
    if dataclass is not None:
        hints = typing.get_type_hints(dataclass, include_extras=True)
        return {
            field.name: _declared(hints[field.name], _plain(_default(field)), quantity_of(field))
            for field in dataclasses.fields(dataclass)
            if field.init
        }
    # A layer without parameters has the constructor of `object`.
    constructor: Any = layer.__init__  # type: ignore[misc]
    hints = typing.get_type_hints(constructor, include_extras=True)
    found = {}
    for name, argument in inspect.signature(layer).parameters.items():
        default = ... if argument.default is argument.empty else _plain(argument.default)
        found[name] = _declared(hints[name], default, None)
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return ... if field.default is dataclasses.MISSING else field.default


def _plain(default: Any) -> Any:
    """A default in a form that JSON can show."""
    is_table = dataclasses.is_dataclass(default) and not isinstance(default, type)
    return dataclasses.asdict(default) if is_table else default


def _declared(annotation: Any, default: Any, quantity: Quantity | None) -> tuple[Any, Any, str]:
    if quantity is None:
        return _as_in_files(annotation), default, ""
    number = _number(quantity, whole=quantity.whole)
    return (number | None if quantity.optional else number), default, quantity.help


def _number(quantity: Quantity, *, whole: bool) -> Any:
    return Annotated[int if whole else float, Field(json_schema_extra=dict(quantity.limits_in_schema()))]


def _as_in_files(annotation: Any) -> Any:
    """The part of a type that a file can hold."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in map(_as_in_files, get_args(annotation)) if part is not None]
        return Union[tuple(parts)] if parts else Any  # noqa: UP007
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        limits = next((told for told in more if isinstance(told, Quantity)), None)
        return _as_in_files(inner) if limits is None else _number(limits, whole=inner is int)
    if get_origin(annotation) is collections.abc.Callable:
        return None
    try:
        create_model("one", value=(annotation, ...)).model_json_schema()
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, TypeError, NameError):
        return dict[str, Any] if get_origin(annotation) is collections.abc.Mapping else Any
    return annotation

"""Values that the JSON schema of scenario files allows, drawn at random: most of them sensible, some at the edges."""

from __future__ import annotations

import functools
import random
from typing import Any

from tropel.scenario.schema import ScenarioSpec

from .vocabulary import COLUMNS, NUMBERS, TEXTS

#: Few names, so that what is drawn refers to something that is there.
NAMES = ("a", "b", "east", "people", "left", "fire", "pillar", "door", "kiosk", "nearest exit", "none")


@functools.cache
def _schema() -> dict[str, Any]:
    return ScenarioSpec.model_json_schema()


def keys_at(path: tuple[str | int, ...]) -> dict[str, Any]:
    """The schemas of keys that the table at a place of a file may have; empty where there is no such table."""
    here = [_schema()]
    for part in path:
        here = [inner for each in here for inner in _inside(each, part)]
    found: dict[str, Any] = {}
    for each in here:
        for choice in _choices(each):
            found |= choice.get("properties", {})
    return found


def draw(schema: dict[str, Any], chance: random.Random, depth: int = 0) -> Any:
    """A value that a schema describes."""
    choices = [each for each in _choices(schema) if each.get("type") != "null"]
    if not choices:
        return chance.choice(NUMBERS)
    one = chance.choice(choices)
    if "const" in one:
        return one["const"]
    if "enum" in one:
        return chance.choice(one["enum"])
    kind = one.get("type")
    if kind == "object":
        return _table(one, chance, depth)
    if kind == "array":
        return _list(one, chance, depth)
    if kind == "boolean":
        return chance.random() < 0.5
    if kind in ("number", "integer"):
        return _number(one, chance, whole=kind == "integer")
    if kind == "string":
        return chance.choice(NAMES) if chance.random() < 0.9 else chance.choice(TEXTS)
    return chance.choice(NUMBERS)


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What a schema stands for, when references and alternatives are followed."""
    if "$ref" in schema:
        return _choices(_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    inner = schema.get("anyOf") or schema.get("oneOf")
    return [choice for each in inner for choice in _choices(each)] if inner else [schema]


def _inside(schema: dict[str, Any], part: str | int) -> list[dict[str, Any]]:
    found = []
    for choice in _choices(schema):
        if isinstance(part, int):
            found += [choice["items"]] if isinstance(choice.get("items"), dict) else []
        elif part in choice.get("properties", {}):
            found.append(choice["properties"][part])
        elif isinstance(choice.get("additionalProperties"), dict):
            found.append(choice["additionalProperties"])
    return found


def _table(schema: dict[str, Any], chance: random.Random, depth: int) -> dict[str, Any]:
    required = schema.get("required", [])
    keep = 0.3 if depth < 3 else 0.05
    told = {
        key: draw(inner, chance, depth + 1)
        for key, inner in schema.get("properties", {}).items()
        if key in required or chance.random() < keep
    }
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        told |= {chance.choice((*NAMES, *COLUMNS)): draw(more, chance, depth + 1) for _ in range(chance.randint(1, 2))}
    return told


def _list(schema: dict[str, Any], chance: random.Random, depth: int) -> list[Any]:
    if "prefixItems" in schema:
        return [draw(each, chance, depth + 1) for each in schema["prefixItems"]]
    least = schema.get("minItems", 0)
    most = min(schema.get("maxItems", least + 3), least + 3)
    return [draw(schema.get("items", {}), chance, depth + 1) for _ in range(chance.randint(least, most))]


def _number(schema: dict[str, Any], chance: random.Random, *, whole: bool) -> float:
    if chance.random() < 0.1:
        return chance.choice(NUMBERS)
    low = max(schema.get("minimum", 0), schema.get("exclusiveMinimum", 0))
    high = schema.get("exclusiveMaximum", schema.get("maximum", low + chance.choice((1, 3, 12))))
    return chance.randint(int(low), int(high)) if whole else round(chance.uniform(low, high), 3)

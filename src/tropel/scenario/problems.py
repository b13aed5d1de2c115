"""What is wrong with a scenario file, in words: the line, the key, the value and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.dataclasses import is_pydantic_dataclass

from tropel.errors import suggest
from tropel.scenario import schema
from tropel.scenario.locate import dotted, line_of

#: A message reports at most this many problems, and this many characters of each.
_MOST_SAID = 50
_LONGEST = 600


def one_line(text: str) -> str:
    """A message on one line of bounded length, whatever names and values of a file it contains."""
    plain = re.sub(r"[\x00-\x1f\x7f\u2028\u2029]", lambda found: repr(found.group())[1:-1], text)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} …"


def all_problems(messages: Iterable[str], source: str) -> str:
    """The first of many messages, each once and on its own line, and the number of the others."""
    said = list(dict.fromkeys(messages))
    more = [f"{source}: … and {len(said) - _MOST_SAID} more"] if len(said) > _MOST_SAID else []
    return "\n".join([*said[:_MOST_SAID], *more])


def explain(error: ValidationError, raw: Any, text: str, source: str) -> str:
    """All problems that pydantic found in a file, a line each."""
    messages = []
    problems = [(_real_path(problem["loc"], raw), problem) for problem in error.errors()]
    enclosing = {path[:length] for path, _ in problems for length in range(len(path))}
    said: set[Any] = set()
    for path, problem in problems:
        # One alternative of a union was not meant; the problem of the intended one is reported deeper, or already was.
        if problem["type"].endswith("_type") and (path in enclosing or path in said):
            continue
        said.add(path)
        line = line_of(text, path)
        where = source if line is None else f"{source}, line {line}"
        messages.append(one_line(f"{where}: {_one_problem(problem, path)}"))
    return all_problems(messages, source)


def _real_path(loc: tuple[Any, ...], raw: Any) -> tuple[str | int, ...]:
    """The part of pydantic's location that exists in the file; names of union members are left out."""
    path: list[str | int] = []
    here = raw
    for part in loc:
        inside_list = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if inside_list or (isinstance(here, Mapping) and part in here):
            here = here[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _one_problem(problem: Any, path: tuple[str | int, ...]) -> str:
    kind = problem["type"]
    if kind in ("missing", "missing_argument"):
        return f"{dotted((*path, problem['loc'][-1]))}: is missing; add it"
    key = dotted(path) or "the file"
    if kind == "union_tag_invalid":
        known = re.findall(r"'([^']+)'", problem["ctx"]["expected_tags"])
        return f"{key}.kind = '{problem['ctx']['tag']}': unknown; {suggest(problem['ctx']['tag'], known)}"
    if kind == "union_tag_not_found":
        return f"{key}: is of no known kind; add  kind = …"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{key}: unknown key; {suggest(str(path[-1]), _known_keys(path[:-1], problem['loc']))}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    value = problem["input"]
    if isinstance(value, Mapping | list) or value is None:
        return f"{key}: {message}"
    return f"{key} = {value!r}: {message}"


def _known_keys(path: tuple[str | int, ...], loc: tuple[str | int, ...]) -> list[str]:
    """The keys of the schema at a place; pydantic's location also tells which `kind` of object it assumed."""
    kinds: list[Any] = [schema.ScenarioSpec]
    for part in path:
        if isinstance(part, int):
            continue
        inner: list[Any] = []
        for kind in kinds:
            if part in (fields := _fields(kind)):
                inner += _models_in(fields[part].annotation)
        kinds = inner or kinds
    meant = [kind for kind in kinds if "kind" in _fields(kind) and _fields(kind)["kind"].default in loc]
    return sorted({name for kind in meant or kinds for name in _fields(kind)})


def _fields(kind: Any) -> dict[str, Any]:
    """The keys of a table in a file."""
    fields: dict[str, Any] = kind.__pydantic_fields__
    return fields


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_pydantic_dataclass(annotation)):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]

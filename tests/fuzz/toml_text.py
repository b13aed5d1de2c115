"""Trees as TOML: tables of the file as lines, everything further in on one line each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any


def toml_text(tree: Mapping[str, Any]) -> str:
    """The text of a file. Values may be anything that TOML can say."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in tree.items())


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are TOML's as well, but for halves of surrogate pairs and the delete character.
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(str(value))

"""What cases are made of: numbers at the edges, texts that hurt, names and parameters of layers."""

from __future__ import annotations

import functools
import inspect
import math
import random
from typing import Any

from tropel.registry import ENVIRONMENTS, MODELS, PLANNERS, Entry

NUMBERS: tuple[float, ...] = (
    0,
    -1,
    1,
    2,
    0.5,
    -0.0,
    -5.0,
    1e-3,
    1e-9,
    1e-300,
    5e-324,
    -1e-308,
    100,
    1e4,
    1e6,
    1e9,
    1e15,
    1e16,
    -1e6,
    1e100,
    1.7e308,
    -1.7e308,
    math.nan,
    math.inf,
    -math.inf,
    2**31 - 1,
    2**31,
    2**32,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**30,
    10**400,
)

TEXTS = (
    "",
    " ",
    "none",
    "nearest exit",
    "nearest target",
    "nan",
    "inf",
    "1e400",
    "-1",
    "true",
    "empty",
    "default",
    "hand",
    "x",
    "xyz",
    "ä",
    "日本",
    "🐎" * 20,
    "a\nb",
    "a\x00b",
    "\u202etxt",
    "[bold red]",
    "'; DROP TABLE trajectory_data; --",
    "%s%n{0}{x}",
    "a" * 5000,
)

FILES = (
    "../../../../etc/passwd",
    "/etc/passwd",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    ".",
    "..",
    "case.toml",
    "missing.map",
    "fifo",
    "loop",
    "picture.png",
    "maze.map",
    "shape.wkt",
    "shape.geojson",
    "empty.wkt",
)

#: What a file must not be able to reach. None of it does harm when it is called all the same.
IMPORTS = (
    "os:system",
    "os:abort",
    "os:getcwd",
    "builtins:dict",
    "builtins:print",
    "json:JSONDecoder",
    "json:loads",
    "collections:OrderedDict",
    "types:SimpleNamespace",
    "missing.module:Class",
    "tropel.local.seek:SeekParameters",
    "tropel.local.seek:missing",
    "tropel.world:World",
    "os:",
    ":system",
    ":",
    "os.path:join:x",
    "..:x",
)

WKT = (
    "POLYGON EMPTY",
    "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))",
    "POLYGON ((0 0, 10 10, 10 0, 0 10, 0 0))",
    "POLYGON ((0 0, 1 0, 2 0, 0 0))",
    "POLYGON Z ((0 0 1, 10 0 1, 10 10 nan, 0 0 1))",
    "POLYGON ((0 0, 1e308 0, 1e308 1e308, 0 0))",
    "POLYGON ((nan nan, 1 0, 1 1, nan nan))",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((9 9, 12 9, 12 12, 9 9)))",
    "LINESTRING (0 0, 5 5)",
    "POINT (1 1)",
    "CURVEPOLYGON (CIRCULARSTRING (0 0, 4 0, 4 4, 0 4, 0 0))",
    "GEOMETRYCOLLECTION (" * 5 + "POLYGON ((0 0, 9 0, 9 9, 0 0))" + ")" * 5,
    "GEOMETRYCOLLECTION (" * 20_000 + ")" * 20_000,
    "POLYGON ((0 0, 1",
)

LAYERS = {"planning": PLANNERS, "local": MODELS, "environment": ENVIRONMENTS}

COLUMNS = [
    "goal",
    "dead",
    "id",
    "position",
    "velocity",
    "heading",
    "radius",
    "desired_speed",
    "sense_radius",
    "group",
    "held",
    "delay",
    "family",
    "leader",
    "courage",
    "agility",
    "mass",
    "cohesion",
    "separation",
    "alignment",
    "blind_angle",
    "weight",
    "speed",
    "noise",
]


def nasty_value(chance: random.Random) -> Any:
    """Anything that a key may be given by mistake."""
    return chance.choice(
        (
            lambda: chance.choice(NUMBERS),
            lambda: chance.choice(NUMBERS),
            lambda: chance.choice(NUMBERS) * chance.choice((1, -1)),
            lambda: chance.choice(TEXTS),
            lambda: chance.choice(FILES),
            lambda: chance.choice((True, False)),
            list,
            dict,
            lambda: [chance.choice(NUMBERS) for _ in range(chance.randint(1, 6))],
            lambda: [[0.0, 0.0], [1.0, chance.choice(NUMBERS)]],
            lambda: {"kind": chance.choice(("normal", "uniform", "orbit", "waypoints", "x"))},
            lambda: {chance.choice(TEXTS): chance.choice(NUMBERS)},
            lambda: nested(chance.choice((3, 40, 150))),
        )
    )()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def a_layer(chance: random.Random, kind: str) -> dict[str, Any]:
    """A layer of a kind, with some of its parameters, of which most are sensible."""
    name = chance.choice(sorted(LAYERS[kind]))
    told: dict[str, Any] = {"model": name}
    known = parameters(LAYERS[kind][name])
    for parameter in chance.sample(sorted(known), k=min(len(known), chance.choice((0, 0, 1, 2, 3)))):
        default = known[parameter]
        if isinstance(default, int | float | str) and chance.random() < 0.5:
            told[parameter] = default
        else:
            told[parameter] = nasty_value(chance)
    return told


@functools.cache
def parameters(entry: Entry) -> dict[str, Any]:
    """Names and defaults of what a layer's class takes."""
    taken = inspect.signature(entry.load_parameters() or entry.load()).parameters
    return {name: each.default for name, each in taken.items()}

"""Changes of a scenario's tree, each a way in which a file is wrong or unusual."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from . import trees
from .schema_values import NAMES, draw, keys_at
from .vocabulary import COLUMNS, FILES, IMPORTS, NUMBERS, WKT, a_layer, nasty_value

Tree = dict[str, Any]


def mutate(tree: Tree, others: list[Tree], chance: random.Random) -> Tree:
    """A changed copy of a tree; some changes take parts of other trees."""
    changed = copy.deepcopy(tree)
    for _ in range(chance.choice((1, 1, 1, 1, 1, 2, 2, 3, 6))):
        change = chance.choices(list(_CHANGES), weights=list(_CHANGES.values()))[0]
        try:
            change(changed, others, chance)
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # it does not fit to what is at the place that was drawn
    return changed


def _somewhere(tree: Tree, chance: random.Random, fits: Callable[[Any], bool] = lambda value: True) -> trees.Path:
    return chance.choice([path for path in trees.paths(tree) if fits(trees.at(tree, path))])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _edge_number(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    trees.put(tree, _somewhere(tree, chance, _is_number), chance.choice(NUMBERS))


def _scaled_number(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    path = _somewhere(tree, chance, _is_number)
    value = trees.at(tree, path)
    factor = chance.choice((-1, 0, 0.1, 0.5, 0.999, 2, 10, 100))
    trees.put(tree, path, type(value)(value * factor))


def _other_type(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    trees.put(tree, _somewhere(tree, chance), nasty_value(chance))


def _deletion(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    trees.remove(tree, _somewhere(tree, chance))


def _copy_elsewhere(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    whole = trees.at(tree, _somewhere(tree, chance, lambda value: isinstance(value, list | dict)))
    if isinstance(whole, list):
        whole.insert(chance.randint(0, len(whole)), copy.deepcopy(chance.choice(whole)))
    else:
        whole[chance.choice(NAMES)] = copy.deepcopy(chance.choice(list(whole.values())))


def _many_copies(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    path = _somewhere(tree, chance, lambda value: isinstance(value, list | dict) and len(value) > 0)
    whole = trees.at(tree, path)
    count = chance.choice((30, 300, 3000))
    if isinstance(whole, list):
        whole.extend(copy.deepcopy(whole[-1]) for _ in range(count))
    else:
        last = list(whole.values())[-1]
        whole.update({f"copy_{k}": copy.deepcopy(last) for k in range(count)})


def _unknown_key(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    tables = [tree, *(trees.at(tree, path) for path in trees.paths(tree))]
    chance.choice([table for table in tables if isinstance(table, dict)])[_typo("radius", chance)] = 1.0


def _renamed_key(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    *where, key = chance.choice([path for path in trees.paths(tree) if isinstance(path[-1], str)])
    table = trees.at(tree, tuple(where))
    table[_typo(str(key), chance)] = table.pop(key)


def _misspelt_text(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    path = _somewhere(tree, chance, lambda value: isinstance(value, str))
    trees.put(tree, path, _typo(trees.at(tree, path), chance))


def _swapped_texts(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    first, second = (_somewhere(tree, chance, lambda value: isinstance(value, str)) for _ in range(2))
    kept = trees.at(tree, first)
    trees.put(tree, first, trees.at(tree, second))
    trees.put(tree, second, kept)


def _spliced(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    """Something of another file in the place of something with the same key."""
    other = chance.choice(others)
    path = chance.choice(list(trees.paths(tree)))
    fitting = [each for each in trees.paths(other) if each[-1] == path[-1] and len(each) == len(path)]
    trees.put(tree, path, copy.deepcopy(trees.at(other, chance.choice(fitting))))


def _allowed_key(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    """A key that the schema allows where it is put, with a value that it allows."""
    tables = [(), *(path for path in trees.paths(tree) if isinstance(trees.at(tree, path), dict))]
    path = chance.choice([each for each in tables if keys_at(each)])
    key, schema = chance.choice(sorted(keys_at(path).items()))
    trees.at(tree, path)[key] = draw(schema, chance)


def _one_more_event(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    event = draw(keys_at(())["events"]["items"], chance)
    event["at"] = round(chance.uniform(0.0, 1.0), 2)
    for key in ("group", "name", "door", "exit", "region", "goal"):
        if key in event and chance.random() < 0.8:
            event[key] = _name_in(tree, chance)
    tree.setdefault("events", []).append(event)


def _name_in(tree: Tree, chance: random.Random) -> Any:
    world = tree.get("world", {})
    kinds = ("exits", "doors", "regions", "obstacles", "targets")
    names = [name for kind in kinds for name in world.get(kind, {})] + list(tree.get("hazards", {}))
    return chance.choice(names + [group["name"] for group in tree["groups"]])


def _column(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    """A column of the engine or of a model given by a group, a source or an event."""
    value = chance.choice(NUMBERS)
    holder = chance.choice([*tree.get("groups", []), *tree.get("sources", []), None])
    if holder is not None:
        holder.setdefault("parameters", {})[chance.choice(COLUMNS)] = value
    else:
        event = {"at": 0.2, "kind": "set_parameter", "name": chance.choice(COLUMNS), "value": value}
        tree.setdefault("events", []).append(event)


def _other_layer(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    holder = chance.choice([tree, tree, *tree.get("groups", [])])
    kind = chance.choice(("planning", "local", "local", "environment") if holder is tree else ("planning", "local"))
    holder[kind] = a_layer(chance, kind)


def _imported_layer(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    holder = chance.choice([tree, *tree.get("groups", [])])
    told: Tree = {"model": chance.choice(IMPORTS)}
    if told["model"] == "os:system":
        told["command"] = "touch ran_a_command"
    if chance.random() < 0.3:
        told = {"model": "blend", "parts": [[1.0, told]]}
    if chance.random() < 0.1:
        told = {"model": "vector_field", "fallback": told, "strokes": [{"points": [[0, 0], [1, 1]], "width": 1.0}]}
    holder[chance.choice(("planning", "local"))] = told


def _odd_shape(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    kinds = ("box", "polygon", "circle", "wkt", "file", "walkable", "region", "points", "line", "places")
    path = chance.choice([path for path in trees.paths(tree) if path[-1] in kinds])
    if path[-1] in ("box", "polygon", "circle", "wkt", "file"):
        path = path[:-1]
    x, y = chance.uniform(0, 10), chance.uniform(0, 10)
    shape = chance.choice(
        (
            {"wkt": chance.choice(WKT)},
            {"file": chance.choice(FILES)},
            {"polygon": [[x, y]] * chance.randint(2, 5)},
            {"polygon": [[x, y], [x + 1, y], [x + 2, y]]},
            {"polygon": [[0, 0], [10, 10], [10, 0], [0, 10]]},
            {"polygon": [[chance.uniform(0, 12), chance.uniform(0, 8)] for _ in range(chance.randint(3, 12))]},
            {"box": [x, y, x + 1e-12, y + 1e-12]},
            {"box": [-1e9, -1e9, 1e9, 1e9]},
            {"circle": [x, y, chance.choice(NUMBERS)]},
            {"low": [0, 0, 0], "high": [x, y, chance.choice(NUMBERS)]},
        )
    )
    trees.put(tree, path, shape)


def _moved_world(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    """All numbers of a part of the file scaled or shifted: extreme coordinates that fit together."""
    part = chance.choice([key for key in ("world", "groups", "hazards") if key in tree])
    factor = chance.choice((1e-6, 1e-3, 0.1, 3.0, 100.0, 1e5, 1e9))
    shift = chance.choice((0.0, 0.0, 1e3, -1e6, 1e9, 1e15))
    _move(tree[part], factor, shift)


def _move(tree: Any, factor: float, shift: float) -> None:
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        if isinstance(value, dict | list):
            _move(value, factor, shift)
        elif isinstance(value, float):
            tree[key] = value * factor + shift


def _many_people(tree: Tree, others: list[Tree], chance: random.Random) -> None:
    group = chance.choice(tree["groups"])
    for key in ("count", "density", "positions"):
        group.pop(key, None)
    how = chance.choice(("count", "density", "positions"))
    if how == "positions":
        group[how] = [[chance.uniform(0, 10), chance.uniform(0, 8)] for _ in range(chance.choice((0, 1, 2000)))]
    else:
        # Nothing in between: a million agents in a wide world are right, and take their time.
        group[how] = chance.choice((0, 1, 3, 1000 if how == "count" else 1e-9, 2 * 10**8, 10**15, 2**63, 1e12))


def _typo(text: str, chance: random.Random) -> str:
    place = chance.randint(0, len(text))
    return chance.choice(
        (
            text[:place] + text[place + 1 :],
            text[:place] + chance.choice("xé_ .'\"[:/") + text[place:],
            text.upper(),
            text + text,
            text[::-1],
        )
    )


#: What is changed, and how often compared to the others.
_CHANGES: dict[Callable[[Tree, list[Tree], random.Random], None], float] = {
    _edge_number: 4,
    _scaled_number: 4,
    _other_type: 3,
    _deletion: 2,
    _copy_elsewhere: 1,
    _many_copies: 0.5,
    _unknown_key: 0.5,
    _renamed_key: 0.5,
    _misspelt_text: 1,
    _swapped_texts: 1,
    _spliced: 2,
    _allowed_key: 4,
    _one_more_event: 4,
    _column: 2,
    _other_layer: 4,
    _imported_layer: 0.5,
    _odd_shape: 2,
    _moved_world: 1,
    _many_people: 1,
}

"""Files that are damaged: bytes at random, and contents that are wrong within a file that is whole."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tropel.recording.checkpoint import load_checkpoint, save_checkpoint

from . import trees
from .vocabulary import NUMBERS, TEXTS, WKT, nasty_value

_NESTED = 20_000


def damage(file: Path, chance: random.Random) -> None:
    """Damage a file, half of the time in a way that its format still allows."""
    inside = _INSIDE.get(file.suffix)
    if inside is not None and chance.random() < 0.5:
        inside(file, chance)
    else:
        file.write_bytes(damaged(file.read_bytes(), chance))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Flipped, missing, swapped, strange or additional bytes."""
    place = chance.randint(0, len(data))
    length = chance.choice((1, 16, 512, 4096))
    other = chance.randint(0, len(data))
    return chance.choice(
        (
            lambda: _flipped(data, chance, 1),
            lambda: _flipped(data, chance, 5),
            lambda: _flipped(data, chance, 100),
            lambda: data[:place],
            lambda: data[place:],
            lambda: data[:place] + bytes(length) + data[place + length :],
            lambda: data[:place] + chance.randbytes(length) + data[place + length :],
            lambda: data[:place] + data[place + length :],
            lambda: data[:place] + data[other : other + length] + data[place:],
            lambda: data + chance.randbytes(length),
            lambda: chance.randbytes(length),
            lambda: b"",
        )
    )()


def _flipped(data: bytes, chance: random.Random, count: int) -> bytes:
    changed = bytearray(data)
    for _ in range(count if changed else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _sqlite(file: Path, chance: random.Random) -> None:
    with contextlib.closing(sqlite3.connect(file)) as base, contextlib.suppress(sqlite3.Error):
        tables = sorted(name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        table = chance.choice(tables)
        columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
        column = chance.choice(columns)
        some = chance.choice(("1", "abs(random()) % 10 = 0", "rowid = 1"))
        value = chance.choice((*NUMBERS, *TEXTS, *WKT, None, b"\x00\xff", "{}", "[]", '{"x": 1}'))
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = float("inf")
        # Tables say NOT NULL, and types that SQLite does not insist on.
        base.execute("PRAGMA writable_schema = ON")
        base.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'")
        base.commit()
        base.execute("PRAGMA writable_schema = RESET")
        change = chance.choice(
            (
                f"UPDATE {table} SET {column} = ? WHERE {some}",
                f"UPDATE {table} SET {column} = ? WHERE {some}",
                f"UPDATE {table} SET {column} = ? WHERE {some}",
                f"DELETE FROM {table} WHERE {some} AND ? IS NOT 7",
                f"INSERT INTO {table} SELECT * FROM {table} WHERE ? IS NOT 7",
                f"CREATE TABLE spare_{table} AS SELECT ? AS x",
            )
        )
        if "spare" in change:
            base.execute(chance.choice((f"DROP TABLE {table}", f"ALTER TABLE {table} RENAME COLUMN {column} TO x")))
        elif columns == ["key", "value"] and chance.random() < 0.7:
            _json_cell(base, table, chance)
        else:
            base.execute(change, (value,))
        base.commit()


def _json_cell(base: sqlite3.Connection, table: str, chance: random.Random) -> None:
    key, text = chance.choice(base.execute(f"SELECT key, value FROM {table}").fetchall())
    base.execute(f"UPDATE {table} SET value = ? WHERE key = ?", (_wrong_json(text, chance), key))


def _json(file: Path, chance: random.Random) -> None:
    file.write_text(_wrong_json(file.read_text(encoding="utf-8"), chance), encoding="utf-8", errors="replace")


def _json_lines(file: Path, chance: random.Random) -> None:
    lines = file.read_text(encoding="utf-8").splitlines() or ["{}"]
    number = chance.randrange(len(lines))
    lines[number] = _wrong_json(lines[number], chance)
    file.write_text("\n".join(lines), encoding="utf-8", errors="replace")


def _wrong_json(text: str, chance: random.Random) -> str:
    """A text of JSON in which one thing is wrong, such as a key that is missing or a value of another type."""
    if chance.random() < 0.05:
        return "[" * _NESTED + "]" * _NESTED
    try:
        tree = {"all": json.loads(text)}
    except ValueError:
        return chance.choice(TEXTS)
    path = chance.choice(list(trees.paths(tree)))
    if len(path) > 1 and chance.random() < 0.3:
        trees.remove(tree, path)
    else:
        trees.put(tree, path, chance.choice((None, nasty_value(chance))))
    return json.dumps(tree.get("all"))


def _parquet(file: Path, chance: random.Random) -> None:
    table = pq.read_table(file)
    if not table.num_columns:
        return
    number = chance.randrange(table.num_columns)
    name, column = table.column_names[number], table.column(number)
    footer = table.schema.metadata
    value = chance.choice((*NUMBERS[:26], None, "x", b"\xff"))
    change = chance.choice(("drop", "value", "value", "value", "rows", "nested", "footer"))
    if change == "drop":
        table = table.remove_column(number)
    elif change == "rows":
        table = table.slice(chance.randint(0, 3), chance.randint(0, 5))
    elif change == "nested":
        table = table.set_column(number, name, pa.array([[1, 2]] * len(column)))
    elif change == "footer":
        footer = {key: _wrong_json(text.decode(), chance).encode() for key, text in (footer or {}).items()}
    else:
        told = column.to_pylist()
        told[chance.randrange(len(told)) : None if chance.random() < 0.5 else len(told)] = [value]
        told += [value] * (len(column) - len(told))
        with contextlib.suppress(pa.ArrowException, OverflowError):
            table = table.set_column(number, name, pa.array(told))
            if chance.random() < 0.5 and name in table.column_names:
                table = table.set_column(number, name, table.column(name).cast(column.type))
    pq.write_table(table.replace_schema_metadata(footer), file)


def _checkpoint(file: Path, chance: random.Random) -> None:
    """Sealed again, so that only what is inside is wrong."""
    arrays, meta = load_checkpoint(file)
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    change = chance.choice(("shape", "length", "type", "value", "value", "drop", "add", "meta", "meta", "meta"))
    if change == "shape":
        arrays[name] = array.reshape(chance.choice(((-1, 1), (1, -1), (-1,))))
    elif change == "length":
        arrays[name] = np.concatenate([array.ravel()[:3], array.ravel()]) if array.ndim < 2 else array[:-1]
    elif change == "type":
        with contextlib.suppress(ValueError):
            arrays[name] = (
                np.zeros(()) if chance.random() < 0.2 else array.astype(chance.choice(("U8", "f4", "?", "i2")))
            )
    elif change == "value" and array.size:
        changed = array.copy()
        with contextlib.suppress(OverflowError, ValueError):
            changed.flat[chance.randrange(array.size)] = chance.choice(NUMBERS)
            arrays[name] = changed
    elif change == "drop":
        del arrays[name]
    elif change == "add":
        arrays[chance.choice(("x", "agents/x", f"{name}x"))] = array
    else:
        tree = {"all": meta}
        path = chance.choice([each for each in trees.paths(tree) if len(each) > 1])
        if chance.random() < 0.3:
            trees.remove(tree, path)
        else:
            trees.put(tree, path, chance.choice((None, nasty_value(chance))))
        meta = tree["all"]
    save_checkpoint(file, arrays=arrays, meta=meta)


def _map(file: Path, chance: random.Random) -> None:
    lines = file.read_text().splitlines()
    number = chance.randrange(4) if chance.random() < 0.7 else chance.randrange(len(lines))
    word = lines[number].split(" ")[0]
    wrong = (f"{word} {chance.choice(NUMBERS)}", f"{word} {chance.choice(NUMBERS)}", word, "", "@" * 100, lines[0])
    lines[number] = chance.choice(wrong)
    file.write_text("\n".join(lines) + "\n")


def _png(file: Path, chance: random.Random) -> None:
    """A header that claims another size, with a checksum that is right."""
    import struct
    import zlib

    data = bytearray(file.read_bytes())
    width, height = chance.choice(((0, 0), (1, 1), (2**31 - 1, 2**31 - 1), (60_000, 60_000), (20_000, 5_000)))
    data[16:24] = struct.pack(">II", width, height)
    data[24:26] = bytes((chance.choice((1, 2, 8, 16)), chance.choice((0, 2, 3, 4, 6))))
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    file.write_bytes(bytes(data))


def _wkt(file: Path, chance: random.Random) -> None:
    text = chance.choice((*WKT, file.read_text().replace("0", str(chance.choice(NUMBERS)), 1)))
    file.write_text(text)


_INSIDE: dict[str, Callable[[Path, random.Random], None]] = {
    ".sqlite": _sqlite,
    ".parquet": _parquet,
    ".json": _json,
    ".geojson": _json,
    ".jsonl": _json_lines,
    ".npz": _checkpoint,
    ".map": _map,
    ".png": _png,
    ".wkt": _wkt,
}


def replace_by_no_file(file: Path, chance: random.Random) -> None:
    """Something else under the name of a file: a folder, a pipe, an endless device, a link to itself."""
    file.unlink()
    what = chance.choice(("folder", "pipe", "endless", "loop", "missing"))
    if what == "folder":
        file.mkdir()
    elif what == "pipe":
        os.mkfifo(file)
    elif what == "endless":
        file.symlink_to("/dev/zero")
    elif what == "loop":
        file.symlink_to(file.name)

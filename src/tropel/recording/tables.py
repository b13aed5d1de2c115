"""Tables of numbers and texts as files, for spreadsheets (CSV) and data tools (Parquet)."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import RecordingError, suggest
from tropel.foundation.files import LARGEST_TRAJECTORY, check_input, open_input, replacing
from tropel.recording.parquet_writer import arrow_column

#: A column is an array of numbers or a list of texts.
Columns = dict[str, NDArray[Any] | list[str]]

FORMATS = ("csv", "parquet")


def table_format(path: str | os.PathLike[str]) -> str:
    """The format that the name of a table asks for."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise RecordingError(f"a table is a .csv or .parquet file, but this one is called '{Path(path).name}'")
    return kind


def write_table(columns: Columns, path: str | os.PathLike[str]) -> Path:
    """Write a table in the format that its name asks for; the file appears complete or not at all."""
    path = Path(path)
    text = _csv(columns) if table_format(path) == "csv" else _parquet(columns)
    try:
        with replacing(path) as file:
            file.write(text)
    except OSError as error:
        raise RecordingError(
            f"cannot write {path} ({error.strerror or error}): choose a writable folder on a disk with free space"
        ) from error
    return path


def read_table(path: str | os.PathLike[str], kinds: Mapping[str, type]) -> Columns:
    """The named columns of a table; `kinds` tells of each whether it holds int, float or str."""
    path = Path(path)
    try:
        found = _read_csv(path) if table_format(path) == "csv" else _read_parquet(path)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, csv.Error) as error:
        raise RecordingError(f"{path} is not a table that can be read: {str(error).splitlines()[0]:.200}") from error
    columns: Columns = {}
    for name, kind in kinds.items():
        if name not in found:
            raise RecordingError(f"{path} has no column '{name}'; {suggest(name, found)}")
        try:
            texts = found[name]
            if kind is float:
                columns[name] = np.array([math.nan if x in ("", None) else float(x) for x in texts])
            elif kind is int:
                columns[name] = np.array([int(x) for x in texts], dtype=np.int64)
            else:
                columns[name] = ["" if x is None else str(x) for x in texts]
        except (ValueError, TypeError, OverflowError) as error:
            raise RecordingError(f"{path}: the column '{name}' holds something else than numbers: {error}") from error
    if len({len(values) for values in columns.values()}) > 1:
        raise RecordingError(f"{path} has columns of different lengths")
    return columns


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a table."""
    path = Path(path)
    try:
        if table_format(path) == "csv":
            with open_input(path, largest=LARGEST_TRAJECTORY) as file:
                return next(csv.reader([file.readline(1 << 16).decode()]), [])
        import pyarrow
        import pyarrow.parquet

        check_input(path, largest=LARGEST_TRAJECTORY)
        return list(pyarrow.parquet.read_schema(path).names)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, csv.Error) as error:
        raise RecordingError(f"{path} is not a table that can be read: {error}") from error


def _csv(columns: Columns) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_texts(values) for values in columns.values()), strict=True))
    return text.getvalue().encode()


def _texts(values: NDArray[Any] | list[str]) -> list[Any]:
    """Missing numbers are empty. Ten digits hide that 0.15 has no exact binary form."""
    if isinstance(values, list) or values.dtype.kind != "f":
        return list(values)
    return ["" if math.isnan(value) else f"{value:.10g}" for value in values.tolist()]


def _parquet(columns: Columns) -> bytes:
    import pyarrow
    import pyarrow.parquet

    contiguous = {n: v if isinstance(v, list) else np.ascontiguousarray(v) for n, v in columns.items()}
    buffer = io.BytesIO()
    table = pyarrow.table({name: arrow_column(values) for name, values in contiguous.items()})
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _read_csv(path: Path) -> dict[str, list[Any]]:
    with open_input(path, largest=LARGEST_TRAJECTORY) as file:
        rows = list(csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline="")))
    if not rows:
        raise ValueError("it is empty")
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("its lines have different numbers of fields")
    return {name: [row[number] for row in rows[1:]] for number, name in enumerate(rows[0])}


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    import pyarrow
    import pyarrow.parquet

    check_input(path, largest=LARGEST_TRAJECTORY)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error
    return {name: table[name].to_pylist() for name in table.column_names}

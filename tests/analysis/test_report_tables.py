"""Tables of a report, written and read back."""

import csv
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from made_runs import LONG_ROOM, in_line, record, scene

from tropel.analysis import EvacuationReport, evacuation_report, report_tables, write_tables
from tropel.errors import ParameterError, RecordingError
from tropel.recording import read_trajectory


@pytest.fixture
def report(tmp_path: Path) -> EvacuationReport:
    world = scene(LONG_ROOM, groups=["visitors, paying", 'the "staff"'])
    path = record(tmp_path / "line.sqlite", in_line, frames=160, world=world)
    with read_trajectory(path) as run:
        return evacuation_report(run)


def read(path: Path) -> dict[str, list[str]]:
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path).to_pydict()
        return {n: ["" if v != v else str(v) for v in values] for n, values in table.items()}
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return {name: [row[k] for row in rows] for k, name in enumerate(head)}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_every_table_comes_back_as_it_was(tmp_path: Path, report: EvacuationReport, kind: str) -> None:
    written = write_tables(report, tmp_path, format=kind)
    names = ["people", "evacuated", "exits", "crowding", "density", "flow", "voronoi", "voronoi_people"]
    assert [path.stem for path in written] == names
    for path in written:
        found, wanted = read(path), report_tables(report)[path.stem]
        assert list(found) == list(wanted)
        for name, values in wanted.items():
            if isinstance(values, list):
                assert found[name] == values
            else:
                numbers = [float(text) if text else math.nan for text in found[name]]
                np.testing.assert_allclose(numbers, values, rtol=1e-9)


def test_the_tables_hold_the_report(report: EvacuationReport) -> None:
    tables = report_tables(report)
    people = tables["people"]
    assert people["group"][:2] == ["visitors, paying", 'the "staff"']
    assert people["fate"] == ["left"] * 6 + ["there"] * 4
    assert tables["evacuated"]["through_east"][-1] == tables["evacuated"]["total"][-1] == 6
    assert tables["exits"]["name"] == ["east", "north"]
    # Cells in which nobody was are left out; the others add up to the people there.
    density = tables["density"]
    assert 0 < len(density["x"]) < report.maps.mean_density.size
    assert sum(density["mean"]) == pytest.approx(report.maps.mean_density.sum())


def test_an_unknown_format_and_a_folder_that_is_not_there_are_errors(tmp_path: Path, report: EvacuationReport) -> None:
    with pytest.raises(ParameterError, match="did you mean 'parquet'"):
        write_tables(report, tmp_path, format="parket")
    with pytest.raises(RecordingError, match="cannot write"):
        write_tables(report, tmp_path / "nowhere")

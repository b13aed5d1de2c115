"""The picture of a table of encounters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tropel.errors import RecordingError
from tropel.pictures.encounters import encounters_figure
from tropel.recording.encounter_table import EncounterTable


def made() -> EncounterTable:
    """Three encounters: of 10 s, of 20 s with touching, and one that goes on from 30 s to the last moment, 40 s."""
    return EncounterTable(
        id_a=np.array([1, 1, 2]),
        id_b=np.array([2, 3, 3]),
        begin=np.array([0.0, 10.0, 30.0]),
        end=np.array([10.0, 30.0, math.nan]),
        closest=np.array([1.05, 0.4, 0.95]),
        closest_at=np.array([5.0, 20.0, 40.0]),
        touched=np.array([math.nan, 19.0, math.nan]),
        touching=np.array([0.0, 2.0, 0.0]),
        began=np.array(["entered"] * 3),
        ended=np.array(["left", "left", ""]),
        within=np.full(3, 1.5),
    )


def test_bars_are_the_contact_time_of_pairs_and_people() -> None:
    assert made().durations.tolist() == [10.0, 20.0, 10.0]
    ids, contact = made().contact_times()
    assert ids.tolist() == [1, 2, 3]
    assert contact.tolist() == [30.0, 20.0, 30.0]
    figure = encounters_figure(made())
    by_distance, by_person, lasting = figure.axes
    heights = {round(bar.get_x(), 6): bar.get_height() for bar in by_distance.patches if bar.get_height()}
    assert heights == {0.4: 20.0, 0.9: 10.0, 1.0: 10.0}
    assert sum(bar.get_height() for bar in by_person.patches) == 3
    assert lasting.lines[0].get_ydata()[0] == 1.0
    texts = " ".join(text.get_text() for text in figure.texts)
    for words in ("within 1.5 m", "3 encounters of 3 people", "bodies touched in 1", "1 still going on at 40.0 s"):
        assert words in texts


def test_an_empty_table_cannot_be_drawn() -> None:
    nothing = replace(made(), **{name: column[:0] for name, column in vars(made()).items()})
    with pytest.raises(RecordingError, match="no encounters"):
        encounters_figure(nothing)

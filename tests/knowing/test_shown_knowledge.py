"""Knowledge in scenario files, in recordings, on the page and in the benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shapely

import tropel
from tropel.bench.knowledge import measure
from tropel.events import Announce, CloseDoor
from tropel.recording.checked import checked_event
from tropel.scenario.loading import parse_scenario
from tropel.viewer.live.agent_tab import described, portrait
from tropel.viewer.overlays.knowledge import KNOWLEDGE

FILE = """
name = "gate"
until = 3.0
[world]
walkable = {{ box = [0.0, 0.0, 20.0, 6.0] }}
doors.gate = {{ line = [[15.0, 0.0], [15.0, 6.0]], open = true }}
[[groups]]
name = "a"
positions = [[13.0, 3.0], [11.0, 3.0], [2.0, 3.0]]
goal = "none"
{own}
[[events]]
kind = "close_door"
door = "gate"
at = 0.5
{event}
"""


def in_a_file(own: str, event: str = "") -> tropel.Simulation:
    return parse_scenario(FILE.format(own=own, event=event), source="gate.toml", folder=Path()).build(threads=1)


def test_files_say_the_same_as_python(tmp_path: Path) -> None:
    sim = in_a_file("knowledge = { sight = 3.0, earshot = 2.5, hop = 1.0 }")
    sim.run(until=3.0, record=tmp_path / "run.sqlite")
    assert sim.knowledge.who_knows("gate", "shut").tolist() == [0, 1]
    told = tropel.read_trajectory(tmp_path / "run.sqlite").knowledge()
    assert told["holder"] == [0, 1]
    assert told["source"] == [0, 0]
    assert told["state"] == ["shut", "shut"]
    assert told["time"].tolist() == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize(
    ("own", "event", "said"),
    [
        ("knowledge = { sigth = 3.0 }", "", "sigth"),
        ("knowledge = { sight = -3.0 }", "", "sight"),
        ('knowledge = { sight = "far" }', "", "sight"),
        ("knowledge = { hop = nan }", "", "hop"),
        ('knowledge = { held_by = "me" }', "", "held_by"),
        ('knowledge = { friends = ["b"] }', "", "not a group"),
        ("knowledge = { most_plans = 2.5 }", "", "most_plans"),
        ("", '[[events]]\nkind = "announce"\ndoor = "gate"\nat = 1.0', "knows the world as it is"),
        ("knowledge = {}", '[[events]]\nkind = "announce"\ndoor = "gat"\nat = 1.0', "gat"),
        ("knowledge = {}", '[[events]]\nkind = "announce"\nat = 1.0', "exactly one"),
    ],
)
def test_mistakes_in_files_are_reported_with_their_line(own: str, event: str, said: str) -> None:
    with pytest.raises(tropel.TropelError, match=said) as error:
        in_a_file(own, event)
    assert "gate.toml, line" in str(error.value)


def test_the_page_shows_what_the_selected_agent_knows_and_from_whom() -> None:
    sim = in_a_file("knowledge = { sight = 3.0, earshot = 2.5, hop = 1.0 }")
    sim.run(until=1.4)
    texts = [described(shown).replace("\\", "") for k in range(3) if (shown := portrait(sim, k)) is not None]
    assert "| knows door gate | shut, seen 0.4 s ago |" in texts[0]
    assert "| knows door gate | shut, from agent 0 0.4 s ago |" in texts[1]
    assert "| knows door gate | open, from the start |" in texts[2]


def test_the_overlay_marks_those_that_have_seen_and_those_that_were_told() -> None:
    sim = in_a_file("knowledge = { sight = 3.0, earshot = 2.5, hop = 1.0 }")
    assert KNOWLEDGE.fits(sim)
    sim.run(until=1.4)
    seen = KNOWLEDGE.look(sim, None)
    assert seen.how.tolist() == [2, 1]
    assert seen.nothing == 1
    assert KNOWLEDGE.legend is not None
    assert KNOWLEDGE.legend(seen).endswith("1 were told; 1 know nothing new")
    assert not KNOWLEDGE.fits(in_a_file(""))


def test_announcements_are_recorded_once(tmp_path: Path) -> None:
    world = tropel.World(shapely.box(0, 0, 20, 6), doors={"gate": tropel.Door([(15, 0), (15, 6)], open=True)})
    group = tropel.Group("a", positions=[(2.0, 3.0)], goal="none")
    sim = tropel.Simulation(world, group, knowledge=tropel.Knowledge(sight=1.0), dt=0.1)
    sim.at(0.5, CloseDoor(door="gate"))
    sim.at(1.0, Announce(door="gate"))
    sim.run(until=2.0, record=tmp_path / "run.parquet")
    told = tropel.read_trajectory(tmp_path / "run.parquet").knowledge()
    assert told["source"] == ["an announcement"]


@pytest.mark.parametrize("news", [None, {}, [[1, 2]], [[1, "a", "b", {}]], [[-5, "a", "b", 1]], [[1, 2, "b", 1]]])
def test_damaged_notes_are_refused(news: Any) -> None:
    note = json.loads(json.dumps({"kind": "noted_knowledge", "news": news}))
    with pytest.raises(tropel.TropelError):
        checked_event(0, 0, note)


def test_the_benchmark_measures_the_same_steps() -> None:
    result = measure(lambda what, done, total: None, agents=400)
    assert result.ratios["tenth_of_step_over_knowledge_10k"] > 0.0
    assert all(0.0 < row["share"] < 1.0 for row in result.rows)
    assert result.rows[-1]["learnt"] > 0

"""Events in scenario files are checked when the file is read: every wrong name with file, line, key and near miss."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tropel.cli import app
from tropel.errors import ScenarioError
from tropel.scenario.loading import Scenario, parse_scenario

ROOM = """name = "room"
[world]
walkable = { box = [0, 0, 20, 10] }
[world.exits]
east = { box = [18, 4, 20, 6] }
[world.doors]
gate = { line = [[10, 0], [10, 10]], open = true }
[world.obstacles]
cart = { radius = 0.3, position = [12, 8] }
[[groups]]
name = "people"
count = 2
"""
FIRST_LINE = len(ROOM.splitlines()) + 1


def scenario(*events: str) -> Scenario:
    """The room with events, each of which is given as lines."""
    text = ROOM + "".join(f"[[events]]\n{event}\n" for event in events)
    return parse_scenario(text, source="room.toml", folder=Path())


def said_of(*events: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        scenario(*events).build(threads=1)
    return str(caught.value).splitlines()


PUT = 'kind = "add_obstacle"\nname = "rock"\nradius = 0.5\nposition = [15, 8]'
MOVE = 'kind = "move_obstacle"\nposition = [3, 3]\nname = "rock"'


@pytest.mark.parametrize(
    ("event", "line", "says"),
    [
        ('kind = "open_door"\ndoor = "gaet"', 3, "events[0].door: there is no door 'gaet'; did you mean 'gate'?"),
        ('kind = "move_obstacle"\nposition = [1, 1]\nname = "crat"', 4, "events[0].name: there is no obstacle 'crat'"),
        ('kind = "set_goal"\ngoal = "esat"', 3, "events[0].goal: there is no goal 'esat'; did you mean 'east'?"),
        ('kind = "set_goal"\ngoal = "east"\ngroup = "peopel"', 4, "events[0].group: there is no group 'peopel'; did"),
        ('kind = "remove_hazard"\nname = "fire"', 3, "events[0].name: there is no hazard 'fire'; none are defined"),
        ('kind = "remove_target"\nname = "bar"', 3, "events[0].name: there is no target 'bar'"),
        ('kind = "set_parameter"\nname = "radios"\nvalue = 1', 3, "events[0].name: agents have no parameter 'radios'"),
        ('kind = "set_behaviour"\nname = "congestion"\non = false', 3, "events[0].name: no layer here has"),
        ('kind = "remove_value_map"\nname = "edges"', 3, "events[0].name: no planner here publishes value maps"),
        ('kind = "add_agents"\ngroup = "people"\ncount = 1\nregion = "stat"', 5, "events[0].region: there is no"),
        ('kind = "add_agents"\ngroup = "people"\ncount = 1\ngoal = "bar"', 5, "events[0].goal: there is no goal 'bar'"),
        ('kind = "add_obstacle"\nname = "o"\nradius = 1\nposition = [99, 1]', 1, "events[0]: obstacle 'o' at (99, 1)"),
        ('kind = "add_obstacle"\nname = "o"\nradius = 1\nposition = [1, 1, 1]', 1, "expected 2 coordinates"),
        ('kind = "add_obstacle"\nname = "cart"\nradius = 1\nposition = [1, 1]', 3, "there is an obstacle 'cart'"),
        ('kind = "set_parameter"\nname = "desired_speed"\nvalue = -1', 1, "must be a number from 0 to 1e+06 m/s"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_event_has_file_line_and_key(event: str, line: int, says: str) -> None:
    kind, _, rest = event.partition("\n")
    (said,) = said_of(f"{kind}\n{rest}\nat = 1.0")
    assert said.startswith(f"room.toml, line {FIRST_LINE + line - 1}: ")
    assert says in said


def test_events_are_looked_at_in_the_order_of_time_then_of_the_file() -> None:
    fine = scenario(f"at = 2.0\n{MOVE}", f"at = 1.0\n{PUT}", 'at = 2.0\nkind = "remove_obstacle"\nname = "rock"')
    assert len(fine.build(threads=1).events) == 3
    (said,) = said_of(f"at = 1.0\n{MOVE}", f"at = 1.0\n{PUT}")
    assert "events[0].name: there is no obstacle 'rock'" in said
    (said,) = said_of(f"at = 2.0\n{MOVE}", f"at = 1.0\n{PUT}", 'at = 1.5\nkind = "remove_obstacle"\nname = "rock"')
    assert "events[0].name: there is no obstacle 'rock' any more: 'remove obstacle' removes it at t = 1.5 s" in said


def test_two_events_of_one_step_happen_as_the_file_has_them() -> None:
    """Within a step of 0.05 s their times do not count."""
    sim = scenario(f"at = 1.0\n{PUT}", f"at = 0.99\n{MOVE}").build(threads=1)
    assert [event.kind for _, _, event in sim.events] == ["add_obstacle", "move_obstacle"]


def test_all_that_is_wrong_is_said_and_nothing_because_of_it() -> None:
    outside = PUT.replace("[15, 8]", "[99, 8]")
    said = said_of(f"at = 1.0\n{outside}", f"at = 2.0\n{MOVE}", 'at = 3.0\nkind = "open_door"\ndoor = "gaet"')
    assert len(said) == 2
    assert "events[0]: obstacle 'rock' at (99, 8) lies outside" in said[0]
    assert "events[2].door: there is no door 'gaet'" in said[1]
    (alone,) = said_of('at = inf\nkind = "open_door"\ndoor = "gate"')
    assert "events[0].at = inf" in alone


def test_of_very_many_that_are_wrong_the_first_are_said() -> None:
    said = said_of(*[f"at = {k}\n{MOVE}" for k in range(300)])
    assert len(said) == 51
    assert said[0].startswith(f"room.toml, line {FIRST_LINE + 4}: events[0].name")
    assert said[-1] == "room.toml: … and 250 more"


def test_validate_says_each_in_a_line_and_fails(tmp_path: Path) -> None:
    file = tmp_path / "room.toml"
    wrong = 'at = 3.0\nkind = "close_door"\ndoor = "gat"'
    file.write_text(ROOM + f"[[events]]\nat = 1.0\n{MOVE}\n[[events]]\n{wrong}\n")
    result = CliRunner().invoke(app, ["validate", str(file)], catch_exceptions=True)
    assert isinstance(result.exception, ScenarioError)
    first, second = str(result.exception).splitlines()
    assert first.startswith(f"{file}, line {FIRST_LINE + 4}: events[0].name: there is no obstacle 'rock'")
    assert second == f"{file}, line {FIRST_LINE + 8}: events[1].door: there is no door 'gat'; did you mean 'gate'?"

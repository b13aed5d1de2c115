"""Files with groups, leaders and roadmaps that cannot work: refused before the run, with file, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tropel.errors import ScenarioError, TropelError
from tropel.scenario import load_scenario

FILE = """\
name = "bad"
dt = 0.05
until = 5.0

[world]
walkable = {{ box = [0.0, 0.0, 20.0, 10.0] }}
{world}

[world.targets]
goal = {{ position = {goal}, radius = 0.4 }}

[world.doors]
{doors}

[[groups]]
name = "party"
goal = "goal"
{party}

{more}

[planning]
model = "{planner}"
"""
ACROSS = "walls = [[[10.0, 0.0], [10.0, 10.0]]]"
BLOCK = "holes = [ { box = [8.0, 3.0, 12.0, 7.0] } ]"


def other(name: str, told: str) -> str:
    return f'[[groups]]\nname = "{name}"\n{told}\n'


def build(
    folder: Path, *, world: str = "", goal: str = "[18.0, 5.0]", doors: str = "", more: str = "",
    party: str = "positions = [[2.0, 5.0]]", planner: str = "roadmap",
) -> None:  # fmt: skip
    path = folder / "bad.toml"
    path.write_text(
        FILE.format(world=world, goal=goal, doors=doors, party=party, more=more, planner=planner), encoding="utf-8"
    )
    load_scenario(path).build(threads=1)


@pytest.mark.parametrize("planner", ["roadmap", "adaptive_roadmap", "rooms"])
@pytest.mark.parametrize(
    ("told", "key", "said", "remedy"),
    [
        ({"world": BLOCK, "party": "positions = [[10.0, 5.0]]"}, "groups[0]", "outside the walkable area", "move it"),
        ({"world": BLOCK, "goal": "[10.0, 5.0]"}, "world.targets.goal", "outside the walkable area", "put it inside"),
        ({"world": ACROSS, "goal": "[10.0, 5.0]"}, "groups[0]", "'goal' is in a wall", "move one of them"),
        ({"world": ACROSS}, "groups[0]", "cannot get to 'goal': it starts in", "connect the two"),
        ({"party": "positions = [[2.0, 5.0]]\nradius = 6.0"}, "", "of 6.1 m radius|keeps 6.1 m free", ""),
    ],
)
def test_paths_that_cannot_be(
    planner: str, told: dict[str, str], key: str, said: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=said) as error:
        build(tmp_path, planner=planner, **told)
    assert "bad.toml" in str(error.value)
    assert key in str(error.value)
    assert remedy in str(error.value)


@pytest.mark.parametrize("planner", ["roadmap", "adaptive_roadmap", "rooms"])
def test_two_parts_that_are_not_connected_are_both_named(planner: str, tmp_path: Path) -> None:
    part = "room" if planner == "rooms" else "component"
    with pytest.raises(ScenarioError, match=rf"starts in {part} (\d+) .* 'goal' is in {part} (\d+) ") as error:
        build(tmp_path, world=ACROSS, planner=planner)
    assert "around (" in str(error.value)


@pytest.mark.parametrize(
    ("told", "key", "said"),
    [
        ({"doors": "main = { line = [[5.0, 4.0], [5.0, 6.0]] }", "planner": "rooms"}, "world.doors.main",
         "stands in no wall: .*let it reach from wall to wall"),
        ({"party": 'count = 0\nleader = "nearest"'}, "groups[0]", "no agents, so none of them can lead: give it some"),
        ({"party": 'positions = []\nleader = "central"'}, "groups[0]", "no agents, so none of them can lead"),
        ({"party": "count = 3\nleader = 7"}, "groups[0]", "leader is number 7, but there are only 3 agents"),
        ({"party": 'count = 3\nleader = "tallest"'}, "groups[0].leader", "'nearest' or 'central'"),
        ({"party": 'count = 3\nfollow = "ghosts"'}, "groups[0]", "'ghosts', which is not a group; known: party"),
        ({"party": 'count = 3\nfollow = "b"', "more": other("b", "count = 0")}, "groups[0]",
         "'b', which has no agents at the start; give it some, or leave follow out"),
        ({"party": 'count = 3\nfollow = "b"', "more": other("b", 'count = 2\nfollow = "party"')}, "groups[0]",
         "which follows 'b', which follows 'party': one of them must lead; leave its follow out"),
        ({"party": "count = 3\nparameters = { leader = 55 }"}, "", "would follow agent 55, but ids so far are 0 to 2"),
        ({"party": "count = 3\nparameters = { leader = 1 }"}, "", "agent 1 would follow itself"),
        ({"party": "count = 3", "more": '[[sources]]\ngroup = "c"\nrate = 1.0\ngoal = "goal"\nleader = 4\n'
          'region = { box = [1.0, 1.0, 4.0, 3.0] }'}, "", "the source of 'c': its agents come one after the other"),
        ({"party": 'count = 3\nleader = "nearest"', "more": '[[events]]\nat = 1.0\nkind = "set_leader"\n'
          'group = "ghosts"\nleader = "central"'}, "events[0].group", "there is no group 'ghosts'; known: party"),
        *(({"party": 'count = 3\nleader = "nearest"', "more": '[[events]]\nat = 1.0\nkind = "set_leader"\n'
           f'group = "party"\n{who}'}, f"events[0]{key}", said) for who, key, said in (
              ("id = 77", "", "no agent can have the id 77: ids so far are 0 to 2; give the id or the number of an"),
              ("id = -1", ".id", "greater than or equal to 0"),
              ('id = "Ann"', ".id", "valid integer"),
              ("id = nan", ".id", "valid integer"),
              ("leader = 3", "", "leader is number 3, but group 'party' has 3 agents, from number 0 on"),
              ('leader = "Ann"', ".leader", "nearest"))),
    ],
)  # fmt: skip
def test_groups_and_leaders_that_cannot_be(told: dict[str, str], key: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TropelError, match=said) as error:
        build(tmp_path, **told)
    assert "bad.toml" in str(error.value)
    assert key in str(error.value)

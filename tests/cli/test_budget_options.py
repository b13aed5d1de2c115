"""`tropel run --steps-per-second` and `--events` as a user meets them."""

import json

import pytest
from tropel_command import tropel

from short_scenario import short_scenario
from tropel.errors import ScenarioError
from tropel.recording import read_trajectory
from tropel.scenario.execute import execute
from tropel.scenario.loading import load_scenario, parse_scenario

SHORT = (
    short_scenario("until = 6.0\ndt = 0.25", count=40)
    + """
[planning]
model = "path_plans"
congestion = { high = 4.0, low = 2.0, every = 2 }

[local]
model = "lattice"

[[events]]
at = 1.0
kind = "set_behaviour"
name = "separation"
on = false
"""
)


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_run_with_a_budget_is_repeated_from_its_folder(tmp_path):
    # No machine makes so many steps, and none fewer than a window of them fit into the run.
    (tmp_path / "short.toml").write_text(SHORT + "[budget]\nsteps_per_second = 1e9\nwindow = 3\nsettle = 0\n")
    done = tropel("run", "short.toml", "--out", "first", "--no-picture", "-q", cwd=tmp_path)
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "behaviours left out hazard influence, value maps, congestion," in text
    assert "and there is nothing more to leave out" in text
    first = summary(tmp_path / "first")
    assert [each["name"] for each in first["budget"]["switches"]] == [
        "bonds",
        "congestion",
        "value maps",
        "hazard influence",
    ]
    # What is written by hand is taken as it is.
    events = [json.dumps({"step": each.step, "event": each.event}) for each in _events(tmp_path / "first")]
    (tmp_path / "told.jsonl").write_text("\n".join(events))
    tropel("run", "short.toml", "--events", "first", "--out", "again", "--no-picture", "-q", cwd=tmp_path)
    again = summary(tmp_path / "again")
    assert again["state_hash"] == first["state_hash"]
    assert again["budget"] is None
    scenario = load_scenario(tmp_path / "short.toml")
    for source in ("first/trajectory.sqlite", "told.jsonl"):
        done, _ = execute(scenario, out=tmp_path / "third", replay=tmp_path / source, progress=False)
        assert done.state_hash == first["state_hash"]
    alone = tropel("run", "short.toml", "--steps-per-second", 1e-3, "--out", "slow", "--no-picture", "-q", cwd=tmp_path)
    assert "steps per second wanted" in alone.stdout
    assert summary(tmp_path / "slow")["budget"]["switches"] == []
    assert summary(tmp_path / "slow")["state_hash"] != first["state_hash"]


def _events(folder):
    with read_trajectory(folder / "trajectory.sqlite") as recorded:
        return recorded.events


def test_a_budget_and_a_record_do_not_go_together(tmp_path):
    (tmp_path / "short.toml").write_text(SHORT)
    both = ("--steps-per-second", 60, "--events", "o")
    done = tropel("run", "short.toml", *both, "-q", cwd=tmp_path, ok=False)
    assert done.returncode == 1
    assert "give either --steps-per-second or --events" in " ".join(done.stderr.split())
    missing = tropel("run", "short.toml", "--events", "nowhere", "-q", cwd=tmp_path, ok=False)
    assert missing.returncode == 1
    assert "there is no nowhere" in " ".join(missing.stderr.split())


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        ("steps_per_second = 0", "budget.steps_per_second = 0: Input should be greater than 0"),
        ("fps = 60", "budget.fps: unknown key"),
        ("window = 0", "budget.window = 0"),
    ],
)
def test_a_wrong_budget_is_an_error_with_its_line(budget, says, tmp_path):
    text = SHORT + "[budget]\n" + budget + "\n"
    with pytest.raises(ScenarioError, match=rf"line {text.count(chr(10))}: {says}"):
        parse_scenario(text, source="short.toml", folder=tmp_path)


def test_a_behaviour_that_no_layer_has_is_an_error_with_its_line(tmp_path):
    text = SHORT.replace('name = "separation"', 'name = "seperation"')
    with pytest.raises(ScenarioError, match=r"no layer here has the behaviour 'seperation'; did you mean 'separation'"):
        parse_scenario(text, source="short.toml", folder=tmp_path).build()

"""Planners in scenario files mean the same as in Python, and find their images beside the scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tropel
from tropel.contracts import Guidance, Planner
from tropel.errors import ScenarioError
from tropel.scenario import Scenario, load_scenario, parse_scenario

ROOM = """
name = "room"
[world]
walkable = { box = [0.0, 0.0, 8.0, 6.0] }
walls = [[[4.0, 0.0], [4.0, 4.0]]]
[world.exits]
east = { box = [7.0, 2.0, 8.0, 4.0] }
[[groups]]
name = "people"
positions = [[1.0, 1.0], [2.0, 3.0], [3.0, 5.0], [5.0, 1.0]]
[planning]
"""
LANE = [[0.0, 3.0], [3.0, 5.0], [8.0, 3.0]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROPEL_PLAN_CACHE", str(tmp_path / "plans"))


def scenario(planning: str, folder: Path) -> Scenario:
    return parse_scenario(ROOM + planning, source="room.toml", folder=folder)


def positions_after(sim: tropel.Simulation) -> np.ndarray:
    for _ in range(40):
        sim.step()
    return sim.agents.position.copy()


@pytest.mark.parametrize(
    ("planning", "planner"),
    [
        ('model = "flow_field"\ncell = 0.25\nequal_moves = true', tropel.FlowField(cell=0.25, equal_moves=True)),
        ('model = "harmonic"\nwalls = "reflecting"', tropel.Harmonic(walls="reflecting")),
        (
            f'model = "vector_field"\nfallback = "flow_field"\nstrokes = [{{ points = {LANE}, width = 2.0 }}]',
            tropel.VectorField(tropel.Stroke(LANE, width=2.0), fallback=tropel.FlowField()),
        ),
        (
            f'model = "blend"\nparts = [[0.7, "flow_field"], [0.3, {{ model = "vector_field", '
            f"strokes = [{{ points = {LANE}, width = 9.0 }}] }}]]",
            tropel.Blend([(0.7, tropel.FlowField()), (0.3, tropel.VectorField(tropel.Stroke(LANE, width=9.0)))]),
        ),
    ],
    ids=["flow_field", "harmonic", "vector_field", "blend"],
)
def test_a_planner_in_a_file_leads_people_as_it_does_in_python(planning: str, planner: Any, tmp_path: Path) -> None:
    from_file = scenario(planning, tmp_path).build(threads=1)
    spec = scenario(planning, tmp_path)
    by_hand = tropel.Simulation(
        spec.world(), tropel.Group("people", positions=spec.spec.groups[0].positions), planning=planner, threads=1
    )
    np.testing.assert_array_equal(positions_after(from_file), positions_after(by_hand))


@pytest.mark.parametrize(
    "planning",
    [
        'model = "vector_field"\nimage = "painted/up.png"\ncell = 1.0',
        'model = "tropel.planning.vector_field:VectorField"\nimage = "painted/up.png"\ncell = 1.0',
        'model = "blend"\nparts = [[1.0, { model = "vector_field", image = "painted/up.png", cell = 1.0 }]]',
        'model = "vector_field"\nstrokes = [{ points = [[20, 20], [21, 20]] }]\n'
        'fallback = { model = "vector_field", image = "painted/up.png", cell = 1.0 }',
    ],
    ids=["by name", "by address", "within a blend", "as a fallback"],
)
def test_a_painted_image_is_looked_for_beside_the_scenario_file(
    planning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, elsewhere = tmp_path / "scene", tmp_path / "elsewhere"
    (there / "painted").mkdir(parents=True)
    elsewhere.mkdir()
    Image.new("RGB", (8, 6), (128, 255, 0)).save(there / "painted" / "up.png")
    (there / "room.toml").write_text(ROOM + planning)
    monkeypatch.chdir(elsewhere)
    sim = load_scenario(there / "room.toml").build(threads=1)
    out = Guidance(directions=np.zeros_like(sim.agents.position))
    (planner,) = [layer for layer in sim.all_layers() if isinstance(layer, Planner)]
    planner.direct(sim.moment(), out)
    np.testing.assert_allclose(out.directions, [[0.0, 1.0]] * len(sim.agents), atol=0.01)


@pytest.mark.parametrize(
    ("planning", "message"),
    [
        (
            'model = "flow_feild"',
            r"line 12: planning\.model: there is no planner 'flow_feild'; did you mean",
        ),
        (
            'model = "vector_field"\nimage = "none.png"\ncell = 1.0',
            r"line 11: planning: there is no image '.*none\.png'",
        ),
        ('model = "vector_field"\nstrokes = [{ points = "here" }]', r"line 11: planning: "),
        ('model = "blend"\nparts = [[1.0, "harmonc"]]', r"planning: there is no planner 'harmonc'.*'harmonic'"),
        ('model = "blend"\nparts = [[-1.0, "harmonic"]]', r"planning: part 0 of a Blend needs a weight above 0"),
        ('model = "harmonic"\nwalls = "soft"', r"planning: there are no walls of the kind 'soft'"),
    ],
)
def test_a_planner_that_cannot_be_made_is_an_error_with_its_line(planning: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=message):
        scenario(planning, tmp_path).build(threads=1)

"""The suite as a whole: verdicts over seeds, processes, the page, the command and its exit codes."""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from tropel import Dynamical, verification
from tropel.cli.commands import app
from tropel.cli.options import InterruptedRunError
from tropel.errors import ParameterError
from tropel.registry import MODELS
from tropel.scenario import builtin_names, load_builtin, verification_names
from tropel.verification import CASES, Candidate, Outcome, Verdict, suite
from tropel.verification.page import write_page
from tropel.verification.verdict import not_applicable, verdict_of

DOCS = Path(__file__).parents[2] / "docs" / "verification.md"

# Cases and scenes -------------------------------------------------------------------------------------------------


def test_each_case_has_a_scene_and_each_scene_a_case() -> None:
    assert set(verification.names()) == set(verification_names())
    assert not set(verification_names()) & set(builtin_names())


@pytest.mark.parametrize("name", verification_names())
def test_a_scene_tells_what_happens_and_where_it_comes_from(name: str) -> None:
    spec = load_builtin(name).spec
    assert spec.name == name
    assert spec.title
    assert spec.about.endswith(".")
    assert spec.source


@pytest.mark.parametrize("name", verification_names())
def test_a_scene_can_be_run_by_its_name(name: str) -> None:
    sim = Candidate().build(name, seed=0)
    sim.run(until=0.2)
    assert len(sim.agents)


def test_scenes_name_planner_and_model_only_if_their_case_requires_it() -> None:
    told = {name: tomllib.loads(load_builtin(name).text) for name in verification_names()}
    assert [name for name, scene in told.items() if "local" in scene] == []
    assert [name for name, scene in told.items() if "planning" in scene] == ["rimea_16"]


def test_cases_come_by_guideline_and_number() -> None:
    names = verification.names()
    assert names[:3] == ["rimea_1", "rimea_4", "rimea_5"]
    assert names.index("rimea_9") < names.index("rimea_10") < names.index("rimea_12a") < names.index("nist_1_1")
    assert names.index("nist_2_9") < names.index("nist_2_10") < names.index("door_flow")


def test_the_documentation_names_every_case_with_its_source_and_criterion() -> None:
    text = " ".join(DOCS.read_text(encoding="utf-8").split())
    for case in CASES.values():
        assert f"`{case.name}`" in text
        assert case.source in text, case.name
        assert case.expected in text, case.name


# The model that is judged -----------------------------------------------------------------------------------------


def test_the_model_of_a_scene_is_replaced_and_single_values_of_it() -> None:
    sim = Candidate("collision_free_speed").build("rimea_6", seed=3, changes={"groups.0.count": 5})
    assert len(sim.agents) == 5
    assert [type(model).__name__ for model in sim.layers.models] == ["CollisionFreeSpeed"]
    assert sim.seed == 3
    doors = Candidate("seek").scenario("rimea_9", {"world.exits.exit_1": None, "world.walkable.0.box": [0, 0, 31, 20]})
    assert sorted(doors.world().exits) == ["exit_2", "exit_3", "exit_4"]
    assert doors.world().bounds[1, 0] == 31.0


def test_a_preset_of_a_model_is_judged_like_a_model() -> None:
    candidate = Candidate("dynamical:pedestrian")
    (model,) = candidate.build("rimea_6", seed=0).layers.models
    assert model.parameters == Dynamical(preset="pedestrian").parameters
    assert candidate.label == "dynamical-pedestrian"
    assert candidate.why_not("rimea_16") == ""
    with pytest.raises(ParameterError, match=r"preset.*pedestrian"):
        Candidate("dynamical:pedestrain")
    with pytest.raises(ParameterError, match="no parameter 'preset'"):
        Candidate("seek:pedestrian")


def test_a_lattice_gets_the_planner_it_needs() -> None:
    sim = Candidate("lattice").build("rimea_6", seed=0)
    assert [type(planner).__name__ for planner in sim.layers.planners] == ["PathPlans"]


def test_a_model_that_cannot_run_a_scene_says_why() -> None:
    assert "vector_field" in Candidate("lattice").why_not("rimea_16")
    assert Candidate("seek").why_not("nist_2_9") == ""
    assert Candidate("lattice").why_not("nist_2_9") == ""
    assert Candidate("seek").why_not("rimea_16") == ""


def test_flocks_are_no_pedestrians() -> None:
    models = verification.pedestrian_models()
    assert {"seek", "collision_free_speed", "dynamical", "dynamical:pedestrian", "lattice"} <= set(models)
    assert {name.partition(":")[0] for name in models} < set(MODELS)
    assert not {"flocking", "sequential_flock"} & set(models)
    assert verification.default_model() in models


# Verdicts ---------------------------------------------------------------------------------------------------------


def outcomes(*passed: bool) -> list[Outcome]:
    return [
        Outcome(passed=each, said=f"seed {seed} {'good' if each else 'bad'}", measured={"number": seed})
        for seed, each in enumerate(passed)
    ]


def test_a_case_passes_if_enough_seeds_do() -> None:
    case = replace(CASES["rimea_1"], share=2 / 3)
    good = verdict_of(case, Candidate("seek"), outcomes(True, False, True))
    assert good.passed
    assert good.outcome == "passed"
    assert good.share == pytest.approx(2 / 3)
    assert good.said == "seed 1 bad (2 of 3 seeds pass)"
    bad = verdict_of(case, Candidate("seek"), outcomes(True, False, False))
    assert bad.failed
    assert bad.outcome == "FAILED"
    assert verdict_of(CASES["rimea_1"], Candidate("seek"), outcomes(True, False, True)).failed


def test_what_does_not_apply_neither_passes_nor_fails() -> None:
    verdict = not_applicable(CASES["rimea_16"], Candidate("lattice"), "no ring")
    assert not verdict.passed
    assert not verdict.failed
    assert verdict.outcome == "not applicable"
    assert verdict.json()["passed"] is None
    assert verdict.json()["share"] is None


def test_plain_data_has_no_infinities() -> None:
    endless = [Outcome(passed=False, said="", measured={"time_s": float("inf"), "all": [float("nan"), 1.0]})]
    data = verdict_of(CASES["rimea_1"], Candidate("seek"), endless).json()
    assert data["measured"] == [{"time_s": None, "all": [None, 1.0]}]
    json.dumps(data, allow_nan=False)


def test_numbers_of_numpy_become_plain_data() -> None:
    measured = {"stuck": np.int64(2), "all": [np.bool_(True), np.float32(0.5)]}
    found = [Outcome(passed=np.bool_(True), said="", measured=measured)]  # type: ignore[arg-type]
    data = json.loads(json.dumps(verdict_of(CASES["rimea_1"], Candidate("seek"), found).json()))
    assert data["passed"] is True
    assert data["measured"] == [{"stuck": 2, "all": [True, 0.5]}]


def test_an_error_of_the_engine_is_a_failure_that_says_so() -> None:
    (verdict,) = verification.run(models=["broken_models:Faulty"], tests=["rimea_1"], seeds=1)
    assert verdict.failed
    assert "no such luck" in verdict.said


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"tests": ["rimea_2"]}, "unknown verification case 'rimea_2'; did you mean"),
        ({"models": ["sek"]}, "no steering model 'sek'; did you mean 'seek'"),
        ({"models": ["tropel.nothing:Here"]}, "cannot import 'tropel.nothing:Here'"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(what: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        next(verification.run(**what))


def test_only_quick_cases_are_run_if_wanted() -> None:
    long = {name for name, case in CASES.items() if case.long}
    assert {"rimea_9", "no_stuck_door"} <= long
    assert not {"rimea_1", "rimea_6"} & long
    every = verification.planned_runs(2)
    assert verification.planned_runs(2, quick=True) == every - 2 * sum(CASES[name].seeds for name in long)
    assert verification.planned_runs(1, ["rimea_1", "rimea_9"], seeds=4, quick=True) == 4
    assert list(verification.run(tests=["rimea_9"], quick=True, workers=2)) == []


# Running ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    """Two cases with two models and two seeds, in two processes, with pictures; and one that a model cannot do."""
    heard: list[tuple[int, str]] = []
    out = tmp_path_factory.mktemp("verify") / "new"
    found = list(
        verification.run(
            models=[None, "lattice"],
            tests=["nist_4_1", "rimea_1"],
            seeds=2,
            out=out,
            workers=2,
            told=lambda done, what: heard.append((done, what)),
        )
    )
    assert heard[-1] == (8, "rimea_1 with lattice")
    return [*found, *verification.run(models=["lattice"], tests=["rimea_16"], seeds=2, out=out)]


def test_run_gives_a_verdict_and_a_picture_for_each_case_and_model(verdicts: list[Verdict]) -> None:
    default = verification.default_model()
    assert [(v.name, v.model, v.default) for v in verdicts] == [
        *((case, model, model == default) for case in ("nist_4_1", "rimea_1") for model in (default, "lattice")),
        ("rimea_16", "lattice", False),
    ]
    for verdict in verdicts[:4]:
        assert verdict.picture is not None
        with Image.open(verdict.picture) as picture:
            assert picture.width == 900
            assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 20
        json.dumps(verdict.json(), allow_nan=False)
    assert verdicts[4].outcome == "not applicable"
    console = Console(width=200, file=io.StringIO())
    console.print(verification.verdict_table(verdicts))
    assert "not applicable" in console.file.getvalue()  # type: ignore[attr-defined]


def test_processes_give_the_same_numbers_as_none(verdicts: list[Verdict]) -> None:
    (again,) = verification.run(models=["lattice"], tests=["nist_4_1"], seeds=2)
    assert again.measured == verdicts[1].measured
    assert again.seeds == (0, 1)


def test_the_page_shows_all_verdicts_and_needs_nothing_else(verdicts: list[Verdict], tmp_path: Path) -> None:
    page = write_page(verdicts, tmp_path / "index.html", note="A <note>.").read_text(encoding="utf-8")
    for verdict in verdicts:
        assert f'<h2 id="{verdict.name}">' in page
        assert verdict.title in page
        assert verdict.source.replace("&", "&amp;") in page
        assert verdict.expected in page
    assert page.count("data:image/png;base64,") == 4
    assert "A &lt;note&gt;." in page
    assert "not applicable" in page
    assert f"{verification.default_model()} (default)" in page
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)


def test_every_case_can_be_drawn_although_nobody_arrives(tmp_path: Path) -> None:
    """A model that stands gives the emptiest data; the small variants of other tests give full ones."""
    quick = ["rimea_1", "antipodal_circle", "rimea_12c", "nist_5_1", "nist_2_9"]
    made = list(verification.run(models=["broken_models:Stander"], tests=quick, seeds=1, out=tmp_path))
    assert all(verdict.picture is not None or not verdict.applies for verdict in made)


# The command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tropel_verify(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda *told: CliRunner().invoke(app, ["verify", "-q", "--workers", "1", *told])


def test_the_command_prints_json_and_ends_well_when_all_criteria_hold(tropel_verify: Any, tmp_path: Path) -> None:
    done = tropel_verify("--test", "rimea_1", "--seeds", "1", "--json")
    assert done.exit_code == 0, done.output
    (verdict,) = json.loads(done.stdout)
    assert verdict["outcome"] == "passed"
    assert verdict["default"] is True
    assert verdict["measured"][0]["time_s"] == pytest.approx(30.08, abs=0.5)
    assert (tmp_path / "out" / "verify" / f"rimea_1-{verification.default_model()}.png").exists()
    assert "rimea_1" in (tmp_path / "out" / "verify" / "index.html").read_text(encoding="utf-8")


def test_the_command_ends_with_1_if_the_default_fails_but_not_if_others_do(
    tropel_verify: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tropel_verify("--model", "broken_models:Sprinter", "--test", "rimea_1", "--seeds", "1", "--out", "o")
    assert others.exit_code == 0, others.output
    assert "FAILED" in others.stdout
    case = replace(
        CASES["rimea_1"], measure=lambda candidate, seed: Outcome(passed=False, said="no"), draw=lambda *_: None
    )
    monkeypatch.setitem(suite.CASES, "rimea_1", case)
    assert tropel_verify("--test", "rimea_1").exit_code == 1


def test_an_interrupted_run_keeps_what_is_done(
    tropel_verify: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(candidate: Candidate, seed: int) -> Outcome:
        raise KeyboardInterrupt

    monkeypatch.setitem(suite.CASES, "rimea_6", replace(CASES["rimea_6"], measure=stop))
    stopped = tropel_verify("--test", "rimea_1", "--test", "rimea_6", "--seeds", "1")
    assert isinstance(stopped.exception, InterruptedRunError)
    page = (tmp_path / "out" / "verify" / "index.html").read_text(encoding="utf-8")
    assert "rimea_1" in page
    assert "rimea_6" not in page
    assert "interrupted" in page


def test_all_means_the_default_and_every_model_for_pedestrians(
    tropel_verify: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []

    def note(**told: Any) -> Iterator[Verdict]:
        heard.append(told["models"])
        return iter(())

    monkeypatch.setattr(verification, "run", note)
    others = [name for name in verification.pedestrian_models() if name != verification.default_model()]
    for told in (["--all"], ["--model", "all"]):
        assert tropel_verify(*told).exit_code == 0
    assert tropel_verify().exit_code == 0
    assert tropel_verify("--model", "lattice").exit_code == 0
    assert heard == [[None, *others], [None, *others], [None], ["lattice"]]


def test_verification_scenes_run_by_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["run", "rimea_6", "-q", "--until", "1", "--no-picture", "--out", str(tmp_path / "o")]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "o" / "summary.json").exists()
    listed = CliRunner().invoke(app, ["list"])
    assert "rimea_12a" in listed.stdout

"""Lower bounds that are true: installs the lowest versions that are allowed, runs the demo and a part of the tests.

`make lowest` does it by name, and `make test` whenever the dependencies in pyproject.toml are not those that were
checked last, which `lowest_versions.json` records. The lowest versions must also have wheels for every Python that the
metadata names, whether or not it is installed here.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("lowest_versions.json")
VENV = ROOT / ".venv-lowest"
#: Together they use every package that tropel depends on.
TESTS = (
    "cli/test_help.py",
    "cli/test_command_line.py",
    "scenario/test_scenario_files.py",
    "recording/test_trajectory_round_trip.py",
    "recording/test_pedpy_reads_trajectories.py",
    "recording/test_people_table.py",
    "pictures/test_run_picture.py",
    "pictures/test_animation.py",
    "pictures/test_mp4.py",
    "planning/fields/test_plan_cache.py",
    "riders/test_whipple_benchmark.py",
    "analysis/test_evacuation_report.py",
    "bench/test_flock_bench.py",
    "bench/test_steering_speed.py",
    "viewer/replay/test_export.py",
    "viewer/test_viewer_server.py",
)


def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def dependency_digest(pyproject: Mapping[str, Any]) -> str:
    """Digest of all that decides which packages are installed."""
    said = [pyproject["build-system"]["requires"]]
    said += [pyproject["project"].get(key) for key in ("requires-python", "dependencies", "optional-dependencies")]
    said.append(_pythons(pyproject))
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def is_checked() -> bool:
    """Whether these very dependencies have been checked."""
    return RECORD.exists() and json.loads(RECORD.read_text())["dependencies"] == dependency_digest(project())


def _pythons(pyproject: Mapping[str, Any]) -> list[str]:
    named = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in pyproject["project"]["classifiers"]
    )
    return [match[1] for match in named if match]


def _run(*command: object, answers: bool = False) -> str:
    """Run a command; its output is shown, or returned where it is an answer."""
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    done = subprocess.run(words, cwd=ROOT, check=False, stdout=subprocess.PIPE if answers else None, text=True)
    if done.returncode:
        raise SystemExit(
            "the lowest versions allowed do not work: raise the bounds in pyproject.toml of what is named above"
        )
    return done.stdout


def _resolve(uv: Path, python: str, *options: str) -> dict[str, str]:
    told = _run(
        *(uv, "pip", "compile", "pyproject.toml", "--extra=dev", "--resolution=lowest-direct", "--no-python-downloads"),
        *("--quiet", "--no-annotate", "--no-header", f"--python-version={python}", *options),
        answers=True,
    )
    lines = (re.match(r"([\w.-]+)(?:\[.*\])?==(\S+)", line) for line in told.splitlines())
    return {line[1]: line[2] for line in lines if line}


def _packages(pyproject: Mapping[str, Any]) -> set[str]:
    """Names of the packages that are asked for, in any extra."""
    tables = [pyproject["project"]["dependencies"], *pyproject["project"]["optional-dependencies"].values()]
    return {re.split(r"[^\w.-]", one)[0].lower() for table in tables for one in table}


def _check_wheels(uv: Path, pyproject: Mapping[str, Any]) -> None:
    """With and without leave to build packages from source, the lowest versions must be the same."""
    packages = _packages(pyproject)
    for python in _pythons(pyproject):
        lowest = _resolve(uv, python)
        built = [
            f"{name} {version}"
            for name, version in _resolve(uv, python, "--only-binary=:all:").items()
            if name in packages and lowest.get(name) != version
        ]
        if built:
            raise SystemExit(
                f"Python {python} has no wheels for the lowest versions allowed, but for {', '.join(built)} and later: "
                "raise the bounds in pyproject.toml, with a marker if only this Python needs it"
            )


def check() -> None:
    _run(sys.executable, "-m", "venv", "--clear", VENV)
    python, uv = VENV / "bin" / "python", VENV / "bin" / "uv"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    pyproject = project()
    _check_wheels(uv, pyproject)
    _run(uv, "pip", "install", "--quiet", "--python", python, "--resolution=lowest-direct", "--editable", ".[dev]")
    _run(VENV / "bin" / "tropel", "demo", "--quiet", "--out", VENV / "demo")
    _run(python, "-m", "pytest", "-n", "auto", "--dist=loadfile", *(f"tests/{name}" for name in TESTS))
    installed = json.loads(_run(uv, "pip", "list", "--python", python, "--format=json", answers=True))
    packages = _packages(pyproject)
    record = {
        "dependencies": dependency_digest(pyproject),
        "python": sys.version.split()[0],
        "versions": {one["name"]: one["version"] for one in installed if one["name"].lower() in packages},
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
    print(f"The lowest versions that pyproject.toml allows work; commit {RECORD.relative_to(ROOT)}, which says so")


if __name__ == "__main__":
    if sys.argv[1:] != ["--if-changed"] or not is_checked():
        check()

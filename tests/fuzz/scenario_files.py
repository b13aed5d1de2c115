"""Scenario files: right ones changed at random, then read, built, run for some steps and looked at."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import re
import shutil
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from tropel.scenario import builtin_names, load_scenario
from tropel.scenario.execute import Outputs, execute

from . import trees
from .bounded_run import BoundedRun, BrokenPromiseError
from .commands import command, left_overs
from .mutations import mutate
from .outcome import Outcome, accepted, finding, of_error
from .toml_text import toml_text

_CASE, _PLAN = "case.toml", "case.json"
_BUILTIN = resources.files("tropel.scenario") / "builtin"
#: Scenes that plan for seconds on large maps.
_LARGE = {"stadium", "maze_large", "flock_columns", "flock_100k"}
_MOST_PEOPLE = 30
#: What is done with some of the runs afterwards.
_AFTERWARDS = {
    "plot": ("plot", "out", "--no-gif", "--quiet"),
    "report": ("report", "out", "--quiet"),
    "measure": ("measure", "out", "--quiet"),
    "export": ("export", "out", "--html", "--quiet"),
    "plan": ("plan", _CASE, "--quiet"),
}
_SHRINKING = 200


class ScenarioFiles:
    name = "scenario"
    seconds = 20.0
    share = 1.0

    def prepare(self, folder: Path) -> None:
        pass

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        scenes = _scenes()
        tree = mutate(chance.choice(scenes), scenes, chance)
        text = toml_text(tree).encode()
        if chance.random() < 0.05:
            text = _damaged_text(text, chance)
        (folder / _CASE).write_bytes(text)
        afterwards = chance.choice((*_AFTERWARDS, "resume", "resume", *[""] * 14))
        (folder / _PLAN).write_text(json.dumps({"afterwards": afterwards}))

    def run(self, folder: Path) -> Outcome:
        _put_files_beside(folder)
        outcome = self._run(folder, json.loads((folder / _PLAN).read_text())["afterwards"])
        if (folder / "ran_a_command").exists():
            return finding("ran a command", said=outcome.said)
        return outcome

    def _run(self, folder: Path, afterwards: str) -> Outcome:
        bounded = BoundedRun()
        try:
            scenario = load_scenario(folder / _CASE)
            _, outputs = execute(scenario, out=folder / "out", threads=1, progress=False, watch=bounded)
            if afterwards == "resume":
                return _resumed(scenario, outputs, bounded)
        except BrokenPromiseError as error:
            return finding(str(error))
        except BaseException as error:
            outcome = of_error(error, (_CASE,))
            halves = [] if outcome.is_finding else left_overs(folder / "out")
            return finding("half-written", " ".join(halves), outcome.said) if halves else outcome
        if afterwards in _AFTERWARDS:
            return command(*_AFTERWARDS[afterwards], names=("out", _CASE))
        return accepted()

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        file = folder / _CASE
        try:
            tree = tomllib.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            return
        left = _SHRINKING
        kept = set()
        while left > 0:
            # The largest parts first: whatever is in them goes with them.
            open_paths = [path for path in trees.paths(tree) if path not in kept]
            if not open_paths:
                break
            path = max(open_paths, key=lambda each: len(repr(trees.at(tree, each))))
            smaller = copy.deepcopy(tree)
            trees.remove(smaller, path)
            file.write_text(toml_text(smaller), encoding="utf-8")
            left -= 1
            if still():
                tree = smaller
            else:
                kept.add(path)
        file.write_text(toml_text(tree), encoding="utf-8")


def _resumed(scenario: Any, outputs: Outputs, bounded: BoundedRun) -> Outcome:
    """Whether five more steps are the same after a resume."""
    sim = bounded.sim
    again = scenario.build(threads=1)
    again.restore(outputs.checkpoint)
    if again.state_hash() != sim.state_hash():
        return finding("other hash", "at the checkpoint")
    for _ in range(5):
        sim.guarded_step()
        again.guarded_step()
    return accepted() if again.state_hash() == sim.state_hash() else finding("other hash", "after a resume")


@functools.cache
def _scenes() -> list[dict[str, Any]]:
    """Small scenes of the fuzzers' own, the example of the README and the built-in ones with few people."""
    texts = [file.read_text() for file in sorted(Path(__file__).with_name("scenarios").glob("*.toml"))]
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    texts += re.findall(r"```toml\n(name = .+?)```", readme, re.DOTALL)
    own = [tomllib.loads(text) for text in texts]
    built_in = [
        tomllib.loads((_BUILTIN / f"{name}.toml").read_text()) for name in builtin_names() if name not in _LARGE
    ]
    for tree in built_in:
        for path in trees.paths(tree):
            if path[-1] == "count":
                trees.put(tree, path, min(trees.at(tree, path), _MOST_PEOPLE))
            elif path[-1] == "positions":
                trees.put(tree, path, trees.at(tree, path)[:_MOST_PEOPLE])
    return own * 4 + built_in


def _put_files_beside(folder: Path) -> None:
    """The files that cases may name: maps, shapes, and what is no file."""
    text = (folder / _CASE).read_bytes()
    for name in ("office.png", "maze_small.map"):
        if name.encode() in text:
            shutil.copyfile(str(_BUILTIN / name), folder / name)
    if b"file" in text or b"map" in text or b"image" in text:
        shutil.copyfile(str(_BUILTIN / "office.png"), folder / "picture.png")
        shutil.copyfile(str(_BUILTIN / "maze_small.map"), folder / "maze.map")
        (folder / "shape.wkt").write_text("POLYGON ((0 0, 12 0, 12 8, 0 8, 0 0))")
        (folder / "shape.geojson").write_text(
            json.dumps({"type": "Polygon", "coordinates": [[[0, 0], [12, 0], [12, 8], [0, 0]]]})
        )
        (folder / "empty.wkt").write_text("")
        if not (folder / "fifo").exists():
            os.mkfifo(folder / "fifo")
            os.symlink("loop", folder / "loop")


def _damaged_text(text: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(text))
    lines = text.split(b"\n")
    return chance.choice(
        (
            text[:place],
            text[:place] + bytes([chance.randrange(256)]) + text[place + 1 :],
            text[:place] + chance.choice((b"\x00", b"\xff\xfe", b"\r", b"[", b'"""', b"[[[[" * 5000)) + text[place:],
            b"\xef\xbb\xbf" + text,
            text.replace(b"\n", b"\r\n"),
            text + chance.choice(lines),
            b"\n".join(chance.sample(lines, len(lines))),
            b"",
        )
    )

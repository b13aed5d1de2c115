"""A damaged cache of compiled kernels: every command must still work, or say in one line what is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tropel._kernels.cache import cache_directory

from .damage import damaged, replace_by_no_file
from .outcome import Outcome, accepted, finding

_PLAN = "case.json"
_SCENE = "room"
_RUN = ("run", f"{_SCENE}.toml", "--out", "run", "--until", "0.5", "--threads", "1", "--no-picture", "--quiet")
_LONGEST_WAIT = 900.0
#: The command line, with a list of all files that are opened meanwhile.
_LISTING = """
import sys
seen = open(sys.argv[1], "w")
sys.addaudithook(lambda event, told: event == "open" and seen.write(f"{told[0]}\\n"))
from tropel.cli import main
del sys.argv[1]
main()
"""


class KernelCache:
    name = "cache"
    seconds = 300.0
    share = 0.2

    def prepare(self, folder: Path) -> None:
        shutil.copyfile(Path(__file__).with_name("scenarios") / f"{_SCENE}.toml", folder / f"{_SCENE}.toml")
        root = cache_directory()
        opened = folder / "opened.txt"
        done = _python(folder, root.parent, "-c", _LISTING, str(opened), *_RUN)
        if done.returncode != 0:
            raise RuntimeError(f"a run with the cache as it is fails: {done.stderr}")
        read = {Path(name) for name in opened.read_text().splitlines()}
        names = sorted(str(path.relative_to(root.parent)) for path in read if root in path.parents and path.is_file())
        if not names:
            raise RuntimeError(f"the run has read nothing of {root}: there is nothing to damage")
        told = {"files": names, "cache": str(root.parent), "hash": _hash(folder), "root": root.name}
        (folder / _PLAN).write_text(json.dumps(told))

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        plan = json.loads((prepared / _PLAN).read_text())
        shutil.copyfile(prepared / f"{_SCENE}.toml", folder / f"{_SCENE}.toml")
        original = Path(plan["cache"]) / plan["root"]
        shutil.copytree(original, folder / "cache" / plan["root"], copy_function=_link)
        broken = chance.sample(plan["files"], k=min(len(plan["files"]), chance.choice((1, 1, 2))))
        for name in broken:
            file = folder / "cache" / name
            data = damaged(file.read_bytes(), chance)
            file.unlink()  # a link: the original stays as it is
            file.write_bytes(data)
            if chance.random() < 0.1:
                replace_by_no_file(file, chance)
        (folder / _PLAN).write_text(json.dumps(plan | {"files": broken}))

    def run(self, folder: Path) -> Outcome:
        plan = json.loads((folder / _PLAN).read_text())
        done = _python(folder, folder / "cache", "-m", "tropel.cli", *_RUN)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        if done.returncode < 0:
            return finding("crash", f"signal {-done.returncode}", done.stderr[-4000:])
        if done.returncode != 0 and ("Traceback" in done.stderr or "error:" not in done.stderr):
            last = done.stderr.strip().splitlines()[-1:] or [""]
            return finding("traceback", last[0].partition(":")[0], done.stderr[-4000:])
        if done.returncode == 0 and _hash(folder) != plan["hash"]:
            return finding("other hash", "with a damaged kernel")
        return accepted()

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        pass


def _python(folder: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_WAIT,
    )


def _hash(folder: Path) -> str:
    return str(json.loads((folder / "run" / "summary.json").read_text())["state_hash"])


def _link(source: str, copy: str) -> None:
    try:
        os.link(source, copy)
    except OSError:
        shutil.copyfile(source, copy)

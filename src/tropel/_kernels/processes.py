"""Processes that compile while this one does: the compiler uses one core, and kernels meet on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

#: Calls a function with each line that it reads. An interrupt is for the process that gave the work, which says stop.
_SCRIPT = """
import importlib, json, signal, sys, warnings
signal.signal(signal.SIGINT, signal.SIG_IGN)
answers, sys.stdout = sys.stdout, sys.stderr
function = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
for line in sys.stdin:
    with warnings.catch_warnings(record=True) as warned:
        done = function(line.rstrip("\\n"))
    print(json.dumps([done, [str(one.message) for one in warned]]), file=answers, flush=True)
"""


class CompilingProcess:
    """A process that calls a function of a module, again and again."""

    def __init__(self, module: str, function: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, module, function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def do(self, what: str) -> tuple[Any, list[str]] | None:
        """What the function returned there and what it warned of; None when the process has failed or is stopped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(what + "\n")
            self._process.stdin.flush()
            done, warned = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):  # also where nothing comes any more
            return None
        return done, warned

    def stop(self) -> None:
        """End the process, whatever it is doing: what it has compiled is on disk, and nothing is left half-written."""
        self._process.kill()
        self._process.wait()

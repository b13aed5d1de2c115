"""Processes that compile alongside this one: the compiler uses one core, and kernels are shared on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

#: Calls a function with each line that it reads. Ctrl-C is left to the parent process, which stops this one.
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
        """What the function returned and its warnings; None if the process has failed or was stopped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(what + "\n")
            self._process.stdin.flush()
            done, warned = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):  # also when the output ends
            return None
        return done, warned

    def stop(self) -> None:
        """Kill the process at any time: what it has compiled is on disk, and nothing is left half-written."""
        self._process.kill()
        self._process.wait()

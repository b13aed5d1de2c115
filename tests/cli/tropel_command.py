"""The command line in a process of its own, as a user meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def tropel(
    *arguments: object, cwd: Path, ok: bool = True, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; unless `ok` is false it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "tropel.cli", *map(str, arguments)],
        cwd=cwd,
        env=os.environ | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if ok:
        assert done.returncode == 0, done.stderr
    return done

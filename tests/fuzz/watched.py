"""A worker process seen from outside: it is asked, waited for, and ended when it takes too much."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .outcome import Outcome, finding, place_in_dump

#: What a case may use [bytes], beside what the engine and its kernels take: resident, as the system counts it.
MEMORY = 4 << 30
#: A worker that waits instead of working may take so many times the seconds of a case by the clock.
_PATIENCE = 6.0
_BEGINNING = 900.0
_TESTS = str(Path(__file__).parents[1])
_HERTZ = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_number = itertools.count()


class Watched:
    """Starts a process when there is none. Seconds are the process's own, so that a busy machine is no hang."""

    def __init__(self, folder: Path, *, warm: bool = True, memory: int = MEMORY) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.warm, self.memory = warm, memory
        self.log = folder / f"worker_{os.getpid()}_{next(_number)}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts = 0

    def prepare(self, fuzzer: str, folder: Path) -> None:
        """Whatever the cases of a fuzzer need; errors are the fuzzer's own."""
        answer = self._ask({"do": "prepare", "fuzzer": fuzzer, "folder": str(folder)}, _BEGINNING)
        if answer:
            raise RuntimeError(f"{fuzzer} cannot be prepared: {answer}\n{self._printed()}")

    def make_and_run(
        self, fuzzer: str, seed: int, number: int, folder: Path, prepared: Path, seconds: float
    ) -> Outcome:
        asked = {"do": "make", "fuzzer": fuzzer, "seed": seed, "number": number}
        return self._outcome(asked | {"folder": str(folder), "prepared": str(prepared)}, seconds)

    def run(self, fuzzer: str, folder: Path, seconds: float) -> Outcome:
        return self._outcome({"do": "run", "fuzzer": fuzzer, "folder": str(folder)}, seconds)

    def close(self) -> None:
        if self.process is not None:
            self._end()
        self.log.unlink(missing_ok=True)

    def _outcome(self, asked: dict[str, Any], seconds: float) -> Outcome:
        answer = self._ask(asked, seconds)
        return answer if isinstance(answer, Outcome) else Outcome(**answer)

    def _ask(self, asked: dict[str, Any], seconds: float) -> Any:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        began, worked = time.monotonic(), self._worked()
        while not select.select([process.stdout], [], [], 0.02)[0]:
            if self._resident() > self.memory:
                return self._ended("memory")
            if self._worked() - worked > seconds or time.monotonic() - began > seconds * _PATIENCE:
                return self._ended("hang")
        line = process.stdout.readline()
        if line:
            return json.loads(line)
        code = process.wait()
        self.process = None
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        printed = self._printed()
        return finding("crash", f"{how} {place_in_dump(printed)}", printed[-4000:])

    def _ended(self, kind: str) -> Outcome:
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        self._end()
        printed = self._printed()
        return finding(kind, place_in_dump(printed), printed[-4000:])

    def _end(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()
        self.process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            paths = [_TESTS, *filter(None, [os.environ.get("PYTHONPATH")])]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", str(self.log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TROPEL_PLAN_CACHE": "off"},
            )
            self.restarts += 1
            if self.warm:
                self._warm_up()
        return self.process

    def _warm_up(self) -> None:
        """A first case that everybody knows: kernels come from the disk now and not while a case is tried."""
        folder = self.log.with_suffix("")
        ready = self.make_and_run("warm", 0, 0, folder, folder, _BEGINNING)
        if ready.is_finding:
            raise RuntimeError(f"scenes that nobody has changed do not run: {ready.said}")

    def _printed(self) -> str:
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _worked(self) -> float:
        """Seconds of processor time; a kernel on two threads works twice as fast by this clock."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text()  # type: ignore[union-attr]
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _HERTZ

    def _resident(self) -> int:
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE  # type: ignore[union-attr]
        except (OSError, IndexError):
            return 0

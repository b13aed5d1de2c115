"""Many cases on several workers: counted, findings sorted into classes, and the shortest of each class kept."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .fuzzers import fuzzer
from .outcome import KINDS, Outcome
from .watched import Watched

#: What depends on the machine's mood is tried twice before it counts.
_TRIED_TWICE = ("hang", "memory")
#: Only cases that are quick are made shorter, each kind for at most so many seconds, and all together.
_QUICK, _SHRINKING, _ALL_SHRINKING = 3.0, 20.0, 120.0


@dataclass
class Class:
    """Findings of one kind at one place, with the shortest case."""

    fuzzer: str
    outcome: Outcome
    case: str
    folder: Path
    size: int
    count: int = 1


@dataclass
class Tally:
    """What came of the cases of a fuzzer."""

    cases: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: tuple[float, str] = (0.0, "")


class Campaign:
    """The same seed gives the same cases, whatever the number of workers; how many are tried depends on time."""

    def __init__(self, seed: int, folder: Path, workers: int = 1) -> None:
        self.seed, self.folder = seed, folder
        self.workers = [Watched(folder / "workers") for _ in range(workers)]
        self.tallies: dict[str, Tally] = {}
        self.classes: dict[tuple[str, str], Class] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()
        for scratch in ("cases", "workers", "prepared"):
            shutil.rmtree(self.folder / scratch, ignore_errors=True)

    def go(
        self,
        name: str,
        *,
        cases: int | None = None,
        seconds: float | None = None,
        first: int = 0,
        told: Callable[[Tally], None] = lambda _: None,
    ) -> None:
        """Try cases of one fuzzer, so many or for so long."""
        self.workers[0].prepare(name, self._prepared(name))
        tally = self.tallies.setdefault(name, Tally())
        numbers = iter(range(first, first + cases) if cases is not None else _endless(first))
        end = None if seconds is None else time.monotonic() + seconds
        failures: list[BaseException] = []

        def work(worker: Watched) -> None:
            try:
                while not failures and (end is None or time.monotonic() < end):
                    with self._lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    self._try(worker, name, number, tally)
                    told(tally)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def shorten(self) -> None:
        """Make the kept cases shorter, those of the worst kinds first."""
        end = time.monotonic() + _ALL_SHRINKING
        for each in self.findings():
            if time.monotonic() < end and each.outcome.kind not in _TRIED_TWICE and each.outcome.seconds < _QUICK:
                self._shorten(each)

    def findings(self) -> list[Class]:
        """The worst first."""
        return sorted(self.classes.values(), key=lambda each: (KINDS.index(each.outcome.kind), -each.count))

    def _try(self, worker: Watched, name: str, number: int, tally: Tally) -> None:
        made = fuzzer(name)
        folder = self.folder / "cases" / f"{name}_{number}"
        outcome = worker.make_and_run(name, self.seed, number, folder, self._prepared(name), made.seconds)
        if outcome.kind in _TRIED_TWICE and (name, outcome.label) not in self.classes:
            outcome = worker.run(name, folder, made.seconds)
        case = f"{name}:{self.seed}:{number}"
        with self._lock:
            tally.cases += 1
            tally.verdicts[outcome.verdict] += 1
            tally.seconds += outcome.seconds
            tally.slowest = max(tally.slowest, (outcome.seconds, case))
            if outcome.is_finding:
                self._keep(name, case, folder, outcome)
        shutil.rmtree(folder, ignore_errors=True)

    def _keep(self, name: str, case: str, folder: Path, outcome: Outcome) -> None:
        size = _size(folder)
        known = self.classes.get((name, outcome.label))
        if known is not None:
            known.count += 1
            if size >= known.size:
                return
            shutil.rmtree(known.folder, ignore_errors=True)
            known.outcome, known.case, known.size = outcome, case, size
        else:
            slug = re.sub(r"[^\w.]+", "_", outcome.label)[:120]
            kept = self.folder / "findings" / name / slug
            shutil.rmtree(kept, ignore_errors=True)
            known = self.classes[name, outcome.label] = Class(name, outcome, case, kept, size)
        shutil.copytree(folder, known.folder, symlinks=True, ignore=_no_pipes)
        text = f"{outcome.label}\ncase {case}: python -m tests.fuzz --case {case}\n\n{outcome.said}\n"
        (known.folder / "finding.txt").write_text(text, encoding="utf-8", errors="replace")

    def _shorten(self, found: Class) -> None:
        worker, made = self.workers[0], fuzzer(found.fuzzer)
        scratch = self.folder / "cases" / "shortened"
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(found.folder, scratch, symlinks=True)
        end = time.monotonic() + _SHRINKING

        def still() -> bool:
            if time.monotonic() > end:
                return False
            for leftover in ("out", "ran_a_command"):
                shutil.rmtree(scratch / leftover, ignore_errors=True)
                (scratch / leftover).unlink(missing_ok=True)
            return worker.run(found.fuzzer, scratch, made.seconds).label == found.outcome.label

        if still():
            made.shrink(scratch, still)
            shutil.rmtree(found.folder)
            shutil.copytree(scratch, found.folder, symlinks=True, ignore=_no_pipes)
        shutil.rmtree(scratch, ignore_errors=True)

    def _prepared(self, name: str) -> Path:
        folder = self.folder / "prepared" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _endless(first: int) -> Iterator[int]:
    while True:
        yield first
        first += 1


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("case*") if path.is_file())


def _no_pipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_fifo()]

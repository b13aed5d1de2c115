"""The suite: all cases, and running them with several models and seeds, over processes if wanted."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tropel.errors import ParameterError, TropelError, suggest
from tropel.foundation.arguments import PositiveCount, checked_arguments
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import draw_verdict
from tropel.verification.verdict import Verdict, not_applicable, verdict_of

_MODULES = ("walking", "start_times", "corner", "demographics", "exits", "bottlenecks", "doors", "diagrams", "meeting",
            "groups")  # fmt: skip


def _in_order(case: Case) -> tuple[str, list[int], str]:
    """RiMEA first, then NIST, each by number, then the others by name."""
    head, _, number = case.name.partition("_")
    digits = [int("".join(c for c in part if c.isdigit()) or 0) for part in number.split("_")]
    rank = {"rimea": "0", "nist": "1"}.get(head, "2")
    return rank, digits if rank != "2" else [], case.name


def _all_cases() -> dict[str, Case]:
    found = [case for name in _MODULES for case in importlib.import_module(f"tropel.verification.cases.{name}").CASES]
    return {case.name: case for case in sorted(found, key=_in_order)}


CASES = _all_cases()


def names() -> list[str]:
    """Names of all cases, in the order in which they run."""
    return list(CASES)


@dataclass(frozen=True)
class _Job:
    """A case with a model; its seeds are run one by one."""

    case: Case
    candidate: Candidate
    seeds: int


@checked_arguments
def run(
    *,
    models: Sequence[str | None] = (None,),
    tests: Sequence[str] = (),
    seeds: PositiveCount | None = None,
    quick: bool = False,
    out: Path | None = None,
    workers: PositiveCount = 1,
    told: Callable[[int, str], None] | None = None,
) -> Iterator[Verdict]:
    """Run cases (all by default, or only the quick ones) with steering models by name; None is what scenes get.

    `seeds` replaces the number of seeds of each case. With `out`, each case draws a picture into that folder. With
    several `workers`, seeds are run in processes. `told(done, what)` is called as seeds are done.
    """
    for test in tests:
        if test not in CASES:
            raise ParameterError(f"unknown verification case '{test}'; {suggest(test, CASES)}")
    candidates = [Candidate(name) for name in models]
    chosen = [CASES[name] for name in tests or names() if not (quick and CASES[name].long)]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    jobs = [_Job(case, each, seeds or case.seeds) for case in chosen for each in candidates]
    pool = None if workers == 1 or not jobs else _pool(min(workers, sum(job.seeds for job in jobs)))
    with pool or nullcontext():
        try:
            yield from _verdicts(jobs, pool, out, told)
        except BaseException:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            raise


def planned_runs(models: int, tests: Sequence[str] = (), *, seeds: int | None = None, quick: bool = False) -> int:
    """How many seeds `run` will run."""
    chosen = [CASES[name] for name in tests or names() if name in CASES and not (quick and CASES[name].long)]
    return models * sum(seeds or case.seeds for case in chosen)


def _pool(count: int) -> ProcessPoolExecutor:
    # Spawned, not forked: a forked child would inherit locks that threads of the parent hold.
    return ProcessPoolExecutor(max_workers=count, mp_context=multiprocessing.get_context("spawn"))


def _verdicts(
    jobs: Sequence[_Job], pool: ProcessPoolExecutor | None, out: Path | None, told: Callable[[int, str], None] | None
) -> Iterator[Verdict]:
    reasons = {job: job.candidate.why_not(job.case.name) for job in jobs}
    coming: dict[_Job, list[Future[Outcome]]] = {}
    if pool is not None:
        for job in jobs:
            if not reasons[job]:
                coming[job] = [pool.submit(measure, job.case.name, job.candidate, seed) for seed in range(job.seeds)]
    done = 0
    for job in jobs:
        what = f"{job.case.name} with {job.candidate.label}"
        outcomes: list[Outcome] = []
        for seed in range(0 if reasons[job] else job.seeds):
            if told is not None:
                told(done, what)
            outcomes.append(
                coming[job][seed].result() if job in coming else measure(job.case.name, job.candidate, seed)
            )
            done += 1
        done += job.seeds if reasons[job] else 0
        if told is not None:
            told(done, what)
        yield _judged(job, reasons[job], outcomes, out)


def measure(case: str, candidate: Candidate, seed: int) -> Outcome:
    """One seed of a case; an error of the engine is a failure that says so."""
    try:
        return CASES[case].measure(candidate, seed)
    except TropelError as error:
        return Outcome(passed=False, said=f"error: {error}", measured={"error": str(error)})


def _judged(job: _Job, reason: str, outcomes: Sequence[Outcome], out: Path | None) -> Verdict:
    if reason:
        return not_applicable(job.case, job.candidate, reason)
    verdict = verdict_of(job.case, job.candidate, outcomes)
    drawable = [outcome for outcome in outcomes if "error" not in outcome.measured]
    if out is None or not drawable:
        return verdict
    picture = out / f"{job.case.name}-{job.candidate.label}.png"
    return replace(verdict, picture=draw_verdict(job.case, verdict, drawable, picture))

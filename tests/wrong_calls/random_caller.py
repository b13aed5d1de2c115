"""A random caller: public calls with one argument replaced by a value that is nasty, in processes of their own.

    python tests/wrong_calls/random_caller.py --calls 2500 --seed 0

Every call must end in a TropelError that says what was wrong, or work. Everything else is a finding: another exception,
a crash of the interpreter, a call that takes too long or too much memory, and what is accepted and breaks the run in
its first steps. A boolean or nan that is taken for a number is one too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

#: Memory that a worker may use [bytes]; kernels alone map two gigabytes.
_MEMORY = 8 << 30
#: Seconds that one call may take, and those after which a worker that does not answer is ended.
_CALL_SECONDS, _LOST_SECONDS = 20, 90


@dataclass(frozen=True)
class Wrong:
    """One call: which argument is replaced by what, as a whole or somewhere inside of it."""

    call: str
    argument: str
    value: str
    inside: int | None  #: seed for where inside; None for the whole argument

    def __str__(self) -> str:
        return f"{self.call}({self.argument}{'' if self.inside is None else '[…]'} = {self.value})"


@dataclass(frozen=True)
class Outcome:
    wrong: Wrong
    kind: str
    said: str

    @property
    def is_finding(self) -> bool:
        return self.kind not in ("refused", "accepted", "refused later")


def draw_calls(count: int, seed: int) -> list[Wrong]:
    """So many different calls; the same for the same seed."""
    from nasty_values import VALUES, has_items
    from public_calls import CALLS, Bench

    draw = random.Random(seed)
    every: list[Wrong] = []
    bench = Bench()
    with tempfile.TemporaryDirectory() as folder:
        Bench.folder = Path(folder)
        for name, call in CALLS.items():
            for argument, given in call.base(bench).items():
                every += [Wrong(name, argument, value, None) for value in VALUES]
                if has_items(given):
                    every += [Wrong(name, argument, value, draw.randrange(1 << 30)) for value in VALUES]
    Bench.recorded = None
    draw.shuffle(every)
    return every[:count] if count else every


# In the worker ------------------------------------------------------------------------------------------------------


class _TooLong(BaseException):
    pass


def _too_long(signum: int, frame: Any) -> None:
    raise _TooLong


def try_call(wrong: Wrong) -> Outcome:
    """Make the call, and what follows it."""
    from nasty_values import NO_NUMBERS, VALUES, spoiled
    from public_calls import CALLS, Bench

    from tropel.errors import TropelError
    from tropel.testing import ContractViolation

    bench = Bench()
    call = CALLS[wrong.call]
    base = call.base(bench)
    function = call.function(bench)
    inside = None if wrong.inside is None else random.Random(wrong.inside)
    arguments = spoiled(base, wrong.argument, VALUES[wrong.value](), inside)
    given = base[wrong.argument]
    wants_number = isinstance(given, Real) and not isinstance(given, bool)
    accepted = False
    signal.alarm(_CALL_SECONDS)
    try:
        made = function(**arguments)
        accepted = True
        call.then(bench, made)
    except (TropelError, ContractViolation) as error:
        return Outcome(wrong, "refused later" if accepted else "refused", f"{type(error).__name__}: {error}")
    except _TooLong:
        return Outcome(wrong, "too long", _where(sys.exc_info()[2]))
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:160]}{_where(error.__traceback__)}"
        return Outcome(wrong, "broke later" if accepted else "another error", text)
    finally:
        signal.alarm(0)
    taken = inside is None and wants_number and wrong.value in NO_NUMBERS
    return Outcome(wrong, "taken for a number" if taken else "accepted", "")


def _where(trace: Any) -> str:
    frames = [f for f in traceback.extract_tb(trace) if "/tropel/" in f.filename]
    return f"  [{Path(frames[-1].filename).name}:{frames[-1].lineno}]" if frames else ""


def work() -> None:
    """Read calls from standard input, one a line, and answer each with a line."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what calls print is no answer
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, _too_long)
    warnings.simplefilter("ignore")
    import numpy as np
    from public_calls import Bench

    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as folder:
        Bench.folder = Path(folder)
        os.chdir(folder)
        for line in sys.stdin:
            outcome = try_call(Wrong(**json.loads(line)))
            answers.write(json.dumps({"kind": outcome.kind, "said": outcome.said}) + "\n")


# In the caller ------------------------------------------------------------------------------------------------------


def outcomes(calls: list[Wrong]) -> Iterator[Outcome]:
    """Make the calls in worker processes, one after the other; a worker that dies is followed by another."""
    waiting = list(calls)
    while waiting:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, bufsize=1,
        )  # fmt: skip
        try:
            while waiting:
                wrong = waiting.pop(0)
                answer = _asked(worker, wrong)
                if answer is None:
                    kind = "too long" if worker.poll() is None else f"crash ({worker.returncode})"
                    yield Outcome(wrong, kind, "the worker did not answer")
                    break
                yield Outcome(wrong, answer["kind"], answer["said"])
        finally:
            worker.kill()
            worker.wait()


def _asked(worker: subprocess.Popen[str], wrong: Wrong) -> dict[str, str] | None:
    import select

    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(json.dumps(wrong.__dict__) + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return None
    ready, _, _ = select.select([worker.stdout], [], [], _LOST_SECONDS)
    line = worker.stdout.readline() if ready else ""
    if not line:
        if ready:
            worker.wait()
        return None
    answer: dict[str, str] = json.loads(line)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2500, help="0 for all there are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="calls whose name begins so")
    parser.add_argument("--all", action="store_true", help="show every outcome, not only findings")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.work:
        work()
        return
    counts: Counter[str] = Counter()
    for outcome in outcomes([c for c in draw_calls(told.calls, told.seed) if c.call.startswith(told.only)]):
        counts[outcome.kind] += 1
        if told.all or outcome.is_finding:
            print(f"{outcome.kind:<20} {outcome.wrong}: {outcome.said}", flush=True)
    print(f"{sum(counts.values())} calls:", ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    sys.exit(any(Outcome(Wrong("", "", "", None), kind, "").is_finding for kind in counts))


if __name__ == "__main__":
    main()

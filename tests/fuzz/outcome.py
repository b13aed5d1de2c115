"""What became of a case, and how errors are told apart."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import Path

import tropel
from tropel.errors import ModelError, TropelError

ACCEPTED, REFUSED, FINDING = "accepted", "refused", "finding"

#: Kinds of findings, the worst first. A class of findings is a kind and a place in the sources.
KINDS = (
    "ran a command",
    "crash",
    "hang",
    "memory",
    "wall crossed",
    "other hash",
    "lost",
    "nan",
    "traceback",
    "model error",
    "taken for a number",
    "half-written",
    "no file named",
    "many lines",
    "fuzzer",  # a case that could not be made: a fault of the fuzzer
)

#: A line of an error longer than this helps nobody.
_LONGEST_LINE = 2000
_SOURCES = str(Path(tropel.__file__).parent)


@dataclass(frozen=True)
class Outcome:
    """`kind` and `where` are the class of a finding; `said` is the message or the traceback."""

    verdict: str
    kind: str = ""
    where: str = ""
    said: str = ""
    seconds: float = 0.0

    @property
    def is_finding(self) -> bool:
        return self.verdict == FINDING

    @property
    def label(self) -> str:
        return f"{self.kind}: {self.where}" if self.where else self.kind


def accepted() -> Outcome:
    return Outcome(ACCEPTED)


def finding(kind: str, where: str = "", said: str = "") -> Outcome:
    return Outcome(FINDING, kind, where, said)


def of_error(error: BaseException, names: tuple[str, ...]) -> Outcome:
    """What an error that ends a case means: `names` are those of files, of which each line of a refusal has one."""
    text = "".join(traceback.format_exception(error))
    if isinstance(error, MemoryError):
        return finding("memory", _place(error), text)
    if not isinstance(error, TropelError):
        return finding("traceback", f"{type(error).__name__} {_place(error)}", text)
    if isinstance(error, ModelError) and not isinstance(error.__cause__, TropelError | None):
        return finding("model error", f"{type(error.__cause__).__name__} {_place(error.__cause__)}", text)
    lines = str(error).split("\n")
    if any(not any(name in line for name in names) for line in lines):
        kind = "many lines" if any(name in lines[0] for name in names) else "no file named"
        return finding(kind, f"{type(error).__name__} {_place(error)}", text)
    if max(map(len, lines)) > _LONGEST_LINE:
        return finding("many lines", f"{type(error).__name__} {_place(error)}", text[:10_000])
    return Outcome(REFUSED, said=str(error))


def _place(error: BaseException) -> str:
    """The innermost function of tropel that was running."""
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_SOURCES)]
    if not inside:
        return "outside of tropel"
    return f"in {inside[-1].filename.removeprefix(_SOURCES + '/')}:{inside[-1].name}"


def place_in_dump(dump: str) -> str:
    """The same from what `faulthandler` has written: the thread that was doing tropel's work, innermost first."""
    found = re.search(rf'File "{re.escape(_SOURCES)}/([^"]+)", line \d+ in (\S+)', dump)
    return f"in {found[1]}:{found[2]}" if found else "outside of tropel"

"""How much memory this process may use, so that data that would not fit is refused before it is created.

Three limits apply: the machine's free memory, the limits of the control groups that the process runs in (containers),
and the limit on its address space (`ulimit -v`). A process that exceeds one of the first two is killed without a
message.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from tropel.errors import TropelError

_GIB = 2.0**30
#: The share of the free memory that one thing may take: estimates are rough, and others need memory too.
_SHARE = 0.75
#: Smaller amounts are not checked: the check would take longer than the allocation [bytes].
_UNASKED = 2.0**20


def memory_limit() -> float:
    """The most that this process may ever have [bytes]; constant during a run, whatever other processes use."""
    machine = float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    return min(machine, _address_space()[0], *(most for most, _ in _control_groups()))


def memory_available() -> float:
    """How much more memory this process can take now [bytes]."""
    limit, used = _address_space()
    groups = [most - used for most, used in _control_groups()]
    return max(min(_free_in_machine(), limit - used, *groups, math.inf), 0.0)


def require_memory(needed: float, what: str, remedy: str, *, error: type[TropelError]) -> None:
    """Raise an error if this many bytes would not fit; the message begins with `what` and ends with `remedy`."""
    if needed <= _UNASKED:
        return
    room = _SHARE * memory_available()
    if not needed <= room:
        raise error(
            f"{what} would need {in_gib(needed)} of memory, but only {in_gib(room)} may be used here "
            f"({_SHARE:.0%} of what is free); {remedy}"
        )


def times_too_large(needed: float) -> float:
    """By what factor something exceeds the memory it may take."""
    return needed / max(_SHARE * memory_available(), 1.0)


def in_gib(amount: float) -> str:
    return f"{amount / _GIB:.3g} GiB"


def _free_in_machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except OSError:
        pass  # not Linux: the machine's total memory is the best estimate
    return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))


def _address_space() -> tuple[float, float]:
    """The limit on this process's address space, and how much of it is used."""
    try:
        import resource
    except ImportError:  # not a Unix
        return math.inf, 0.0
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf, 0.0
    try:
        pages = float(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return float(limit), 0.0
    return float(limit), pages * float(os.sysconf("SC_PAGE_SIZE"))


def _control_groups(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> Iterator[tuple[float, float]]:
    """Limit and usage of every control group around this process that has a limit (both versions of them)."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, names = (root / "memory", _FIRST_VERSION) if controllers else (root, _SECOND_VERSION)
        own = top / path.lstrip("/")
        for folder in (own, *own.parents):
            if not folder.is_relative_to(top):
                break
            limit, used = _number_in(folder / names[0]), _number_in(folder / names[1])
            if limit is not None and used is not None and limit < _NO_LIMIT:
                # File pages that have not been used for a while are released when memory is short.
                yield limit, max(used - _cached_files(folder / "memory.stat", names[2]), 0.0)


#: Files with the limit and the usage, and the line of `memory.stat` about file pages.
_FIRST_VERSION = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND_VERSION = ("memory.max", "memory.current", "inactive_file")
#: The first version expresses "no limit" by a number at least this large.
_NO_LIMIT = 2.0**62


def _number_in(file: Path) -> float | None:
    try:
        text = file.read_text(encoding="ascii").strip()
        return None if text == "max" else float(text)
    except (OSError, ValueError):
        return None


def _cached_files(statistics: Path, name: str) -> float:
    try:
        lines = statistics.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0.0)

"""Promises that planners and steering models share; each is a function that raises if it is broken."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import threads_restored
from tropel.contracts import Layer, Rows
from tropel.run.deciding import what_is_wrong
from tropel.simulation import Simulation
from tropel.testing.situations import Maker, Situation
from tropel.testing.violation import (
    Arrays,
    Case,
    Difference,
    bit_difference,
    copied,
    rounding_difference,
    row_of,
)

#: A race condition may stay hidden once or twice.
_THREADED_CALLS = 4
_STEPS_BEFORE_STORING = 7
_STEPS_AFTER_STORING = 7


class Call(Protocol):
    """One call of a layer's method: checks what that call alone shows, returns the rows of `members`."""

    def __call__(self, case: Case, layer: Any, moment: Situation, members: Rows) -> dict[str, NDArray[Any]]: ...


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A layer under check: how to make it, how to call it, and its name in messages."""

    case: Case
    make: Maker
    calling: Call

    def where(self, detail: str) -> Subject:
        return replace(self, case=self.case.where(detail))

    def prepared(self, moment: Situation) -> Any:
        with self.case.runs():
            return moment.prepared(self.make)

    def call(self, layer: Any, moment: Situation, members: Rows) -> dict[str, NDArray[Any]]:
        return self.calling(self.case, layer, moment, members)

    def fresh_call(self, moment: Situation, members: Rows) -> dict[str, NDArray[Any]]:
        return self.call(self.prepared(moment), moment, members)


def most(moment: Situation) -> Rows:
    """Two rows out of three: the others belong to another layer."""
    rows = np.arange(len(moment.state), dtype=np.int64)
    return rows[rows % 3 != 1]


def foreign_marks(array: NDArray[Any]) -> NDArray[Any]:
    """Values that no layer would write by chance, one per entry of `array`."""
    marks = 7.0e5 + 0.25 + np.arange(array.size).reshape(array.shape)
    return (marks % 100).astype(array.dtype) if array.dtype.kind in "iub" else marks.astype(array.dtype)


def strangers(members: Rows, count: int) -> Rows:
    return np.setdiff1d(np.arange(count, dtype=np.int64), members)


def check_strangers(case: Case, moment: Situation, others: Rows, *, marks: Arrays, now: Arrays) -> None:
    """Check that the rows `others` of the output still have their marks."""
    before, after = ({name: array[others] for name, array in side.items()} for side in (marks, now))
    _demand(
        case,
        moment,
        others,
        bit_difference(before, after),
        "it writes only the rows of its members",
        "that agent is not a member: write only the rows moment.members of the arrays in out",
    )


def check_members(case: Case, members: Rows, now: Rows) -> None:
    if not np.array_equal(members, now):
        case.broken("inputs are not changed", "members was changed", "work on a copy")


def check_inputs(case: Case, moment: Situation, before: Arrays) -> None:
    difference = bit_difference(before, moment.inputs())
    if difference is not None:
        about_agents = difference.name.startswith(("state.", "directions"))
        case.broken(
            "inputs are not changed",
            difference.told(moment.state if about_agents else None),
            "work on a copy; the state of all agents is frozen during the step",
        )


def check_returns_nothing(case: Case, returned: Any, where: str) -> None:
    if returned is not None:
        case.broken(
            f"results are written into {where}",
            f"it returned {type(returned).__name__}, which is ignored",
            f"write {where}[members] = … and return nothing",
        )


def check_finite(case: Case, moment: Situation, members: Rows, name: str, rows: NDArray[Any]) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        row = int(members[bad[0]])
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        case.broken(
            "results are finite numbers",
            f"{name} of row {row} (agent {int(moment.state.id[row])}) is {rows[bad[0]].tolist()}{more}",
            "look for a division by a distance, speed or length of zero",
        )


def check_written(
    case: Case,
    moment: Situation,
    members: Rows,
    *,
    written: Callable[[], dict[str, NDArray[Any]]],
    call: Callable[[Rows], Any],
    main: str,
) -> None:
    """Call a layer that writes into arrays by name: only rows of members, into the very arrays, and nothing else.

    `written` returns the arrays as they are now, and `main` is the one that results belong into.
    """
    buffers = dict(written())
    others = strangers(members, len(moment.state))
    marks = {name: foreign_marks(array) for name, array in buffers.items()}
    for name, array in buffers.items():
        array[others] = marks[name][others]
    given = copied(moment.inputs())
    rows = members.copy()
    with case.runs():
        returned = call(rows)
    check_returns_nothing(case, returned, main)
    check_inputs(case, moment, given)
    check_members(case, members, rows)
    now = written()
    for name in sorted(set(buffers) | set(now)):
        if now.get(name) is not buffers.get(name):
            case.broken(
                "results are written into the arrays of out",
                f"{name} is a different array than before",
                f"write {name}[moment.members] = …, and declare what it sets (sets=…) or remembers (memory=…)",
            )
    check_strangers(case, moment, others, marks=marks, now=buffers)


def named_arrays(*told: Any) -> dict[str, NDArray[Any]]:
    """The arrays of `out.memory` and others like it, by what a layer calls them: pairs of a name and a dict."""
    return {f"out.{of}['{name}']": each for of, arrays in zip(told[::2], told[1::2], strict=True)
            for name, each in arrays.items()}  # fmt: skip


def check_attributes(case: Case, moment: Situation, members: Rows, attributes: Arrays) -> None:
    """Check that attributes that a layer has set are allowed."""
    for name, values in attributes.items():
        wrong = what_is_wrong(name, values[members], moment.state, moment.world)
        if wrong is not None:
            row, why = wrong
            case.broken(
                "attributes that it sets are allowed",
                f"{name} of {row_of(moment.state, int(members[row]))} is {why}",
                "keep them within the limits of the column",
            )


def check_purity(subject: Subject, moment: Situation) -> None:
    """The same call from the same state() gives the same bits: again, after other calls, and in a fresh layer."""
    members = most(moment)
    layer, other = subject.prepared(moment), subject.prepared(moment)
    stored = stored_state(subject.case, layer)
    first = subject.call(layer, moment, members)
    layer.restore(copied(stored))
    again = subject.call(layer, moment, members)
    subject.call(layer, moment.elsewhere(), members)
    layer.restore(copied(stored))
    later = subject.call(layer, moment, members)
    other.restore(copied(stored))
    fresh = subject.call(other, moment, members)
    for result in (again, later, fresh):
        _demand(
            subject.case,
            moment,
            members,
            bit_difference(first, result),
            "the same call gives the same bits",
            "depend only on the inputs and on state(), and draw random numbers from tropel's counter-based ones",
        )


def check_halves(subject: Subject, moment: Situation) -> None:
    """Members in two calls get the same results as in one."""
    members = most(moment)
    whole = subject.fresh_call(moment, members)
    halves = [np.ascontiguousarray(members[k::2]) for k in range(2)]
    parts = [subject.fresh_call(moment, half) for half in halves]
    together = {name: np.empty_like(array) for name, array in whole.items()}
    for k, part in enumerate(parts):
        for name, array in part.items():
            together[name][k::2] = array
    _demand(
        subject.case,
        moment,
        members,
        bit_difference(whole, together),
        "an agent's result does not depend on the other members",
        "read others from state and near, never from out or from members",
    )


def check_order(subject: Subject, moment: Situation, *, ids_matter: bool) -> None:
    """Another numbering of the same agents gives each agent the same result, up to the rounding of sums."""
    case, count = subject.case, len(moment.state)
    members = most(moment)
    before = subject.fresh_call(moment, members)
    # Agents that no other senses get new ids after all others: the rows of the others change, but not their ids and
    # neighbours.
    unseen = moment.unseen_rows()
    stay = np.setdiff1d(np.arange(count, dtype=np.int64), unseen[: max(len(unseen) // 2, 1)])
    gone = np.setdiff1d(np.arange(count, dtype=np.int64), stay)
    kept = np.isin(members, stay)
    if len(gone) and kept.any():
        ids = np.concatenate([moment.state.id[stay], moment.state.id.max() + 1 + np.arange(len(gone))])
        moved = moment.taking(np.concatenate([stay, gone]), ids=ids)
        after = subject.fresh_call(moved, np.searchsorted(stay, members[kept]))
        _demand(
            case,
            moment,
            members[kept],
            rounding_difference({name: array[kept] for name, array in before.items()}, after),
            "an agent's result does not depend on its row number",
            "use state.id to tell agents apart, and rows only to index arrays",
        )
    if ids_matter:
        return
    order = np.random.default_rng(moment.seed).permutation(count)
    shuffled = moment.taking(order, ids=moment.state.id)
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    rows = place[members]
    sort = np.argsort(rows)
    after = subject.fresh_call(shuffled, rows[sort])
    unsorted = {name: np.empty_like(array) for name, array in after.items()}
    for name, array in after.items():
        unsorted[name][sort] = array
    _demand(
        case,
        moment,
        members,
        rounding_difference(before, unsorted),
        "agents numbered in another order get the same results",
        "read only the frozen state, never what was written for others in this step; if the layer draws random "
        "numbers by id or breaks ties by id, check it with ids_matter=True",
    )


def check_threads(subject: Subject, moment: Situation) -> None:
    """One thread and several give the same bits."""
    members = most(moment)
    with threads_restored(1):
        alone = subject.fresh_call(moment, members)
    available = thread_counts(subject.case)
    for count in (count for count in available for _ in range(_THREADED_CALLS)):
        with threads_restored(count):
            together = subject.fresh_call(moment, members)
        _demand(
            subject.case,
            moment,
            members,
            bit_difference(alone, together),
            f"1 thread and {count} threads give the same bits",
            "in a parallel loop write only the row of the iteration, and sum nothing across iterations",
        )


def check_resumes(case: Case, build: Callable[[], Simulation], index: Callable[[Simulation], Any]) -> None:
    """A restored simulation with fresh layers continues like one never stopped. `index` finds the checked layer."""
    with tempfile.TemporaryDirectory(prefix="tropel-check-") as directory:
        path = Path(directory) / "checkpoint"
        with case.runs():
            going_on = build()
            for _ in range(_STEPS_BEFORE_STORING):
                going_on.step()
            stored_state(case, index(going_on))
            going_on.save(path)
            resumed = build()
            resumed.restore(path)
            for _ in range(_STEPS_AFTER_STORING):
                going_on.step()
                resumed.step()
        difference = bit_difference(_everything(going_on), _everything(resumed))
        if difference is not None:
            by_row = difference.name.startswith("agents/") and len(going_on.agents) == len(resumed.agents)
            told = difference.told(going_on.agents if by_row else None)
            case.broken(
                "a resumed run equals the run that was never stopped",
                f"{_STEPS_AFTER_STORING} steps after a checkpoint {told}",
                "return everything that the layer remembers between steps from state() and restore it in restore(), "
                "or keep it in memory columns",
            )


def stored_state(case: Case, layer: Layer) -> dict[str, NDArray[Any]]:
    """What state() returns, checked and copied."""
    stored = layer.state()
    for name, array in stored.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray) or array.dtype.hasobject:
            case.broken(
                "state() is a dict of NumPy arrays by name",
                f"{name!r} is {array.dtype if isinstance(array, np.ndarray) else type(array).__name__}",
                "store numbers, e.g. np.array(value)",
            )
    if stored and type(layer).restore is Layer.restore:
        case.broken(
            "what state() returns can be restored",
            "there is no method restore(stored)",
            "write one that takes that dict",
        )
    return copied(stored)


def thread_counts(case: Case) -> list[int]:
    """Numbers of threads other than one to try here."""
    available = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if available == 1:
        warnings.warn(
            f"{case.layer}: this process has one thread, so independence of the number of threads is not checked; "
            "set NUMBA_NUM_THREADS=2",
            stacklevel=4,
        )
    return sorted({2, available} - {1}) if available > 1 else []


def _everything(sim: Simulation) -> dict[str, NDArray[Any]]:
    memories = {
        f"{type(layer).__name__}.state()['{name}']": array
        for layer in sim.all_layers()
        for name, array in layer.state().items()
    }
    return sim.population.stored() | memories


def _demand(
    case: Case, moment: Situation, members: Rows, difference: Difference | None, promise: str, remedy: str
) -> None:
    if difference is not None:
        if difference.row is not None:
            difference = Difference(difference.name, int(members[difference.row]), difference.before, difference.after)
        case.broken(promise, difference.told(moment.state), remedy)

"""A broken promise, and the comparisons that find one: bit by bit, and up to rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState

Arrays = Mapping[str, NDArray[Any]]

#: What another order of summation may change, relative to values of about one.
ROUNDING = 1e-9


class ContractViolation(AssertionError):  # noqa: N818 - a failed assertion about the user's code, not an error of tropel
    """A layer does not keep a promise of its contract."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Which layer is checked in which scene, for messages."""

    layer: str
    method: str
    scene: str

    def broken(self, promise: str, how: str, remedy: str, *, cause: BaseException | None = None) -> NoReturn:
        """Raise the violation: what was promised, what happened instead, what to do."""
        message = f"{self.layer}.{self.method}() in {self.scene}: {promise}, but {how}; {remedy}"
        raise ContractViolation(message) from cause

    def where(self, detail: str) -> Case:
        """The same layer in a variation of the scene."""
        return replace(self, scene=f"{self.scene}, {detail}")

    @contextmanager
    def runs(self) -> Iterator[None]:
        """Turn whatever the layer's code raises into a violation that tells where it happened."""
        try:
            yield
        except (ContractViolation, MemoryError):
            raise
        except Exception as error:
            self.broken(
                "it must work there",
                f"it raised {type(error).__name__}: {error}",
                "if it does not support that, name the dimensions it supports (dims=(2,)) or give a world and agents",
                cause=error,
            )


@dataclass(frozen=True)
class Difference:
    """The first entry in which two arrays differ."""

    name: str
    row: int | None  #: None if the arrays differ as a whole, or are single values
    before: Any
    after: Any

    def told(self, state: AgentState | None = None) -> str:
        """Where it is; `state` tells which agent is in the row."""
        where = self.name
        if self.row is not None:
            where += f" of {row_of(state, self.row)}" if state is not None else f", row {self.row},"
        return f"{where} was {self.before} and is {self.after}"


def row_of(state: AgentState, row: int) -> str:
    return f"row {row} (agent {int(state.id[row])})"


def copied(arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {name: np.array(array) for name, array in arrays.items()}


def bit_difference(before: Arrays, after: Arrays) -> Difference | None:
    """The first difference in names, types, shapes or bits."""
    for name in sorted(set(before) | set(after)):
        if name not in before or name not in after:
            return Difference(name, None, *("there" if name in side else "absent" for side in (before, after)))
        a, b = np.asarray(before[name]), np.asarray(after[name])
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return Difference(name, None, f"{a.dtype} of shape {a.shape}", f"{b.dtype} of shape {b.shape}")
        if a.tobytes() == b.tobytes():
            continue
        if a.ndim == 0:
            return Difference(name, None, a.item(), b.item())
        width = a.dtype.itemsize
        bits_a, bits_b = (np.frombuffer(x.tobytes(), dtype=np.uint8).reshape(len(a), -1, width) for x in (a, b))
        row = int(np.flatnonzero((bits_a != bits_b).any(axis=(1, 2)))[0])
        return Difference(name, row, _shown(a[row]), _shown(b[row]))
    return None


def rounding_difference(before: Arrays, after: Arrays) -> Difference | None:
    """The first row that differs by more than another order of summation explains."""
    for name in sorted(before):
        a, b = np.asarray(before[name]), np.asarray(after[name])
        if not np.issubdtype(a.dtype, np.floating):
            apart = a != b
        else:
            near = np.abs(a - b) <= ROUNDING * (1.0 + np.abs(a))
            # Infinities and NaN in memory columns are fine if both have them.
            apart = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        if apart.any():
            row = int(np.argwhere(apart)[0, 0])
            return Difference(name, row, _shown(a[row]), _shown(b[row]))
    return None


def _shown(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value

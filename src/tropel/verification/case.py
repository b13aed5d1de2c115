"""A case: a built-in scene, what is measured in it, the criterion, and the picture that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tropel.scenario import load_builtin
from tropel.verification.candidate import Candidate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one seed gave."""

    passed: bool
    said: str  #: the result, in a sentence
    measured: dict[str, Any] = field(default_factory=dict)  #: plain data, names with units
    drawn: Any = None  #: what the picture needs besides; goes from process to process


Measure = Callable[[Candidate, int], Outcome]
Draw = Callable[["Axes", Sequence[Outcome]], None]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case of the suite. Its title and source are those of the scene of the same name."""

    name: str
    expected: str  #: the criterion in a few words, with units
    criterion: str  #: the criterion in full, and why it is this one
    measure: Measure  #: runs the scene with a model and a seed
    draw: Draw  #: draws what several seeds gave into the panel of a figure
    seeds: int = 3  #: how many seeds are run
    share: float = 1.0  #: share of the seeds that must pass
    long: bool = False  #: takes more than a few seconds per seed
    height: int = 560  #: of the picture, in pixels

    @property
    def title(self) -> str:
        return load_builtin(self.name).spec.title

    @property
    def source(self) -> str:
        return load_builtin(self.name).spec.source

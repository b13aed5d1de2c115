"""The contracts of stages and conditions, and how both are read from tables.

A stage is a verb with its details: `Go("kiosk")` in Python, `{ go = "kiosk" }` in files. A table is the stage that one
of its keys names; `registry.py` lists the verbs, and the engine knows none of them. A condition is read in the same
way: `{ come = 10 }`. Both are frozen dataclasses, the same for all agents that have them. What differs from agent to
agent is in columns, above all `stage_until`, the time at which a stage ends by itself.
"""

from __future__ import annotations

import dataclasses
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer
from pydantic_core import CoreSchema, core_schema

from tropel.agents.goals import Aim
from tropel.agents.stages.happened import Happenings
from tropel.agents.state import AgentState, Column
from tropel.errors import ParameterError, TropelError, suggest
from tropel.foundation.reductions import Reductions
from tropel.registry import CONDITIONS, STAGES, Kind
from tropel.world import World
from tropel.world.places import Place, PlaceLike

if TYPE_CHECKING:
    from tropel.agents.squads.squads import Squads
    from tropel.agents.tasks.board import TaskBoard

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Aims = tuple[Aim, ...]


@dataclass(frozen=True, kw_only=True)
class Now:
    """What verbs and conditions know: the crowd between two steps, and the agents that are asked about."""

    state: AgentState
    world: World
    members: Rows  #: rows of the agents that are in the stage, or begin it; all alive
    living: Rows  #: rows of all living agents that this process moves
    time: float  #: step · dt [s]
    dt: float  #: [s]
    step: int
    seed: int
    reduce: Reductions  #: counts over the whole crowd
    seen_within: NDArray[np.float64]  #: for each group, the distance from which it is enough to see a place [m]
    on_cells: Mask  #: for each group, whether it walks on cells, where nobody can go to a point
    happened: Happenings  #: the events so far
    tasks: TaskBoard | None = None  #: what there is to work on
    squads: Squads = None  # type: ignore[assignment]  #: for the verbs of squads, which only those have
    agenda: int = -1  #: number of the list that the stage belongs to, for conditions about it (`of_stage`)
    place: int = 0  #: of the stage in that list
    repeats: bool = False  #: whether that list begins again after its last stage

    def of(self, members: Rows, **more: Any) -> Now:
        """The same moment for other members."""
        other = object.__new__(Now)
        other.__dict__.update(self.__dict__, members=members, **more)
        return other


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the names in a stage are checked against."""

    world: World
    groups: Sequence[str]
    columns: Mapping[str, Column]
    tasks: TaskBoard | None = None  #: None if there is nothing to work on
    squads: Sequence[str] = ()  #: the groups that are squads


class Outlook(Protocol):
    """What can still happen in a run, as far as it can be seen beforehand. Whatever cannot be seen may happen."""

    def event(self, kind: str, fields: Mapping[str, str]) -> bool:
        """Whether such an event has happened or may still do so."""

    def opens(self, place: str) -> bool:
        """Whether a door or an exit is open or may be opened."""

    def people(self, group: str | None) -> float:
        """The most people of a group, or of the group that waits, that there can be."""

    def task(self, name: str) -> bool:
        """Whether there is a task of that name, or may still be one."""

    def visitors(self, group: str | None, place: Aim) -> float:
        """The most people of a group, or of the group that waits, that can come to a place."""


class Condition(ABC):
    """Something that is true or not, for each agent: ten have come, a door is open, a signal was given."""

    of_stage: ClassVar[bool] = False  #: it depends on who else is in the same stage of the same list

    @abstractmethod
    def holds(self, now: Now, aims: Aims) -> Mask:
        """For each of the members, whether it is true; `aims` are the places that `places` names."""

    def places(self) -> tuple[PlaceLike, ...]:
        """The places that it names."""
        return ()

    def check(self, setting: Setting, who: str) -> None:
        """Raise if it names something that does not exist; places are checked already."""
        return

    def never(self, outlook: Outlook, aims: Aims) -> str:
        """Why it can never become true; nothing if it may."""
        return ""

    @abstractmethod
    def __str__(self) -> str:
        """What is waited for, as the end of a sentence: "ten have come"."""

    def to_file(self) -> dict[str, Any]:
        """The table that a file holds."""
        return to_table(self)


class Stage(ABC):
    """One thing to do. A verb extends it as a frozen dataclass that has a field with the verb's own name."""

    until: Condition | None = None  #: it is over as soon as this is true, whatever the verb says
    critical: bool = False  #: it has to succeed whatever it costs; rules such as `Bolder` act on it
    asleep: ClassVar[bool] = False  #: agents stand and are not steered; only the delay before the first stage is so
    acts: ClassVar[bool] = False  #: whether `act` is called in every step
    for_squads: ClassVar[bool] = False  #: whether only squads can do it

    def places(self) -> tuple[PlaceLike, ...]:
        """The places that the verb names, without those of its condition."""
        return ()

    def others(self) -> tuple[str, ...]:
        """The groups that it is about, none of which can be the one that does it."""
        return ()

    def check(self, setting: Setting, who: str) -> None:
        """Raise if it names something that does not exist; places and the condition are checked already."""
        return

    def goal(self, aims: Aims) -> Aim | None:
        """Where somebody that begins it is sent; None if `begin` has to be asked."""
        return None

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        """Let the members begin; `place` is that of the stage in its list. It may write their columns."""
        return

    def act(self, now: Now, aims: Aims) -> None:
        """Let the members go on with it, after those whose stage is over have begun the next one."""
        return

    @abstractmethod
    def is_over(self, now: Now) -> Mask:
        """For each of the members, whether it is done, apart from the condition in `until`."""

    def leaves(self, world: World, aims: Aims) -> bool:
        """Whether agents leave the simulation by it, so that nothing can come after it."""
        return False

    def must_be_last(self, world: World, aims: Aims) -> str:
        """Why no other stage can follow; nothing if one can."""
        return ""

    def alike(self) -> Hashable:
        """Stages with the same value are asked `is_over` together, with the members of all of them."""
        return self

    def never(self, outlook: Outlook, aims: Aims) -> str:
        """Why it can never be over; nothing if it may. Asked only of stages whose condition cannot help."""
        return ""

    @abstractmethod
    def __str__(self) -> str:
        """What somebody does in it: "go to the kiosk"."""

    def to_file(self) -> dict[str, Any]:
        """The table that a file holds."""
        return to_table(self)


# Functions of the user ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnCondition(Condition):
    """A function of `Now` that tells, for all members at once or for each, whether something is true."""

    function: Callable[[Now], Any]

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__qualname__", type(self.function).__name__))

    def holds(self, now: Now, aims: Aims) -> Mask:
        found = np.asarray(self.function(now))
        if found.dtype != np.bool_ or found.shape not in ((), (len(now.members),)):
            raise ParameterError(
                f"the condition {self.name} must return True or False, or an array of them with one for each of the "
                f"{len(now.members)} members, not {reprlib.repr(found)}"
            )
        return np.broadcast_to(found, len(now.members))

    def __str__(self) -> str:
        return f"{self.name} is true"

    def to_file(self) -> dict[str, Any]:
        raise ParameterError(f"the condition {self.name} is a function, which files and recorded events cannot hold")


# Tables ---------------------------------------------------------------------------------------------------------------


def to_table(told: Any) -> dict[str, Any]:
    """The fields of a stage or condition that differ from their defaults, in the form that files have."""
    found = {}
    for field in dataclasses.fields(told):
        value = getattr(told, field.name)
        if field.default is dataclasses.MISSING or value != field.default:
            found[field.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Place):
        return list(value.point) if value.point is not None else value.to_file()
    if isinstance(value, Stage | Condition):
        return value.to_file()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: each for name, each in dataclasses.asdict(value).items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def as_stage(told: Any, who: str = "stages") -> Stage:
    """A stage, or the one that a table describes."""
    if isinstance(told, Stage):
        return told
    if isinstance(told, type) and issubclass(told, Stage):
        raise ParameterError(f"{who}: {told.__name__} is the class of a stage; give one, such as {told.__name__}(…)")
    if not isinstance(told, Mapping):
        raise ParameterError(
            f'{who}: a stage is an object such as Go("exit"), or a table such as {{ go = "exit" }}, '
            f"not {reprlib.repr(told)}"
        )
    return _read(told, STAGES, who)


def as_stages(told: Any, who: str) -> tuple[Stage, ...]:
    """A list of stages."""
    if isinstance(told, str | Mapping | Stage) or not isinstance(told, Sequence):
        raise ParameterError(
            f'{who}: stages is a list, such as [{{ go = "kiosk" }}, {{ wait = 30 }}], not {told!r:.60}'
        )
    return tuple(as_stage(each, f"{who}, stage {place + 1}") for place, each in enumerate(told))


def as_condition(told: Any, who: str = "until") -> Condition:
    """A condition, the one that a table describes, or one made of a function of `Now`."""
    if isinstance(told, Condition):
        return told
    if isinstance(told, Mapping):
        return _read(told, CONDITIONS, who)
    if callable(told) and not isinstance(told, type):
        return OwnCondition(told)
    raise ParameterError(
        f"{who}: a condition is a table such as {{ come = 10 }}, an object of tropel.conditions or a function, "
        f"not {reprlib.repr(told)}"
    )


def _read(told: Mapping[str, Any], kind: Kind, who: str) -> Any:
    """The object that a table describes: the class that is registered by one of its keys and knows the others."""
    named = [entry for entry in kind.values() if entry.name in told]
    if not named:
        keys = ", ".join(map(str, told)) or "an empty table"
        known = suggest(str(next(iter(told), "")), kind)
        raise ParameterError(f"{who}: '{keys}' is no {kind.what}; {known}")
    fitting = [entry for entry in named if set(told) <= _field_names(entry.load()) or _takes_any(entry.load())]
    made = (fitting or named)[0].load()
    unknown = sorted(set(map(str, told)) - _field_names(made))
    if unknown and not _takes_any(made):
        raise ParameterError(
            f"{who}: a {kind.what} '{(fitting or named)[0].name}' has no '{unknown[0]}'; "
            f"{suggest(unknown[0], _field_names(made))}"
        )
    try:
        return made.from_table(told) if _takes_any(made) else made(**told)
    except TropelError as error:
        raise ParameterError(f"{who}: {error}") from None


def _field_names(made: type) -> set[str]:
    return {field.name for field in dataclasses.fields(made)}


def _takes_any(made: type) -> bool:
    """Whether a class reads its table itself, because its keys depend on what it names."""
    return hasattr(made, "from_table")


class _Tables:
    """Marks a field as a stage or condition: read by a function, and with a table per registered class in the schema.

    Conditions inside of conditions are not spelled out in the schema.
    """

    def __init__(self, read: Callable[[Any], Any], kind: Kind | None) -> None:
        self._read, self._kind = read, kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._checked)

    def _checked(self, told: Any) -> Any:
        try:
            return self._read(told)
        except TropelError as error:
            raise ValueError(str(error)) from None

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if self._kind is None:
            return {"type": "object"}
        return {"anyOf": [_schema_of(entry.load(), handler) for entry in self._kind.values()]}


def _schema_of(made: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    found: dict[str, Any] = made.table_schema() if _takes_any(made) else handler(made.__pydantic_core_schema__)
    return found


def _files(value: Any) -> Any:
    return None if value is None else value.to_file()


#: Fields of pydantic models.
StageField = Annotated[Any, _Tables(as_stage, STAGES), PlainSerializer(_files)]
ConditionField = Annotated[Any, _Tables(as_condition, CONDITIONS), PlainSerializer(_files)]
InnerConditionField = Annotated[Any, _Tables(as_condition, None), PlainSerializer(_files)]

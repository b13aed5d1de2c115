"""Agendas: the lists of stages that agents go through, and who goes on to the next stage now.

The lists are shared by all that have them and stored once. The column `agenda` has the number of an agent's list, -1
for none, and `stage` the place in it. Before the first stage everybody is in stage -1, the delay: it ends at the time
in `stage_until`, for most agents at once. `stage_since` is when the present stage began. The last stage of a list that
does not repeat is never over.

Everything here happens in the stage `decide` of a step. Who goes on is asked for all agents before anybody does, so the
order of agents and of lists does not matter, and nobody goes on twice in a step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import Aim, aim_of
from tropel.agents.stages.happened import texts_of
from tropel.agents.stages.stage import Aims, Now, OwnCondition, Setting, Stage, as_stage
from tropel.agents.stages.verbs import Delay
from tropel.agents.state import NO_GOAL, POINT, AgentState
from tropel.errors import CheckpointError, ParameterError, TropelError
from tropel.foundation.stored_arrays import taken
from tropel.registry import STAGES
from tropel.world.shapes import FARTHEST

Ints = NDArray[np.int64]
_S = TypeVar("_S", bound=Stage)

#: No list of stages.
NOTHING = -1
#: The stage of agents that have not begun with their list.
NOT_BEGUN = -1
#: A list may be long, but no sensible one is longer.
MOST_STAGES = 10_000


@dataclass(frozen=True)
class Planned:
    """A stage of a list, with the goals of the places that it and its condition name."""

    stage: Stage
    aims: Aims = ()
    condition_aims: Aims = ()


@dataclass(frozen=True)
class Agenda:
    """Stages one after the other. In the last one agents stay, or they begin again."""

    planned: tuple[Planned, ...]
    repeat: bool

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(each.stage for each in self.planned)


class _Lists(NamedTuple):
    """All stages of all lists in one, after the delay, which everybody has in common."""

    start: Ints  #: (A + 1,): where each list begins; the last is for agents without one
    length: Ints  #: (A + 1,)
    repeat: NDArray[np.bool_]  #: (A + 1,)
    kind: NDArray[Any]  #: (S,): stages of one kind are asked together
    goes_on: NDArray[np.bool_]  #: (S,): whether another stage follows
    critical: NDArray[np.uint8]  #: (S,)
    kinds: list[int]  #: one stage of each kind
    planned: list[Planned]  #: (S,)
    agenda: list[int]  #: (S,): numbers of their lists
    acting: list[int]  #: the stages that act in every step


class Agendas:
    """The lists of a run by number, in the order in which they were first given to somebody."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._known: list[Agenda] = []
        self._numbers: dict[Agenda, int] = {}
        self._lists: _Lists | None = None

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, number: int) -> Agenda:
        return self._known[number]

    # Lists ------------------------------------------------------------------------------------------------------

    def number_of(self, stages: Sequence[Stage], repeat: bool, setting: Setting, who: str) -> int:
        """The number of a list; new ones are checked and added. Places get their numbers in the world."""
        if not stages:
            raise ParameterError(f"{who}: the list of stages is empty; leave it out if there is nothing to do")
        if len(stages) > MOST_STAGES:
            raise ParameterError(f"{who}: {len(stages):,} stages are more than {MOST_STAGES:,}; use repeat")
        planned = tuple(_planned(stage, setting, who, place) for place, stage in enumerate(stages))
        for place, each in enumerate(planned if repeat else planned[:-1]):
            if why := each.stage.must_be_last(setting.world, each.aims):
                raise ParameterError(f"{who}: {why}" if len(planned) == 1 else f"{who}, stage {place + 1}: {why}")
        agenda = Agenda(planned, repeat)
        if agenda not in self._numbers:
            self._numbers[agenda] = len(self._known)
            self._known.append(agenda)
            self._lists = None
        return self._numbers[agenda]

    def first_goal(self, number: int) -> Aim | None:
        """Where agents with a list are sent at once; None if its first stage has to begin first."""
        first = self._known[number].planned[0]
        return first.stage.goal(first.aims)

    def _arrays(self) -> _Lists:
        if self._lists is None:
            planned, numbers, kind = [Planned(Delay())], [NOTHING], [0]
            kinds, found = [0], {(Delay().alike(), None, (), None): 0}
            for number, agenda in enumerate(self._known):
                for each in agenda.planned:
                    until = each.stage.until
                    # Who else is in the same stage matters to some conditions, so that stages are asked one by one.
                    own = len(planned) if until is not None and until.of_stage else None
                    key: Any = (each.stage.alike(), until, each.condition_aims, own)
                    if key not in found:
                        found[key] = len(kinds)
                        kinds.append(len(planned))
                    kind.append(found[key])
                    planned.append(each)
                    numbers.append(number)
            length = np.array([*(len(agenda.planned) for agenda in self._known), 0], dtype=np.int64)
            start = np.concatenate([[1], 1 + np.cumsum(length[:-1])]).astype(np.int64)
            start[-1] = 0
            goes_on = np.ones(len(planned), dtype=np.bool_)
            repeat = np.array([*(agenda.repeat for agenda in self._known), False])
            goes_on[(start + length - 1)[:-1][~repeat[:-1]]] = False
            self._lists = _Lists(
                start, length, repeat, np.array(kind, dtype=np.int16 if len(kinds) < 1 << 15 else np.int32), goes_on,
                np.array([each.stage.critical for each in planned], dtype=np.uint8), kinds, planned, numbers,
                [place for place, each in enumerate(planned) if each.stage.acts],
            )  # fmt: skip
        return self._lists

    # Agents -----------------------------------------------------------------------------------------------------

    def give(self, state: AgentState, rows: Ints, number: int, *, time: float) -> None:
        """Give agents another list. Those that have not started yet begin with it when their delay is over."""
        asleep = state.stage[rows] == NOT_BEGUN
        state.agenda[rows], state.stage_since[rows], state.critical[rows] = number, time, 0
        aim = None if number == NOTHING else self.first_goal(number)
        state.stage[rows[~asleep]] = NOT_BEGUN if number != NOTHING and aim is None else 0
        state.stage_until[rows[~asleep]] = time
        if aim is not None:
            state.goal[rows], state.goal_point[rows] = aim
            state.critical[rows[~asleep]] = self._known[number].stages[0].critical
        elif number != NOTHING:
            state.goal[rows], state.goal_point[rows] = NO_GOAL, 0.0

    def sleeping(self, state: AgentState) -> NDArray[np.bool_]:
        """Which agents have not started yet, so that nothing steers them."""
        return state.stage == NOT_BEGUN

    def _place_in_all(self, state: AgentState, rows: Ints, lists: _Lists) -> Ints:
        """Where the present stage of each agent is among the stages of all lists."""
        # In the order of most crowds, all rows are meant: their columns need not be copied.
        everybody = len(rows) == len(state)
        stage, agenda = (state.stage, state.agenda) if everybody else (state.stage[rows], state.agenda[rows])
        return np.where(stage == NOT_BEGUN, 0, lists.start[agenda] + stage)

    def move_on(self, now: Now) -> Ints:
        """Let agents whose stage is over begin the next one; returns their rows, ascending."""
        state, lists = now.state, self._arrays()
        rows = self._busy(now)
        places = self._place_in_all(state, rows, lists)
        follows = np.flatnonzero(lists.goes_on[places])
        # Conditions that count others ask all processes, also those where nobody is in the stage.
        if not now.reduce.any(len(follows) > 0):
            return rows[:0]
        rows = rows[follows]
        kinds = lists.kind[places[follows]]
        counts = np.bincount(kinds, minlength=len(lists.kinds))
        there = now.reduce.counts(counts.astype(np.int64))
        by_kind = np.argsort(kinds, kind="stable")
        ends = np.cumsum(counts)
        over = np.zeros(len(rows), dtype=np.bool_)
        for kind in np.flatnonzero(there).tolist():
            asked = by_kind[ends[kind] - counts[kind] : ends[kind]]
            over[asked] = self._is_over(now.of(rows[asked]), lists, lists.kinds[kind])
        rows = rows[over]
        self._begin(rows, (state.stage[rows] + 1).astype(np.int64), now, lists)
        return rows

    @staticmethod
    def _busy(now: Now) -> Ints:
        """Rows of the living that have a list, or have not started yet."""
        state = now.state
        busy = (state.agenda != NOTHING) | (state.stage == NOT_BEGUN)
        count = np.count_nonzero(busy)
        if count == 0:
            return now.living[:0]
        return now.living if count == len(now.living) == len(state) else now.living[busy[now.living]]

    @staticmethod
    def _is_over(now: Now, lists: _Lists, place: int) -> NDArray[np.bool_]:
        planned = lists.planned[place]
        over = planned.stage.is_over(now)
        if planned.stage.until is not None:
            agenda = lists.agenda[place]
            within = {
                "agenda": agenda,
                "place": place - int(lists.start[agenda]),
                "repeats": bool(lists.repeat[agenda]),
            }
            over = over | planned.stage.until.holds(now.of(now.members, **within), planned.condition_aims)
        return over

    def _begin(self, rows: Ints, stage: Ints, now: Now, lists: _Lists) -> None:
        """Let agents begin a stage of their list; after the last comes the first."""
        if not len(rows):
            return
        state, agenda = now.state, now.state.agenda[rows]
        stage = np.where(stage >= lists.length[agenda], 0, stage)
        state.stage[rows], state.stage_since[rows] = stage, now.time
        with_list = agenda != NOTHING
        rows, places = rows[with_list], (lists.start[agenda] + stage)[with_list]
        state.critical[rows] = lists.critical[places]
        for place in np.unique(places).tolist():
            planned, first = lists.planned[place], int(lists.start[lists.agenda[place]])
            planned.stage.begin(now.of(rows[places == place]), planned.aims, place=place - first)

    def act(self, now: Now) -> None:
        """Let agents go on with stages that act in every step."""
        lists = self._arrays()
        if not lists.acting:
            return
        rows = self._busy(now)
        places = self._place_in_all(now.state, rows, lists)
        for place in lists.acting:
            if len(own := rows[places == place]):
                lists.planned[place].stage.act(now.of(own), lists.planned[place].aims)

    def take_up(self, rows: Ints, number: int, stage: int, now: Now) -> None:
        """Let agents begin a stage of a list, whatever they are doing."""
        now.state.agenda[rows] = number
        self._begin(rows, np.full(len(rows), stage, dtype=np.int64), now, self._arrays())

    def skip(self, rows: Ints, now: Now) -> Ints:
        """Let agents begin the next stage of their list, whatever they are doing; returns those that have none."""
        lists = self._arrays()
        able = lists.goes_on[self._place_in_all(now.state, rows, lists)] & (now.state.agenda[rows] != NOTHING)
        going = rows[able]
        self._begin(going, (now.state.stage[going] + 1).astype(np.int64), now, lists)
        return rows[~able]

    def present(self, state: AgentState, row: int) -> Stage | None:
        """The stage of the agent in a row; None if it has no list."""
        if state.stage[row] == NOT_BEGUN:
            return self._arrays().planned[0].stage
        number = int(state.agenda[row])
        return None if number == NOTHING else self._known[number].stages[int(state.stage[row])]

    def in_stages_of(self, kind: type[_S], state: AgentState, rows: Ints) -> list[tuple[_S, Ints]]:
        """Every stage of a kind that any of the agents in these rows is in, with the rows of those."""
        lists = self._arrays()
        wanted = [place for place, planned in enumerate(lists.planned) if isinstance(planned.stage, kind)]
        if not wanted:
            return []
        places = self._place_in_all(state, rows, lists)
        found = [(lists.planned[place].stage, rows[places == place]) for place in wanted]
        return [(stage, own) for stage, own in found if isinstance(stage, kind) and len(own)]

    def begun(self, now: Now) -> Ints:
        """Rows of the agents that began a stage in this step, by id; newcomers and others with a new list, too."""
        if not self._known:
            return now.living[:0]
        state, rows = now.state, now.living
        fresh = (state.stage_since[rows] == now.time) & (state.agenda[rows] != NOTHING) & (state.stage[rows] >= 0)
        rows = rows[fresh]
        return rows[np.argsort(state.id[rows], kind="stable")]

    def doing(self, state: AgentState) -> dict[str, int]:
        """How many living agents are in which stage, most first; agents without a list are left out."""
        found: dict[str, int] = {}
        rows = np.flatnonzero((state.dead == 0) & ((state.agenda != NOTHING) | (state.stage == NOT_BEGUN)))
        lists = self._arrays()
        places, counts = np.unique(self._place_in_all(state, rows, lists), return_counts=True)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            text = str(lists.planned[place].stage)
            found[text] = found.get(text, 0) + count
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        every = [each for agenda in self._known for each in agenda.planned]
        aims = [aim for each in every for aim in (*each.aims, *each.condition_aims)]
        return {
            "agendas/length": np.array([len(agenda.planned) for agenda in self._known], dtype=np.int64),
            "agendas/repeat": np.array([agenda.repeat for agenda in self._known], dtype=np.uint8),
            "agendas/stage": np.array([_text(each.stage) for each in every], dtype=str),
            "agendas/goal": np.array([aim.number for aim in aims], dtype=np.int32),
            "agendas/point": np.array([aim.point for aim in aims], dtype=np.float64).reshape(-1, self._dim),
        }

    def read(self, stored: Mapping[str, NDArray[Any]], *, goals: int) -> list[Agenda]:
        """The lists as `state` returned them, checked. Functions are those of the lists that are known here."""
        length = taken(stored, "agendas/length", dtype="int64", shape=(None,), low=1, high=MOST_STAGES)
        repeat = taken(stored, "agendas/repeat", dtype="uint8", shape=length.shape, low=0, high=1)
        texts = texts_of(stored, "agendas/stage")
        if len(texts) != length.sum():
            raise CheckpointError(f"'agendas/stage' has {len(texts)} stages; the lists have {length.sum()}")
        goal = taken(stored, "agendas/goal", dtype="int32", shape=(None,), low=POINT, high=goals - 1)
        point = taken(
            stored, "agendas/point", dtype="float64", shape=(len(goal), self._dim), low=-FARTHEST, high=FARTHEST
        )
        aims = [Aim(int(n), tuple(p)) for n, p in zip(goal.tolist(), point.tolist(), strict=True)]
        known = {_text(stage): stage for agenda in self._known for stage in agenda.stages}
        stages = [known.get(text) or _read(text) for text in texts]
        planned, first = [], 0
        for stage in stages:
            own = first + len(stage.places())
            last = own + (0 if stage.until is None else len(stage.until.places()))
            planned.append(Planned(stage, tuple(aims[first:own]), tuple(aims[own:last])))
            first = last
        if first != len(aims):
            raise CheckpointError(f"'agendas/goal' has {len(aims)} goals; the stages name {first} places")
        ends = np.cumsum(length).tolist()
        return [
            Agenda(tuple(planned[end - count : end]), bool(again))
            for end, count, again in zip(ends, length.tolist(), repeat.tolist(), strict=True)
        ]

    def known(self) -> list[Agenda]:
        return list(self._known)

    def put_back(self, agendas: Sequence[Agenda]) -> None:
        self._known, self._lists = list(agendas), None
        self._numbers = {agenda: number for number, agenda in enumerate(self._known)}


def _planned(stage: Stage, setting: Setting, who: str, place: int) -> Planned:
    where = f"{who}, stage {place + 1}"
    until = stage.until
    aims = tuple(aim_of(setting.world, each, where) for each in stage.places())
    condition_aims = () if until is None else tuple(aim_of(setting.world, each, where) for each in until.places())
    if until is not None:
        until.check(setting, where)
    stage.check(setting, where)
    return Planned(stage, aims, condition_aims)


def _text(stage: Stage) -> str:
    """A stage as checkpoints store it; functions and verbs of the user's own are known by name alone."""
    if STAGES.name_of(type(stage)) is None:
        return json.dumps({"own verb": f"{type(stage).__qualname__}: {stage}"})
    if isinstance(stage.until, OwnCondition):
        return json.dumps({"own condition": stage.until.name, "stage": str(stage)})
    try:
        return json.dumps(stage.to_file(), sort_keys=True)
    except ParameterError:  # a function inside of a condition
        return json.dumps({"own condition": str(stage.until), "stage": str(stage)})


def _read(text: str) -> Stage:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"'agendas/stage' holds {text[:60]!r}, which is not a stage") from error
    if isinstance(told, dict) and ("own verb" in told or "own condition" in told):
        raise CheckpointError(
            f"somebody was in a stage with code of your own, {next(iter(told.values()))!s:.60}, which is not in the "
            f"lists of this simulation; declare it in the same way before the run is restored"
        )
    try:
        return as_stage(told)
    except (TropelError, TypeError, ValueError) as error:
        raise CheckpointError(f"'agendas/stage' holds {text[:60]!r}, which is not a stage: {error}") from error

"""The verbs of missions: what a squad does besides going somewhere and waiting.

They are stages as any other, so missions are lists of stages and orders are such lists, too. Only commanders have
stages; what each verb means to the members is in their columns `order` and `post`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from tropel.agents.goals import goal_told
from tropel.agents.squads.columns import RETREAT
from tropel.agents.stages.stage import Aims, Mask, Now, Outlook, Setting, Stage
from tropel.agents.stages.verbs import Critical, Over
from tropel.errors import ParameterError, readable_errors, suggest
from tropel.foundation.field_types import NotNegativeWhole, PositiveFinite
from tropel.world import World
from tropel.world.places import Place, PlaceField, PlaceLike, find_place
from tropel.world.shapes import PositiveLength

_CONFIG = ConfigDict(extra="forbid")


def _area(setting: Setting, told: PlaceLike, verb: str, who: str) -> Place:
    """The room or region that is meant."""
    place = find_place(setting.world, told, who)
    if place.kind not in ("room", "region"):
        raise ParameterError(f"{who}: {verb} names rooms and regions, not the {place}")
    return place


def _until(stage: Stage) -> str:
    return "" if stage.until is None else f", until {stage.until}"


class SquadVerb(Stage):
    """A stage of a squad."""

    for_squads = True
    acts = True

    def is_over(self, now: Now) -> Mask:
        return np.zeros(len(now.members), dtype=np.bool_)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Hold(SquadVerb):
    """Go to a room and stay in it, everybody at a post. Enemies are attacked only in it."""

    hold: Annotated[PlaceField, Field(description="the room, or a region")]
    time: Annotated[PositiveFinite | None, Field(le=1e9, description="over so long after they have come [s]")] = None
    until: Over = None
    critical: Critical = False

    def places(self) -> tuple[PlaceLike, ...]:
        return (self.hold,)

    def check(self, setting: Setting, who: str) -> None:
        _area(setting, self.hold, "hold", who)

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        now.state.goal[now.members], now.state.goal_point[now.members] = aims[0]
        now.state.stage_until[now.members] = now.time

    def act(self, now: Now, aims: Aims) -> None:
        place = find_place(now.world, self.hold, "hold")
        for row in now.members.tolist():
            has_come = now.squads.hold(now, row, place, aims[0])
            if has_come and self.time is not None and now.state.stage_until[row] <= now.state.stage_since[row]:
                now.state.stage_until[row] = now.time + self.time

    def is_over(self, now: Now) -> Mask:
        until = now.state.stage_until[now.members]
        return (until > now.state.stage_since[now.members]) & (until <= now.time + 1e-9 * now.dt)

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "" if self.time is not None else "a room is held until something ends it: give time or until"

    def __str__(self) -> str:
        return f"hold {goal_told(self.hold)}" + ("" if self.time is None else f" for {self.time:g} s") + _until(self)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Search(SquadVerb):
    """Search rooms: over when every part of every room that can be reached has been in sight of somebody in it.

    Squads of one side that search the same rooms share them out, unless `share` is false.
    """

    search: Annotated[tuple[PlaceField, ...], Field(min_length=1, description="the rooms, or regions")]
    share: Annotated[bool, Field(description="whether rooms are shared out among the squads of a side")] = True
    until: Over = None
    critical: Critical = False

    def places(self) -> tuple[PlaceLike, ...]:
        return self.search

    def check(self, setting: Setting, who: str) -> None:
        for told in self.search:
            _area(setting, told, "search", who)

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        for row in now.members.tolist():
            now.squads.stand(now, row)

    def act(self, now: Now, aims: Aims) -> None:
        if now.squads.thinks(now):
            places = [find_place(now.world, told, "search") for told in self.search]
            for row in now.members.tolist():
                now.squads.search(now, row, places, share=self.share)

    def is_over(self, now: Now) -> Mask:
        return np.array([now.squads.has_searched(now, row) for row in now.members.tolist()], dtype=np.bool_)

    def __str__(self) -> str:
        names = [goal_told(told) for told in self.search]
        said = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return f"search {said}" + _until(self)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Escort(SquadVerb):
    """Stay with a group, or with one agent of it; over when nobody of it is left."""

    escort: Annotated[str, Field(description="the group")]
    id: Annotated[NotNegativeWhole | None, Field(description="of the agent that is meant")] = None
    within: Annotated[PositiveLength, Field(description="how near they stay [m]")] = 2.0
    until: Over = None
    critical: Critical = False

    def others(self) -> tuple[str, ...]:
        return (self.escort,)

    def check(self, setting: Setting, who: str) -> None:
        if self.escort not in setting.groups:
            raise ParameterError(f"{who}: there is no group '{self.escort}'; {suggest(self.escort, setting.groups)}")

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        for row in now.members.tolist():
            now.squads.stand(now, row)

    def act(self, now: Now, aims: Aims) -> None:
        if now.squads.thinks(now):
            for row in now.members.tolist():
                now.squads.escort(now, row, self.escort, self.id, within=self.within)

    def is_over(self, now: Now) -> Mask:
        left = len(now.squads.escorted(now, self.escort, self.id))
        return np.full(len(now.members), left == 0, dtype=np.bool_)

    def __str__(self) -> str:
        return f"escort {self.escort if self.id is None else f'agent {self.id} of {self.escort}'}" + _until(self)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Cover(SquadVerb):
    """Keep another squad in sight while it moves, until it begins its next stage; or keep a place in sight.

    A name is that of a squad; a place is a table or a point.
    """

    cover: Annotated[PlaceField, Field(description='a squad, or a place such as { room = "hall" } or [3.0, 4.0]')]
    until: Over = None
    critical: Critical = False

    def places(self) -> tuple[PlaceLike, ...]:
        return () if isinstance(self.cover, str) else (self.cover,)

    def others(self) -> tuple[str, ...]:
        return (self.cover,) if isinstance(self.cover, str) else ()

    def check(self, setting: Setting, who: str) -> None:
        if isinstance(self.cover, str) and self.cover not in setting.squads:
            raise ParameterError(
                f"{who}: there is no squad '{self.cover}'; {suggest(self.cover, setting.squads)} (places are tables, "
                f'such as {{ room = "{self.cover}" }})'
            )

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        for row in now.members.tolist():
            now.squads.stand(now, row)

    def act(self, now: Now, aims: Aims) -> None:
        if now.squads.thinks(now):
            for row in now.members.tolist():
                now.squads.cover(now, row, self.cover)

    def is_over(self, now: Now) -> Mask:
        if not isinstance(self.cover, str):
            return np.zeros(len(now.members), dtype=np.bool_)
        begun = now.squads.began_last(now, self.cover)
        return np.array([begun > since for since in now.state.stage_since[now.members].tolist()], dtype=np.bool_)

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "" if isinstance(self.cover, str) else "a place is covered until something ends it"

    def __str__(self) -> str:
        return f"cover {goal_told(self.cover)}" + _until(self)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class RetreatTo(SquadVerb):
    """Go to a place without attacking anybody; over on arrival of the commander."""

    retreat_to: Annotated[PlaceField, Field(description="the place")]
    until: Over = None
    critical: Critical = False

    def places(self) -> tuple[PlaceLike, ...]:
        return (self.retreat_to,)

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        now.state.goal[now.members], now.state.goal_point[now.members] = aims[0]

    def act(self, now: Now, aims: Aims) -> None:
        if now.squads.thinks(now):
            for row in now.members.tolist():
                now.squads.head_for(now, row, aims[0])
                now.squads.tell(now, row, RETREAT)

    def is_over(self, now: Now) -> Mask:
        return now.squads.have_come(now, self.retreat_to)

    def leaves(self, world: World, aims: Aims) -> bool:
        return aims[0].number >= 0 and bool(world.goals().absorbs[aims[0].number])

    def __str__(self) -> str:
        return f"retreat to {goal_told(self.retreat_to)}" + _until(self)


@readable_errors
@dataclass(frozen=True, config=_CONFIG)
class Resume(SquadVerb):
    """The end of an order: the squad takes up its mission again, in the stage that was interrupted."""

    resume: Literal[True]
    acts = False

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        for row in now.members.tolist():
            now.squads.stand(now, row)

    def alike(self) -> Hashable:
        return Resume

    def __str__(self) -> str:
        return "resume the mission"

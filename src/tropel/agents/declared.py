"""The groups and sources that a simulation was declared with: their names, numbers and goals, and who follows whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tropel.agents.bonds import check_no_circle
from tropel.agents.groups import Group, Source
from tropel.errors import ParameterError, suggest


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What was declared. Groups have numbers in the order in which they are first named, also by a source."""

    items: tuple[Group | Source, ...]  #: as given
    groups: list[Group] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    first: dict[str, Group | Source] = field(default_factory=dict)  #: of each group; a group itself before its sources
    follows: dict[str, set[str]] = field(default_factory=dict)  #: the groups that each was declared to follow

    @classmethod
    def read(cls, items: Iterable[Group | Source]) -> Declared:
        """Sort groups and sources; raises if two groups have one name, or if groups follow each other in a circle."""
        told = cls(items=tuple(items))
        for item in told.items:
            if isinstance(item, Source):
                told.sources.append(item)
            elif isinstance(item, Group):
                if item.name in told.first:
                    raise ParameterError(f"two groups are called '{item.name}'")
                told.groups.append(item)
                told.first[item.name] = item
            else:
                raise ParameterError(f"agents are given as Group(…) or Source(…), not {item!r}")
            own = item.group if isinstance(item, Source) else item.name
            told.numbers.setdefault(own, len(told.numbers))
            if item.follow is not None:
                told.follows.setdefault(own, set()).add(item.follow)
        for source in told.sources:
            told.first.setdefault(source.group, source)
        check_no_circle(told.follows)
        return told

    @property
    def names(self) -> list[str]:
        """The names of all groups, by number."""
        return list(self.numbers)

    def number(self, group: str) -> int:
        """The number of a group."""
        if group not in self.numbers:
            raise ParameterError(f"there is no group '{group}'; {suggest(group, self.names)}")
        return self.numbers[group]

    def first_of(self, group: str) -> Group | Source:
        """What a group was declared with: its goal and stages are those of the group."""
        self.number(group)
        return self.first[group]

    def led_by(self, group: str) -> list[int]:
        """The numbers of the groups that a group follows; those that do not exist are left out."""
        return [self.numbers[other] for other in sorted(self.follows.get(group, set()) & set(self.numbers))]

    def check_follow(self, group: str, leader: str | None) -> None:
        """Raise if newcomers of a group would follow their own group through groups that follow it."""
        if leader is not None:
            check_no_circle({**self.follows, group: self.follows.get(group, set()) | {leader}})

"""Characters: what a mobility map is made of.

A character has a full state, of any kind, and is told a change of heading. `Character` is all that building a map and
moving by it need to know, so bicyclists in a physics engine, cars and whatever else can be told where to go differ in
one class. Files name a character by its short name, or by a TOML file with its kind and parameters:

    kind = "car"
    name = "van"
    wheelbase = 3.2
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, suggest
from tropel.foundation.files import read_text
from tropel.riders.maps import STATE_VARIABLES, MobilityMap

Floats = NDArray[np.float64]

#: Characters that files know by name, and the kinds that TOML files may have: module:Class.
CHARACTERS = {
    "human": "tropel.riders.bicyclist.character:Human",
    "alien": "tropel.riders.bicyclist.character:Alien",
    "car": "tropel.riders.car:Car",
}

#: Maps that come with tropel.
SHIPPED = Path(__file__).parent / "maps"
LARGEST_CHARACTER = 1 << 20  #: of a TOML file [bytes]


@dataclass(frozen=True, kw_only=True)
class Trials:
    """What N characters did, each from a full state of its own by an action of its own."""

    position: Floats  #: (N, T, 2): centre of mass, from the origin, facing +x at first [m]
    heading: Floats  #: (N, T) [rad]
    lean: Floats  #: (N, T) [rad]
    steer: Floats  #: (N, T) [rad]
    lasts: Floats  #: (N,): time of the fall, or the last time [s]; after a fall everything stays as it was


class Character(ABC):
    """A kind of body with a controller that is told where to go; a frozen dataclass of parameters."""

    name: str
    speed: float  #: nominal [m/s]
    length: float  #: of the body, for those who avoid it [m]
    width: float  #: [m]
    state_names: ClassVar[tuple[str, ...]]  #: the variables of the reduced state, of `STATE_VARIABLES`
    looks: ClassVar[str] = "bicycle"  #: what it is drawn as: "bicycle" or "car"

    @property
    @abstractmethod
    def action_limit(self) -> float:
        """The largest change of heading that most states survive [rad]."""

    @abstractmethod
    def initial_states(self, count: int) -> Floats:
        """Full states (count, F) that occur on the road, from which trials begin."""

    @abstractmethod
    def reduced(self, full_states: Floats) -> Floats:
        """The variables (count, K) of these states that are in `state_names`."""

    @abstractmethod
    def trials(self, full_states: Floats, actions: Floats, times: Floats) -> Trials:
        """Begin in each of N full states, be told the change of heading in `actions` (N,), and see what happens."""

    @classmethod
    def of_table(cls, named: Mapping[str, Any], where: str) -> Character:
        """Made from the parameters of a character file, whose keys are known; `where` begins error messages."""
        try:
            return cls(**named)
        except ParameterError as error:
            raise ParameterError(f"{where}: {error}") from None

    def digest(self) -> str:
        """A digest of everything that a trial depends on."""
        told = f"{type(self).__module__}:{type(self).__qualname__}:{self.version}:{self!r}"
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def version(self) -> str:
        """Changes when the controller or the equations of motion do."""
        return "1"

    @property
    def wheel_radius(self) -> float:
        """For drawing [m]."""
        return 0.34

    def own_map(self) -> MobilityMap:
        """Its map, if none came with tropel. Characters whose trials take long override this: they look for a file."""
        return build_map(self)


def build_map(
    character: Character, *, states: int = 100, actions: int = 10, duration: float = 5.0, interval: float = 0.1
) -> MobilityMap:
    """Try every action from every state, all at once; for characters whose trials are cheap."""
    odd = [name for name in character.state_names if name not in STATE_VARIABLES]
    if odd:
        raise ParameterError(f"'{character.name}': unknown variable '{odd[0]}'; {suggest(odd[0], STATE_VARIABLES)}")
    times: Floats = np.arange(round(duration / interval) + 1, dtype=np.float64) * interval
    turns = np.linspace(-character.action_limit, character.action_limit, actions)
    begin = character.initial_states(states)
    tried = character.trials(np.repeat(begin, actions, axis=0), np.tile(turns, states), times)
    shape = (states, actions)
    return MobilityMap(
        character=character.name,
        digest=character.digest(),
        speed=character.speed,
        state_names=character.state_names,
        states=character.reduced(begin),
        actions=turns,
        times=times,
        position=tried.position.reshape(*shape, -1, 2),
        heading=tried.heading.reshape(*shape, -1),
        lean=tried.lean.reshape(*shape, -1),
        steer=tried.steer.reshape(*shape, -1),
        lasts=tried.lasts.reshape(shape),
        full_states=begin,
        provenance={"trials": states * actions},
    )


def find_character(told: str) -> Character:
    """The character with a short name, or in a TOML file."""
    if told in CHARACTERS:
        return _class_of(told)()
    if not told.endswith(".toml"):
        raise ParameterError(
            f"there is no character '{told}'; {suggest(told, CHARACTERS)}; or give the path of a .toml file"
        )
    try:
        table = tomllib.loads(read_text(told, largest=LARGEST_CHARACTER))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(
            f"cannot read the character '{told}': {getattr(error, 'strerror', None) or error}"
        ) from None
    return character_of(table, where=told)


def character_of(table: dict[str, Any], *, where: str) -> Character:
    """The character that a table describes: its `kind`, and its parameters."""
    named = dict(table)
    kind = named.pop("kind", None)
    if not isinstance(kind, str) or kind not in CHARACTERS:
        raise ParameterError(
            f'{where}: a character needs  kind = "…", one of {", ".join(CHARACTERS)}, not {kind!r:.40}'
        )
    made = _class_of(kind)
    fields = [one.name for one in dataclasses.fields(made)]  # type: ignore[arg-type]
    for name in named:
        if name not in fields:
            raise ParameterError(f"{where}: a {kind} has no parameter '{name}'; {suggest(name, fields)}")
    return made.of_table(named, where)


def _class_of(kind: str) -> type[Character]:
    module, _, name = CHARACTERS[kind].partition(":")
    found: type[Character] = getattr(importlib.import_module(module), name)
    return found


@functools.lru_cache(maxsize=16)
def map_of(character: Character) -> MobilityMap:
    """The map that came with tropel, or that was built before; characters whose trials are cheap build it now."""
    digest = character.digest()
    shipped = SHIPPED / f"{character.name}.npz"
    if shipped.exists():
        found = MobilityMap.load(shipped)
        if found.digest == digest:
            return found
    return character.own_map()

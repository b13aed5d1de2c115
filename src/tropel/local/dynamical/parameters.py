"""Parameters of the dynamical model, as users give them and as kernels read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, named_parameters, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE
from tropel.foundation.quantities import number

#: Rows of the parameters per obstacle type; named types of round obstacles follow.
AGENTS, OBSTACLES, WALLS = 0, 1, 2
_TYPES = ("agents", "obstacles", "walls")

CONSTANT, TIME_TO_CONTACT, TIME_TO_REST, DERIVATIVE, TIME_GAP = range(5)
_LAWS = {
    "constant": CONSTANT,
    "time_to_contact": TIME_TO_CONTACT,
    "time_to_rest": TIME_TO_REST,
    "derivative": DERIVATIVE,
    "time_gap": TIME_GAP,
}


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Repulsion:
    """How one type of obstacle repels: a fire pit is worse than a wall."""

    strength: float = number(1.0, low=0.0, about="factor on the repeller")
    reach: float = number(1.0, above=0.0, about="factor on d0")
    margin: float = number(0.8, above=0.0, below=math.pi, unit="rad", about="safety margin delta of the window")


#: Scenario files give it as a table.
_Told = Annotated[Repulsion, CHECKED_ELSEWHERE]


@named_parameters
@dataclass(frozen=True, kw_only=True)
class DynamicalParameters:
    """Parameters of `Dynamical`; the defaults are the papers' values where they give any."""

    preset: Literal["pedestrian"] | None = None  #: where the values that are not given come from
    attraction: float = number(1.0, above=0.0, unit="1/s", about="a of GAME eq. 2")
    d0_base: float = number(0.3, above=0.0, unit="m", about="distance at which obstacles start to repel, for courage ½")
    cut: float = number(
        6.0, above=0.0, high=700.0, about="objects farther away than this many d0 have no effect; 700 is no cut at all"
    )
    agents: _Told = field(default_factory=Repulsion)
    obstacles: _Told = field(default_factory=Repulsion)  #: round obstacles whose type has no entry in `types`
    walls: _Told = field(default_factory=Repulsion)
    types: Mapping[str, _Told] = field(default_factory=dict)  #: round obstacles by their `type`, such as "fire"
    #: Which types compete with the target together: all as "one", each type "apart", or lists of types, as in
    #: [["agents"], ["walls", "obstacles"], ["fire"]]
    classes: Literal["one", "apart"] | Sequence[Sequence[str]] = "one"
    competition: bool = True  #: if false, all weights are 1
    crowding: Literal["ahead", "all"] = "ahead"  #: "all" is the sum of D as printed
    c1: float = number(1.0, above=0.0, about="c1 of GAME")
    c2: float = number(2.5, above=0.0, about="c2 of GAME")
    speed_law: Literal["constant", "time_to_contact", "time_to_rest", "derivative", "time_gap"] = "time_to_contact"
    time_to_contact: float = number(1.0, above=0.0, unit="s", about="t2c, time kept to what is in front")
    front: float = number(1.0, above=0.0, about="width of what counts as in front, relative to both bodies")
    safety: float | None = number(
        None, unit="m", about="d0vel of LAYERS eq. 10, for courage up to ½; d0_base if left out"
    )
    closest: float = number(
        0.05, low=0.0, unit="m", about="free distance to what is in front that even the boldest keep (time_to_rest)"
    )
    speed_factor: float = number(1.0, low=0.0, about="factor on the result of the speed law (0.8 in GAME figure 6)")
    retreat: float = number(0.5, low=0.0, about="highest speed backwards, as a share of the desired speed")
    time_gap: float = number(0.6, above=0.0, unit="s", about="time kept to people ahead, for courage ½ (time_gap)")
    push: float = number(
        0.1, low=0.0, high=1.0, about="how hard people without room push forward, as a share of v0 (time_gap)"
    )
    keep_right: float = number(
        0.0, low=-1.5, high=1.5, unit="rad", about="turn to the right before oncoming people; negative keeps left"
    )
    walk_on: float = number(
        0.0, low=0.0, high=10.0, unit="s", about="how long people that have reached an exit are still in the way"
    )
    noise: float = number(0.05, low=0.0, unit="rad/√s", about="noise of the heading")
    anticipation: float = number(1.0, low=0.0, about="share of the others' velocity that is anticipated, 0 to 1")
    weight_memory: float = number(0.5, low=0.0, unit="s", about="how long weights take to follow the fixed point")
    solid_bodies: bool = True  #: whether bodies are kept from overlapping

    def __post_init__(self) -> None:
        for name in _TYPES:
            object.__setattr__(self, name, _repulsion(name, getattr(self, name)))
        for name in self.types:
            if name in _TYPES:
                raise ParameterError(f"Dynamical: types has '{name}', which has its own parameter; set that one")
        types = {name: _repulsion(f"types.{name}", given) for name, given in self.types.items()}
        object.__setattr__(self, "types", types)
        self.class_of_types()

    @property
    def all_types(self) -> tuple[str, ...]:
        """All obstacle types that have parameters, in the order of the kernels' rows."""
        return (*_TYPES, *self.types)

    def class_of_types(self) -> list[int]:
        """The class number of every type, in the order of `all_types`."""
        if self.classes == "one":
            return [0] * len(self.all_types)
        if self.classes == "apart":
            return list(range(len(self.all_types)))
        number: dict[str, int] = {}
        for place, part in enumerate(self.classes):
            for name in part:
                if name not in self.all_types:
                    raise ParameterError(f"Dynamical: classes names '{name}'; {suggest(name, self.all_types)}")
                if name in number:
                    raise ParameterError(f"Dynamical: classes names '{name}' twice; put it into one class only")
                number[name] = place
        missing = [name for name in self.all_types if name not in number]
        if missing:
            raise ParameterError(f"Dynamical: classes leaves out '{missing[0]}'; put it into one of the classes")
        return [number[name] for name in self.all_types]


#: Values by the name of a preset; docs/verification.md has the figures that they were chosen by.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "pedestrian": {
        "attraction": 8.0,  # people turn to the planned direction in about an eighth of a second
        "agents": Repulsion(strength=8.0),  # they fill the gaps beside those ahead of them, so wide doors flow
        "walls": Repulsion(reach=0.02),  # the planner leads around walls; repelled by them, people circle before doors
        "anticipation": 0.9,
        "speed_law": "time_gap",
        "time_gap": 0.44,
        "push": 0.1,
        "keep_right": 0.8,
        "walk_on": 0.65,
    }
}


def parameters_of(given: Mapping[str, Any]) -> DynamicalParameters:
    """The parameters that are given, the others from the preset, if one is given, or else the defaults."""
    name = given.get("preset")
    preset = PRESETS[name] if isinstance(name, str) and name in PRESETS else {}  # other names are refused below
    return DynamicalParameters(**{**preset, **given})


def _repulsion(name: str, given: Any) -> Repulsion:
    """Turn a table of a scenario file, such as { strength = 2.0 }, into a `Repulsion`."""
    if isinstance(given, Repulsion):
        return given
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ParameterError(f"Dynamical: {name} must be a Repulsion or a table {{ strength = 2.0 }}, not {given!r}")
    return Repulsion(**given)


class Rules(NamedTuple):
    """Parameters as kernels read them."""

    attraction: float
    d0_base: float
    cut: float  #: in units of d0
    strength: NDArray[np.float64]  #: per obstacle type
    reach: NDArray[np.float64]  #: likewise
    cos_margin: NDArray[np.float64]
    sin_margin: NDArray[np.float64]
    class_of: NDArray[np.int64]  #: class of every type
    row_of_type: NDArray[np.int64]  #: row of every obstacle type, by the world's numbering
    classes: int
    competition: bool
    all_round: float  #: 1 if objects behind the agent count in the sum of D, else 0
    c1: float
    c2: float
    law: int
    time_to_contact: float
    front: float
    safety: float
    closest: float
    brakes: float  #: agents that are at rest do not slow down for anything farther away than this [m]
    speed_factor: float
    retreat: float
    time_gap: float
    push: float
    noise: float
    anticipation: float
    weight_memory: float
    key: np.uint64


def rules_of(parameters: DynamicalParameters, key: np.uint64, types: Sequence[str] = ()) -> Rules:
    """The parameters in the form that kernels take; `types` are the obstacle types of the world, by number."""
    p = parameters
    repulsion = [getattr(p, name) for name in _TYPES] + list(p.types.values())
    class_of = p.class_of_types()
    safety = float(p.d0_base if p.safety is None else p.safety)
    rows = [p.all_types.index(name) if name in p.types else OBSTACLES for name in types]
    return Rules(
        attraction=float(p.attraction),
        d0_base=float(p.d0_base),
        cut=float(p.cut),
        strength=np.array([float(r.strength) for r in repulsion]),
        reach=np.array([float(r.reach) for r in repulsion]),
        cos_margin=np.array([math.cos(r.margin) for r in repulsion]),
        sin_margin=np.array([math.sin(r.margin) for r in repulsion]),
        class_of=np.array(class_of, dtype=np.int64),
        row_of_type=np.array(rows or [OBSTACLES], dtype=np.int64),
        classes=max(class_of) + 1,
        competition=bool(p.competition),
        all_round=1.0 if p.crowding == "all" else 0.0,
        c1=float(p.c1),
        c2=float(p.c2),
        law=_LAWS[p.speed_law],
        time_to_contact=float(p.time_to_contact),
        front=float(p.front),
        safety=safety,
        closest=float(p.closest),
        brakes=max(safety, 0.0) if p.speed_law in ("time_to_contact", "time_to_rest") else 0.0,
        speed_factor=float(p.speed_factor),
        retreat=float(p.retreat),
        time_gap=float(p.time_gap),
        push=float(p.push),
        noise=float(p.noise),
        anticipation=float(p.anticipation),
        weight_memory=float(p.weight_memory),
        key=np.uint64(key),
    )

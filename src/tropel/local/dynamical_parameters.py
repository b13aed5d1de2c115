"""Parameters of the dynamical model, as users give them and as kernels see them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, named_parameters

#: Types of obstacles, in the order of the rows of `Rules.repulsion`.
AGENTS, OBSTACLES, WALLS = 0, 1, 2

_LAWS = {"constant": 0, "time_to_contact": 1, "derivative": 2}


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Repulsion:
    """How one type of obstacle repels: a fire pit is worse than a wall."""

    strength: float = 1.0  #: factor on the repeller
    reach: float = 1.0  #: factor on d0
    margin: float = 0.8  #: safety margin delta of the window [rad]

    def __post_init__(self) -> None:
        if not (self.strength >= 0.0 and self.reach > 0.0 and 0.0 < self.margin < math.pi):
            raise ParameterError(f"Repulsion: strength >= 0, reach > 0 and 0 < margin < pi are needed, got {self}")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class DynamicalParameters:
    """Parameters of `Dynamical`; the papers' values where they give any."""

    attraction: float = 1.0  #: a of GAME eq. 2 [1/s]
    d0_base: float = 0.3  #: distance at which obstacles are felt, for courage ½ [m]
    agents: Repulsion = field(default_factory=Repulsion)
    obstacles: Repulsion = field(default_factory=Repulsion)
    walls: Repulsion = field(default_factory=Repulsion)
    classes: Literal["one", "apart"] = "one"  #: whether agents, obstacles and walls compete with the target apart
    competition: bool = True  #: off: all weights are 1
    crowding: Literal["ahead", "all"] = "ahead"  #: "all" is the print's sum of D
    c1: float = 1.0
    c2: float = 2.5
    speed_law: Literal["constant", "time_to_contact", "derivative"] = "time_to_contact"
    time_to_contact: float = 1.0  #: t2c, kept to what is in front [s]
    front: float = 1.0  #: width of what counts as in front, as a share of the two bodies
    safety: float | None = None  #: d0vel of LAYERS eq. 10, for courage up to ½ [m]; d0_base when left out
    speed_factor: float = 1.0  #: on the result of the speed law (0.8 in GAME figure 6)
    retreat: float = 0.5  #: fastest way backwards, as a share of the desired speed
    noise: float = 0.05  #: of the heading [rad/√s]
    anticipation: float = 1.0  #: share of others' velocity that is reckoned with, 0 to 1
    weight_memory: float = 0.5  #: how long weights take to follow the fixed point [s]
    solid_bodies: bool = True  #: whether bodies never push into each other

    def __post_init__(self) -> None:
        for name in ("agents", "obstacles", "walls"):
            object.__setattr__(self, name, _repulsion(name, getattr(self, name)))
        for name in ("attraction", "d0_base", "time_to_contact", "c1", "c2", "front"):
            if not getattr(self, name) > 0.0:
                raise ParameterError(f"Dynamical: {name} must be positive, not {getattr(self, name)!r}")
        for name in ("noise", "anticipation", "speed_factor", "retreat", "weight_memory"):
            if not getattr(self, name) >= 0.0:
                raise ParameterError(f"Dynamical: {name} must not be negative, not {getattr(self, name)!r}")
        choices = {"speed_law": tuple(_LAWS), "crowding": ("ahead", "all"), "classes": ("one", "apart")}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ParameterError(f"Dynamical: {name} is one of {', '.join(known)}, not {getattr(self, name)!r}")


def _repulsion(name: str, given: Any) -> Repulsion:
    """A table of a scenario file, such as { strength = 2.0 }, as what it means."""
    if isinstance(given, Repulsion):
        return given
    if not isinstance(given, Mapping):
        raise ParameterError(f"Dynamical: {name} is a Repulsion or a table such as {{ strength = 2.0 }}, not {given!r}")
    return Repulsion(**given)


class Rules(NamedTuple):
    """Parameters as kernels see them."""

    attraction: float
    d0_base: float
    repulsion: NDArray[np.float64]  #: (3, 3): strength, reach and margin of agents, obstacles and walls
    class_of: NDArray[np.int64]  #: (3,): class of agents, obstacles and walls
    classes: int
    competition: bool
    ahead_only: bool
    c1: float
    c2: float
    law: int
    time_to_contact: float
    front: float
    safety: float
    speed_factor: float
    retreat: float
    noise: float
    anticipation: float
    weight_memory: float
    key: np.uint64


def rules_of(parameters: DynamicalParameters, key: np.uint64) -> Rules:
    """The parameters in the form that kernels take."""
    p = parameters
    kinds = (p.agents, p.obstacles, p.walls)
    return Rules(
        attraction=float(p.attraction),
        d0_base=float(p.d0_base),
        repulsion=np.array([[k.strength, k.reach, k.margin] for k in kinds], dtype=np.float64),
        class_of=np.array([0, 1, 2] if p.classes == "apart" else [0, 0, 0], dtype=np.int64),
        classes=3 if p.classes == "apart" else 1,
        competition=bool(p.competition),
        ahead_only=p.crowding == "ahead",
        c1=float(p.c1),
        c2=float(p.c2),
        law=_LAWS[p.speed_law],
        time_to_contact=float(p.time_to_contact),
        front=float(p.front),
        safety=float(p.d0_base if p.safety is None else p.safety),
        speed_factor=float(p.speed_factor),
        retreat=float(p.retreat),
        noise=float(p.noise),
        anticipation=float(p.anticipation),
        weight_memory=float(p.weight_memory),
        key=np.uint64(key),
    )

"""Personality: three traits per agent that change how it moves, and presets with plain names.

The traits are numbers in [0, 1] (LAYERS §4.4):

| trait | 0 | 1 | acts on |
|---|---|---|---|
| agility | turns like a ship | turns at once | filter on the turn rate |
| mass | changes speed at once | changes speed like a ship | filter on the forward speed |
| courage | keeps far from obstacles | walks right up to them | d0 and d1 |

    d0 = (d0_base + 1)^(2 (1 - courage)) - 1              d0_base at courage ½, 0 at courage 1        (LAYERS eq. 8)
    d1 = d0vel - v0 t2c                                   printed as d0vel - v0: units do not match   (LAYERS eq. 9)
    d0vel = d0_base below ½, 2 d0_base (1 - courage) above                                            (LAYERS eq. 10)

A preset is for people who do not think in agility, mass and courage. It is a set of traits, most of them normal
distributions cut to [0, 1], and a factor on the desired speed of the group. A group has one preset, or a mixture such
as {"cautious": 0.7, "hasty": 0.3}. Only the ratios of the shares count, and which agent gets which preset depends only
on seed, group and id.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, WithJsonSchema

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.fast_math import fast_exp
from tropel._kernels.philox import random_key, uniforms
from tropel.agents.distributions import Drawable, Normal, draw
from tropel.agents.state import Column
from tropel.errors import ParameterError, is_finite, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE

#: Time constants of the slowest agents [s].
SLOWEST_TURN = 2.0
SLOWEST_SPEED = 3.0

#: d0 of an agent without any fear [m]; never zero, because distances are divided by it.
_LEAST_D0 = 1e-3

#: The columns that models with a personality declare.
PERSONALITY = (
    Column(name="agility", default=1.0, low=0.0, high=1.0, about="0 turns like a ship, 1 turns at once"),
    Column(name="mass", default=0.0, low=0.0, high=1.0, about="0 changes speed at once, 1 changes it like a ship"),
    Column(
        name="courage", default=0.5, low=0.0, high=1.0, about="0 keeps far from obstacles, 1 walks right up to them"
    ),
)
TRAITS = tuple(column.name for column in PERSONALITY)


@inlined_kernel
def filter_gain(sluggishness, slowest, dt):
    """k of the filter `new = (1 - k) old + k wanted` for a time constant of `sluggishness · slowest` [s].

    1 - exp(-dt / tau) makes the response the same for every time step; it never reaches 0.
    """
    tau = min(max(sluggishness, 0.0), 1.0) * slowest
    if tau <= 0.0:
        return 1.0
    return 1.0 - fast_exp(-dt / tau)


@inlined_kernel
def perceived_distance(d0_base, courage):
    """d0: the distance from which obstacles repel the agent [m]."""
    co = min(max(courage, 0.0), 1.0)
    # A power, written so that the logarithm is computed once for all agents.
    return max(fast_exp(2.0 * (1.0 - co) * math.log(d0_base + 1.0)) - 1.0, _LEAST_D0)


@inlined_kernel
def safety_distance(safety, courage, desired_speed, time_to_contact):
    """d1: the free distance [m] at which the agent comes to a stop."""
    co = min(max(courage, 0.0), 1.0)
    d0vel = safety if co < 0.5 else 2.0 * safety * (1.0 - co)
    return d0vel - desired_speed * time_to_contact


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One kind of people; the module docstring explains the traits."""

    about: str
    agility: Drawable
    mass: Drawable
    courage: Drawable
    speed: float = 1.0  #: factor on the desired speed of the group


def _about(mean: float, sd: float = 0.07) -> Normal:
    return Normal(mean, sd, low=0.0, high=1.0)


PRESETS: dict[str, Preset] = {
    "cautious": Preset(
        about="slow, keeps a wide berth", agility=_about(0.85), mass=_about(0.2), courage=_about(0.15), speed=0.8
    ),
    "timid": Preset(
        about="shies away from everything", agility=_about(0.95, 0.03), mass=_about(0.1), courage=_about(0.03, 0.02)
    ),
    "calm": Preset(
        about="strolls, changes speed gently", agility=_about(0.75), mass=_about(0.5), courage=_about(0.5), speed=0.75
    ),
    "nimble": Preset(
        about="turns, starts and stops at once", agility=_about(1.0, 0.02), mass=_about(0.0, 0.02), courage=_about(0.6)
    ),
    "hasty": Preset(
        about="fast, cuts corners", agility=_about(0.9), mass=_about(0.1), courage=_about(0.75), speed=1.35
    ),
    "bold": Preset(
        about="walks close by, brakes late", agility=_about(0.85), mass=_about(0.2), courage=_about(0.92, 0.04)
    ),
    "clumsy": Preset(
        about="turns late and overshoots", agility=_about(0.5, 0.05), mass=_about(0.4), courage=_about(0.5)
    ),
    "heavy": Preset(
        about="gets going and stops slowly",
        agility=_about(0.75),
        mass=_about(0.9, 0.05),
        courage=_about(0.6),
        speed=0.9,
    ),
}

#: A personality: the name of a preset, or the shares of several.
Personality = Annotated[str | Mapping[str, float], CHECKED_ELSEWHERE]


def shares_of(personality: Any, who: str) -> dict[str, float]:
    """The share of each preset, adding up to 1; `who` begins the message if something is wrong with them."""
    given = {personality: 1.0} if isinstance(personality, str) else personality
    if not isinstance(given, Mapping) or not given:
        known = ", ".join(PRESETS)
        raise ParameterError(
            f"{who}: a personality is a name ({known}) or shares such as {{'cautious': 0.7, 'hasty': 0.3}}, "
            f"not {personality!r}"
        )
    for name, share in given.items():
        if name not in PRESETS:
            raise ParameterError(f"{who}: there is no personality '{name}'; {suggest(str(name), PRESETS)}")
        if not (is_finite(share) and share >= 0.0):
            raise ParameterError(f"{who}: the share of '{name}' must be a number that is not negative, not {share!r}")
    total = float(sum(given.values()))
    if not (total > 0.0 and math.isfinite(total)):
        raise ParameterError(f"{who}: the shares of {', '.join(given)} add up to {total:g}; one must be positive")
    return {name: float(share) / total for name, share in given.items()}


def presets_of(
    personality: Personality, *, seed: int, group: str, ids: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    """The presets in a mixture, and for each agent the index of its own, which depends only on (seed, group, id)."""
    shares = shares_of(personality, f"group '{group}'")
    upto = np.cumsum(list(shares.values()))
    upto[-1] = 1.0
    at = uniforms(random_key(seed, f"{group}/personality"), ids)[:, 0]
    return list(shares), np.searchsorted(upto, at, side="right")


def draw_personality(
    personality: Personality, *, seed: int, group: str, ids: NDArray[np.int64]
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """The traits of each agent by name, and the factor on its desired speed."""
    names, number = presets_of(personality, seed=seed, group=group, ids=ids)
    traits = {trait: np.empty(len(ids)) for trait in TRAITS}
    speed = np.empty(len(ids))
    for k, name in enumerate(names):
        its = number == k
        speed[its] = PRESETS[name].speed
        for trait in TRAITS:
            drawn = draw(getattr(PRESETS[name], trait), seed=seed, purpose=f"{group}/{trait}", ids=ids[its])
            traits[trait][its] = drawn
    return traits, speed


def check_has_traits(personality: Personality | None, *, group: str, model: str, columns: set[str]) -> None:
    """Raise if the model that steers a group does not have the traits that a personality would set."""
    missing = [trait for trait in TRAITS if trait not in columns]
    if personality is None or not missing:
        return
    named = personality if isinstance(personality, str) else ", ".join(personality)
    raise ParameterError(
        f"group '{group}': the personality ({named}) sets {', '.join(missing)}, which its steering model {model} does "
        f"not have; steer it with Dynamical, or leave the personality out"
    )


def _valid(personality: Any) -> Any:
    try:
        shares_of(personality, "personality")
    except ParameterError as error:
        raise ValueError(str(error).removeprefix("personality: ")) from error
    return personality


#: A personality as scenario files and events hold it.
PersonalityField = Annotated[
    str | dict[str, float],
    AfterValidator(_valid),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": list(PRESETS)},
                {
                    "type": "object",
                    "properties": {name: {"type": "number", "minimum": 0.0} for name in PRESETS},
                    "additionalProperties": False,
                    "minProperties": 1,
                },
            ]
        }
    ),
]

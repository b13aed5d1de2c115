"""Phase portraits of the dynamical model: how fast an agent turns over the way it faces (GAME figures 2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.contracts import Moment
from tropel.local.dynamical import Dynamical
from tropel.local.turn_rate_curve import TurnRateCurve, turn_rate_curve
from tropel.simulation import Simulation
from tropel.world import Obstacle, World

Disc = tuple[float, float, float]

#: The papers' equations alone, with the d0 of GAME's first experiment.
_PAPERS: dict[str, Any] = {
    "d0_base": 3.0,
    "c2": 2.5,
    "noise": 0.0,
    "anticipation": 0.0,
    "crowding": "all",
    "weight_memory": 0.0,
    "solid_bodies": False,
}
#: Stands for no target at all; an attraction of zero would be no model of somebody who wants to go anywhere.
_NO_ATTRACTION = 1e-9
_RADIUS = 0.4


@dataclass(frozen=True, kw_only=True)
class PhasePortrait:
    """The curve of one agent in one scene, with what is needed to draw both. Lengths in metres."""

    title: str
    curve: TurnRateCurve
    radius: float  #: of the agent, which is at the origin
    obstacles: tuple[Disc, ...]  #: x, y and radius
    target: tuple[float, float] | None = None
    parts: tuple[NDArray[np.float64], ...] = field(default=())  #: what each obstacle alone contributes


def phase_portrait(
    title: str,
    *,
    obstacles: tuple[Disc, ...],
    target: tuple[float, float] | None = None,
    radius: float = _RADIUS,
    headings: NDArray[np.float64] | None = None,
    **parameters: Any,
) -> PhasePortrait:
    """The portrait of an agent at the origin; `parameters` are those of `Dynamical`, beside the papers' own."""
    angles = np.radians(np.linspace(-180.0, 180.0, 721)) if headings is None else headings
    given = {
        **_PAPERS,
        **({"attraction": _NO_ATTRACTION, "competition": False} if target is None else {}),
        **parameters,
    }
    curve = _curve(obstacles, target, radius, angles, given)
    parts = tuple(_curve((one,), target, radius, angles, given).obstacles for one in obstacles)
    return PhasePortrait(title=title, curve=curve, radius=radius, obstacles=obstacles, target=target, parts=parts)


def _curve(
    obstacles: tuple[Disc, ...],
    target: tuple[float, float] | None,
    radius: float,
    headings: NDArray[np.float64],
    parameters: dict[str, Any],
) -> TurnRateCurve:
    far = 2.0 + max(np.hypot(x, y) + r for x, y, r in obstacles)
    goal = (far, 0.0) if target is None else target
    reach = max(far, float(np.hypot(*goal))) + 1.0
    world = World(
        bounds=(-reach, -reach, reach, reach),
        obstacles={str(k): Obstacle(radius=r, position=(x, y)) for k, (x, y, r) in enumerate(obstacles)},
        targets={"target": goal},
    )
    group = Group("agent", positions=[(0.0, 0.0)], goal="target", radius=radius, sense_radius=far)
    model = Dynamical(**parameters)
    sim = Simulation(world, group, local=model)
    moment = Moment.of(sim.agents, world, environment=sim.environment, directions=np.array([goal]) / np.hypot(*goal))
    return turn_rate_curve(model, moment, agent=0, headings=headings)


def _pair(gap: float, *, away: float = 2.2, size: float = 0.6) -> tuple[Disc, ...]:
    """Two obstacles side by side across the way, so far apart."""
    return (away, gap / 2 + size, size), (away, -gap / 2 - size, size)


def gap_portraits() -> list[PhasePortrait]:
    """GAME figure 2: two obstacles that leave too little room, just as much as the agent is wide, and plenty."""
    width = 2 * _RADIUS
    kinds = {"narrow": 0.5 * width, "critical": width, "wide": 2.2 * width}
    return [
        phase_portrait(f"{kind} gap: {gap / width:g} × the agent", obstacles=_pair(gap)) for kind, gap in kinds.items()
    ]


def competition_portraits() -> list[PhasePortrait]:
    """GAME figure 3: a target behind a gap that is too narrow, without and with the competition of behaviours."""
    pair, target = _pair(0.5 * 2 * _RADIUS), (6.0, 0.0)
    return [
        phase_portrait("sum only: a way where none is", obstacles=pair, target=target, competition=False),
        phase_portrait("with competition: the target is off", obstacles=pair, target=target),
    ]

"""Phase portraits of the dynamical model: the turn rate phi' of an agent over its heading phi (GAME figures 1 to 3).

Where the curve falls through zero the heading is stable, where it rises the heading is unstable. `turn_rate_curve`
computes the curve of any agent; the portraits of GAME figures 2 and 3 follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.errors import ParameterError
from tropel.local.dynamical.model import Dynamical
from tropel.simulation import Simulation
from tropel.world import Obstacle, World

Floats = NDArray[np.float64]


class TurnRateCurve(NamedTuple):
    """One row per heading; turn rates in rad/s, positive counter-clockwise."""

    heading: Floats  #: phi [rad]
    target: Floats  #: f_tar
    obstacles: Floats  #: f_obs, summed over the classes
    weight_target: Floats
    weight_obstacles: Floats  #: of the first class, which is that of all obstacles unless classes are weighed apart
    turn_rate: Floats  #: phi': what the agent does, without noise and before agility filters it

    def balances(self, *, stable: bool = True) -> Floats:
        """Headings [rad] at which phi' crosses zero, falling (stable) or rising (unstable)."""
        now, after = self.turn_rate[:-1], self.turn_rate[1:]
        at = np.flatnonzero((now > 0) & (after <= 0) if stable else (now < 0) & (after >= 0))
        share = now[at] / (now[at] - after[at])
        return self.heading[at] + share * (self.heading[at + 1] - self.heading[at])


def turn_rate_curve(model: Dynamical, moment: Moment, *, agent: int, headings: Floats) -> TurnRateCurve:
    """The curve of the agent in row `agent` over headings [rad], from the same moment as `Dynamical.steer`. In 2D.

    Every heading starts from the agent's current weights, so where both target on and target off are stable, the curve
    is the one that follows from the agent's past. Otherwise the weights are those of the fixed point, whatever the
    `weight_memory`. The state is not changed.
    """
    directions = moment.directions
    if moment.state.dim != 2:
        raise ParameterError("a curve over one angle exists in 2D only; this state has 3 dimensions")
    parameters = {field.name: getattr(model.parameters, field.name) for field in fields(model.parameters)}
    parameters |= {"noise": 0.0, "weight_memory": 0.0}
    weighed = Dynamical(**parameters)
    summed = Dynamical(**{**parameters, "competition": False})
    to_target = directions[agent] / max(float(np.linalg.norm(directions[agent])), 1e-300)
    target = model.parameters.attraction * (np.cos(headings) * to_target[1] - np.sin(headings) * to_target[0])
    competing = _turn(weighed, moment, agent=agent, headings=headings)
    plain = _turn(summed, moment, agent=agent, headings=headings)
    return TurnRateCurve(headings, target, plain[:, 0] - target, competing[:, 1], competing[:, 2], competing[:, 0])


def _turn(model: Dynamical, moment: Moment, *, agent: int, headings: Floats) -> Floats:
    """Turn rate, weight of the target and of the first class; one row per heading."""
    state = moment.state
    facing = AgentState(state.dim, model.all_columns)
    facing.columns = {**state.columns, "heading": state.heading.copy(), "agility": np.ones(len(state))}
    out = Steered.like(facing, model.memory_names)
    tried = replace(moment, state=facing, members=np.array([agent], dtype=np.int64), step=0)
    found = np.empty((len(headings), 3))
    for k, phi in enumerate(headings):
        facing.heading[agent] = np.cos(phi), np.sin(phi)
        model.steer(tried, out)
        found[k] = (
            out.memory["turn_rate"][agent, 0],
            out.memory["weight_target"][agent],
            out.memory["weights"][agent, 0],
        )
    return found


Disc = tuple[float, float, float]

#: The equations of the papers alone, with the d0 of GAME's first experiment.
_PAPERS: dict[str, Any] = {
    "d0_base": 3.0,
    "c2": 2.5,
    "noise": 0.0,
    "anticipation": 0.0,
    "crowding": "all",
    "weight_memory": 0.0,
    "solid_bodies": False,
}
#: Stands for no target at all; the model does not accept an attraction of zero.
_NO_ATTRACTION = 1e-9
_RADIUS = 0.4


@dataclass(frozen=True, kw_only=True)
class PhasePortrait:
    """The curve of one agent in one scene, with all that is needed to draw both. Lengths in metres."""

    title: str
    curve: TurnRateCurve
    radius: float  #: of the agent, which is at the origin
    obstacles: tuple[Disc, ...]  #: x, y and radius
    target: tuple[float, float] | None = None
    parts: tuple[NDArray[np.float64], ...] = field(default=())  #: the contribution of each obstacle alone


def phase_portrait(
    title: str,
    *,
    obstacles: tuple[Disc, ...],
    target: tuple[float, float] | None = None,
    radius: float = _RADIUS,
    headings: NDArray[np.float64] | None = None,
    **parameters: Any,
) -> PhasePortrait:
    """The portrait of an agent at the origin; `parameters` of `Dynamical` override those of the papers."""
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
    """Two obstacles side by side across the path, with a gap between them."""
    return (away, gap / 2 + size, size), (away, -gap / 2 - size, size)


def gap_portraits() -> list[PhasePortrait]:
    """GAME figure 2: two obstacles with a gap that is too narrow, exactly as wide as the agent, and wide."""
    width = 2 * _RADIUS
    kinds = {"narrow": 0.5 * width, "critical": width, "wide": 2.2 * width}
    return [
        phase_portrait(f"{kind} gap: {gap / width:g} × the agent", obstacles=_pair(gap)) for kind, gap in kinds.items()
    ]


def competition_portraits() -> list[PhasePortrait]:
    """GAME figure 3: a target behind a gap that is too narrow, without and with the competition of behaviours."""
    pair, target = _pair(0.5 * 2 * _RADIUS), (6.0, 0.0)
    return [
        phase_portrait("sum only: a path where none exists", obstacles=pair, target=target, competition=False),
        phase_portrait("with competition: target switched off", obstacles=pair, target=target),
    ]

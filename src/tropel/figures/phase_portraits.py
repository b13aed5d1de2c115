"""Phase portraits of the dynamical model: the turn rate phi' of an agent over its heading phi (GAME figures 1 to 3).

Where the curve falls through zero the heading is stable, where it rises the heading is unstable. `turn_rate_curve`
computes the curve of any agent; the portraits of GAME figures 2 and 3 follow, and `draw_phase_plot` draws them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.errors import ParameterError
from tropel.local.dynamical.model import Dynamical
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.simulation import Simulation
from tropel.world import Obstacle, World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


# Phase plots: the turn rate of an agent over its heading, below a map of what lies ahead of it.

_PANEL, _MAP, _CURVE = 400, 250, 270
_LEFT, _TOP, _BETWEEN, _BELOW = 84, 82, 46, 124

_TURN = style.INK
_TARGET_PULL = style.TARGET
_PUSH = style.THERE


def draw_phase_plot(portraits: Sequence[PhasePortrait], path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Draw portraits side by side as one PNG. Full dots are headings the agent settles at; open ones repel it."""
    if not portraits:
        raise ParameterError("nothing to draw: give at least one portrait")
    file = picture_path(path, ".png")
    width = _LEFT + len(portraits) * (_PANEL + _LEFT)
    figure = style.new_figure(width, _TOP + _MAP + _BETWEEN + _CURVE + _BELOW)
    style.add_text(figure, _LEFT, 18, title or "Turn rate of an agent over its heading", fontsize=style.TITLE_SIZE)
    highest = 1.15 * max(float(np.abs(np.array(_lines(p))).max()) for p in portraits)
    for k, portrait in enumerate(portraits):
        left = _LEFT + k * (_PANEL + _LEFT)
        _draw_scene(style.add_axes(figure, left, _TOP, _PANEL, _MAP), portrait)
        curve = style.add_axes(figure, left, _TOP + _MAP + _BETWEEN, _PANEL, _CURVE)
        _draw_curve(curve, portrait, highest, first=k == 0)
    _explain(figure, portraits)
    return save_figure(figure, file)


def _lines(portrait: PhasePortrait) -> list[Any]:
    curve = portrait.curve
    return [curve.turn_rate, curve.target, *portrait.parts]


def _draw_scene(axes: Axes, portrait: PhasePortrait) -> None:
    """From above: the agent on the left, with an arrow for each heading it may settle at."""
    from matplotlib.patches import Circle

    axes.set_facecolor(style.FLOOR)
    for x, y, radius in portrait.obstacles:
        axes.add_patch(Circle((x, y), radius, facecolor=style.OBSTACLE, edgecolor=style.OBSTACLE_EDGE, linewidth=0.8))
    axes.add_patch(Circle((0.0, 0.0), portrait.radius, facecolor=style.THERE, edgecolor=style.INK, linewidth=0.8))
    for angle in _ahead(portrait.curve.balances()):
        axes.annotate(
            "",
            xy=(1.5 * np.cos(angle), 1.5 * np.sin(angle)),
            xytext=(0.0, 0.0),
            arrowprops={"arrowstyle": "-|>", "color": style.INK, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0},
        )
    reach = max(x + r for x, _, r in portrait.obstacles)
    if portrait.target is not None:
        axes.plot(*portrait.target, marker="X", markersize=9, color=style.TARGET, markeredgecolor=style.PAPER)
        reach = max(reach, portrait.target[0])
    # Equal scales along and across.
    along = reach + portrait.radius + 1.0
    middle, across = (reach - portrait.radius) / 2, along * _MAP / _PANEL
    if across < 5.0:
        along, across = 5.0 * _PANEL / _MAP, 5.0
    axes.set_xlim(middle - along / 2, middle + along / 2)
    axes.set_ylim(-across / 2, across / 2)
    axes.set_xticks([])
    axes.set_yticks([])
    style.label_axes(axes, title=portrait.title)


def _draw_curve(axes: Axes, portrait: PhasePortrait, highest: float, *, first: bool) -> None:
    curve = portrait.curve
    degrees = np.degrees(curve.heading)
    axes.axhline(0.0, color=style.FAINT_INK, linewidth=0.8)
    if portrait.target is not None:
        off = curve.weight_target < 0.01
        axes.fill_between(degrees, -highest, highest, where=off.tolist(), color=style.RULE, alpha=0.6, linewidth=0)
        axes.plot(degrees, curve.target, color=_TARGET_PULL, linewidth=1.0)
    for part in portrait.parts:
        axes.plot(degrees, part, color=_PUSH, linewidth=1.0)
    axes.plot(degrees, curve.turn_rate, color=_TURN, linewidth=2.0)
    for stable, fill in ((True, style.INK), (False, style.PAPER)):
        at = np.degrees(_ahead(curve.balances(stable=stable)))
        axes.plot(
            at, np.zeros_like(at), "o", markersize=6.5, markerfacecolor=fill, markeredgecolor=style.INK, linestyle=""
        )
    axes.set_xlim(-120, 120)
    axes.set_xticks(range(-120, 121, 30))
    axes.set_ylim(-highest, highest)
    style.open_panel(axes)
    style.label_axes(axes, x="heading φ [°]", y="turn rate φ′ [rad/s]" if first else "")


def _ahead(angles: Any) -> Any:
    """The angles within the range of the plot."""
    return angles[np.abs(np.degrees(angles)) < 120.0]


def _explain(figure: Figure, portraits: Sequence[PhasePortrait]) -> None:
    """A legend in which each text has the colour it explains."""
    has_target = any(p.target is not None for p in portraits)
    words = [("turn rate", _TURN), ("from each obstacle", _PUSH)]
    if has_target:
        words += [("from the target", _TARGET_PULL), ("grey: the target is switched off", style.FAINT_INK)]
    words.append(("● settles here   ○ repelled", style.INK))
    right = float(figure.get_size_inches()[0]) * style.DPI
    left, down = float(_LEFT), _TOP + _MAP + _BETWEEN + _CURVE + 62
    for text, colour in words:
        wide = 7.8 * len(text)
        if left + wide > right:
            left, down = float(_LEFT), down + 24
        style.add_text(figure, left, down, text, color=colour)
        left += wide + 26

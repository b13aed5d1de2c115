"""Emotions: calm, alert, afraid or confident, and how that spreads from person to person (LAYERS §8).

The spread is that of ASCRIBE (Bosse, Hoogendoorn, Klein, Treur, van der Wal & van Wissen, "Modelling collective
decision making in groups and crowds: integrating social contagion and interacting emotions, beliefs and intentions",
Autonomous Agents and Multi-Agent Systems 27, 2013, section 3). Person i has the emotion q_i in [0, 1] and notices those
of everybody j within earshot, with the strength

    γ_ij = spread · openness_i · (1 - d_ij / earshot) · expressiveness_j,      γ_i = Σ_j γ_ij

less for strangers, people of other groups. With the weighted mean q*_i = Σ_j γ_ij q_j / γ_i,

    dq_i/dt = γ_i [ η (1 - (1 - q*_i)(1 - q_i)) + (1 - η) q*_i - q_i ]

which is the paper's equation with the bias β = 1. Without amplification, η = 0, emotions even out; with it, people work
each other up: at η = 1 it is dq/dt = γ q* (1 - q), an epidemic. η is `amplification` for fear, and zero for alertness
and confidence. Confidence is not in the paper: it multiplies γ_i by 1 - confidence_i where others would make somebody
more afraid, more alert or less confident.

Hazards and the dead that somebody sees within `sight` frighten: fear approaches 1 - (distance to the rim) / sight
within `shock`, and alertness approaches 1. Who begins to overlap another body loses the part `collisions` of its calm.
Seeing frightened people makes alert. Fear and alertness fade within `calming`. All of these are linear in the own
emotion while the others are held, and each step takes their exact solutions one after the other. What is left of the
length of a step is that others are held for so long: in a chain of twelve people 0.1 s changes fear by 0.03.

Panic multiplies the desired speed by `speed` and takes the part `courage` of the courage; confidence closes that part
of its gap to 1. As with tiredness, each step undoes what the step before has done, so that other changes add up. The
column `mood` has the emotion that prevails: afraid, else confident, else alert if above `threshold`, else calm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.contracts import Decided, Decision, Declaration, Moment, Rows
from tropel.contracts.named_states import NamedStates
from tropel.deciding.emotions.listening import Shown, listen, look_out
from tropel.deciding.emotions.parameters import (
    AFRAID,
    ALERT,
    ALERTNESS,
    CALM,
    CONFIDENCE,
    CONFIDENT,
    COURAGE,
    EXPRESSIVENESS,
    FEAR,
    FELT_CONFIDENCE,
    FELT_FEAR,
    MOOD,
    MOODS,
    OPENNESS,
    TOUCHED,
    EmotionsParameters,
)
from tropel.errors import ParameterError

Floats = NDArray[np.float64]


class Emotions(Decision):
    """People are calm, alert, afraid or confident, and it spreads."""

    def __init__(self, **parameters: float) -> None:
        self.parameters = EmotionsParameters(**parameters)
        p = self.parameters
        sets = ("fear", "alertness", "confidence")
        sets += (*(("desired_speed",) if p.speed != 1.0 else ()), *(("courage",) if p.courage else ()))
        self.declares = Declaration(
            columns=(FEAR, ALERTNESS, CONFIDENCE, OPENNESS, EXPRESSIVENESS, *((COURAGE,) if p.courage else ())),
            memory=(FELT_FEAR, FELT_CONFIDENCE, TOUCHED, MOOD),
            periodic_space=True,
            sets=sets,
            answers_collisions=p.collisions > 0.0,
        )

    def offers(self) -> tuple[object, ...]:
        return (NamedStates(column=MOOD.name, names=MOODS),)

    def prepare(self, moment: Moment) -> None:
        period = moment.world.period[moment.world.period > 0.0]
        if len(period) and not 2.0 * self.parameters.earshot < period.min():
            raise ParameterError(
                f"Emotions: earshot is {self.parameters.earshot:g} m; where space repeats every {period.min():g} m it "
                f"must be less than half of that, or people would be heard twice"
            )

    def decide(self, moment: Moment, out: Decided) -> None:
        p, rows, dt = self.parameters, moment.members, moment.dt
        columns = moment.state.columns
        strength, around = self._around(moment)
        danger = self._danger(moment)
        fear, alertness, confidence = (columns[name][rows] for name in ("fear", "alertness", "confidence"))
        doubt = 1.0 - confidence
        new_fear = _spread(fear, around["fear"], strength, dt, rising=doubt, amplification=p.amplification)
        frightened = np.maximum(around["alertness"], around["fear"])
        new_alertness = _spread(alertness, frightened, strength, dt, rising=doubt)
        new_confidence = _spread(confidence, around["confidence"], strength, dt, falling=doubt)
        out.attributes["confidence"][rows] = new_confidence
        fading = np.exp(-dt / p.calming)
        new_fear = _approached(new_fear * fading, danger, dt / p.shock)
        new_alertness = _approached(new_alertness * fading, np.where(danger > 0.0, 1.0, 0.0), dt / p.shock)
        if p.collisions:
            bumped = (moment.state.collided[rows] != 0) & (columns[TOUCHED.name][rows] == 0)
            new_fear = np.where(bumped, new_fear + p.collisions * (1.0 - new_fear), new_fear)
            out.memory[TOUCHED.name][rows] = moment.state.collided[rows]
        out.attributes["fear"][rows], out.attributes["alertness"][rows] = new_fear, new_alertness
        prevails = [new_fear >= p.threshold, new_confidence >= p.threshold, new_alertness >= p.threshold]
        out.memory[MOOD.name][rows] = np.select(prevails, [AFRAID, CONFIDENT, ALERT], CALM)
        self._act(moment, out, new_fear, new_confidence)

    def _act(self, moment: Moment, out: Decided, fear: Floats, confidence: Floats) -> None:
        """Change speed and courage, after undoing what was changed before."""
        p, rows, columns = self.parameters, moment.members, moment.state.columns
        before, sure_before = columns[FELT_FEAR.name][rows], columns[FELT_CONFIDENCE.name][rows]
        out.memory[FELT_FEAR.name][rows], out.memory[FELT_CONFIDENCE.name][rows] = fear, confidence
        if p.speed != 1.0:
            ratio = (1.0 + (p.speed - 1.0) * fear) / (1.0 + (p.speed - 1.0) * before)
            out.attributes["desired_speed"][rows] = moment.state.desired_speed[rows] * ratio
        if p.courage:
            without_confidence = 1.0 - (1.0 - columns["courage"][rows]) / (1.0 - p.courage * sure_before)
            own = np.clip(without_confidence / (1.0 - p.courage * before), 0.0, 1.0)
            shaken = own * (1.0 - p.courage * fear)
            out.attributes["courage"][rows] = np.clip(1.0 - (1.0 - shaken) * (1.0 - p.courage * confidence), 0.0, 1.0)

    def _around(self, moment: Moment) -> tuple[Floats, dict[str, Floats]]:
        """γ of each member, and the weighted means of what others around it feel."""
        p, rows, state = self.parameters, moment.members, moment.state
        seen = np.zeros((len(rows), 4))
        if p.spread and len(rows):
            shown = Shown(
                state.group, state.dead, *(state.columns[c.name] for c in (EXPRESSIVENESS, FEAR, ALERTNESS, CONFIDENCE))
            )
            listen(
                rows, state.position, state.level, shown, moment.cells.cell_list, moment.world.wall_grid(2.0),
                p.earshot, p.strangers, seen,
            )  # fmt: skip
        means = {"fear": seen[:, 1], "alertness": seen[:, 2], "confidence": seen[:, 3]}
        return p.spread * state.columns[OPENNESS.name][rows] * seen[:, 0], means

    def _danger(self, moment: Moment) -> Floats:
        """How frightening what each member sees is."""
        p, rows, state, hazards = self.parameters, moment.members, moment.state, moment.world.hazards
        dead = _dead_by_id(state) if p.deaths else np.empty(0, dtype=np.int64)
        deadly = hazards.rows_where("deadly")
        level = np.zeros(len(rows))
        if len(rows) and (len(deadly) or len(dead)):
            places = np.vstack([hazards.position[deadly], state.position[dead]])
            rims = np.concatenate([hazards.inner[deadly], np.zeros(len(dead))])
            dread = np.concatenate([np.ones(len(deadly)), np.full(len(dead), p.deaths)])
            walls = moment.world.wall_grid(2.0)
            look_out(rows, state.position, places, rims, dread, moment.world.period, walls, p.sight, level)
        return level


def _dead_by_id(state: Any) -> Rows:
    return np.flatnonzero(state.dead != 0).astype(np.int64)


def _spread(
    own: Floats,
    around: Floats,
    strength: Floats,
    dt: float,
    *,
    rising: Floats | float = 1.0,
    falling: Floats | float = 1.0,
    amplification: float = 0.0,
) -> Floats:
    """The exact solution of dq/dt = γ [η (q* + (1 - q*) q) + (1 - η) q* - q] after dt, with q* held.

    That is dq/dt = γ (q* - (1 - η (1 - q*)) q). Where q rises or falls, γ is multiplied by that.
    """
    rate = 1.0 - amplification * (1.0 - around)
    # With η = 1 and nobody afraid around, fear stays as it is.
    settled = np.where(rate > 0.0, around / np.maximum(rate, 1e-300), own)
    strength = strength * np.where(settled > own, rising, falling)
    return np.asarray(np.clip(settled + (own - settled) * np.exp(-strength * rate * dt), 0.0, 1.0))


def _approached(own: Floats, level: Floats, share: float) -> Floats:
    """Rise towards a level, if it is above the own one."""
    return np.asarray(np.where(level > own, level - (level - own) * np.exp(-share), own))

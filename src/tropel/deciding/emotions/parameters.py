"""Parameters of emotions, and the columns that agents have by them."""

from __future__ import annotations

from dataclasses import dataclass

from tropel.agents.personality import PERSONALITY
from tropel.agents.state import Column
from tropel.errors import named_parameters
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.foundation.quantities import number

COURAGE = next(column for column in PERSONALITY if column.name == "courage")
FEAR = Column(name="fear", low=0.0, high=1.0, about="0 none, 1 panic")
ALERTNESS = Column(name="alertness", low=0.0, high=1.0, about="0 at ease, 1 on guard")
CONFIDENCE = Column(name="confidence", low=0.0, high=1.0, about="1 is never frightened by others and calms them")
OPENNESS = Column(name="openness", default=1.0, low=0.0, high=1.0, about="how much the emotions of others touch it")
EXPRESSIVENESS = Column(
    name="expressiveness", default=1.0, low=0.0, high=1.0, about="how much it shows its own emotions"
)
#: What desired speed and courage have been changed by so far.
FELT_FEAR = Column(name="felt_fear", low=0.0, high=1.0, about="fear that speed and courage follow")
FELT_CONFIDENCE = Column(name="felt_confidence", low=0.0, high=1.0, about="confidence that courage follows")
#: Whoever was in contact in the last step is not frightened by it again.
TOUCHED = Column(name="touched", dtype="uint8", high=1, about="1 if it collided in the last step but one")
MOODS = ("calm", "alert", "afraid", "confident")
CALM, ALERT, AFRAID, CONFIDENT = range(len(MOODS))
MOOD = Column(
    name="mood", dtype="uint8", high=len(MOODS) - 1, about="the emotion that prevails: calm, alert, afraid or confident"
)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class EmotionsParameters:
    """How emotions come, spread, fade and act."""

    earshot: float = number(4.0, above=0.0, high=LARGEST_LENGTH, unit="m", about="how far emotions are noticed")
    spread: float = number(0.3, low=0.0, high=1000.0, unit="1/s", about="how fast they pass on, for each one nearby")
    strangers: float = number(0.5, low=0.0, high=1.0, about="how much people of other groups count")
    amplification: float = number(0.5, low=0.0, high=1.0, about="0: fear evens out; 1: people work each other up")
    sight: float = number(10.0, above=0.0, high=LARGEST_LENGTH, unit="m", about="how far hazards and the dead frighten")
    shock: float = number(1.0, above=0.0, unit="s", about="time constant with which fear comes at their sight")
    deaths: float = number(0.8, low=0.0, high=1.0, about="fear at the sight of somebody dead nearby")
    collisions: float = number(0.1, low=0.0, high=1.0, about="part of the gap to panic that a collision closes")
    calming: float = number(60.0, above=0.0, unit="s", about="time constant with which fear and alertness fade")
    courage: float = number(0.8, low=0.0, high=0.99, about="part of the courage that panic takes, or confidence adds")
    speed: float = number(1.5, low=0.1, high=10.0, about="times the desired speed in panic")
    threshold: float = number(0.5, above=0.0, high=1.0, about="from which an emotion prevails")

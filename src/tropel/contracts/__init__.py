"""The contracts between the parts of a step: the one package that every layer may import.

Each step hands out frozen `Moment`s and takes back what is written into `out`:

    decision.decide(moment, out)         writes out.attributes[name][moment.members]
    planner.direct(moment, out)          writes out.directions[moment.members]
    habit.adjust(moment, directions)     changes directions[moment.members] before their model steers
    environment.sense(moment) -> Near    finds the agents, walls and obstacles near each agent
    model.steer(moment, out)             writes out.velocity[moment.members], and more if it declares more

A layer extends `Planner`, `Decision`, `Habit`, `Environment` or `Model`, each of which has one method to write.
Everything else that the engine should know is declared, as in `declares = ModelDeclaration(solid_bodies=True)`.
Declarations are typed, have defaults, and refuse names that they do not know. `tropel.testing` checks that a layer
keeps its promises.
"""

from tropel.contracts.beliefs import Belief, Beliefs
from tropel.contracts.declarations import Declaration, EnvironmentDeclaration, Follows, ModelDeclaration, Moves
from tropel.contracts.layers import Decision, Environment, Habit, Layer, Model, Planner
from tropel.contracts.moment import Decided, Guidance, Moment, Rows
from tropel.contracts.near import Near

__all__ = [
    "Belief",
    "Beliefs",
    "Decided",
    "Decision",
    "Declaration",
    "Environment",
    "EnvironmentDeclaration",
    "Follows",
    "Guidance",
    "Habit",
    "Layer",
    "Model",
    "ModelDeclaration",
    "Moment",
    "Moves",
    "Near",
    "Planner",
    "Rows",
]

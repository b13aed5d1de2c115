"""The columns of agents in squads. The engine writes them between steps, and the habit `KeepFormation` reads them."""

from __future__ import annotations

from tropel.agents.state import Column
from tropel.world.shapes import FARTHEST

#: Values of the column `role`.
NO_ROLE, MEMBER, COMMANDER = 0, 1, 2
ROLES = ("none", "member", "commander")

#: Values of the column `order`.
FOLLOW, POST, ATTACK, RETREAT = 0, 1, 2, 3
ORDERS = ("keep formation", "hold a post", "attack", "retreat")

ROLE = Column(name="role", dtype="uint8", high=len(ROLES) - 1, kept=True, about="0 none, 1 member, 2 commander")
ORDER = Column(
    name="order",
    dtype="uint8",
    high=len(ORDERS) - 1,
    kept=True,
    about="what its commander tells it: 0 keep formation, 1 hold a post, 2 attack, 3 retreat",
)
PLACE = Column(
    name="post",
    vector=True,
    low=-FARTHEST,
    high=FARTHEST,
    kept=True,
    unit="m",
    about="its post, or the enemy that it attacks",
)
SLOT = Column(
    name="slot",
    vector=True,
    low=-FARTHEST,
    high=FARTHEST,
    kept=True,
    unit="m",
    about="its place in the formation: how far ahead of its commander, and how far to the left",
)
SQUAD_COLUMNS = (ROLE, ORDER, PLACE, SLOT)

"""Which members of a model walk now."""

from __future__ import annotations

from tropel.contracts import Moment, Rows


def started(moment: Moment) -> Rows:
    """The members without those that have not started yet; for models in which agents move without a direction."""
    members = moment.members
    return members[~moment.waiting[members]] if len(moment.waiting) else members

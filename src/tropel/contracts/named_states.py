"""Columns of whole numbers that have names: pages show the name, and records tell who changed to which, and when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NamedStates:
    """An offer of a layer (`contracts/offers.py`): a column of its memory, and what its numbers mean, from 0 on."""

    column: str
    names: tuple[str, ...]

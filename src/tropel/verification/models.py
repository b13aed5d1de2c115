"""Steering models by the names that scenario files use, with their default parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tropel.registry import MODELS

#: Makes a fresh steering model.
Model = Callable[[], Any]


def model_names() -> list[str]:
    """The models that scenario files know by a short name."""
    return list(MODELS)


def named_model(name: str) -> Model:
    """The model with a short name, or given as "package.module:Class".

    Who calls names the class, not a file, so its package is allowed.
    """
    return MODELS.find(name, allow_imports=[name.partition(":")[0]])

"""Steering models by the names that scenario files use, with their default parameters."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tropel.errors import ParameterError, suggest
from tropel.scenario.loading import MODELS

#: Makes a fresh steering model.
Model = Callable[[], Any]


def model_names() -> list[str]:
    """The models that scenario files know by a short name."""
    return list(MODELS)


def named_model(name: str) -> Model:
    """The model with a short name, or given as "package.module:Class"."""
    address = MODELS.get(name, name)
    if ":" not in address:
        raise ParameterError(
            f"there is no steering model '{name}'; {suggest(name, MODELS)} (or give 'package.module:Class')"
        )
    module, _, attribute = address.partition(":")
    try:
        model: Model = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(f"cannot load the steering model '{name}': {error}") from error
    return model

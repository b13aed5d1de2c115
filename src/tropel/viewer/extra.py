"""viser, which comes with the extra `view`."""

from __future__ import annotations

import importlib
from typing import Any

from tropel.errors import MissingExtraError


def import_viser() -> Any:
    """The module viser, or an error that says which extra to install."""
    try:
        return importlib.import_module("viser")
    except ImportError as error:
        raise MissingExtraError("the browser viewer", "view") from error

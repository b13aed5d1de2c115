"""Mesa's own boid example, as it is in the package (`mesa.examples.basic.boid_flockers`).

Mesa is an optional extra: `pip install 'tropel[bench]'`.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from tropel.errors import MissingExtraError

_EXAMPLE = "mesa.examples.basic.boid_flockers.model"


class MesaFlock:
    """So many boids that see as far as `vision` on a torus; all else is as the example has it."""

    def __init__(self, *, agents: int, side: float, vision: float, separation: float = 1.0, seed: int = 1) -> None:
        self._model = _example()(
            population_size=agents, width=side, height=side, vision=vision, separation=separation, seed=seed
        )

    def step(self) -> None:
        """Move everybody forward by one step."""
        self._model.step()


def mesa_version() -> str:
    return str(importlib.import_module("mesa").__version__)


def _example() -> Any:
    try:
        with warnings.catch_warnings():
            # Its experimental space says on import that it is experimental.
            warnings.simplefilter("ignore")
            return importlib.import_module(_EXAMPLE).BoidFlockers
    except ImportError as error:
        raise MissingExtraError("the comparison with Mesa", "bench") from error

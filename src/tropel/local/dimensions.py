"""What models that only know two dimensions say in a 3D world."""

from __future__ import annotations

from tropel.contracts import Model, Moment
from tropel.errors import ParameterError


def refuse_3d(model: Model, moment: Moment) -> None:
    """Raise unless the world has two dimensions."""
    dim = moment.state.dim
    if dim != 2:
        raise ParameterError(
            f"{type(model).__name__} is a 2D model, and this world has {dim} dimensions; "
            "use a 2D world, or a model that supports both, such as Seek"
        )

"""Parameters of the model `mobility_map`."""

from __future__ import annotations

from dataclasses import dataclass

from tropel.errors import ParameterError, named_parameters
from tropel.foundation.quantities import number

#: How riders move: by their map, or in a physics engine.
PHYSICS = ("map", "full")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class RidersParameters:
    """Parameters of `Riders`: how a character chooses among its futures."""

    character: str = "human"  #: a character by name, or a .toml file with its kind and parameters
    t_max: float | None = number(
        None, above=0.0, high=60.0, unit="s", about="futures count up to this time; by default as the map says"
    )
    ratio: float | None = number(
        None, low=0.0, high=1.0, about="weight of errors in position against errors in heading; default as the map says"
    )
    interval: float = number(0.1, above=0.0, high=10.0, unit="s", about="time between two decisions")
    physics: str = "map"  #: "map": riders move by their map; "full": in a physics engine
    horizon: float = number(1.0, low=0.0, high=10.0, unit="s", about="how far ahead futures must be free of collisions")
    margin: float = number(0.3, low=0.0, high=10.0, unit="m", about="room kept between bodies")
    brake: float = number(4.0, above=0.0, high=50.0, unit="m/s²", about="deceleration if no future is free")
    speed_up: float = number(1.5, above=0.0, high=50.0, unit="m/s²", about="acceleration, and gentle deceleration")
    slide: float = number(5.0, above=0.0, high=50.0, unit="m/s²", about="deceleration of a body that has fallen")
    settling: float = number(
        0.5, above=0.0, high=10.0, unit="s", about="time in which a rider's state approaches that of its trajectory"
    )

    def __post_init__(self) -> None:
        if self.physics not in PHYSICS:
            raise ParameterError(f'Riders: physics must be "map" or "full", not {self.physics!r:.40}')

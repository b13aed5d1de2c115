"""The clock of a replay: where in the recorded time it is, whether it goes on, and how fast."""

from __future__ import annotations

from tropel.errors import ParameterError


class Player:
    """Goes from `start` to `end` [s] as it is told how much time has passed; stops at the end."""

    def __init__(self, start: float, end: float, *, speed: float = 1.0, playing: bool = True) -> None:
        self.start, self.end = start, end
        self.time = start
        self.playing = playing and end > start
        self.set_speed(speed)

    @property
    def at_end(self) -> bool:
        return self.time >= self.end

    def set_speed(self, speed: float) -> None:
        """How many recorded seconds pass in a second."""
        if not 0.0 < speed < float("inf"):
            raise ParameterError(f"speed is how many recorded seconds pass in a second, not {speed!r}")
        self.speed = float(speed)

    def play(self) -> None:
        """Go on; from the end, begin again."""
        if self.at_end:
            self.time = self.start
        self.playing = self.end > self.start

    def pause(self) -> None:
        self.playing = False

    def seek(self, time: float) -> None:
        """Go to a time, or to the end of the run that is nearer."""
        self.time = min(max(float(time), self.start), self.end)

    def advance(self, seconds: float) -> None:
        """So much time has passed before the screen."""
        if not self.playing:
            return
        self.seek(self.time + seconds * self.speed)
        if self.at_end:
            self.playing = False

"""An overlay that is on: it looks, draws and says what is seen, and is switched off when it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tropel.observers import Observer
from tropel.viewer.overlays import Canvas, Overlay

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class OverlaySwitch(Observer):
    """Keeps one overlay on a page up to date from when it is switched on until it is switched off.

    `selected` tells the id of the chosen agent, `say` is given the text below the switch, `fail` the reason for which
    the overlay cannot go on; it is called on the page's thread, once.
    """

    def __init__(
        self,
        overlay: Overlay,
        canvas: Canvas,
        *,
        selected: Callable[[], int | None],
        say: Callable[[str], None],
        fail: Callable[[str], None],
    ) -> None:
        self.overlay = overlay if overlay.anew is None else overlay.anew()
        self._canvas = canvas
        self._selected, self._say, self._fail = selected, say, fail
        self._error = ""

    # On the simulation's thread ---------------------------------------------------------------------------------

    def begin(self, sim: Simulation) -> None:
        self.step_done(sim)

    def step_done(self, sim: Simulation) -> None:
        # An overlay must never break a run.
        if self.overlay.after_step is not None and not self._error:
            try:
                self.overlay.after_step(sim, self._selected())
            except Exception as error:
                self._error = _described(error)

    def look(self, sim: Simulation) -> Any:
        if not self._error:
            try:
                return self.overlay.look(sim, self._selected())
            except Exception as error:
                self._error = _described(error)
        return None

    # On the page's thread ---------------------------------------------------------------------------------------

    def show(self, seen: Any) -> None:
        """Draw what was seen."""
        if not self._error:
            try:
                if seen is None:
                    self._canvas.clear()
                else:
                    self.overlay.draw(self._canvas, seen)
                self._say("" if self.overlay.legend is None else self.overlay.legend(seen))
            except Exception as error:
                self._error = _described(error)
        if self._error:
            self._fail(self._error)

    def clear(self) -> None:
        self._canvas.clear()
        self._say("")


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

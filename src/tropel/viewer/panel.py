"""The panel beside the world: what time it is, tabs for running, looking and disturbing."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from tropel.viewer.colours import Scale
from tropel.viewer.controls import RunControls
from tropel.viewer.frame import Frame
from tropel.viewer.plots import Plots
from tropel.viewer.selection import Selection
from tropel.viewer.show_tab import ShowTab
from tropel.viewer.tools import Tools

if TYPE_CHECKING:
    from tropel.viewer.page import Page

#: The text at the top is brought up to date this often [s].
_TEXT_EVERY = 0.25


class Panel:
    """All controls of a page. `tabs` takes more."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._state_at = self._text_at = 0.0
        gui = page.server.gui
        self._text = gui.add_markdown("…")
        self.tabs = gui.add_tab_group()
        with self.tabs.add_tab("Run"):
            self.run = RunControls(page)
        with self.tabs.add_tab("Show"):
            self.show = ShowTab(page)
        with self.tabs.add_tab("Disturb"):
            self.tools = Tools(page)
        with self.tabs.add_tab("Agent"):
            self.selection = Selection(page)
        with self.tabs.add_tab("Plots"):
            self.plots = Plots(page)

    def show_state(self) -> None:
        """What may change without a frame: whether it plays, has ended or is broken."""
        if perf_counter() - self._state_at > _TEXT_EVERY:
            self._state_at = perf_counter()
            self.run.show_state()

    def new_run(self) -> None:
        """After a restart, sliders show what agents begin with."""
        self.tools.sliders.show_values()

    def show_frame(self, frame: Frame, scale: Scale | None) -> None:
        if perf_counter() - self._text_at < _TEXT_EVERY and self._page.live.playing:
            return
        self._text_at = perf_counter()
        parts = [f"**{frame.time:.1f} s**", f"{frame.living:,} there"]
        parts += [f"{frame.left:,} left"] if frame.left or frame.exits else []
        parts += [f"{frame.died:,} died"] if frame.died else []
        self._text.content = " · ".join(parts)
        self.show.show_scale(scale)
        self.tools.show_things(frame)

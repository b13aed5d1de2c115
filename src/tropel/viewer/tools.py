"""The tab "Disturb": what a click in the world does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tropel.viewer.page import Page


class Tools:
    """What a click in the world does."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def let_drag(self, node: Any, what: str, names: list[str]) -> None:
        """Let things of a kind be dragged, each an instance of the node."""

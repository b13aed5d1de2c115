"""The tab "Show": where one looks from, what colours say, and what is laid over the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tropel.viewer import camera, colours
from tropel.viewer.legends import colour_bar, group_legend
from tropel.viewer.overlays import Overlay, overlays

if TYPE_CHECKING:
    from tropel.viewer.page import Page


class ShowTab:
    """Camera, colours, overlays."""

    def __init__(self, page: Page) -> None:
        self._page = page
        gui, sim = page.server.gui, page.live.sim
        plan = gui.add_button("Plan view")
        free = gui.add_button("View in space")
        plan.on_click(lambda event: camera.take(event.client, self._plan(event.client)))
        free.on_click(lambda event: camera.take(event.client, camera.free_pose(page.scene)))
        self._colour = gui.add_dropdown("Colour by", colours.choices(sim), initial_value=page.colour)
        self._scale = gui.add_markdown("")
        self._colour.on_update(self._set_colour)
        self.show_scale(None)
        with gui.add_folder("Overlays"):
            for overlay in overlays():
                if overlay.fits(sim):
                    self._add_switch(overlay)

    def _plan(self, client: Any) -> camera.Pose:
        return camera.plan_pose(self._page.scene, aspect=float(client.camera.aspect))

    def _add_switch(self, overlay: Overlay) -> None:
        box = self._page.server.gui.add_checkbox(overlay.title, False)

        @box.on_update
        def switch(event: Any) -> None:
            self._page.switch(overlay, bool(box.value))

    def _set_colour(self, event: Any) -> None:
        self._page.colour = self._colour.value
        self._page.redraw()

    def show_scale(self, scale: colours.Scale | None) -> None:
        text = group_legend(self._page.scene.groups) if scale is None else colour_bar(scale)
        if self._scale.content != text:
            self._scale.content = text

"""The tab "Show": where one looks from, what colours say, and what is laid over the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tropel.viewer import camera, colours
from tropel.viewer.legends import colour_bar, group_legend
from tropel.viewer.overlays import Overlay, overlays

if TYPE_CHECKING:
    from tropel.viewer.page import Page

#: What the ground shows when it shows nothing.
_NOTHING = "nothing"


class ShowTab:
    """Camera, colours, overlays."""

    def __init__(self, page: Page) -> None:
        self._page = page
        gui, sim = page.server.gui, page.live.sim
        plan = gui.add_button("Plan view")
        free = gui.add_button("View in space")
        plan.on_click(lambda event: camera.take(event.client, self._plan(event.client)))
        free.on_click(lambda event: camera.take(event.client, self._free(event.client)))
        self._colour = gui.add_dropdown("Colour by", colours.choices(sim), initial_value=page.colour)
        self._scale = gui.add_markdown("")
        self._colour.on_update(self._set_colour)
        self.show_scale(None)
        self._switches: dict[str, Any] = {}
        self._texts: dict[str, Any] = {}
        with gui.add_folder("Overlays"):
            offered = [overlay for overlay in overlays() if overlay.fits(sim)]
            self._add_ground([overlay for overlay in offered if overlay.covers_ground])
            for overlay in offered:
                if not overlay.covers_ground:
                    self._add_switch(overlay)

    def _plan(self, client: Any) -> camera.Pose:
        return camera.plan_pose(self._page.scene, aspect=float(client.camera.aspect))

    def _free(self, client: Any) -> camera.Pose:
        return camera.free_pose(self._page.scene, aspect=float(client.camera.aspect))

    def _add_ground(self, offered: list[Overlay]) -> None:
        """One list for what paints the ground: only one of them can be seen at a time."""
        if not offered:
            return
        gui = self._page.server.gui
        by_title = {overlay.title: overlay for overlay in offered}
        ground = gui.add_dropdown("Ground", [_NOTHING, *by_title], initial_value=_NOTHING)
        text = gui.add_markdown("", visible=False)
        self._switches |= {overlay.name: ground for overlay in offered}
        self._texts |= {overlay.name: text for overlay in offered}
        shown = _NOTHING

        @ground.on_update
        def paint(event: Any) -> None:
            nonlocal shown
            before, shown = shown, ground.value
            if before != shown and before in by_title:
                self._page.switch(by_title[before], False)
            if shown in by_title:
                self._page.switch(by_title[shown], True)

    def _add_switch(self, overlay: Overlay) -> None:
        gui = self._page.server.gui
        box = self._switches[overlay.name] = gui.add_checkbox(overlay.title, False)
        self._texts[overlay.name] = gui.add_markdown("", visible=False)

        @box.on_update
        def switch(event: Any) -> None:
            self._page.switch(overlay, bool(box.value))

    def say_of(self, overlay: Overlay, text: str) -> None:
        """Write below the switch of an overlay."""
        place = self._texts.get(overlay.name)
        if place is not None and place.content != text:
            place.content = text
            place.visible = bool(text)

    def turn_off(self, overlay: Overlay) -> None:
        """Show that an overlay is off."""
        switch = self._switches.get(overlay.name)
        if switch is not None and switch.value in (True, overlay.title):
            switch.value = _NOTHING if overlay.covers_ground else False

    def _set_colour(self, event: Any) -> None:
        self._page.colour = self._colour.value
        self._page.redraw()

    def show_scale(self, scale: colours.Scale | None) -> None:
        text = group_legend(self._page.scene.groups) if scale is None else colour_bar(scale)
        if self._scale.content != text:
            self._scale.content = text

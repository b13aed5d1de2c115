"""Overlays: what can be drawn on top of the world, and how to add to it."""

from tropel.viewer.overlays.overlay import Canvas, Overlay, forget_overlay, overlays, register_overlay

__all__ = ["Canvas", "Overlay", "forget_overlay", "overlays", "register_overlay"]

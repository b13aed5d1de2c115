"""Emotions that spread from person to person, and change courage and speed."""

"""What colours mean, as little texts for the panel."""

from __future__ import annotations

from collections.abc import Sequence

from tropel.pictures import style
from tropel.viewer.colours import Scale

#: Groups beyond these are not listed.
_MOST_GROUPS = 12


def group_legend(groups: Sequence[str]) -> str:
    """A coloured square for each group."""
    lines = [
        f'<span style="color:{colour}">■</span> {plain(name)}'
        for colour, name in zip(style.group_colours(len(groups)), groups, strict=True)
    ]
    more = [f"and {len(lines) - _MOST_GROUPS} more"] if len(lines) > _MOST_GROUPS else []
    return "  \n".join(lines[:_MOST_GROUPS] + more)


def colour_bar(scale: Scale) -> str:
    """The colours from low to high between the two numbers."""
    colours = [style.hex_colour(style.time_colours()(k / 11.0)) for k in range(12)]
    bar = "".join(f'<span style="color:{colour}">█</span>' for colour in colours)
    return f"{scale.low:.3g} {bar} {scale.high:.3g} {scale.unit}"


def plain(text: str) -> str:
    """Text that is not taken for markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()#+-.!<>|~" else letter for letter in text)

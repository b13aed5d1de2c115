"""What an exported file says in its corner: which run it is, what colours mean, what was left out.

The recording itself holds only the world, no panel. This is plain HTML beside it, without scripts.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from tropel.pictures import style
from tropel.viewer.colours import GROUP

if TYPE_CHECKING:
    from tropel.viewer.export import ExportedHtml
    from tropel.viewer.recorded_frames import RecordedFrames

#: Groups beyond these are not listed.
_MOST_GROUPS = 12

_STYLE = (
    "position:fixed;left:12px;bottom:56px;z-index:10;max-width:34em;padding:8px 12px;border-radius:6px;"
    "background:rgba(255,255,255,.88);color:#222;font:14px/1.45 system-ui,sans-serif;pointer-events:none"
)


def with_legend(page: str, *, frames: RecordedFrames, shown: ExportedHtml, colour: str) -> str:
    """The page with a title and a legend."""
    trajectory = frames.trajectory
    title = html.escape(trajectory.scene.title or trajectory.path.stem)
    facts = [f"{frames.times[0]:.3g} to {frames.times[-1]:.4g} s of the run; times below count from its first frame"]
    if frames.times[0] == 0.0:
        facts = [f"{frames.times[-1]:.4g} s"]
    if trajectory.scene.seed is not None:
        facts.append(f"seed {trajectory.scene.seed}")
    if shown.shown < shown.recorded:
        facts.append(f"{shown.shown:,} of {shown.recorded:,} recorded frames")
    facts.append("space: play or pause")
    box = (
        f'<div id="legend" style="{_STYLE}"><b>{title}</b><br>{_key(frames, colour)}<br>'
        f'<span style="color:#555;font-size:12px">{html.escape(" · ".join(facts))}</span></div>'
    )
    page = page.replace("<title>Viser</title>", f"<title>{title}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + box + page[end:]


def _key(frames: RecordedFrames, colour: str) -> str:
    """A square for each group, or the colours from low to high between two numbers."""
    scale = frames.scale(colour)
    if colour == GROUP or scale is None:
        names = frames.trajectory.scene.groups
        squares = [
            f'<span style="color:{shade}">■</span> {html.escape(name)}'
            for shade, name in zip(style.group_colours(len(names)), names, strict=True)
        ]
        more = [f"and {len(squares) - _MOST_GROUPS} more"] if len(squares) > _MOST_GROUPS else []
        return " &ensp; ".join(squares[:_MOST_GROUPS] + more)
    shades = [style.hex_colour(style.time_colours()(k / 11.0)) for k in range(12)]
    bar = "".join(f'<span style="color:{shade}">█</span>' for shade in shades)
    return f"{colour} {scale.low:.3g} {bar} {scale.high:.3g} {html.escape(scale.unit)}"

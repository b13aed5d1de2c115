"""What an exported file says below the world: which run it is, what colours mean, what was left out.

The recording itself holds only the world, no panel. This is plain HTML beside it, without scripts: where one looks from
is part of the address that viser's client reads, so that a link is enough for a view from above.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from tropel.pictures import style
from tropel.recording import Scene
from tropel.viewer.camera import Pose, free_pose, plan_pose
from tropel.viewer.colours import GROUP

if TYPE_CHECKING:
    from tropel.viewer.export import ExportedHtml
    from tropel.viewer.recorded_frames import RecordedFrames

#: Groups beyond these are not listed.
_MOST_GROUPS = 12

#: A strip above the bar that viser's client has for the time.
_STYLE = (
    "position:fixed;left:0;right:0;bottom:40px;z-index:10;padding:3px 12px;display:flex;flex-wrap:wrap;gap:0 1.6em;"
    "align-items:baseline;background:rgba(255,255,255,.85);color:#222;font:14px/1.5 system-ui,sans-serif;"
    "pointer-events:none"
)
#: A file knows nothing of the window it will be seen in; most are at least so wide compared to their height.
_ASPECT = 1.5
#: Around the world, for this strip and for what is said of the moment above the world.
_MARGIN = 1.22
_LINK = "color:#1560a8;pointer-events:auto"


def first_view(scene: Scene) -> Pose:
    """Where a file looks from until somebody turns it."""
    return _views(scene)["from above" if scene.dim == 2 else "in space"]


def _views(scene: Scene) -> dict[str, Pose]:
    return {
        "from above": plan_pose(scene, aspect=_ASPECT, margin=_MARGIN),
        "in space": free_pose(scene, aspect=_ASPECT, margin=_MARGIN),
    }


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
    box = (
        f'<div id="legend" style="{_STYLE}"><b>{title}</b><span>{_key(frames, colour)}</span>'
        f'<span style="color:#555;font-size:12px">{html.escape(" · ".join(facts))} · '
        f"Space: play or pause · drag to turn · {_links(trajectory.scene)}</span></div>"
    )
    page = page.replace("<title>Viser</title>", f"<title>{title}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + box + page[end:]


def _links(scene: Scene) -> str:
    """The same file, seen from elsewhere."""
    links = [
        f'<a style="{_LINK}" href="{html.escape(address_of(pose))}">{name}</a>' for name, pose in _views(scene).items()
    ]
    return f"look {' or '.join(links)}"


def address_of(pose: Pose) -> str:
    """A pose as the end of an address, as viser's client reads it."""
    vectors = {"Position": pose.position, "LookAt": pose.look_at, "Up": pose.up}
    numbers = {"Fov": pose.angle, "Near": pose.near, "Far": pose.far}
    parts = [f"initialCamera{name}={','.join(f'{part:.6g}' for part in vector)}" for name, vector in vectors.items()]
    return "?" + "&".join(parts + [f"initialCamera{name}={number:.6g}" for name, number in numbers.items()])


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

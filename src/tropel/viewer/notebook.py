"""Pages inside notebooks: a frame in the cell's output that shows the page of a server of the kernel."""

from __future__ import annotations

import html
import sys

#: Of the frame in a notebook [pixels].
_HEIGHT = 560


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook (not a terminal, and not IPython in one)."""
    # Who runs in a kernel has imported IPython already.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def frame_html(address: str, *, closed: bool = False, height: int = _HEIGHT) -> str:
    """What a notebook shows for a page: the page itself, or that it is closed."""
    if closed:
        return "<p>This page has been closed; view it again to open a new one.</p>"
    place = html.escape(address, quote=True)
    return (
        f'<iframe src="{place}" title="tropel" width="100%" height="{height}" '
        f'style="border:1px solid #ccc"></iframe>'
        f'<p style="font-size:smaller">Also at <a href="{place}" target="_blank">{place}</a>, '
        f"on the machine that the kernel runs on.</p>"
    )

"""`sim.view()` in the kernel of a real notebook: the page is in the cell's output, and the run goes on behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tropel.viewer.server import frame_html, in_notebook

CELLS = [
    """
from tropel import Direct, Group, Seek, Simulation, World
world = World([(0, 0), (20, 0), (20, 10), (0, 10)], targets={"far": (19, 5)})
people = Group("people", count=5, goal="far", desired_speed=0.1)
sim = Simulation(world, people, planning=Direct(), local=Seek(), dt=0.1, seed=1, threads=1)
""",
    "view = sim.view(port=0, speed=1000.0)\nview",
    """
import urllib.request
from time import perf_counter
answer = urllib.request.urlopen(view.address).status
end = perf_counter() + 200.0
while view.live.ask(lambda sim: sim.step_number, seconds=200.0) < 3 and perf_counter() < end:
    pass
again = sim.view(port=0)
print(answer, sim.step_number >= 3, view.closed, again.closed)
""",
    "again.close()\nagain",
]

RUN = """
import json, sys, nbformat, nbclient
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in json.loads(sys.argv[1])])
nbclient.NotebookClient(notebook, timeout=280, kernel_name="python3").execute()
print(json.dumps([cell["outputs"] for cell in notebook.cells]))
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which notebooks run with this Python, whatever kernels the machine has."""
    import sys

    folder = tmp_path_factory.mktemp("jupyter") / "kernels" / "python3"
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "test", "language": "python"}))
    return {"JUPYTER_PATH": str(folder.parent.parent)}


def test_a_cell_shows_the_page_while_the_run_goes_on(python: Callable[..., str], kernels: dict[str, str]) -> None:
    printed = python(RUN, json.dumps(CELLS), environment=kernels)
    outputs: list[list[dict[str, Any]]] = json.loads(printed.strip().splitlines()[-1])
    shown = outputs[1][0]["data"]["text/html"]
    assert '<iframe src="http://127.0.0.1:' in shown
    assert outputs[2][0]["text"].strip() == "200 True True False"
    assert "has been closed" in outputs[3][0]["data"]["text/html"]


def test_a_terminal_is_no_notebook() -> None:
    assert not in_notebook()


def test_an_address_cannot_break_out_of_the_frame() -> None:
    assert '"><script>' not in frame_html('http://x"><script>')

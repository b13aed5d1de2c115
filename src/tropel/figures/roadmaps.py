"""GROUPS tables 4.1 and 4.2, and how far the self-adaptive roadmap gets when more and more obstacles move.

The tables are measured by the benchmark of roadmaps (`bench/roadmap.py`), with the figures of the thesis beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tropel.agents.groups import Group
from tropel.bench.roadmap import run_building, run_fields
from tropel.bench.roadmap_worlds import cluttered_field, start_of_field
from tropel.figures.measurements import Told
from tropel.local.seek import Seek
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.planning.roadmap.adaptive import AdaptiveRoadmap
from tropel.simulation import Simulation

_LAYOUTS, _SIDE = 6, 10
#: How many of the 100 obstacles move, in how many layouts and frames.
_SHARES, _SWEPT, _FRAMES, _FRAME = (0, 20, 40, 60, 80, 100), 8, 1000, 0.04
_WIDE, _ROW, _TOP, _EDGE = 960, 30, 96, 24


def draw_table_41(path: Path, told: Told, *, layouts: int = _LAYOUTS) -> list[Path]:
    """Self-adaptive and basic roadmap over 500 frames."""
    told("the field", 0, 1)
    ours = run_fields(layouts)
    told("done", 1, 1)
    rows = [
        ("", "self-adaptive", "basic", "thesis: adaptive", "thesis: basic"),
        ("total time per 500 frames [s]", *(f"{row['total_s'] / layouts:.2f}" for row in ours), "15.6", "28.1"),
        ("planning per 500 frames [s]", *(f"{row['planning_s'] / layouts:.2f}" for row in ours), "", ""),
        ("reconnections", *(f"{row['reconnections'] / layouts:.0f}" for row in ours), "12", "10"),
        ("reconnection time [s]", *(f"{row['reconnection_s'] / layouts:.3f}" for row in ours), "5.7", "17.2"),
        ("time per reconnection [ms]", *(f"{row['reconnection_ms']:.2f}" for row in ours), "475", "1720"),
        ("tests of segments", *(f"{(row['path_tests'] + row['other_tests']) / layouts:,.0f}" for row in ours), "", ""),
    ]
    title = "GROUPS table 4.1: a leader among 100 obstacles, of which 20 move"
    return [
        _draw_table(
            path, title, f"500 frames, means of {layouts} layouts; the basic method builds its roadmap anew", rows
        )
    ]


def draw_table_42(path: Path, told: Told, *, side: int = _SIDE) -> list[Path]:
    """A hierarchical plan and a flat roadmap when doors change."""
    told("the building", 0, 1)
    flat, rooms = run_building(side)
    told("done", 1, 1)
    rows = [
        ("", "with rooms", "without", "thesis: with", "thesis: without"),
        ("nodes to connect", f"{rooms['nodes']:,}", f"{flat['nodes']:,}", "11", "100"),
        ("reconnections", str(rooms["changes"]), str(flat["changes"]), "5", "5"),
        ("time per reconnection and query [ms]", f"{rooms['ms']:.2f}", f"{flat['ms']:.0f}", "160", "1920"),
        ("tests of segments", f"{rooms['tests']:,}", f"{flat['tests']:,}", "", ""),
    ]
    return [_draw_table(path, f"GROUPS table 4.2: doors change in a building of {side**2} rooms",
                        "Without rooms the whole roadmap is built anew around shut doors", rows)]  # fmt: skip


def _draw_table(path: Path, title: str, about: str, rows: Sequence[tuple[str, ...]]) -> Path:
    figure = style.new_figure(_WIDE + 2 * _EDGE, _TOP + _ROW * len(rows) + _EDGE)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, about, color=style.FAINT_INK)
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            left = _EDGE + (0 if column == 0 else 320 + 160 * (column - 1))
            weight = "bold" if number == 0 else "normal"
            colour = style.FAINT_INK if column > 2 else style.INK
            style.add_text(figure, left, _TOP + _ROW * number, text, color=colour, weight=weight)
    return save_figure(figure, picture_path(path, ".png"))


def draw_moving_share(path: Path, told: Told, *, shares: Sequence[int] = _SHARES, layouts: int = _SWEPT) -> list[Path]:
    """The share of leaders that arrive, and for how long they touch something, by the share of obstacles that move."""
    figure = style.new_figure(900, 420)
    style.add_text(figure, _EDGE, 16, "When more obstacles move", fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, f"A leader among 100 obstacles, {layouts} layouts, {_FRAMES} frames",
                   color=style.FAINT_INK)  # fmt: skip
    left = style.add_axes(figure, 70, 90, 350, 260)
    right = style.add_axes(figure, 510, 90, 350, 260)
    for k, predict in enumerate((True, False)):
        arrived, touched = [], []
        for number, moving in enumerate(shares):
            told(f"{moving} of 100 move", number + k * len(shares), 2 * len(shares))
            outcome = [cross_field(layout, moving=moving, predict=predict) for layout in range(layouts)]
            arrived.append(np.mean([there for there, _ in outcome]))
            touched.append(np.mean([share for _, share in outcome]))
        label = "with prediction" if predict else "without"
        for axes, values in ((left, arrived), (right, touched)):
            axes.plot(shares, np.array(values) * 100.0, marker="o", color=style.GROUPS[k], label=label)
    for axes, title in ((left, "arrived [%]"), (right, "frames in touch with an obstacle [%]")):
        axes.set_title(title, fontsize=style.TEXT_SIZE, loc="left", color=style.INK, family=style.FONT)
        axes.set_xlabel("obstacles that move [%]", fontsize=style.SMALL_SIZE)
        axes.set_ylim(bottom=0.0)
    left.set_ylim(top=105.0)
    right.legend(frameon=False, fontsize=style.SMALL_SIZE)
    told("done", 1, 1)
    return [save_figure(figure, picture_path(path, ".png"))]


def cross_field(layout: int, *, moving: int, predict: bool, frames: int = _FRAMES) -> tuple[bool, float]:
    """Whether a leader arrives, and the share of frames in which it touches an obstacle."""
    planner = AdaptiveRoadmap(clearance=0.05, predict=predict)
    leader = Group(
        "leader", positions=[start_of_field()], goal="goal", radius=0.02, desired_speed=0.4, sense_radius=0.2
    )
    sim = Simulation(cluttered_field(layout, moving=moving), leader, planning=planner, local=Seek(), dt=_FRAME,
                     seed=layout, threads=1)  # fmt: skip
    goal = sim.world.goals().position[0]
    touching = 0
    for frame in range(frames):
        sim.step()
        obstacles = sim.world.obstacles
        gap = np.linalg.norm(obstacles.position - sim.agents.position[0], axis=1) - obstacles.radius
        touching += bool(gap.min() < 0.021)
        if np.linalg.norm(goal - sim.agents.position[0]) < 0.2:
            return True, touching / (frame + 1)
    return False, touching / frames

"""`tropel riders`: build, show and tune the mobility maps of characters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tropel.cli.options import InterruptedRunError, Out, Quiet, show
from tropel.errors import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from tropel.foundation.long_work import Listener
    from tropel.riders.bicyclist.character import Bicyclist
    from tropel.riders.elimination import Reduction
    from tropel.riders.maps import MobilityMap
    from tropel.run.progress import Counter

riders = typer.Typer(
    name="riders",
    help="Mobility maps of riders: what a physical character can do next.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Who = Annotated[str, typer.Argument(metavar="NAME|FILE", help="human, alien, car, or a character file (TOML).")]


@riders.command()
def build(
    who: Who,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for the map (.npz); where simulations look for it by default."),
    ] = None,
    states: Annotated[int, typer.Option(min=2, max=10_000, help="Initial states.")] = 100,
    actions: Annotated[int, typer.Option(min=2, max=100, help="Turns tried from each.")] = 10,
    duration: Annotated[float, typer.Option(min=0.2, max=60.0, help="Length of a trial in seconds.")] = 5.0,
    quiet: Quiet = False,
) -> None:
    """Build a mobility map: try turns from many states with full physics, which takes a minute or two.

    Interrupted, it goes on where it stopped when called again.
    """
    from tropel.foundation.long_work import listening
    from tropel.riders.building import build_in_parts, kept_path
    from tropel.riders.character import find_character
    from tropel.run.progress import counting

    character = find_character(who)
    path = out or kept_path(character)
    if path is None:
        raise ParameterError("there is no private cache directory for the map; choose a file with --out")
    if path.suffix != ".npz":
        raise ParameterError(f"a map is an .npz file, not '{path}'; choose another --out")
    try:
        with counting(f"building {character.name}", 1, quiet=quiet) as told, listening(_bar(told)):
            made = build_in_parts(character, path, states=states, actions=actions, duration=duration)
    except KeyboardInterrupt:
        raise InterruptedRunError("what has been tried is kept; the same command goes on with it") from None
    show(_map_table(made))
    show(f"wrote {path}")


@riders.command("show")
def show_map(
    who: Who,
    out: Out = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", help="A map of this character (.npz) instead of its own.")
    ] = None,
) -> None:
    """Draw what a character can do, from one state and along the slalom (figures 2 and 3 of the paper)."""
    from tropel.figures.mobility import draw_fan, draw_slalom
    from tropel.riders.character import find_character, map_of
    from tropel.riders.maps import MobilityMap

    character = find_character(who)
    found = map_of(character) if map_file is None else MobilityMap.load(map_file, digest=character.digest())
    folder = out or Path("out") / "riders"
    folder.mkdir(parents=True, exist_ok=True)
    show(_map_table(found))
    show(f"wrote {draw_fan(found, folder / f'{character.name}_fan.png')}")
    period = getattr(getattr(character, "control", None), "slalom_period", None)
    if period is not None:
        show(f"wrote {draw_slalom(found, folder / f'{character.name}_slalom.png', period=period)}")


@riders.command()
def reduce(
    who: Who,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rides that states are taken from.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Find out which variables of a bicyclist's state matter (table 1 of the paper), with principal components."""
    from tropel.foundation.long_work import listening
    from tropel.riders.elimination import reduce_state
    from tropel.run.progress import counting

    character = _bicyclist(who)
    with counting(f"reducing the state of {character.name}", 1, quiet=quiet) as told, listening(_bar(told)):
        found = reduce_state(character, seed=seed)
    for table in _reduction_tables(found):
        show(table)


@riders.command()
def tune(
    who: Who,
    task: Annotated[str, typer.Option(help="path (seven curves), herd (a shift by 4 m), or both.")] = "both",
    evaluations: Annotated[int, typer.Option(min=4, max=10_000, help="Rides of each task.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the annealing.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Find t_max and ratio of the search by simulated annealing with full physics (table 2 of the paper)."""
    from rich.table import Table

    from tropel.foundation.long_work import listening
    from tropel.riders.character import map_of
    from tropel.riders.tuning import PUBLISHED, TASKS, cost_of
    from tropel.riders.tuning import tune as annealed
    from tropel.run.progress import counting

    if task not in (*TASKS, "both"):
        raise ParameterError(f"--task must be one of {', '.join(TASKS)} or both, not '{task}'")
    character = _bicyclist(who)
    found = map_of(character)
    table = Table("task", "", "t_max [s]", "ratio", "cost", title=f"Weights of the search, {character.name}")
    for one in TASKS if task == "both" else (task,):
        with counting(f"tuning {one}", evaluations, quiet=quiet) as told, listening(_bar(told)):
            best = annealed(character, found, one, evaluations=evaluations, seed=seed)
        table.add_row(one, "tuned", f"{best.t_max:.1f}", f"{best.ratio:.2f}", f"{best.cost:.3f}")
        if character.name in PUBLISHED[one]:
            t_max, ratio = PUBLISHED[one][character.name]
            cost = cost_of(character, found, one, t_max=t_max, ratio=ratio)
            table.add_row("", "the paper's", f"{t_max:g}", f"{ratio:.2f}", f"{cost:.3f}")
        cost = cost_of(character, found, one, t_max=1.0, ratio=0.5, controller="simple")
        table.add_row("", "without the map", "", "", f"{cost:.3f}")
    show(table)


def _bar(told: Counter) -> Listener:
    return lambda what, done, total: told(int(done), what, int(total))


def _bicyclist(who: str) -> Bicyclist:
    from tropel.riders.bicyclist.character import Bicyclist
    from tropel.riders.character import find_character

    character = find_character(who)
    if not isinstance(character, Bicyclist):
        raise ParameterError(f"'{character.name}' is no bicyclist, whose state has many variables; try human or alien")
    return character


def _map_table(found: MobilityMap) -> Table:
    import numpy as np
    from rich.table import Table

    table = Table("mobility map", found.character)
    states, actions = found.lasts.shape
    falls = int((found.lasts < found.duration * (1.0 - 1e-9)).sum())
    table.add_row("trials", f"{states} states × {actions} actions, {found.duration:g} s, {falls} falls")
    table.add_row("speed", f"{found.speed:g} m/s")
    table.add_row("turns", f"±{found.action_limit:.2f} rad")
    for name, column in zip(found.state_names, found.states.T, strict=True):
        table.add_row(f"initial {name}", f"{column.min():.3f} to {column.max():.3f}")
    reached = np.abs(found.heading[:, :, -1] - found.actions)
    table.add_row("heading missed by", f"{np.median(reached):.3f} rad at the end (median)")
    side = found.position[..., 1] * np.sign(found.actions)[:, None]
    straight = found.nearest_state(np.zeros(len(found.state_names)))
    table.add_row("counter-steer", f"{max(0.0, -float(side[straight].min())):.2f} m to the other side first, at most")
    table.add_row(
        "sharpest turn", f"{found.sharpest_turn():.3f} 1/m (radius {1.0 / max(found.sharpest_turn(), 1e-9):.1f} m)"
    )
    table.add_row("built by", ", ".join(f"{name} {value}" for name, value in found.provenance.items()))
    table.add_row("digest", found.digest[:24] + "…")
    return table


def _reduction_tables(found: Reduction) -> list[Table]:
    from rich.table import Table

    table = Table("variable", "verdict", "variance explained", title=f"State variables of the {found.character}")
    for verdict in found.verdicts:
        share = "" if verdict.share != verdict.share else f"{verdict.share:.0%}"
        bold = "[bold]" if verdict.reason == "kept" else ""
        table.add_row(f"{bold}{verdict.name}", f"{bold}{verdict.reason}", share)
    errors = Table("known besides the turn", "error of the predicted centre of mass [m]", title="Predictions up to 2 s")
    errors.add_row("nothing", f"{found.error_without:.3f}")
    for count, error in enumerate(found.errors, start=1):
        errors.add_row(", ".join(found.kept[:count]), f"{error:.3f}")
    errors.add_row("roll, yaw_rate (the map's state)", f"{found.error_of_map:.3f}")
    errors.add_row("all that changes", f"{found.error_with_all:.3f}")
    components = Table("principal components", "share of the variance", "error [m]", title="Instead of variables")
    total = 0.0
    for count, error in enumerate(found.component_errors, start=1):
        total += float(found.variances[count - 1])
        components.add_row(f"first {count}", f"{total:.0%}", f"{error:.3f}")
    return [table, errors, components]

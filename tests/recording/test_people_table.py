"""The table of people in a recording: what the simulation knew, whole or not there."""

from pathlib import Path

import numpy as np
import pytest
import sample_run
import shapely

import tropel
from tropel import events
from tropel.errors import RecordingError
from tropel.recording import People, open_trajectory, read_trajectory

FORMATS = ["run.sqlite", "run.parquet"]


def people() -> People:
    return People.from_names(
        id=[0, 1, 2, 7],
        group=[0, 1, 0, 1],
        came=[0.0, 0.0, 1.5, 2.0],
        gone=[3.25, 4.0, np.nan, np.nan],
        fate=["left", "died", "there", "removed"],
        through=["east", "", "", ""],
    )


def plain(table: People | None) -> dict[str, list] | None:
    if table is None:
        return None
    numbers = {name: getattr(table, name).tolist() for name in ("id", "group", "came")}
    gone = [None if time != time else time for time in table.gone.tolist()]
    return {**numbers, "gone": gone, "fate": table.fate_names(), "through": table.place_names()}


def people_in(path: Path) -> dict[str, list] | None:
    with read_trajectory(path) as run:
        return plain(run.people())


@pytest.mark.parametrize("name", FORMATS)
def test_the_table_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=10.0) as writer:
        sample_run.write_frames(writer, range(3))
        writer.close({}, people=people())
    assert people_in(tmp_path / name) == plain(people())
    # A trajectory with such a table may be replaced like any other.
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=10.0) as writer:
        sample_run.write_frames(writer, range(3))
    assert people_in(tmp_path / name) is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_table_of_nobody_is_not_the_same_as_no_table(tmp_path: Path, name: str) -> None:
    nobody = People.from_names(id=[], group=[], came=[], gone=[], fate=[], through=[])
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=10.0) as writer:
        writer.close(None, people=nobody)
    assert people_in(tmp_path / name) == plain(nobody)


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_that_is_continued_has_no_table_until_it_ends_again(tmp_path: Path, name: str) -> None:
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=10.0) as writer:
        sample_run.write_frames(writer, range(8))
        writer.close({}, people=people())
    writer = open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=10.0, append_after=5)
    writer.flush()
    assert people_in(tmp_path / name) is None
    writer.close({}, people=people())
    assert people_in(tmp_path / name) == plain(people())


def test_an_unknown_fate_is_an_error() -> None:
    with pytest.raises(RecordingError, match="'lost'"):
        People.from_names(id=[0], group=[0], came=[0.0], gone=[1.0], fate=["lost"], through=[""])


def simulation() -> tropel.Simulation:
    """Ten walk to the exit; a source sends three more; two stand around, and one of these is taken out."""
    world = tropel.World(
        shapely.box(0, 0, 12, 6),
        exits={"east": shapely.box(11, 2, 12, 4)},
        regions={"corner": shapely.box(8.5, 5, 9.5, 6)},
        targets={"gate": tropel.Target(position=(1.0, 1.0), radius=0.8, absorbs=True)},
    )
    walkers = tropel.Group("walkers", count=10, region=shapely.box(3, 0, 9, 6), goal="east")
    source = tropel.Source("late", region=shapely.box(2, 2, 5, 5), rate=2.0, total=3, begin=1.0, goal="gate")
    waiting = tropel.Group("waiting", positions=[(9.0, 5.5), (10.0, 5.5)], goal="none")
    sim = tropel.Simulation(world, [walkers, source, waiting], dt=0.05, seed=5)
    sim.at(0.5, events.RemoveAgents(group="waiting", region="corner"))
    return sim


def test_a_simulation_says_who_came_and_left_to_the_step(tmp_path: Path) -> None:
    sim = simulation()
    seen: dict[int, list[float]] = {}

    def watch(sim: tropel.Simulation) -> None:
        for number in sim.agents.id.tolist():
            seen.setdefault(number, []).append(sim.time)

    sim.run(until=20.0, record=tmp_path / "run.sqlite", progress=watch)
    with read_trajectory(tmp_path / "run.sqlite") as run:
        found = run.people()
        groups = [run.scene.groups[number] for number in found.group]
    assert groups[:12] == ["walkers"] * 10 + ["waiting"] * 2
    assert set(groups[12:]) == {"late"}
    assert len(found) == 15
    fates = found.fate_names()
    assert fates[10] == "removed"
    assert fates[11] == "there"
    assert np.isnan(found.gone[10:12]).all()
    names = found.place_names()
    assert names[:10] == ["east"] * 10
    assert names[12:] == ["gate"] * 3
    for number in range(15):
        came = 0.0 if number < 12 else seen[number][0] - sim.dt
        assert found.came[number] == pytest.approx(came)
        if fates[number] == "left":
            # Those that leave by an exit are seen in it for a moment.
            walked_on = 0.65 if names[number] in sim.world.exits else 0.0
            assert seen[number][-1] + sim.dt - found.gone[number] == pytest.approx(walked_on, abs=0.99 * sim.dt)


@pytest.mark.parametrize("name", FORMATS)
def test_a_resumed_run_knows_everybody(tmp_path: Path, name: str) -> None:
    whole = simulation()
    whole.run(until=20.0, record=tmp_path / f"whole_{name}")
    first = simulation()
    first.run(until=6.4, record=tmp_path / name, checkpoint=tmp_path / "half.npz")
    again = simulation()
    again.restore(tmp_path / "half.npz")
    again.run(until=20.0, record=tmp_path / name)
    assert people_in(tmp_path / name) == people_in(tmp_path / f"whole_{name}")
    assert whole.state_hash() == again.state_hash()


def test_an_interrupted_run_still_says_who_left(tmp_path: Path) -> None:
    sim = simulation()

    def stop(sim: tropel.Simulation) -> None:
        if sim.time > 5.0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sim.run(until=20.0, record=tmp_path / "run.sqlite", progress=stop)
    with read_trajectory(tmp_path / "run.sqlite") as run:
        assert run.summary is None
        assert sum(fate == "left" for fate in run.people().fate_names()) == len(sim.population.departures()["id"])


def test_a_run_that_failed_within_a_step_says_nothing_of_people(tmp_path: Path) -> None:
    sim = simulation()
    sim.at(3.0, lambda sim: 1 / 0)
    with pytest.raises(tropel.TropelError):
        sim.run(until=20.0, record=tmp_path / "run.parquet")
    assert people_in(tmp_path / "run.parquet") is None

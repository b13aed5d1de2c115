"""Leaders: designation, succession, followers of every kind, and what they do without a jump."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from many_seeds import fast_first
from tropel import (
    ORCA,
    AdaptiveRoadmap,
    Direct,
    Door,
    Dynamical,
    Flocking,
    FlowField,
    FollowLeader,
    Group,
    Hazard,
    Lattice,
    PathPlans,
    Roadmap,
    Rooms,
    Seek,
    Simulation,
    SocialForce,
    Source,
    StayTogether,
    Walk,
    World,
    events,
)
from tropel.agents.leaders import Choice, Leaders, check_follows, first_of_each
from tropel.agents.state import NO_GOAL, AgentState
from tropel.errors import CheckpointError, EventError, ParameterError
from tropel.local.habits.wait_for_followers import WaitForFollowers
from tropel.world import Target
from two_threads import needs_two_threads

LINE = [(2.0 + 0.7 * k, 4.0) for k in range(6)]


def field(**told: Any) -> World:
    return World(shapely.box(0, 0, 30, 8), targets={"end": Target(position=(28, 4), radius=0.5)}, **told)


def led(
    how: Any = "nearest", *, local: Any = None, world: World | None = None, dt: float = 0.05, **told: Any
) -> Simulation:
    group = Group("party", **{"positions": LINE, "goal": "end", "leader": how, **told})
    return Simulation(world or field(), group, planning=Direct(), local=local or Seek(), dt=dt, seed=1)


def leader_of(sim: Simulation) -> int:
    return int(sim.population.bonds.own_leader[0])


# Designation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "who"), [("nearest", 4), ("central", 2), (0, 0), (3, 3)])
def test_one_of_the_group_leads_and_only_that_one_has_the_goal(how: Any, who: int) -> None:
    sim = led(how, positions=LINE[:5])
    assert sim.agents.leader.tolist() == [-1 if k == who else who for k in range(5)]
    assert [bool(g != NO_GOAL) for g in sim.agents.goal] == [k == who for k in range(5)]
    assert leader_of(sim) == who


@given(st.integers(1, 30), st.integers(0, 10_000), st.sampled_from(["nearest", "central"]))
def test_designation_is_the_minimum_over_all_and_does_not_depend_on_rows(count: int, seed: int, how: str) -> None:
    rng = np.random.default_rng(seed)
    state = AgentState(2)
    # Places on a coarse grid, so that there are ties, which go to the lower id.
    state.add(count, {"position": rng.integers(0, 4, (count, 2)).astype(float), "goal": 0})
    world = World(shapely.box(-1, -1, 9, 9), targets={"t": Target(position=(8, 8), radius=0.1)})
    place = state.position.copy()
    away = np.linalg.norm(place - ((8, 8) if how == "nearest" else place.mean(axis=0)), axis=1)
    expected = int(np.flatnonzero(np.isclose(away, away.min(), rtol=0, atol=1e-9))[0])
    for rows in (np.arange(count), rng.permutation(count)):
        choice = Choice(state=state, world=world, goal=0, point=np.zeros(2))
        found = choice.designate(how, rows)
        assert np.isclose(away[found], away[expected], rtol=0, atol=1e-5)
        if how == "nearest":
            assert found == expected


def test_one_leader_of_another_group_is_designated_for_all() -> None:
    guides = Group("guides", positions=[(1, 1), (9, 7), (5, 4)], goal="end")
    people = Group("people", positions=LINE, goal="none", follow="guides", leader="central")
    sim = Simulation(field(), [guides, people], planning=Direct(), local=Seek())
    assert sim.agents.leader.tolist() == [-1] * 3 + [2] * 6


def test_newcomers_follow_the_leader_that_is_there() -> None:
    source = Source("late", rate=2.0, region=shapely.box(1, 1, 3, 7), goal="end", leader="nearest", total=4)
    sim = Simulation(field(), source, planning=Direct(), local=Seek(), dt=0.1)
    sim.run(until=3.0)
    first = leader_of(sim)
    assert sorted(sim.agents.leader.tolist()) == [-1] + [first] * 3
    sim.add_agents("late", positions=[(6, 6)], leader="nearest", goal="end")
    assert sim.agents.leader[-1] == first
    assert sim.agents.goal[-1] == NO_GOAL


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"leader": "first"}, '"nearest" or "central"'),
        ({"leader": 6}, "only 6 agents"),
        ({"leader": -1}, "from 0"),
        ({"leader": float("nan")}, "from 0"),
        ({"follow": "gides"}, "not a group"),
        ({"leader": "nearest", "parameters": {"leader": 2}}, "give either leader or the parameter"),
        ({"leader": None, "parameters": {"leader": 3}}, "agent 3 would follow itself"),
    ],
)
def test_leaders_that_cannot_be_are_refused(told: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        led(local=Flocking(), **{"how": None, **told} if "leader" not in told else {"how": told["leader"], **told})


def test_a_followed_group_without_members_is_refused() -> None:
    people = [Group("guides", count=0), Group("people", positions=LINE, follow="guides")]
    with pytest.raises(ParameterError, match="'people' follows 'guides', which has no agents"):
        Simulation(field(), people, local=Seek())


def test_circles_are_found_by_id() -> None:
    state = AgentState(2, [Flocking.declares.columns[-1]])
    state.add(5, {"leader": [1, 2, 0, 0, -1]})
    with pytest.raises(ParameterError, match="agent 0, which follows 1, which follows 2, which follows 0"):
        check_follows(state)
    state.leader[:] = [-1, 0, 1, 2, 3]
    check_follows(state)


def test_models_without_leaders_get_a_habit_and_flocks_do_not() -> None:
    assert any(isinstance(habit, FollowLeader) for habit in led().layers.habits[0])
    assert not any(isinstance(habit, FollowLeader) for habit in led(local=Flocking()).layers.habits[0])
    with pytest.raises(ParameterError, match="give it the habit FollowLeader"):
        Simulation(field(), Group("party", positions=LINE, leader="nearest"), local=Seek(), habits=[])


# Following -----------------------------------------------------------------------------------------------------------

S_BEND = {"walls": [[(10, 0), (10, 6)], [(18, 2), (18, 8)]]}


@pytest.mark.parametrize("seed", fast_first(range(5), fast=1))
@pytest.mark.parametrize("local", [Walk, Flocking, lambda: Dynamical(preset="pedestrian")])
def test_followers_that_know_no_goal_come_around_corners_and_leave_where_their_leader_leaves(
    local: Any, seed: int
) -> None:
    world = World(shapely.box(0, 0, 30, 8), exits={"out": shapely.box(29, 2, 30, 6)}, **S_BEND)
    party = Group("party", count=12, region=shapely.box(1, 1, 7, 7), goal="out", leader="nearest", sense_radius=2.0)
    sim = Simulation(world, party, planning=FlowField(), local=local(), dt=0.05, seed=seed)
    sim.run(until="empty", limit=90.0)
    assert len(sim.agents) == 0


def test_without_the_trail_followers_stay_behind_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tropel.agents.trails.may_hide", lambda world: False)
    world = World(shapely.box(0, 0, 30, 8), exits={"out": shapely.box(29, 2, 30, 6)}, **S_BEND)
    party = Group("party", count=12, region=shapely.box(1, 1, 7, 4), goal="out", leader="nearest")
    sim = Simulation(world, party, planning=FlowField(), local=Walk(), dt=0.05, seed=0)
    sim.run(until=60.0)
    assert (sim.agents.position[:, 0] < 10.0).sum() >= 8


@pytest.mark.parametrize("local", [Flocking, Seek])
def test_several_groups_have_their_own_leaders(local: Any) -> None:
    groups = [
        Group("a", positions=LINE, goal="end", leader="nearest", sense_radius=1.5),
        Group("b", positions=[(26 - 0.7 * k, 6.0) for k in range(6)], goal=(2.0, 6.0), leader="nearest",
              sense_radius=1.5),
    ]  # fmt: skip
    sim = Simulation(field(), groups, planning=Direct(), local=local(), dt=0.05, seed=1)
    before = sim.agents.position[:, 0].copy()
    sim.run(until=8.0)
    moved = sim.agents.position[:, 0] - before
    assert (moved[:6] > 2.0).all()
    assert (moved[6:] < -2.0).all()


def test_a_new_goal_of_the_group_is_the_leaders() -> None:
    sim = led()
    sim.set_goal((2.0, 2.0), group="party")
    assert (sim.agents.goal != NO_GOAL).tolist() == [False] * 5 + [True]


# Succession ----------------------------------------------------------------------------------------------------------


def kill(sim: Simulation, agent: int) -> None:
    row = sim.agents.row_of(np.array([agent]))[0]
    place = tuple(sim.agents.position[row])
    sim.at(sim.time, events.AddHazard(name="shot", position=place, inner=0.05, outer=0.05))


@pytest.mark.parametrize("way", ["dies", "leaves", "is removed"])
@pytest.mark.parametrize("local", [Seek, Flocking])
def test_somebody_succeeds_a_leader_that_is_gone_and_takes_over_its_goal(way: str, local: Any) -> None:
    world = field(exits={"out": shapely.box(5.9, 3.5, 6.4, 4.5)}) if way == "leaves" else field()
    goal = "out" if way == "leaves" else "end"
    told = {"then": [(28.0, 6.0)]} if way != "leaves" else {}
    sim = led(local=local(), world=world, goal=goal, sense_radius=2.0, **told)
    old = leader_of(sim)
    if way == "dies":
        kill(sim, old)
    elif way == "is removed":
        sim.step()
        sim.remove_agents(ids=[old])
    while old in sim.agents.id[sim.agents.dead == 0]:
        sim.step()
    sim.step()
    living = np.flatnonzero(sim.agents.dead == 0)
    new = leader_of(sim)
    assert new != old
    row = int(sim.agents.row_of(np.array([new]))[0])
    assert sim.agents.leader[living].tolist() == [-1 if sim.agents.id[k] == new else new for k in living]
    assert sim.agents.goal[row] == sim.world.goal_numbers[goal]
    assert sim.agents.agenda[row] == (0 if told else -1)


def test_followers_of_a_group_turn_to_its_nearest_other_agent_and_then_to_one_of_their_own() -> None:
    guides = Group("guides", positions=[(5, 4), (6, 6), (20, 1)], goal="end")
    people = Group("people", positions=LINE, goal="none", follow="guides", leader=0)
    sim = Simulation(field(), [guides, people], planning=Direct(), local=Flocking(), seed=1)
    for gone, expected in ((0, 1), (1, 2), (2, None)):
        sim.step()
        sim.remove_agents(ids=[gone])
        sim.step()
        followed = set(sim.agents.leader[sim.agents.group == 1].tolist()) - {-1}
        assert len(followed) == 1
        assert followed == {expected} if expected is not None else followed <= set(range(3, 9))
    heir = int(sim.agents.row_of(np.array(list(followed)))[0])
    assert sim.agents.goal[heir] == sim.world.goal_numbers["end"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("local", [Flocking, lambda: Dynamical(preset="pedestrian")])
def test_what_followers_do_does_not_jump_when_their_leader_is_gone(local: Any, seed: int) -> None:
    """The place that followers pursue, and so their directions, change no faster than the handover lets them."""
    rng = np.random.default_rng(seed)
    places = rng.uniform((2, 1), (8, 7), (10, 2)).tolist()
    sim = led("central", local=local(), positions=places, sense_radius=2.0)
    sim.run(until=2.0)
    old = leader_of(sim)
    last = sim.agents.position[sim.agents.row_of(np.array([old]))[0]].copy()
    sim.step()  # in which they pursue that place
    before = sim.agents.velocity[sim.agents.id != old].copy()
    ids = sim.agents.id[sim.agents.id != old]
    sim.remove_agents(ids=[old])
    sim.step()
    new = leader_of(sim)
    heir = sim.agents.row_of(np.array([new]))[0]
    followers = np.flatnonzero(sim.agents.id != new)
    assert sim.agents.id.tolist() == ids.tolist()
    # In the first step without it they pursue the very same place; the new leader has moved on since.
    pursued = sim.agents.position[heir] - sim.dt * sim.agents.velocity[heir] + sim.agents.handover[followers]
    np.testing.assert_allclose(pursued, np.broadcast_to(last, pursued.shape), atol=1e-9)
    change = np.linalg.norm(sim.agents.velocity - before, axis=1)
    if isinstance(sim.layers.models[0], Flocking):
        assert change.max() <= sim.dt * 4.0 * (1 + 1e-9)  # max_force
    place = pursued
    while np.count_nonzero(sim.agents.handover):
        faded = np.linalg.norm(sim.agents.handover[followers], axis=1)
        at, vel = sim.agents.position[heir].copy(), None
        sim.step()
        vel = np.linalg.norm(sim.agents.position[heir] - at)
        moved = np.linalg.norm(at + sim.agents.handover[followers] - place, axis=1)
        # It moves with the new leader, and the rest by the handover's share.
        assert (moved <= faded * sim.dt / 1.0 + vel + sim.dt * 2.0 + 2e-3).all()
        place = at + sim.agents.handover[followers]


def turned_by_succession(local: Any, seed: int, *, handover: bool = True) -> np.ndarray:
    """How much another velocity each follower has [m/s] in the step after another one has become leader, beside the
    same step without that. Old and new leader do not count: they do something else now."""
    rng = np.random.default_rng(seed)
    same = led("central", local=local(), positions=rng.uniform((2, 1), (8, 7), (10, 2)).tolist(), sense_radius=2.0,
               dt=0.02)  # fmt: skip
    same.run(until=1.0)
    sim, gone, old = copy.deepcopy(same), copy.deepcopy(same), leader_of(same)
    gone.remove_agents(ids=[old])
    gone.step()
    sim.set_leader("party", id=leader_of(gone))
    if not handover:
        sim.agents.handover[:] = 0.0
    same.step()
    sim.step()
    others = ~np.isin(sim.agents.id, [old, leader_of(sim)])
    return np.linalg.norm(sim.agents.velocity - same.agents.velocity, axis=1)[others]


@pytest.mark.parametrize("local", [Flocking, lambda: Dynamical(preset="pedestrian"), Walk])
def test_succession_turns_followers_no_more_than_a_step_without_it(local: Any) -> None:
    """Walkers choose between a few directions, so one of them may change sides; nobody else turns by a tenth."""
    turned = np.array([turned_by_succession(local, seed) for seed in range(5)])
    assert np.median(turned, axis=1).max() < 0.1
    assert (turned > 0.1).mean() <= (0.1 if local is Walk else 0.0)


def test_without_the_handover_followers_turn_at_once() -> None:
    turned = [turned_by_succession(lambda: Dynamical(preset="pedestrian"), seed, handover=False) for seed in range(5)]
    assert np.max(turned, axis=1).min() > 0.5


def test_a_successor_is_designated_as_the_leader_was() -> None:
    """In a row, the middle one follows a leader in the middle, and the front one a leader in front."""
    for how, heirs in (("central", {1, 3}), ("nearest", {3})):
        for told in ({"leader": how}, {"families": 5, "leader": how}):
            party = Group("party", positions=LINE[:5], goal="end", **told)
            sim = Simulation(field(), party, planning=Direct(), local=Flocking() if len(told) == 1 else Walk())
            old = int(sim.agents.id[sim.agents.leader == -1][0])
            sim.step()
            sim.remove_agents(ids=[old])
            sim.step()
            assert set(sim.agents.id[sim.agents.leader == -1].tolist()) <= heirs


def test_a_leader_by_event_takes_over_the_goal() -> None:
    sim = led("central")
    sim.at(0.5, events.SetLeader(group="party", leader="nearest"))
    sim.at(1.0, events.SetLeader(group="party", id=0))
    sim.run(until=0.9)
    assert leader_of(sim) == 5
    assert sim.agents.goal.tolist() == [NO_GOAL] * 5 + [0]
    sim.run(until=1.2)
    assert leader_of(sim) == 0
    assert sim.agents.leader.tolist() == [-1] + [0] * 5
    with pytest.raises(ParameterError, match="no living agent of it has the id 77"):
        sim.set_leader("party", id=77)
    with pytest.raises(ParameterError, match="give either"):
        sim.at(2.0, events.SetLeader(group="party"))


# Families ------------------------------------------------------------------------------------------------------------


def test_families_are_led_by_the_one_designated_and_then_by_another() -> None:
    world = World(shapely.box(0, 0, 20, 20), exits={"out": shapely.box(19, 8, 20, 12)})
    for local, planning in ((Lattice(), PathPlans()), (Walk(), FlowField())):
        people = Group("people", count=24, families=4, leader="nearest", region=shapely.box(2, 2, 12, 18))
        sim = Simulation(world, people, planning=planning, local=local, dt=0.25, seed=3)
        heads = sim.agents.leader == -1
        assert heads.sum() == 6
        away = np.linalg.norm(sim.agents.position - (19.4, 10), axis=1)
        for family in np.unique(sim.agents.family):
            own = sim.agents.family == family
            assert (sim.agents.goal[own] == sim.agents.goal[own][0]).all()
            assert away[own & heads][0] <= away[own].min() + 2.5
        gone = int(sim.agents.id[heads][0])
        family = int(sim.agents.family[heads][0])
        sim.step()
        sim.remove_agents(ids=[gone])
        sim.step()
        own = sim.agents.family == family
        assert (sim.agents.leader[own] == -1).sum() == 1
        assert set(sim.agents.leader[own].tolist()) - {-1} == set(
            sim.agents.id[own & (sim.agents.leader == -1)].tolist()
        )


@given(st.integers(1, 40), st.integers(0, 999))
def test_the_first_of_each_family_leads_unless_another_is_followed(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(100)[:count].astype(np.int64)
    _, family = np.unique(rng.integers(0, 7, count), return_inverse=True)
    leader = np.full(count, -1)
    for number in range(family.max() + 1):
        own = np.flatnonzero(family == number)
        if len(own) > 1 and rng.random() < 0.5:
            chosen = rng.choice(own)
            leader[own] = np.where(own == chosen, -1, ids[chosen])
    start, order, leads = first_of_each(family, ids, leader)
    for number in range(family.max() + 1):
        own = np.flatnonzero(family == number)
        assert sorted(order[start[number] : start[number + 1]].tolist()) == own.tolist()
        told = [k for k in own if (leader[own] == ids[k]).any()]
        assert leads[number] == (told[0] if told else own[np.argmin(ids[own])])


def test_stay_together_uses_the_designated_leader() -> None:
    """Two that are nearer to different exits go where the one that leads goes."""
    world = World(shapely.box(0, 0, 20, 4), exits={"west": shapely.box(0, 1, 1, 3), "east": shapely.box(19, 1, 20, 3)})
    ends = []
    for who in (0, 1):
        pair = Group("pair", positions=[(9.6, 2.0), (10.4, 2.0)],
                     parameters={"family": [1, 1], "leader": [-1, 0] if who == 0 else [1, -1]})  # fmt: skip
        sim = Simulation(world, pair, planning=FlowField(), local=Walk(), habits=[StayTogether()], dt=0.1)
        sim.run(until=1.0)
        ends.append(np.sign(sim.agents.position[:, 0] - 10.0).tolist())
    assert ends[0] == [-1, -1]
    assert ends[1] == [1, 1]


# Staying together ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["wait", "regroup", None])
def test_a_leader_whose_party_would_split_waits_or_goes_back(split: str | None) -> None:
    lag = [(2.0 + 0.5 * k, 4.0) for k in range(5)]
    party = Group("party", positions=lag, goal="end", leader="nearest", desired_speed=[0.4] * 4 + [1.5])
    habits = [FollowLeader(), *([WaitForFollowers(within=3.0, share=0.5, split=split)] if split else [])]
    sim = Simulation(field(), party, planning=Direct(), local=Seek(), habits=habits, dt=0.1)
    spread = []
    lowest = 0.0
    for _ in range(200):
        sim.step()
        spread.append(float(np.ptp(sim.agents.position[:, 0])))
        lowest = min(lowest, float(sim.agents.velocity[4, 0]))
    if split is None:
        assert max(spread) > 10.0
    else:
        assert max(spread) < 5.5
        assert sim.agents.position[:4, 0].min() > 6.0  # they still get on
    assert (lowest < -0.05) == (split == "regroup")


# Without choosing anything -------------------------------------------------------------------------------------------

PLANNERS = {"default": lambda: None, "roadmap": Roadmap, "adaptive": AdaptiveRoadmap, "rooms": Rooms}
MODELS: dict[str, Any] = {
    "default": lambda: None, "walk": Walk, "seek": Seek, "orca": ORCA, "social force": SocialForce, "flock": Flocking,
    "dynamical": lambda: Dynamical(preset="pedestrian"),
}  # fmt: skip


def around_two_walls(planner: str, model: str, seed: int, *, count: int = 8) -> Simulation:
    """A group with a leader begins behind two walls, between which it has to find its way."""
    world = World(
        shapely.box(0, 0, 24, 12),
        walls=[[(8, 0), (8, 8)], [(15, 12), (15, 4)]],
        targets={"end": Target(position=(22, 6), radius=0.6)},
    )
    sense = {"sense_radius": 2.0} if model == "flock" else {}
    party = Group("party", count=count, region=shapely.box(1, 1, 6, 6), goal="end", leader="nearest", **sense)
    return Simulation(world, party, planning=PLANNERS[planner](), local=MODELS[model](), dt=0.05, seed=seed, threads=1)


def arrive(sim: Simulation, limit: float) -> bool:
    """Whether everybody is near the goal before a time."""
    while sim.time < limit:
        sim.step()
        if (np.linalg.norm(sim.agents.position - (22, 6), axis=1) < 3.0).all():
            return True
    return False


#: Every planner and every model once, and then all other pairs.
PAIRS = sorted(
    ((planner, model) for planner in PLANNERS for model in MODELS),
    key=lambda pair: list(PLANNERS).index(pair[0]) != list(MODELS).index(pair[1]) % len(PLANNERS),
)


@pytest.mark.parametrize("seed", fast_first(range(2), fast=1))
@pytest.mark.parametrize(("planner", "model"), fast_first(PAIRS, fast=max(len(PLANNERS), len(MODELS))))
def test_a_group_with_a_leader_comes_around_walls_whatever_plans_and_steers_it(
    planner: str, model: str, seed: int
) -> None:
    assert arrive(around_two_walls(planner, model, seed), 60.0)


@pytest.mark.parametrize("model", ["default", "flock", "dynamical"])
def test_one_agent_alone_leads_itself(model: str) -> None:
    sim = around_two_walls("roadmap", model, 1, count=1)
    assert leader_of(sim) == 0
    assert arrive(sim, 40.0)


@pytest.mark.parametrize("seed", fast_first(range(1, 9), fast=3))
@pytest.mark.parametrize("model", ["default", "flock", "dynamical"])
def test_a_group_arrives_though_its_leaders_are_removed_on_the_way(model: str, seed: int) -> None:
    sim = around_two_walls("roadmap", model, seed)
    for time in (3.0, 6.0, 9.0):
        sim.at(time, lambda sim: sim.remove_agents(ids=[leader_of(sim)]))
    assert arrive(sim, 60.0)
    assert len(sim.agents) == 5


def test_roadmaps_are_asked_for_leaders_only() -> None:
    planner = AdaptiveRoadmap()
    world = World(shapely.box(0, 0, 24, 12), targets={"end": Target(position=(22, 6), radius=0.6)})
    party = Group("party", count=30, region=shapely.box(1, 1, 8, 11), goal="end", leader="central")
    sim = Simulation(world, party, planning=planner, dt=0.05, seed=1, threads=1)
    sim.run(until=1.0)
    assert [person.id for person in planner.travellers.people] == [leader_of(sim)]


@pytest.mark.parametrize("seed", range(3))
def test_a_group_on_the_lattice_goes_where_its_leader_goes(seed: int) -> None:
    world = World(
        shapely.box(0, 0, 24, 12),
        walls=[[(8, 0), (8, 8)], [(15, 12), (15, 4)]],
        exits={"out": shapely.box(23, 5, 24, 7)},
        regions={"stop": shapely.box(9, 6, 13, 9)},
    )
    party = Group("party", count=8, region=shapely.box(1, 1, 6, 6), goal="stop", then=["out"], leader="nearest")
    sim = Simulation(world, party, planning=PathPlans(), local=Lattice(), dt=0.2, seed=seed, threads=1)
    at_stop = np.zeros(8, dtype=bool)
    removed = False
    while sim.time < 80.0 and len(sim.agents):
        sim.step()
        at_stop[sim.agents.id[(sim.agents.position[:, 0] > 8.0)]] = True
        led = sim.agents.leader >= 0
        if led.any():
            assert len(set(sim.agents.goal[led].tolist())) == 1
        if sim.time > 3.0 and not removed:
            sim.remove_agents(ids=[leader_of(sim)])
            removed = True
    assert len(sim.agents) == 0
    assert at_stop.sum() >= 7


# Newcomers -----------------------------------------------------------------------------------------------------------


def guided(**told: Any) -> Simulation:
    """A group that follows guides, which soon are gone."""
    groups = [
        Group("guides", positions=[(4.0, 4.0)], goal=(10.0, 6.0), then=["end"]),
        Group("guests", positions=LINE[:3], goal="none", follow="guides"),
    ]
    return Simulation(field(), groups, planning=Direct(), local=Seek(), dt=0.05, seed=1, **told)


def test_newcomers_join_the_party_of_their_group_if_those_they_should_follow_have_died_out() -> None:
    sim = guided()
    sim.remove_agents(group="guides")
    sim.run(until=0.5)
    new = sim.add_agents("guests", positions=[(8.0, 2.0), (8.0, 6.0)], goal="none", follow="guides")
    leader = sim.agents.leader
    heir = int(leader[leader >= 0][0])
    assert heir in range(1, 4)
    assert sim.agents.leader[sim.agents.rows_of(new)].tolist() == [heir, heir]


def test_newcomers_lead_themselves_to_the_goal_of_a_group_that_has_died_out() -> None:
    sim = guided()
    sim.remove_agents()
    new = sim.add_agents("guests", positions=[(3.0, 4.0), (5.0, 4.0), (6.0, 4.0)], goal="none", follow="guides")
    assert sim.agents.leader.tolist() == [int(new[2]), int(new[2]), -1]
    assert sim.agents.goal_point[2].tolist() == [10.0, 6.0]
    # They go the whole route of the guides.
    sim.run(until=40.0)
    assert (np.linalg.norm(sim.agents.position - (28, 4), axis=1) < 2.5).all()


def test_guests_that_come_before_their_guides_have_a_goal() -> None:
    groups = [
        Source("guides", rate=1.0, region=shapely.box(1, 1, 3, 3), begin=30.0, total=1, goal="end"),
        Source("guests", rate=1.0, region=shapely.box(1, 5, 3, 7), total=4, goal="none", follow="guides"),
    ]
    sim = Simulation(field(), groups, planning=Direct(), local=Seek(), dt=0.05, seed=1)
    sim.run(until=29.0)
    assert sorted(sim.agents.leader.tolist()) == [-1, 0, 0, 0]
    assert (sim.agents.position[:, 0] > 20.0).all()


def test_newcomers_that_come_when_their_leader_is_removed_get_the_successor_of_the_others() -> None:
    sim = led("nearest", positions=LINE[:4])
    sim.run(until=1.0)
    sim.remove_agents(ids=[leader_of(sim)])
    new = sim.add_agents("party", positions=[(12.0, 4.0), (1.0, 7.0)], goal="end", leader="nearest")
    sim.step()
    heir = leader_of(sim)
    assert heir == new[0]  # the nearest to the goal of them all
    assert sim.agents.leader.tolist() == [-1 if who == heir else heir for who in sim.agents.id.tolist()]
    assert (sim.agents.goal != NO_GOAL).tolist() == [who == heir for who in sim.agents.id.tolist()]


def test_an_event_that_designates_somebody_who_is_gone_does_nothing() -> None:
    sim = led("nearest")
    sim.at(0.5, lambda sim: sim.remove_agents(ids=[2]))
    sim.at(1.0, events.SetLeader(group="party", id=2))
    sim.at(1.5, events.RemoveAgents(group="party"))
    sim.at(2.0, events.SetLeader(group="party", leader="central"))
    before = leader_of(sim)
    sim.run(until=1.4)
    assert leader_of(sim) == before
    sim.run(until=3.0)
    assert len(sim.agents) == 0


def test_an_event_for_an_agent_that_cannot_be_there_is_refused_at_once() -> None:
    sim = led("nearest")
    with pytest.raises(ParameterError, match="no agent can have the id 77: ids so far are 0 to 5; give the id"):
        sim.at(0.5, events.SetLeader(group="party", id=77))
    with pytest.raises(ParameterError, match="leader is number 6, but group 'party' has 6 agents, from number 0 on"):
        sim.at(0.5, events.SetLeader(group="party", leader=6))
    sim.at(0.5, events.AddAgents(group="party", count=3, around=(5.0, 5.0)))
    with pytest.raises(ParameterError, match="ids so far are 0 to 5, and at most 3 more come until then"):
        sim.at(1.0, events.SetLeader(group="party", id=9))
    with pytest.raises(ParameterError, match="no agent can have the id 6"):  # it comes later
        sim.at(0.4, events.SetLeader(group="party", id=6))
    sim.at(1.0, events.SetLeader(group="party", id=8))
    sim.at(1.5, events.SetLeader(group="party", leader=7))
    sim.run(until=1.2)
    assert leader_of(sim) == 8
    sim.run(until=1.7)
    assert leader_of(sim) == 7


def test_an_event_for_an_agent_of_another_group_is_refused_at_once() -> None:
    party = Group("party", positions=[(1.0, 1.0), (2.0, 1.0)], goal="end", leader="nearest")
    others = Group("others", positions=[(1.0, 3.0), (2.0, 3.0)], goal="end")
    sim = Simulation(field(), [party, others], planning=Direct(), local=Flocking(), dt=0.1)
    with pytest.raises(ParameterError, match="agent 3 is of group 'others', not of 'party'"):
        sim.at(0.5, events.SetLeader(group="party", id=3))


def test_whom_a_function_or_a_source_may_bring_is_known_only_when_the_event_is_due() -> None:
    sim = led("nearest")
    sim.at(0.2, lambda sim: None)
    sim.at(0.5, events.SetLeader(group="party", id=77))
    with pytest.raises(EventError, match="no living agent of it has the id 77"):
        sim.run(until=1.0)
    coming = Source("late", rate=5.0, region=shapely.box(1, 1, 4, 4), goal="end", total=2)
    party = Group("party", positions=[(1.0, 1.0), (2.0, 1.0)], goal="end", leader="nearest")
    sim = Simulation(field(), [party, coming], planning=Direct(), local=Flocking(), dt=0.1)
    sim.at(1.0, events.SetLeader(group="party", id=3))
    with pytest.raises(ParameterError, match="ids so far are 0 to 1, and at most 2 more come"):
        sim.at(1.0, events.SetLeader(group="party", id=4))


# Waiting -------------------------------------------------------------------------------------------------------------


def walled_off(habits: list[Any]) -> Simulation:
    """Four of six followers are in a room whose door is shut, and the leader sees its goal."""
    people = [(2.0 + 0.6 * k, 2.0) for k in range(4)] + [(2.0, 6.0), (2.6, 6.0), (4.0, 6.0)]
    party = Group("party", positions=people, goal="end", leader=6)
    world = field(walls=[[(0, 4), (6, 4)], [(6, 3), (6, 0)]], doors={"hatch": Door([(6, 3), (6, 4)])})
    return Simulation(world, party, planning=Direct(), local=Seek(), habits=[FollowLeader(), *habits], dt=0.1, seed=3)


@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("split", ["wait", "regroup"])
def test_a_leader_does_not_wait_for_ever_for_followers_that_cannot_come(split: str) -> None:
    sim = walled_off([WaitForFollowers(within=5.0, split=split, patience=12.0)])
    sim.run(until=10.0)
    waits_at = sim.agents.position[6, 0]
    sim.run(until=13.0)
    assert sim.agents.position[6, 0] == pytest.approx(waits_at, abs=1.0)
    assert waits_at < 12.0
    sim.run(until=45.0)
    # It has gone on with the two others.
    assert (sim.agents.position[4:, 0] > 25.0).all()
    assert (sim.agents.position[:4, 0] < 6.0).all()
    patient = walled_off([WaitForFollowers(within=5.0, split=split, patience=1000.0)])
    patient.run(until=45.0)
    assert patient.agents.position[6, 0] < 12.0


def test_a_leader_that_has_gone_on_waits_for_those_that_still_follow() -> None:
    sim = walled_off([WaitForFollowers(within=5.0, patience=5.0)])
    sim.set_parameter("desired_speed", 1.4)
    sim.agents.desired_speed[4:6] = 0.3  # the two others are slow
    farthest = 0.0
    while sim.time < 40.0:
        sim.step()
        farthest = max(farthest, float(sim.agents.position[6, 0] - sim.agents.position[4:6, 0].max()))
    assert sim.agents.position[6, 0] > 11.0
    assert farthest < 6.0


@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
def test_followers_that_catch_up_are_waited_for_again() -> None:
    habit = WaitForFollowers(within=5.0, patience=5.0)
    sim = walled_off([habit])
    sim.run(until=25.0)
    assert habit.state()["resigned"].tolist() == [4]
    sim.world.set_door("hatch", open=True)
    sim.set_goal((9.0, 3.5), ids=[6])
    sim.run(until=80.0)
    assert habit.state()["resigned"].tolist() == [0]


def test_waiting_survives_a_checkpoint(tmp_path: Path) -> None:
    def fresh() -> Simulation:
        return walled_off([WaitForFollowers(within=5.0, patience=12.0)])

    through, first, then = fresh(), fresh(), fresh()
    through.run(until=25.0)
    first.run(until=9.0)
    first.save(tmp_path / "waiting.npz")
    then.restore(tmp_path / "waiting.npz")
    then.run(until=25.0)
    assert then.state_hash() == through.state_hash()


# Determinism ---------------------------------------------------------------------------------------------------------


def busy(threads: int = 1) -> Simulation:
    world = World(
        shapely.box(0, 0, 30, 8),
        exits={"out": shapely.box(29, 2, 30, 6)},
        hazards={"trap": Hazard(position=(12, 6.6), inner=0.6, outer=0.6, replan=False)},
        **S_BEND,
    )
    groups = [
        Group("boids", count=20, region=shapely.box(1, 1, 8, 4), goal="out", leader="nearest", sense_radius=2.0),
        Group("walkers", count=12, region=shapely.box(1, 4, 8, 7), goal=(12.0, 7.0), then=[(5.0, 5.0), "out"],
              leader="central"),
    ]  # fmt: skip
    local = {"boids": Flocking(), "walkers": Walk()}
    sim = Simulation(world, groups, planning=FlowField(), local=local, dt=0.05, seed=4, threads=threads)
    sim.at(6.0, events.SetLeader(group="walkers", leader="nearest"))
    return sim


@needs_two_threads
def test_the_same_bits_on_one_and_two_threads_and_after_a_resume(tmp_path: Path) -> None:
    one, two, resumed = busy(1), busy(2), busy(1)
    ever = set()
    for step in range(700):
        one.step()
        two.step()
        ever.add(tuple(one.population.bonds.own_leader.tolist()))
        if step == 330:
            one.save(tmp_path / "at.ckpt")
    resumed.restore(tmp_path / "at.ckpt")
    while resumed.step_number < one.step_number:
        resumed.step()
    assert len(ever) >= 4
    assert one.state_hash() == two.state_hash() == resumed.state_hash()


def test_a_checkpoint_with_leaders_that_cannot_be_is_refused() -> None:
    sim = led()
    sim.step()
    arrays = sim.population.stored()
    for name, wrong in (
        ("leaders/id", np.array([99])),
        ("leaders/trail_filled", np.array([1000])),
        ("leaders/goal", np.array([50], dtype=np.int32)),
        ("bonds/own_leader", np.array([-5])),
    ):
        with pytest.raises(CheckpointError):
            sim.population.restore({**arrays, name: wrong})
    sim.population.restore(arrays)


def test_leaders_rows_may_be_in_any_order() -> None:
    """Succession with permuted rows chooses the same agents."""
    found = []
    for order in (np.arange(6), np.array([3, 0, 5, 1, 4, 2])):
        sim = led("nearest")
        state = sim.agents
        sim.step()
        state = sim.agents
        for name in state.columns:
            state.columns[name] = state.columns[name][order]
        state.touch()
        gone = int(sim.population.bonds.own_leader[0])
        state.dead[state.row_of(np.array([gone]))] = 1
        sim.population.bonds.keep_up(state, dt=0.05, reduce=sim.reduce)
        found.append((leader_of(sim), sorted(zip(state.id.tolist(), state.leader.tolist(), strict=True))))
    assert found[0] == found[1]
    assert isinstance(sim.population.bonds.leaders, Leaders)

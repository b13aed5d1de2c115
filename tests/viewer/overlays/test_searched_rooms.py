"""What the page shows of squads: searched rooms, and role, mission and order of the selected agent."""

from __future__ import annotations

import numpy as np

from squad_scenes import building, searching
from tropel.viewer.live.agent_tab import described, portrait
from tropel.viewer.overlays.searched import SEARCHED, searched_picture


def test_searched_rooms_are_painted_and_the_selected_agent_has_a_role() -> None:
    sim = searching(building(1), squads=1)
    assert SEARCHED.fits(sim)
    assert searched_picture(sim) is None
    sim.run(until=6.0)
    picture = searched_picture(sim)
    assert picture is not None
    assert SEARCHED.legend is not None
    assert "of 2 rooms searched" in SEARCHED.legend(picture)
    shown = np.isfinite(picture.values)
    seen = shown & (picture.values > 0.5)
    share = sim.squads.searched()
    parts = {place.name: len(sim.squads.all.floor.parts(place)) for place in sim.squads.all.rooms.places}
    assert shown.sum() == sum(parts.values())
    assert seen.sum() == round(sum(share[name] * parts[name] for name in parts))
    assert 0 < seen.sum() < shown.sum()
    status = sim.squads["alpha"]
    assert status.commander is not None
    chief, member = portrait(sim, status.commander), portrait(sim, status.members[0])
    assert chief is not None
    assert member is not None
    assert {("role", "commander"), ("searches", status.room)} <= set(chief.doing)
    assert {("role", "member"), ("order", "keep formation"), ("mission", status.mission)} <= set(member.doing)
    assert "| role | member |" in described(member)

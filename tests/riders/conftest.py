"""Bicyclists for the tests, compiled once."""

from __future__ import annotations

import pytest

from tropel.riders.bicyclist.character import Alien, Bicyclist, Human


@pytest.fixture(scope="session")
def human() -> Human:
    return Human()


@pytest.fixture(scope="session", params=[Human, Alien], ids=["human", "alien"])
def bicyclist(request: pytest.FixtureRequest) -> Bicyclist:
    made: Bicyclist = request.param()
    return made

"""Scenario files: TOML that is checked and built into a simulation; and the scenes that come with tropel."""

from tropel.scenario.loading import (
    Scenario,
    builtin_names,
    load_builtin,
    load_scenario,
    named_scenario,
    parse_scenario,
    verification_names,
)

__all__ = [
    "Scenario",
    "builtin_names",
    "load_builtin",
    "load_scenario",
    "named_scenario",
    "parse_scenario",
    "verification_names",
]

"""The lower bounds in pyproject.toml are those that were tried."""

from __future__ import annotations

import copy

from lowest_versions import dependency_digest, is_checked, project


def test_the_dependencies_are_those_that_were_checked() -> None:
    assert is_checked(), (
        "the dependencies in pyproject.toml have changed since their lowest versions were tried: make lowest"
    )


def test_a_changed_bound_is_noticed_and_a_changed_tool_is_not() -> None:
    before = project()
    bound, extra, tool = (copy.deepcopy(before) for _ in range(3))
    bound["project"]["dependencies"][0] += ",<99"
    extra["project"]["optional-dependencies"]["view"].append("another")
    tool["tool"]["ruff"]["line-length"] = 100
    assert dependency_digest(bound) != dependency_digest(before)
    assert dependency_digest(extra) != dependency_digest(before)
    assert dependency_digest(tool) == dependency_digest(before)

"""The properties of newcomers in files and events: groups, sources and `AddAgents` have the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from tropel.agents.distributions import Distribution
from tropel.agents.groups import DELAY
from tropel.agents.personality import PersonalityField
from tropel.agents.stages.stage import StageField
from tropel.agents.state import DESIRED_SPEED, RADIUS, SENSE_RADIUS
from tropel.foundation.field_types import Finite, NotNegativeWhole, WholeNumber
from tropel.foundation.quantities import Quantity
from tropel.world.places import PlaceField

#: A parameter: one number for all agents, or a distribution from which each agent draws its own.
Value = Finite | Distribution


class Drawn:
    """Marks a `Value` as belonging to a quantity, with its limits, unit and help text."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        if isinstance(value, float) and not self.quantity.allows(value):
            raise ValueError(f"must be {self.quantity.allowed}")
        return value

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return with_limits(handler(schema), self.quantity)


def with_limits(value: dict[str, Any], quantity: Quantity) -> dict[str, Any]:
    """The JSON schema of a quantity's `Value`: limits for the number, and a description for the whole."""
    number, *others = value["anyOf"]
    return {"anyOf": [{**number, **quantity.limits_in_schema()}, *others], "description": quantity.help}


class ParametersField:
    """Marks a table of parameters as columns of planners and steering models, which the JSON schema lists."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        from tropel.registry import MODELS

        found = handler(schema)
        value = found["additionalProperties"]
        columns = [column for entry in MODELS.values() for column in entry.load()().declares.columns]
        found["properties"] = {column.name: with_limits(value, column) for column in columns}
        return found


class PersonalFields(BaseModel):
    """The properties that may differ from agent to agent: numbers or distributions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: Annotated[
        PlaceField,
        Field(
            description='a place (a name, a point [x, y], or a table such as { door = "main" }), "nearest exit", '
            '"nearest target" or "none"'
        ),
    ] = "nearest exit"
    then: Annotated[tuple[PlaceField, ...], Field(description="goals after that one: each is next on arrival")] = ()
    repeat: Annotated[bool, Field(description="whether the first goal, or stage, follows the last")] = False
    stages: Annotated[
        tuple[StageField, ...] | None,
        Field(description='instead of goals: what they do, such as [{ go = "kiosk" }, { wait = 30 }, { go = "out" }]'),
    ] = None
    radius: Annotated[Value, Drawn(RADIUS)] = RADIUS.default
    desired_speed: Annotated[Value, Drawn(DESIRED_SPEED)] = DESIRED_SPEED.default
    sense_radius: Annotated[Value, Drawn(SENSE_RADIUS)] = SENSE_RADIUS.default
    delay: Annotated[Value, Drawn(DELAY)] = DELAY.default
    personality: Annotated[
        PersonalityField | None, Field(description='such as "cautious", or shares: { cautious = 0.7, hasty = 0.3 }')
    ] = None
    parameters: Annotated[
        Mapping[str, Value], ParametersField(), Field(description="columns of the planner or steering model")
    ] = Field(default_factory=dict)
    families: Annotated[
        WholeNumber | None,
        Field(ge=2, description="people per family: neighbours are grouped into families that stay together"),
    ] = None
    follow: Annotated[
        str | None, Field(description="a group, whose nearest agent is followed; the own group has one leader")
    ] = None
    leader: Annotated[
        Literal["nearest", "central"] | NotNegativeWhole | None,
        Field(
            description='how one leader of that group, of the own group or of each family is designated: "nearest" to '
            'the goal, "central", or the number of an agent of the group from 0'
        ),
    ] = None

    def personal(self) -> dict[str, Any]:
        """The fields as `Group` and `Source` take them."""
        return {name: getattr(self, name) for name in PersonalFields.model_fields}

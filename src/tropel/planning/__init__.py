"""Planning: where each agent would like to go, as a unit vector (or a shorter one to go slower, zero to stand)."""

#: Planners that files and blends know by a short name; any other is given as "package.module:Class".
PLANNERS = {
    "direct": "tropel.planning.direct:Direct",
    "flow_field": "tropel.planning.flow_field:FlowField",
    "path_plans": "tropel.planning.path_plans:PathPlans",
    "harmonic": "tropel.planning.harmonic:Harmonic",
    "vector_field": "tropel.planning.vector_field:VectorField",
    "blend": "tropel.planning.field_blend:Blend",
}

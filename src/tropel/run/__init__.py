"""A run from its first step to its summary: the stages of a step, the loop, observers, checkpoints, replay, budgets."""

"""Tasks: work at a place that is shared out among agents.

`task` says what a task is, `board` who works on which and when it is done, `distance` how far a place is in a straight
line. How tasks are shared out is a layer of its own (`contracts/sharing.py`, `deciding/sharing/`). `run/tasks.py`
brings both together in the stage `decide` of a step.
"""

"""Contact: how far agents get, given walls, obstacles and each other, and which bodies overlapped during the step.

`integrate.py` is the place to start: it states the order of a step, and each of its lines has a file here.

| file | question it answers |
|---|---|
| `wanted.py` | where does each agent want to be after the step? |
| `solver.py`, `fidgeting.py` | which moves are compatible when solid bodies push against each other? |
| `integrate.py`, `walls.py` | how far do walls and obstacles let a move go? |
| `giving_way.py` | which of two agents that would still collide shortens its move? |
| `bodies.py`, `contacts.py` | which bodies are solid, and which of them are close to each other? |
| `collisions.py`, `collision_search.py` | which bodies overlapped during the step, when and how deep? |
"""

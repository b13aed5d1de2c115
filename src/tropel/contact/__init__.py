"""Contact: how far agents get, given walls, obstacles and each other, and which bodies overlapped on the way.

`integrate.py` is the place to begin: it states the order of a step, and each of its lines has a file here.

| file | what it answers |
|---|---|
| `wanted.py` | where does everybody want to be after the step? |
| `contact/solver.py`, `fidgeting.py` | which moves go together when solid bodies press on each other? |
| `integrate.py`, `contact/walls.py`, `contact/walls.py` | how far do walls and obstacles let a move go? |
| `giving_way.py` | which of two that would still collide goes less far? |
| `bodies.py`, `contacts.py` | which bodies are solid, and which of them are close to each other? |
| `collisions.py`, `collision_search.py` | which bodies overlapped during the step, when and how deep? |
"""

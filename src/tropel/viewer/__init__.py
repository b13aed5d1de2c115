"""The browser viewer: watch a simulation while it runs, disturb it, and play recorded runs.

viser serves the page; nothing here is imported before a page is requested.

| where | what |
|---|---|
| `server.py`, `guard.py` | the web server, on this machine only; which clients and messages it accepts |
| `frame.py` | the state that is drawn: a copy, taken between two steps |
| `world_drawing.py`, `agents_drawing.py`, `shapes3d.py` | the world, its doors and obstacles, the agents; meshes |
| `camera.py`, `colours.py`, `pulse.py` | the first view, the meaning of colours, how far browsers lag behind |
| `live/` | a simulation that runs while it is watched: its thread, the page, the panel and its tabs |
| `replay/` | recorded runs: the page of `tropel view RUN`, and the file of `tropel export RUN --html` |
| `overlays/` | what can be drawn on top of the world; `Overlay` is the extension point |
"""

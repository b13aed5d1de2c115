"""The browser viewer: watch a simulation while it runs, and disturb it.

viser serves the page; nothing here is imported before a page is asked for. One idea a file:

| file | idea |
|---|---|
| `server.py` | the web server: only this machine, only who has the page's address |
| `guard.py`, `messages.py` | who may talk to it; what of that is a message |
| `frame.py` | what is drawn of a moment: a copy, taken between two steps |
| `live.py` | the simulation in a thread of its own: pace, pause, restart, disturbances |
| `rebuilding.py` | restarts of a simulation that nobody has said how to build |
| `tape.py` | every event so far, and a trajectory file while recording |
| `page.py` | the page: draws the newest frame, as often as browsers follow |
| `world_drawing.py` | what never changes: ground, walls, names |
| `things_drawing.py` | what does: doors, exits, obstacles, hazards, targets |
| `agents_drawing.py` | agents, instanced |
| `camera.py`, `colours.py`, `picking.py` | where one looks from, what colours say, what a click means |
| `controls.py`, `selection.py`, `tools.py`, `group_sliders.py` | the panel |
| `overlays.py`, `overlays_….py` | what can be laid over the world; `Overlay` is the extension point |
| `overlay_switch.py`, `ground_picture.py` | an overlay that is on; numbers per cell as a picture on the ground |
| `plots.py`, `plot_history.py` | live plots, and what they remember of the run |
| `view.py` | `sim.view()` |
| `notebook.py` | pages inside notebooks |
| `recorded_frames.py` | a recorded run as frames, read one at a time |
| `player.py`, `stage.py` | the clock of a replay; a recorded run drawn on a server |
| `replay.py`, `replay_panel.py` | `tropel view RUN` |
| `export.py`, `html_legend.py` | `tropel export RUN --html` |
"""

"""A simulation that runs while it is watched: its thread, the page, and the tabs of the panel."""

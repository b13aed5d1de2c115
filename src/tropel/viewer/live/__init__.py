"""A simulation that runs while it is watched: the thread it runs in, the page, and its tabs."""

"""Local: how each agent moves, given where it would like to go and what is near."""

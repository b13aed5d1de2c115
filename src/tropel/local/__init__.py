"""Local: how each agent moves, given where it would like to go and who and what is near."""

"""Agents: the struct of arrays, groups, spawning and the distributions that personal parameters are drawn from."""

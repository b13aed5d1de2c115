"""Decisions: rules that change what agents are like while a simulation runs (LAYERS §3)."""

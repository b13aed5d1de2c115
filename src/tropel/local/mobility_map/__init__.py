"""Riders: a character's futures are looked up in its mobility map, and the best feasible one is taken."""

"""Optimal reciprocal collision avoidance."""

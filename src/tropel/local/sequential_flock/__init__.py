"""SequentialFlock: the boids of public benchmarks of agent-based frameworks, which move one after another."""

from tropel.local.sequential_flock.model import SequentialFlock

__all__ = ["SequentialFlock"]

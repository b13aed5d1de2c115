"""Roadmaps: samples of the free space joined by straight edges, for leaders of groups and for single agents."""

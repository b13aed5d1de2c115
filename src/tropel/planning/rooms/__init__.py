"""Rooms and doors: a coarse graph over doors, and a roadmap for each room that somebody has entered."""

"""Compiled pieces that more than one layer uses: vectors, random numbers, exact predicates, cells, walls, moves."""

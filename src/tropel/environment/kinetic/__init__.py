"""Neighbourhoods that are kept up to date while agents move, on Delaunay triangulations."""

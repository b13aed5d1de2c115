"""Neighbourhoods that maintain themselves: a Delaunay triangulation of the moving crowd, repaired from step to step."""

"""Fields on a raster of the world, and the planners that follow them, whatever solver made the field."""

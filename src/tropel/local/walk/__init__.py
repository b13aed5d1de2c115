"""Walk: how people walk, which is what a 2D world with walls gets unless another model is chosen."""

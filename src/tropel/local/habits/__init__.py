"""Habits: what agents do with their planned direction before their model steers, whichever model that is."""

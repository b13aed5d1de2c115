"""Planning: where each agent would like to go, as a unit vector (or a shorter one to go slower, zero to stand)."""

"""Bicyclists: articulated riders in a physics engine, who steer with their hands and pedal with their feet."""

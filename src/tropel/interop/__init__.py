"""Bridges to other tools of the field."""

"""What agents know of a changing world: what they see, what others tell them, and what a manager holds for a group.

LAYERS §3 and §8 (sensors whose information is shared by other agents) and GROUPS §5.3.2 (a central manager that slowly
updates what is known of the environment, patched by what agents see).
"""

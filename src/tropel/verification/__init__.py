"""Verification: the standard cases of pedestrian dynamics, run against the engine with a steering model.

A case is a built-in scene (`scenario/builtin/verification/`) and a `Case` in a module of `cases/`: what is measured,
the criterion and the picture. RiMEA is the German guideline for microscopic evacuation analysis, NIST Technical Note
1822 the American one; most of ISO 20414 comes from the latter.
"""

from tropel.verification.candidate import Candidate, default_model, pedestrian_models
from tropel.verification.case import Case, Outcome
from tropel.verification.suite import CASES, names, planned_runs, run
from tropel.verification.verdict import Verdict, verdict_table

__all__ = [
    "CASES",
    "Candidate",
    "Case",
    "Outcome",
    "Verdict",
    "default_model",
    "names",
    "pedestrian_models",
    "planned_runs",
    "run",
    "verdict_table",
]

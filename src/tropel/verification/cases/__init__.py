"""The cases, by subject. Each module has a tuple `CASES`; `tropel.verification.suite` lists the modules."""

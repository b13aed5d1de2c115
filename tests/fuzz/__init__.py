"""Fuzzers: cases drawn from a seed, each tried in a process that may crash, hang or eat memory without harm.

    python -m tests.fuzz --seed 1 --seconds 60      everything for a minute; `make fuzz` does it for ten
    python -m tests.fuzz --only scenario --cases 500
    python -m tests.fuzz --case scenario:1:42       one case again

Every case must end well or in a TropelError of one line that names the file. All else is a finding. The shortest case
of each kind of finding is kept under out/fuzz/SEED.
"""

import sys
from pathlib import Path

# Helpers that other tests use too lie next to this package.
sys.path.insert(0, str(Path(__file__).parents[1]))

"""The foundation: checks of arguments, files, memory. These modules know no other part of tropel."""

"""Recorded runs: the page of `tropel view RUN`, and the file of `tropel export RUN --html`."""

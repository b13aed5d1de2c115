"""The figures of the papers: what `tropel plot NAME` draws, and what is measured for them."""

"""The figures of the papers: what `tropel plot NAME` draws, and the measurements behind them."""

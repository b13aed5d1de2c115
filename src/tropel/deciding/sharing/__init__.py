"""Ways to share out tasks: `optimal`, an `auction` that runs in steps, and `greedy` and `at_random` to compare with."""

from tropel.contracts.sharing import Market, Sharing
from tropel.deciding.sharing.at_random import AtRandom
from tropel.deciding.sharing.auction import Auction
from tropel.deciding.sharing.greedy import Greedy
from tropel.deciding.sharing.optimal import Optimal

__all__ = ["AtRandom", "Auction", "Greedy", "Market", "Optimal", "Sharing"]

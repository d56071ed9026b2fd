"""Four labs, one for each lecture of the course: every theorem drawn against measured runs, and what breaks it.

    lab09   private empirical risk minimisation by the exponential mechanism
    lab10   noisy projected gradient descent
    lab12   private PAC learning
    lab13   private multiplicative weights
    kit     sections, pictures with their bounds, runs on testing ledgers
    notebooks   writes lab09.ipynb to lab13.ipynb from the same sections

`discreet lab 10` writes one as a page. An installed package has this folder as `discreet_labs`.
"""

from __future__ import annotations

import importlib

from .kit import Check, Lab, Section, Shown

NUMBERS = (9, 10, 12, 13)

__all__ = ["NUMBERS", "Check", "Lab", "Section", "Shown", "lab"]


def lab(number: int) -> Lab:
    """The lab of this lecture."""
    found: Lab = importlib.import_module(f".lab{number:02d}", __name__).LAB
    return found

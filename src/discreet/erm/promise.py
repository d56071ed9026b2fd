"""What a theorem promises about the excess risk of a solution, before it is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """L(w) - min L <= excess: in expectation over the noise, or with probability 1 - beta when beta is given.

    excess None: nothing is promised, and `reason` says why.
    """

    excess: float | None
    theorem: str
    reason: str = ""
    beta: float | None = None

    def __float__(self) -> float:
        return math.inf if self.excess is None else self.excess

    def __str__(self) -> str:
        if self.excess is None:
            return f"nothing is promised: {self.reason}"
        how = "in expectation" if self.beta is None else f"with probability {1 - self.beta:g}"
        return f"excess risk <= {self.excess:.3g} {how} ({self.theorem})"

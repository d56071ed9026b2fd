"""An attack: one mechanism, two neighbouring tables, and a mistake that must be caught.

The law of a release is found in one of four ways. Usually it is listed (`laws.law`). A conversation's law is that of
the answers to the questions `asks`. A mechanism that tries until an attempt succeeds has infinitely many paths: its law
is that of one `attempt` given that it succeeds. A descent has too many values: it is run, `look` makes a number of each
release, and the runs prove an epsilon (`sampled`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from discreet.audit.divergence import Finding, claims, epsilon_finding
from discreet.audit.laws import Law, Row, Setting, conversation_law, law, run_law, sample
from discreet.audit.mutants import Mistake, Twin
from discreet.audit.sampled import epsilon_lower_bound
from discreet.rng import Rng

ERROR = 1e-6
"""A bound from runs is wrong with at most this probability."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack on one mechanism.

    asks     the questions to a conversation, in order
    reach    how far noise is listed; what is beyond counts against the finding
    attempt  (mechanism, data, rng) -> one attempt of a mechanism that tries until it succeeds; None if it fails
    look     the number that the attacker makes of a release, for mechanisms that are run `runs` times
    """

    honest: Any
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake
    asks: tuple[Any, ...] = ()
    reach: int = 16
    attempt: Callable[[Any, Any, Any], Any] | None = None
    look: Callable[[Any], float] | None = None
    runs: int = 800

    @property
    def name(self) -> str:
        return type(self.honest).__name__

    @property
    def exact(self) -> bool:
        """Whether the law of one release is listed."""
        return not self.asks and self.look is None

    def finding(self, mistake: Mistake | None = None) -> Finding:
        """How near the claim comes to being refuted: the honest mechanism's, or its twin's with this mistake."""
        mechanism = self.honest if mistake is None else Twin(self.honest, mistake)
        guarantee = mechanism.guarantee(self.setting.facts(self.first))
        if self.look is None:
            p, q = (self.law(rows, mechanism=mechanism) for rows in (self.first, self.second))
            return epsilon_finding(p, q, guarantee)
        claimed, delta = claims(guarantee)[0]
        run = partial(sample, mechanism, setting=self.setting, runs=self.runs, rng=Rng())
        worlds = (list(map(self.look, run(rows))) for rows in (self.first, self.second))
        bound = epsilon_lower_bound(*worlds, delta=delta, error=ERROR)
        return Finding(claimed, bound, claimed, "sampled", delta)

    def law(self, rows: Sequence[Row], *, mechanism: Any = None, setting: Setting | None = None) -> Law:
        """The law of a release about these rows: the honest one's, in this attack's setting, unless said otherwise."""
        mechanism, setting, attempt = mechanism or self.honest, setting or self.setting, self.attempt
        if self.asks:
            return conversation_law(mechanism, self.asks, rows, setting, reach=32)
        if attempt is None:
            return law(mechanism, rows, setting, reach=self.reach)
        tried = run_law(lambda data, rng: attempt(self.honest, data, rng), rows, setting, reach=self.reach)
        successes = {outcome: p for outcome, p in tried.mass.items() if outcome is not None}
        total = math.fsum(successes.values())
        return Law({outcome: p / total for outcome, p in successes.items()}, 1e-12)

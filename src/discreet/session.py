"""A session: one table and its ledger, so that neither has to be named again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.data import Dataset
from discreet.errors import ParameterError
from discreet.ledger import Ledger
from discreet.ledger.opening import check_table


class Session:
    """A table of people and the ledger that counts what is released about them.

    session.fit(LogisticRegression(epsilon=1, delta=1e-6), features=["age", "sex"], target="smoker")
    """

    __slots__ = ("ledger", "table")

    def __init__(self, table: Dataset, ledger: Ledger) -> None:
        if not isinstance(ledger, Ledger):
            raise ParameterError(f"ledger must be a Ledger, found a {type(ledger).__name__}")
        if not all(hasattr(table, name) for name in ("facts", "identity", "exact_sum")):
            raise ParameterError(f"table must be a Table or another dataset, found a {type(table).__name__}")
        with ledger.store.reading() as state:
            check_table(state, table)
        self.table, self.ledger = table, ledger

    def fit(self, estimator: Any, *, target: str, features: Sequence[str] | None = None) -> Any:
        """Fit an estimator to columns of the table, charge the ledger, and return the estimator.

        Features are scaled by their declared bounds, categories become 0/1 coordinates; all declared columns but the
        target unless they are named. The estimator's ledger parameter becomes the session's.
        """
        if not (hasattr(estimator, "set_params") and "ledger" in estimator.get_params(deep=False)):
            raise ParameterError(f"estimator must be one of discreet's, found a {type(estimator).__name__}")
        if estimator.ledger is not None and estimator.ledger.id != self.ledger.id:
            raise ParameterError("this estimator has another ledger: a session charges its own")
        estimator.set_params(ledger=self.ledger)
        named = {} if features is None else {"features": features}
        return estimator.fit(self.table, target, **named)

    def __repr__(self) -> str:
        return f"Session({self.table!r}, {self.ledger!r})"

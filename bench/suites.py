"""What `make bench` measures: one suite after the other, each in a process of its own, each with a part of the results.

A suite is a function that returns lines of markdown. Its name begins with its family: `make bench SUITE=pmw` runs every
suite of that family, `make bench SUITE=pmw_single` that one.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Suite:
    """`section` of a module, with these arguments, beside these peers."""

    name: str
    module: str
    arguments: tuple[Any, ...] = ()
    peers: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Measure: this takes seconds or minutes."""
        found: list[str] = importlib.import_module(self.module).section(*self.arguments)
        return found


_BOTH = ("diffprivlib", "opacus")
UNSEEN = {
    "classes": ("lending", "stops", "delays", "levels", "arrests", "plebiscite", "opinions", "labour", "injuries"),
    "numbers": ("wages", "incomes", "houses", "doctors", "teachers", "trainees"),
}
"""The tables that no constant was chosen on, by what is learned on them (bench/public_tables.py reads them). From
"arrests" on they were chosen by their numbers of rows and columns alone, before any figure on them was seen."""
SEEN = {
    "classes": (
        "churn",
        "fertility",
        "smoking",
        "remote",
        "insurance",
        "officers",
        "blobs",
        "wide",
        "skewed",
        "sparse",
    ),
    "numbers": ("food", "wage", "tests", "panel", "tails", "many"),
}
"""The tables that our defaults (radius, steps, cut of the slopes, which method) were settled with: their figures prove
nothing. Three more made-up tables, of noisy labels, of few rows and of few features, were in view and are not kept."""
WORKLOADS = ("voters", "mortgages", "hearts", "crashes")
"""Tables for workloads of marginals alone, chosen by their numbers of rows and columns."""
PROMPTING = ("adult", "hidden")
"""Tables for workloads of marginals whose figures prompted the present fit: they prove nothing, and show whether it
does what it was built for."""
LOOKED_AT = {
    "classes": ("adult", "census", "credit", "attrition", "unions", "mail"),
    "numbers": ("diamonds", "earnings", "words", "hotels"),
}
"""Tables whose figures were in view when rules were settled: losses on them prompted changes, which were then decided
on tables of SEEN and on made-up ones."""
SUITES = (
    Suite("noise", "bench.noise", peers=("opendp",)),
    Suite("ledger", "bench.ledger"),
    Suite("ledger_writers", "bench.ledger", ("writers",)),
    Suite("ledger_postgres", "bench.ledger", ("postgres",)),
    Suite("ledger_postgres_writers", "bench.ledger", ("postgres_writers",)),
    Suite("ledger_growth", "bench.ledger", ("growth",)),
    Suite("service", "bench.service"),
    Suite("tables", "bench.tables"),
    Suite("pushdown", "bench.pushdown"),
    Suite("far_places", "bench.far", ("places",)),
    Suite("far_growth", "bench.far", ("growth",)),
    Suite("far_fit", "bench.far", ("fit",)),
    Suite("memory", "bench.memory", peers=(*_BOTH, "opendp", "aim")),
    Suite("erm_speed", "bench.erm_speed", peers=_BOTH),
    Suite("erm_growth", "bench.erm_growth"),
    Suite("erm_breast", "bench.erm_accuracy", ("breast",), _BOTH),
    Suite("erm_logistic", "bench.erm_accuracy", ("logistic",), _BOTH),
    Suite("erm_diabetes", "bench.erm_accuracy", ("diabetes",), ("diffprivlib",)),
    Suite("erm_linear", "bench.erm_accuracy", ("linear",), ("diffprivlib",)),
    Suite("erm_numbers", "bench.erm_accuracy", ("numbers",), ("diffprivlib", "opendp")),
    *(Suite(f"unseen_{name}", "bench.unseen", (name,), _BOTH) for name in UNSEEN["classes"]),
    *(Suite(f"unseen_{name}", "bench.unseen", (name,), ("diffprivlib",)) for name in UNSEEN["numbers"]),
    *(Suite(f"looked_{name}", "bench.unseen", (name,), _BOTH) for name in LOOKED_AT["classes"]),
    *(Suite(f"looked_{name}", "bench.unseen", (name,), ("diffprivlib",)) for name in LOOKED_AT["numbers"]),
    *(Suite(f"seen_{name}", "bench.unseen", (name,), _BOTH) for name in SEEN["classes"]),
    *(Suite(f"seen_{name}", "bench.unseen", (name,), ("diffprivlib",)) for name in SEEN["numbers"]),
    Suite("pac_accuracy", "bench.pac", ("accuracy",), ("diffprivlib",)),
    Suite("pac_boxes", "bench.pac", ("boxes",)),
    Suite("pac_conjunctions", "bench.pac", ("conjunctions",)),
    Suite("pac_parquet", "bench.pac", ("parquet",)),
    Suite("pmw_tables", "bench.pmw_tables"),
    Suite("pmw_single", "bench.pmw_single"),
    Suite("pmw_peers", "bench.pmw_peers", peers=("aim",)),
    Suite("pmw_pairs", "bench.pmw_unseen", ("pairs",), ("aim",)),
    Suite("pmw_triples", "bench.pmw_unseen", ("triples",), ("aim",)),
    Suite("pmw_synthetic", "bench.pmw_synthetic", peers=("aim",)),
    Suite("pmw_pairs_further", "bench.pmw_unseen", ("pairs", WORKLOADS), ("aim",)),
    Suite("pmw_triples_further", "bench.pmw_unseen", ("triples", WORKLOADS), ("aim",)),
    Suite("pmw_pairs_prompting", "bench.pmw_unseen", ("pairs", PROMPTING, ("1",)), ("aim",)),
    Suite("pmw_triples_prompting", "bench.pmw_unseen", ("triples", PROMPTING, ("1",)), ("aim",)),
    Suite("pmw_curves", "bench.pmw_curves"),
    Suite("pmw_cells", "bench.pmw_cells"),
    Suite("pmw_speed", "bench.pmw_speed"),
    Suite("prices", "bench.prices"),
    Suite("averages", "bench.averages"),
    Suite("session_day", "bench.session_day", ("day",)),
    Suite("session_many", "bench.session_day", ("many",)),
)


def chosen(names: Sequence[str]) -> list[Suite]:
    """The suites of these names or families, in the order above; all if none is named."""
    for name in names:
        if not any(_called(suite, name) for suite in SUITES):
            raise SystemExit(f"no suite {name!r}; there are {', '.join(suite.name for suite in SUITES)}")
    return [suite for suite in SUITES if not names or any(_called(suite, name) for name in names)]


def _called(suite: Suite, name: str) -> bool:
    return suite.name == name or suite.name.startswith(f"{name}_")

"""The tour's report: one page of plots and results, with the true errors that only this tour can know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import discreet as dp
from discreet import report

from .analyst import Asked
from .folder import INVITED
from .models import Fitted
from .questions import cells
from .screen import Line

_TOLD = (
    "A tour of discreet on real people whose rows have been public for decades. That is why this page can show true "
    "errors: the tour computed them from its own file. Nobody who holds a private table can know them."
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the page tells. tables: what the tables before the questions cost, as a part of the budget."""

    schema: dp.Schema
    ledger: dp.Ledger
    fitted: dict[str, Fitted]
    lines: list[Line]
    asked: list[Asked]
    tables: float
    size: int


def write(told: Told, path: Path) -> None:
    """Draw everything and write one file."""
    report.write_page(path, report.page("discreet: a tour", list(_parts(told)), lead=_TOLD))


def _parts(told: Told) -> Iterator[str | report.Plot | report.Grid | report.Heading]:
    budget = told.ledger.budget
    yield report.Heading("What is promised to the people")
    yield told.schema.protects()
    yield report.odds(sorted({0.1, float(budget.epsilon), 3}), budget.delta)
    yield report.Heading("What was found, and how far it is off")
    yield report.Grid(
        ("what", "found", "price"), [_row(line) for line in told.lines], "Prices are parts of the whole budget."
    )
    yield report.box(told.fitted["box"].model, truth=INVITED)
    yield _risk(told)
    yield _questions(told)
    yield report.Heading("What it cost")
    yield report.budget(told.ledger, everything=True)
    yield report.Heading("With another budget, or more people")
    yield report.noise_range(size=told.size, delta=budget.delta, neighbours=told.schema.neighbours)
    yield report.sample_sizes(
        (0.1, 0.3, 1), delta=budget.delta, neighbours=told.schema.neighbours, learners=_learners(told)
    )


def _row(line: Line) -> tuple[str, str, str]:
    answer = f"{line.answer}. " if line.answer else ""
    return line.what, f"{answer}Promised: {line.promised}. True error: {line.error}.", line.price


def _risk(told: Told) -> report.Plot:
    """The promise against epsilon and size, with the tour's own fit: there is a curve for its epsilon and its size."""
    fit, delta = told.fitted["logistic"], told.ledger.budget.delta
    epsilon = float(f"{fit.model.guarantee_.epsilon(delta):.2g}")
    return report.risk(
        "logistic",
        epsilons=sorted({0.1, epsilon, 1, 3}),
        sizes=(1_000, told.size, 100_000),
        delta=delta,
        neighbours=told.schema.neighbours,
        measured=[(epsilon, told.size, fit.measured or 0.0)],
        radius=_radius(fit.model, told.schema.domain),
        d=len(fit.model.feature_names_out_),
    )


def _radius(model: Any, domain: dp.Domain) -> Fraction:
    """Of the model's feasible set, in units where rows have norm 1 and a target lies in [-1, 1]."""
    risk = model.mechanism_.risk
    bound = risk.target_bound(domain) or 1
    return Fraction(risk.feasible.radius * risk.features.norm / bound)


def _learners(told: Told) -> dict[str, tuple[str, dict[str, Any]]]:
    """The tour's own problems: a name, a kind of plan and its numbers."""
    models = {name: told.fitted[name].model for name in ("logistic", "linear")}
    bits = (told.fitted["box"].model.mechanism_.cuts - 1).bit_length()  # of the grid that its learner goes through
    asked, values = len(told.asked), cells(told.schema.domain)
    widths = {name: len(model.feature_names_out_) for name, model in models.items()}
    return {
        **{
            f"{name}, {widths[name]} features": (
                name,
                {"d": widths[name], "radius": _radius(model, told.schema.domain)},
            )
            for name, model in models.items()
        },
        f"box, {len(INVITED)} features of {bits} bits": ("box", {"d": len(INVITED), "bits": bits}),
        f"{asked} questions, {values} cells": ("questions", {"questions": asked, "cells": values}),
    }


def _questions(told: Told) -> report.Plot:
    """Bound, true error and spending after every question; the tables that came first are paid with the first."""
    spent = list(accumulate((each.price for each in told.asked), initial=told.tables))[1:]
    numbered = enumerate(zip(told.asked, spent, strict=True), start=1)
    asked = [(number, each.bound, each.error, so_far) for number, (each, so_far) in numbered]
    return report.questions(asked, budget=told.ledger.budget, neighbours=told.schema.neighbours)

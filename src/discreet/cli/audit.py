"""`discreet audit`: attacks on this installation."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import Output
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from rich.progress import Progress

    from discreet.audit import Result
    from discreet.audit.divergence import Finding

_WIDE = 110  # columns: below this lines are easier to read than a table
_HOW = {"epsilon": "laws", "sampled": "runs", "loss": "sessions", "delta": "laws"}
_WORD = {"loss": "charged"}


@click.command()
@click.option("--only", metavar="NAME", help="Only the attacks on this mechanism, as Laplace.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def audit(only: str | None, as_json: bool) -> None:
    """Attack this installation, on made-up rows; takes less than a minute.

    For every mechanism two neighbouring tables are made up, and the law of what is released about each is found by
    running the mechanism's own code on every possible draw (or, for descents, many times). An event that is more likely
    in one law than in the other proves an epsilon: "at least 1.89 of 2.00 claimed" means that no claim below 1.89 would
    have been true. Each attack is also made on a twin with one planted mistake, which it must catch: its bound is above
    what the twin claims.

    Exit code 0: no attack beat a claim and every twin was caught; 1 if not.

    \b
        discreet audit --only Laplace
        discreet audit --only Descent --json
    """
    from discreet.audit import attack, select

    output = Output(as_json=as_json)
    wide = not as_json and output.console.width >= _WIDE
    total, results = len(select(only)), []
    with _progress(total) as (bar, task):
        for result in attack(lambda name: bar.update(task, description=f"attacking {name}"), only=only):
            bar.advance(task)
            results.append(result)
            if not wide:
                _lines(result, output)
    if wide:
        output.table(
            ("attack on", "epsilon at least", "of", "a twin that", "epsilon at least", "of", ""), _cells(results)
        )
    failed = list(dict.fromkeys(each.name for each in results if not each.passed))
    output.result({"passed": not failed, "attacks": [_record(each) for each in results]})
    if failed:
        raise DiscreetError(f"the audit failed for {', '.join(failed)}")
    output.say("No attack beat a claim, and every broken twin was caught. This is evidence; the proofs are in docs.")


@contextmanager
def _progress(total: int) -> Iterator[tuple[Progress, Any]]:
    """A bar on the error stream, if somebody looks at it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar, bar.add_task("attacking", total=total)


def _lines(result: Result, output: Output) -> None:
    caught = "caught" if result.broken.violates else "NOT CAUGHT"
    width = output.console.width
    beaten = "" if not result.honest.violates else ": THE CLAIM IS BEATEN"
    output.say(_hanging(f"{result.name} ({result.relation}): {_compared(result.honest)}{beaten}", "", width))
    twin = f"a twin that {result.mistake}: {_compared(result.broken)}: {caught}"
    output.say(_hanging(twin, "    ", width), style="dim")


def _hanging(text: str, indent: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=f"{indent}  ")


def _compared(finding: Finding) -> str:
    return (
        f"at least {_low(finding.found)} of {_claimed(finding)} {_WORD.get(finding.what, 'claimed')}{_given(finding)}"
    )


def _low(found: float) -> str:
    """A lower bound, rounded down; what is exact but for floats stays as it is."""
    return f"{math.floor(found * 100 + 1e-4) / 100:.2f}"


def _claimed(finding: Finding) -> str:
    return f"{finding.claimed:.2f}"


def _given(finding: Finding) -> str:
    given = f" at delta {finding.delta:.2g}" if finding.delta else ""
    return f"{given} (from runs)" if finding.what == "sampled" else given


def _cells(results: list[Result]) -> list[tuple[str, ...]]:
    return [
        (
            f"{each.name}, {each.relation}",
            _low(each.honest.found),
            f"{_claimed(each.honest)}{_given(each.honest)}",
            each.mistake,
            _low(each.broken.found),
            f"{_claimed(each.broken)}{_given(each.broken)}",
            "caught" if each.passed else "BEATEN" if each.honest.violates else "NOT CAUGHT",
        )
        for each in results
    ]


def _record(result: Result) -> dict[str, Any]:
    honest, broken = result.honest, result.broken
    return {
        "mechanism": result.name,
        "neighbours": result.relation,
        "found_by": _HOW[honest.what],
        **_numbers(honest),
        "passed": result.passed,
        "twin": {"mistake": result.mistake, **_numbers(broken), "caught": broken.violates},
    }


def _numbers(finding: Finding) -> dict[str, float | None]:
    """JSON has no infinity."""
    found = {"epsilon_at_least": finding.found, "epsilon_claimed": finding.claimed, "delta": finding.delta}
    return {name: value if math.isfinite(value) else None for name, value in found.items()}

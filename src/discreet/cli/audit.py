"""`discreet audit`: attacks on this installation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.kit import JSON, Command, DiscreetError, Output

if TYPE_CHECKING:
    from discreet.audit import Result

_WIDE = 110  # columns: below this lines are easier to read than a table
_FOUND_BY = {"epsilon": "laws", "sampled": "runs", "loss": "sessions", "delta": "laws"}


@click.command(cls=Command)
@click.option("--only", metavar="NAME", help="Only the attacks on this mechanism, such as Laplace.")
@JSON
def audit(only: str | None, as_json: bool) -> None:
    """Attack this installation, on made-up rows.

    Takes less than a minute. For every mechanism two neighbouring tables are made up, and the law of what is released
    about each is found by running the mechanism's own code on every possible draw (or, for descents, many times). An
    event that is more likely in one law than in the other proves an epsilon: "at least 1.89 of 2.00 claimed" means that
    no claim below 1.89 would have been true. Each attack is also made on a twin with one planted mistake, which it must
    catch: its bound is above what the twin claims.

    Exit code 0: no attack beat a claim and every twin was caught; 1 if not.

    \b
        discreet audit --only Laplace
        discreet audit --only Descent --json
    """
    from rich.console import Console
    from rich.progress import Progress

    from discreet.audit import attack, select

    output, errors = Output(as_json=as_json), Console(stderr=True)
    wide = not as_json and output.width >= _WIDE
    total, results = len(select(only)), []
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("attacking", total=total)
        for result in attack(lambda name: bar.update(task, description=f"attacking {name}"), only=only):
            bar.advance(task)
            results.append(result)
            if not wide:
                _say(result, output)
    if wide:
        headers = ("attack on", "epsilon at least", "of", "a twin that", "epsilon at least", "of", "")
        output.table(headers, [_cells(result) for result in results])
    failed = list(dict.fromkeys(each.name for each in results if not each.passed))
    output.result({"passed": not failed, "attacks": [_record(each) for each in results]})
    if failed:
        raise DiscreetError(f"the audit failed for {', '.join(failed)}")
    output.say("No attack beat a claim, and every broken twin was caught. This is evidence; the proofs are in docs.")


def _say(result: Result, output: Output) -> None:
    honest, broken = (
        " of ".join(_numbers(each, " charged" if each.what == "loss" else " claimed"))
        for each in (result.honest, result.broken)
    )
    beaten = ": THE CLAIM IS BEATEN" if result.honest.violates else ""
    caught = "caught" if result.broken.violates else "NOT CAUGHT"
    output.hang(f"{result.name} ({result.relation}): at least {honest}{beaten}")
    output.hang(f"a twin that {result.mistake}: at least {broken}: {caught}", "    ", style="dim")


def _cells(result: Result) -> tuple[str, ...]:
    verdict = "caught" if result.passed else "BEATEN" if result.honest.violates else "NOT CAUGHT"
    honest = (f"{result.name}, {result.relation}", *_numbers(result.honest))
    return (*honest, result.mistake, *_numbers(result.broken), verdict)


def _numbers(finding: Any, word: str = "") -> tuple[str, str]:
    """A lower bound, rounded down (what is exact but for floats stays as it is); the claim, and at which delta."""
    given = f" at delta {finding.delta:.2g}" if finding.delta else ""
    runs = " (from runs)" if finding.what == "sampled" else ""
    return f"{math.floor(finding.found * 100 + 1e-4) / 100:.2f}", f"{finding.claimed:.2f}{word}{given}{runs}"


def _record(result: Result) -> dict[str, Any]:
    def numbers(finding: Any) -> dict[str, float | None]:
        found = {"epsilon_at_least": finding.found, "epsilon_claimed": finding.claimed, "delta": finding.delta}
        return {name: value if math.isfinite(value) else None for name, value in found.items()}  # JSON has no infinity

    return {
        "mechanism": result.name,
        "neighbours": result.relation,
        "found_by": _FOUND_BY[result.honest.what],
        **numbers(result.honest),
        "passed": result.passed,
        "twin": {"mistake": result.mistake, **numbers(result.broken), "caught": result.broken.violates},
    }

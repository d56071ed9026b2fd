"""`discreet audit`: attacks on this installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.audit.divergence import Finding


@click.command()
def audit() -> None:
    """Attack this installation: exact laws on made-up rows, each beside a broken twin that must be caught."""
    from rich.console import Console

    from discreet.audit import attack

    console = Console(highlight=False)
    failed = []
    with console.status("attacking") as status:
        for result in attack(lambda name: status.update(f"attacking {name}")):
            one, other = result.honest, result.broken
            caught = "caught" if other.violates else "NOT CAUGHT"
            console.print(f"{result.name} ({result.relation}): {_compared(one)}", markup=False)
            console.print(f"    a twin that {result.mistake}: {_compared(other)}: {caught}", markup=False, style="dim")
            failed += [] if result.passed else [result.name]
    if failed:
        raise DiscreetError(f"the audit failed for {', '.join(failed)}")
    console.print("No attack beat a claim, and every broken twin was caught. This is evidence; the proofs are in docs.")


def _compared(finding: Finding) -> str:
    if finding.what == "loss":
        return f"privacy loss {finding.found:.3g} of {finding.claimed:.3g} charged"
    return f"delta {finding.found:.3g} of {finding.claimed:.3g} claimed at epsilon {finding.epsilon:.3g}"

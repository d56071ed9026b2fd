"""discreet attacks itself.

examples             one attack or more on every mechanism of the catalogue: the list that the contract tests read, too
attacks_on_sessions  attacks on whole sessions that answer questions
attacks              what an attack is: a mechanism, two neighbouring tables, a mistake that must be caught
mutants              broken twins, and the published mistakes that make them
laws                 the exact law of a mechanism on made-up rows, by running its own code on every possible draw
programs             the exact law of a whole session, charges and refusals included
divergence           how well two laws can be told apart, against what was promised
sampled              lower bounds on epsilon from runs, for laws that cannot be listed

`attack` runs a fixed set of attacks on this installation, each beside a twin that it must catch, and yields for both
the epsilon that is certain and the epsilon that was claimed. It touches made-up rows only and needs no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from discreet.audit.attacks import Attack
from discreet.audit.attacks_on_sessions import SessionAttack, session_attacks
from discreet.audit.divergence import Finding
from discreet.audit.examples import examples
from discreet.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Result:
    """The findings about the mechanism and about its broken twin."""

    name: str
    relation: str
    honest: Finding
    mistake: str
    broken: Finding

    @property
    def passed(self) -> bool:
        return self.broken.violates and not self.honest.violates


def attack(progress: Callable[[str], None] = lambda name: None, *, only: str | None = None) -> Iterator[Result]:
    """Run every attack, or those on mechanisms of one name; `progress` gets each name before its attack."""
    for chosen in select(only):
        progress(chosen.name)
        honest, broken = chosen.finding(), chosen.finding(chosen.mistake)
        yield Result(chosen.name, chosen.setting.neighbours.kind, honest, chosen.mistake.label, broken)


def attacks() -> tuple[Attack | SessionAttack, ...]:
    """The fixed set."""
    return (*examples(), *session_attacks())


def select(only: str | None) -> tuple[Attack | SessionAttack, ...]:
    """The attacks on mechanisms of this name, or all."""
    everything = attacks()
    chosen = tuple(one for one in everything if only is None or one.name.lower() == only.lower())
    if not chosen:
        known = ", ".join(dict.fromkeys(one.name for one in everything))
        raise ParameterError(f"there is no attack on {only!r}; there are attacks on {known}")
    return chosen

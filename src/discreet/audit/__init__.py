"""discreet attacks itself.

laws         the exact law of a mechanism on made-up rows, by running its own code on every possible draw
divergence   how well two laws can be told apart, against what was promised
sampled      lower bounds on epsilon from runs, for laws that cannot be listed
search       hill-climbing for the worst pair of neighbouring tables
mutants      broken twins, which every audit must catch
rules        attacks on the learners of rules
learners     attacks on fitted models and on workloads
programs     the exact law of a whole session, charges and refusals included
questions    attacks on sessions that answer questions

`attack` runs a fixed set of attacks on this installation, each beside a twin that it must catch, and says for both the
epsilon that is certain and the epsilon that was claimed. It touches made-up rows only and needs no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.audit import mutants
from discreet.audit.divergence import Finding, epsilon_finding
from discreet.audit.laws import Law, Row, Setting, conversation_law, law
from discreet.audit.mutants import Mistake, Twin
from discreet.data import Category, Domain
from discreet.errors import ParameterError
from discreet.guarantee import Neighbours
from discreet.mechanisms import (
    Above,
    AboveThreshold,
    AboveThresholdLaplace,
    CoordinateLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PermuteAndFlip,
    ProductLaplace,
    StableHistogram,
    StableMode,
)
from discreet.query import Count, Equals, Histogram, KeyCount

if TYPE_CHECKING:
    from discreet.audit.attacks_on_models import Attempts, Sampled
    from discreet.audit.attacks_on_sessions import Asking

REPLACE = Setting(Domain(v=Category("a", "b")), Neighbours("replace-one"))
ADD = Setting(Domain(v=Category("a", "b")), Neighbours("add-remove"))


@dataclass(frozen=True, slots=True)
class Attack:
    """One mechanism, two neighbouring tables, and a mistake that the attack must catch."""

    honest: Any
    setting: Setting
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    mistake: Mistake
    asks: tuple[Above, ...] = ()
    reach: int = 16

    def finding(self, mechanism: Any) -> Finding:
        p, q = (self._law(mechanism, table) for table in (self.first, self.second))
        return epsilon_finding(p, q, mechanism.guarantee(self.setting.facts(self.first)))

    def _law(self, mechanism: Any, table: tuple[Row, ...]) -> Law:
        if self.asks:
            return conversation_law(mechanism, self.asks, table, self.setting, reach=32)
        return law(mechanism, table, self.setting, reach=self.reach)


AnyAttack: TypeAlias = "Attack | Attempts | Asking | Sampled"


@dataclass(frozen=True, slots=True)
class Result:
    """What the attack found on the mechanism and on its broken twin."""

    name: str
    relation: str
    honest: Finding
    mistake: str
    broken: Finding

    @property
    def passed(self) -> bool:
        return self.broken.violates and not self.honest.violates


def attack(progress: Callable[[str], None] = lambda name: None, *, only: str | None = None) -> Iterator[Result]:
    """Run every attack, or those on mechanisms of one name; `progress` is told each name before its attack."""
    for each in chosen(only):
        name = name_of(each)
        progress(name)
        twin = Twin(each.honest, each.mistake)  # type: ignore[arg-type]  # a session's mistake is a Slip
        honest, broken = each.finding(each.honest), each.finding(twin)
        yield Result(name, each.setting.neighbours.kind, honest, each.mistake.label, broken)


def chosen(only: str | None) -> tuple[AnyAttack, ...]:
    """The attacks on mechanisms of this name, or all."""
    found = tuple(each for each in attacks() if only is None or name_of(each).lower() == only.lower())
    if not found:
        known = ", ".join(dict.fromkeys(name_of(each) for each in attacks()))
        raise ParameterError(f"there is no attack on {only!r}; there are attacks on {known}")
    return found


def name_of(each: AnyAttack) -> str:
    return type(each.honest).__name__


def attacks() -> tuple[AnyAttack, ...]:
    """The fixed set."""
    from discreet.audit import attacks_on_models, attacks_on_rules, attacks_on_sessions

    listed = (
        Attack(*told, asks=(), reach=reach) for told, reach in (*attacks_on_models.listed(), *attacks_on_rules.told())
    )
    return (*_mechanism_attacks(), *listed, *attacks_on_models.told(), *attacks_on_sessions.told())


def _mechanism_attacks() -> tuple[Attack, ...]:
    scale = Fraction(1, 2)
    a, b = Count(Equals("v", "a")), Count(Equals("v", "b"))
    stable, threshold = StableHistogram(KeyCount("v"), 1, 3), AboveThreshold(1, 2)
    both_ways = (Above(a, 2), Above(b, 2))
    return (
        Attack(Laplace(a, scale), REPLACE, _rows("ab"), _rows("bb"), mutants.HALVED_NOISE),
        Attack(Laplace(a, scale), ADD, _rows("ab"), _rows("b"), mutants.ONE_SIDED_NOISE),
        Attack(Laplace(Histogram("v"), scale), REPLACE, _rows("ab"), _rows("bb"), mutants.ADD_REMOVE_PRICE),
        Attack(Gaussian(Histogram("v"), 1), REPLACE, _rows("ab"), _rows("bb"), mutants.ADD_REMOVE_PRICE),
        Attack(ProductLaplace(Histogram("v"), scale), REPLACE, _rows("ab"), _rows("bb"), mutants.HALVED_NOISE),
        Attack(CoordinateLaplace(Histogram("v"), scale), REPLACE, _rows("ab"), _rows("bb"), mutants.HALVED_NOISE),
        Attack(Exponential(Histogram("v"), 1), REPLACE, _rows("abbb"), _rows("bbbb"), mutants.ADD_REMOVE_PRICE),
        Attack(PermuteAndFlip(Histogram("v"), 1), REPLACE, _rows("abbb"), _rows("bbbb"), mutants.ADD_REMOVE_PRICE),
        Attack(threshold, REPLACE, _rows("abb"), _rows("aab"), mutants.NO_THRESHOLD_NOISE, (*[Above(a, 3)] * 8,)),
        Attack(threshold, REPLACE, _rows("abb"), _rows("aab"), mutants.NO_QUESTION_NOISE, (Above(a, 0), Above(b, 0))),
        Attack(threshold, REPLACE, _rows("abb"), _rows("aab"), mutants.NEVER_STOPS, both_ways * 2),
        Attack(threshold, REPLACE, _rows("abb"), _rows("aab"), mutants.RELEASES_NOISY_VALUE, (Above(a, 1),)),
        Attack(threshold, REPLACE, _rows("abb"), _rows("aab"), mutants.MONOTONE_PRICE, both_ways),
        Attack(
            threshold, REPLACE, _rows("abb"), _rows("aab"), mutants.OFF_GRID, (Above(a, Fraction(7, 20)), Above(b, 2))
        ),
        Attack(
            AboveThresholdLaplace(1, 2),
            REPLACE,
            _rows("abb"),
            _rows("aab"),
            mutants.NO_QUESTION_NOISE,
            (Above(a, 0), Above(b, 0)),
        ),
        Attack(stable, ADD, _rows("a"), _rows(""), mutants.PASSES_AT_BOUND),
        Attack(stable, REPLACE, _rows("ab"), _rows("bb"), mutants.TRUNCATED_EARLY),
        Attack(StableMode(stable), ADD, _rows("abbbbaaa"), _rows("bbbbaaa"), mutants.FIRST_SEEN_TIES),
    )


def _rows(letters: str) -> tuple[Row, ...]:
    """A letter is a row."""
    return tuple({"v": letter} for letter in letters)

"""The tour in 40 lines: what was promised, what came out, how far it is off, what it cost, and an attack that fails."""

from __future__ import annotations

from pathlib import Path

from discreet.audit import attack

from .analyst import free, within
from .folder import INVITED
from .models import Fitted
from .questions import ALPHA, BETA, Answered
from .screen import Screen, percent
from .stage import Desk

_BAR = 40
_MODELS = {
    "logistic": "who is limited",
    "linear": "age, from a family and its illnesses",
    "rule": "a rule in words",
    "box": "a box in age and visits",
}


class Digest:
    """Says each part of the tour when it is done."""

    def __init__(self, screen: Screen, desk: Desk, where: Path) -> None:
        self.screen, self.desk = screen, desk
        screen.say("discreet: a tour", style="bold")
        screen.say(
            f"\n{desk.size:,} people of a health experiment, whose rows have been public for decades: so this tour can "
            "show true errors. The owner of a private table sees the promises only."
        )
        screen.say(f"\n{where / 'people.ledger'} promises {desk.ledger.budget} for all of this together.")

    def models(self, fitted: dict[str, Fitted]) -> None:
        """The models, one line each, and the learned box beside the true one."""
        self._part("Models and rules, with the part of the budget that each took")
        for name, each in fitted.items():
            first, _, rest = each.line.error.partition("; ")
            fact = rest if first.startswith("excess risk") else first if name == "box" else f"{first}; {rest}"
            self.screen.say(f"{_MODELS.get(name, name)}: {fact} ({each.line.price})", indent=2)
        truth = " and ".join(f"{low:g} <= {name} <= {high:g}" for name, (low, high) in INVITED.items())
        self.screen.say(f"learned: {fitted['box'].model.rule_}", indent=4)
        self.screen.say(f"true:    {truth}", indent=4)

    def questions(self, answered: Answered, moved: float, refused: str) -> None:
        """How many questions, how many free, the largest error, the synthetic rows, the refusal."""
        asked = answered.asked
        worst = max((each.error for each in asked if each.error is not None), default=0)
        self._part("Questions in SQL, each chosen after the answers before")
        self.screen.say(f"{len(asked)} questions, {free(asked)} of them free", indent=2)
        self.screen.say(
            f"promised: within {float(ALPHA * self.desk.size):.0f} people, all at once, "
            f"with probability {float(1 - BETA):g}",
            indent=2,
        )
        self.screen.say(
            f"true errors: at most {worst:.0f}; {within(asked)} of {len(asked)} within their bounds", indent=2
        )
        self.screen.say(f"{self.desk.size:,} synthetic rows, free: {percent(moved)} would have to move", indent=2)
        self.screen.say(f"one more question: refused, {refused.split(':')[0].split('.')[0]}", indent=2)
        full = round(_BAR * self.desk.spent())
        bar = f"[{'#' * full}{'.' * (_BAR - full)}]"
        self.screen.say(f"\nspent {bar} {percent(self.desk.spent())} of the budget", style="bold")

    def attack(self) -> None:
        """One attack on an honest mechanism and on its twin, with certain epsilons."""
        with self.screen.working("attacking"):
            found = next(attack(only="Laplace"))
        honest, broken = found.honest, found.broken
        self._part("An attack, by the exact law of a noisy count on two tables")
        self.screen.say(f"the mechanism claims epsilon {honest.claimed:g}; certain: {honest.found:.3g}", indent=2)
        self.screen.say(f"a twin that {found.mistake}", indent=2)
        self.screen.say(f"claims {broken.claimed:g}; certain: {broken.found:.3g}, caught", indent=4)

    def _part(self, title: str) -> None:
        self.screen.heading(title)

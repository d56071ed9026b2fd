"""Small settings and pairs that the audits share."""

from __future__ import annotations

from discreet.audit.laws import Setting
from discreet.data import Category, Domain, Number
from discreet.guarantee import Neighbours

ONE_COLUMN = Domain(v=Category("a", "b"))
NUMBERS = Domain(x=Number(-1, 3, step=1))

REPLACE = Setting(ONE_COLUMN, Neighbours("replace-one"))
ADD = Setting(ONE_COLUMN, Neighbours("add-remove"))
BOTH = (REPLACE, ADD)


def people(text: str) -> list[dict[str, str]]:
    """Rows of ONE_COLUMN, one letter each."""
    return [{"v": letter} for letter in text]

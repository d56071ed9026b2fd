"""The text of a question: how long it may be, which characters it may hold, and the words of a refusal.

Everything here happens before the text is parsed. Outside quotes a question holds ASCII signs and letters only: a
quotation mark from a word processor or an invisible space is named, never read as the sign that it looks like.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from discreet.core import ParameterError, UnsupportedQuery, exact
from discreet.data import Domain

MAX_LENGTH = 10_000
_SHOWN = 60  # characters of a question that a message quotes
_SAID = 600  # characters of a reason or a hint

RESERVED = frozenset(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "AS",
        "LIKE",
        "ILIKE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "JOIN",
        "INNER",
        "ON",
        "USING",
        "WITH",
        "DISTINCT",
        "ASC",
        "DESC",
        "NULLS",
        "FILTER",
        "WITHIN",
        "UNION",
        "BY",
    ]
)
"""The words of the language that are no names, unless a column of this name is declared or they are in quotes."""

AGGREGATES = frozenset(
    [
        "COUNT",
        "SUM",
        "AVG",
        "MEAN",
        "MEDIAN",
        "QUANTILE",
        "QUANTILE_CONT",
        "QUANTILE_DISC",
        "PERCENTILE",
        "PERCENTILE_CONT",
        "PERCENTILE_DISC",
        "VAR",
        "VARIANCE",
        "VAR_SAMP",
        "VAR_POP",
        "STDDEV",
        "STDDEV_SAMP",
        "STDDEV_POP",
        "STD",
        "COUNT_IF",
        "COUNTIF",
        "CORR",
        "COVAR_POP",
        "COVAR_SAMP",
    ]
)

FUNCTIONS = frozenset(
    [
        "FLOOR",
        "CEIL",
        "CEILING",
        "ROUND",
        "ABS",
        "POWER",
        "POW",
        "SQRT",
        "MOD",
        "COALESCE",
        "NULLIF",
        "IF",
        "LEAST",
        "GREATEST",
        "LOWER",
        "UPPER",
        "WIDTH_BUCKET",
        "DATE_TRUNC",
        "DATE_PART",
        "DATEPART",
        "EXTRACT",
        "CAST",
        "YEAR",
        "MONTH",
        "DAY",
        "DAYOFMONTH",
        "QUARTER",
        "WEEK",
        "WEEKOFYEAR",
        "DAYOFWEEK",
        "WEEKDAY",
        "ISODOW",
        "DAYOFYEAR",
        "HOUR",
        "MINUTE",
        "MONTHNAME",
        "DAYNAME",
    ]
)

ONE_TABLE = "Ask about one table: SELECT COUNT(*) FROM table WHERE condition."
JOINS = "A join looks like FROM visits v JOIN people p USING (person)."
PLAIN = "A condition compares a column with a plain value: age >= 65, sex = 'F', visits BETWEEN 1 AND 3."

_TOPICS: tuple[tuple[str, str, str], ...] = (
    (
        "LEFT RIGHT OUTER CROSS FULL NATURAL SEMI ANTI ASOF LATERAL POSITIONAL APPLY",
        "this kind of join is not answered",
        JOINS,
    ),
    ("SORT FETCH TOP", "this word is not answered", "Write ORDER BY n DESC LIMIT 5."),
    ("RECURSIVE", "WITH RECURSIVE is not answered", "WITH may name a question that filters."),
    ("TRY_CAST CONVERT COLLATE", "a cast is not answered", PLAIN),
    (
        "DISTINCT",
        "DISTINCT is answered in COUNT(DISTINCT person) only",
        "Count rows: COUNT(*), or COUNT(column) for those that are not missing.",
    ),
    ("XOR DIV", "this operator is not answered", "Conditions are joined by AND, OR and NOT."),
    ("UNION INTERSECT EXCEPT MINUS", "combining several SELECTs is not answered", "Ask them one at a time."),
    (
        "OVER PARTITION WINDOW QUALIFY ROWS RANGE",
        "a window function is not answered",
        "Use GROUP BY for counts in groups.",
    ),
    (
        "SIMILAR GLOB REGEXP RLIKE ESCAPE",
        "matching text by a pattern is not answered",
        "List the levels that are meant: column IN ('a', 'b').",
    ),
    ("EXISTS ANY SOME", "a subquery is not answered here", "A question in brackets may stand after FROM only."),
    ("ALL", "ALL is not read", "Leave it out."),
    ("ROLLUP CUBE GROUPING SETS", "several groupings at once are not answered", "Ask them one at a time."),
    ("TABLESAMPLE SAMPLE", "sampling is not answered", "Leave it out: the answer is about all rows."),
    (
        "ISNULL NOTNULL UNKNOWN",
        "this way to ask for missing values is not read",
        "Write column IS NULL or IS NOT NULL.",
    ),
    ("SYMMETRIC ASYMMETRIC", "BETWEEN SYMMETRIC is not answered", "Write the smaller value first."),
    (
        "INSERT UPDATE DELETE DROP CREATE ALTER TRUNCATE MERGE COPY ATTACH PRAGMA SET CALL EXECUTE GRANT VALUES INTO "
        "EXPLAIN DESCRIBE SHOW USE BEGIN COMMIT LOAD INSTALL EXPORT PIVOT UNPIVOT SUMMARIZE",
        "only questions are answered, and they begin with SELECT",
        ONE_TABLE,
    ),
    ("^ & | << >> ~ ** || !", "this operator is not answered", "Arithmetic has + - * / // and %."),
    (":", "a named parameter is not answered", "Write the value itself. " + PLAIN),
    ("? $ @ {", "a parameter is not answered", "Write the value itself. " + PLAIN),
    (
        "[ ]",
        "a list in square brackets is not answered",
        "A list of values: column IN (1, 2, 3). Ask for one quantile.",
    ),
    ("`", "a name in backquotes is not read", 'Write names plainly, or in double quotes: "my column".'),
    ("== <=>", "this comparison is not read", "Comparisons are = <> != < <= > >=."),
    ("-- /* #", "a comment is not read", "Leave the comment out: the whole question must be meant."),
    (";", "several statements are not answered", "Ask them one at a time; one semicolon may end a question."),
)
_REASONS = {word: (reason, hint) for words, reason, hint in _TOPICS for word in words.split()}

# Text and names in quotes, whole; then what may not be outside them.
_OUTSIDE = re.compile(
    r"""(?P<prefix>(?<=\w)['"])|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<open>['"])|(?P<comment>--|/\*|\#)"""
    r"""|(?P<odd>[^\w \t\r\n(),.*=<>!;+/%:-]|(?![\x00-\x7f])\w)"""
)


@dataclass(frozen=True, slots=True)
class Known:
    """A table that may be asked about: its name, its declared columns, the column that names a person, if any, and how
    many rows a person may have."""

    name: str
    domain: Domain
    unit: str | None = None
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """A question and the tables that it may be about."""

    text: str
    tables: tuple[Known, ...]

    @property
    def table(self) -> str:
        return self.tables[0].name

    @property
    def several(self) -> bool:
        return len(self.tables) > 1

    @property
    def one_table(self) -> str:
        return JOINS if self.several else ONE_TABLE

    def tabled(self, name: str) -> Known | None:
        """The table of this name, without regard to case."""
        alike = [each for each in self.tables if folded(each.name) == folded(name)]
        exactly = [each for each in alike if each.name == name]
        return exactly[0] if exactly else alike[0] if len(alike) == 1 else None

    def refused(self, position: int, reason: str, hint: str) -> UnsupportedQuery:
        """The error, short even if the question is huge."""
        text = self.text if len(self.text) <= MAX_LENGTH else self.text[:_SHOWN] + " ..."
        return UnsupportedQuery(text, position, _cut(reason, _SAID), _cut(hint, _SAID))

    def not_answered(self, position: int, word: str) -> UnsupportedQuery | None:
        """The refusal of a word or a sign that SQL has and this language has not; None if nothing is known of it."""
        found = _REASONS.get(word.upper().partition(" ")[0])
        return None if found is None else self.refused(position, *found)

    def too_deep(self, position: int, most: int) -> UnsupportedQuery:
        reason = f"brackets, NOTs, CASEs and calls are nested more than {most} deep"
        return self.refused(position, reason, "Write the question with fewer brackets.")

    def check_call(self, position: int, written: str, name: str) -> None:
        """Refuse a function that is not listed; what is known of it is said."""
        if name in AGGREGATES | FUNCTIONS:
            return
        known = None if self.declared(written) else self.not_answered(position, written)
        raise known or self.no_call(position, written)

    def no_call(self, position: int, name: str) -> UnsupportedQuery:
        if name.upper() in ("MAX", "MIN", "FIRST", "LAST", "ANY_VALUE", "ARG_MAX", "ARG_MIN", "MODE"):
            reason = f"{shown(name)} is not answered: one person's value would be seen"
            return self.refused(position, reason, "Ask for a quantile instead, such as QUANTILE(x, 0.99).")
        hint = (
            "Answered are COUNT, SUM, AVG, MEDIAN, QUANTILE, VAR, STDDEV, CORR, COVAR_POP, COUNT_IF, FLOOR, and others."
        )
        return self.refused(position, f"the function {shown(name)} is not answered", hint)

    def declared(self, name: str) -> bool:
        """Whether some table has a column of this name, or is called so."""
        folds = {folded(column) for each in self.tables for column in (*each.domain.names, each.unit or "", each.name)}
        return folded(name) in folds

    @property
    def example(self) -> str:
        """A hint for whoever is lost."""
        return f"A question looks like SELECT COUNT(*) FROM {_cut(self.table, _SHOWN)} WHERE condition. {PLAIN}"


def source(text: object, tables: tuple[Known, ...]) -> Source:
    """The question, if its size and its characters are those of a question."""
    if not isinstance(text, str):
        raise ParameterError(f"a question is text in SQL, found {type(text).__name__}")
    for each in tables:
        if not isinstance(each.domain, Domain):
            raise ParameterError(f"domain must be a Domain, found {type(each.domain).__name__}")
        exact.text(table=each.name)
    found = Source(str.__str__(text), tables)
    if len(found.text) > MAX_LENGTH:
        reason = f"the question has {len(found.text):,} characters; at most {MAX_LENGTH:,} are read"
        raise found.refused(MAX_LENGTH, reason, "Ask shorter questions, or several.")
    if not found.text.strip(" \t\r\n;"):
        raise found.refused(0, "the question is empty", found.example)
    for match in _OUTSIDE.finditer(found.text):
        sign = match[0]
        # Letters of other alphabets may be in names; digits of others, marks and invisible ones may not.
        letter = match.lastgroup == "odd" and not sign.isascii() and sign.isalpha()
        if match.lastgroup is None or letter:
            continue
        at = match.start()
        if match.lastgroup == "prefix":
            raise found.refused(at, "a quotation mark directly after a word is not read", "Texts look like 'F'.")
        if match.lastgroup == "open":
            hint = "Close it by the same mark; inside a text write the mark twice: 'it''s'."
            raise found.refused(at, f"the quotation mark {sign} is opened and never closed", hint)
        known = found.not_answered(at, sign)
        hint = "Outside quotes a question holds letters, digits and the signs ( ) , . + - * / % = < > ! : ; only."
        raise known or found.refused(at, f"the character {character(sign)} is not read outside quotes", hint)
    return found


def folded(name: str) -> str:
    """Lower case, for ASCII letters only: the Kelvin sign is no k."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


def is_word(name: str) -> bool:
    """Whether SQL has this word: a name like it is better written in quotes."""
    return name.upper() in RESERVED or name.upper() in AGGREGATES | FUNCTIONS or name.upper() in _REASONS


def shown(part: str) -> str:
    """A part of the question for a message: short, and with odd characters spelled out."""
    return ascii(part) if len(part) <= _SHOWN else ascii(part[:_SHOWN]) + " ..."


def character(sign: str) -> str:
    """A character by its name."""
    return f"{unicodedata.name(sign, 'a control character')} (U+{ord(sign):04X})"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[:size] + " ..."

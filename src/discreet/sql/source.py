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

KEYWORDS = frozenset(
    {"SELECT", "FROM", "WHERE", "GROUP BY", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "AS"}
    | {"WITHIN", "GROUP", "ORDER BY", "ASC"}
)
"""The words of the language; a column of such a name is written in quotes."""

CALLS = frozenset(
    {"COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE_CONT"}
    | {"PERCENTILE_DISC"}
)

SIGNS = frozenset({"(", ")", ",", ".", "*", "=", "<>", "!=", "<", "<=", ">", ">=", "-", ";"})

ONE_TABLE = "Ask about one table: SELECT COUNT(*) FROM table WHERE condition."
PLAIN = "A condition compares a column with a plain value: age >= 65, sex = 'F', visits BETWEEN 1 AND 3."
BY_ITSELF = "Answers come whole: leave it out, and sort or cut them yourself."

_TOPICS: tuple[tuple[str, str, str], ...] = (
    ("HAVING", "HAVING is not answered", "It would filter by exact counts; ask for all groups and filter the answers."),
    ("ORDER SORT NULLS", "ORDER BY is not answered", BY_ITSELF),
    ("DESC", "DESC is not answered", "Quantiles count from the smallest value: ask for 1 - p instead of p."),
    ("LIMIT OFFSET FETCH TOP", "LIMIT is not answered", BY_ITSELF),
    ("DISTINCT", "DISTINCT is not answered", "Count rows: COUNT(*), or COUNT(column) for those that are not missing."),
    (
        "JOIN LEFT RIGHT INNER OUTER CROSS FULL NATURAL USING ON SEMI ANTI ASOF LATERAL POSITIONAL APPLY",
        "a join is not answered",
        ONE_TABLE,
    ),
    ("UNION INTERSECT EXCEPT MINUS", "combining several SELECTs is not answered", "Ask them one at a time."),
    ("WITH RECURSIVE", "a WITH clause is not answered", ONE_TABLE),
    (
        "OVER PARTITION WINDOW QUALIFY ROWS RANGE",
        "a window function is not answered",
        "Use GROUP BY for counts in groups.",
    ),
    ("FILTER", "FILTER is not answered", "Put the condition after WHERE."),
    ("CASE WHEN THEN ELSE END IF", "CASE is not answered", "Put the condition after WHERE."),
    ("CAST TRY_CAST CONVERT COLLATE", "a cast is not answered", PLAIN),
    (
        "LIKE ILIKE SIMILAR GLOB REGEXP RLIKE ESCAPE",
        "matching text by a pattern is not answered",
        "List the levels that are meant: column IN ('a', 'b').",
    ),
    ("EXISTS ANY SOME", "a subquery is not answered", PLAIN),
    ("ALL", "ALL is not read", "Leave it out."),
    ("ROLLUP CUBE GROUPING SETS", "several groupings at once are not answered", "Ask them one at a time."),
    ("TABLESAMPLE SAMPLE", "sampling is not answered", "Leave it out: the answer is about all rows."),
    (
        "ISNULL NOTNULL UNKNOWN",
        "this way to ask for missing values is not read",
        "Write column IS NULL or IS NOT NULL.",
    ),
    ("SYMMETRIC ASYMMETRIC", "BETWEEN SYMMETRIC is not answered", "Write the smaller value first."),
    ("BY", "BY stands after GROUP only", "Write GROUP BY column."),
    ("XOR DIV MOD", "this operator is not answered", "Conditions are joined by AND, OR and NOT."),
    ("INTERVAL DATE TIME TIMESTAMP", "dates and times are not answered", PLAIN),
    (
        "INSERT UPDATE DELETE DROP CREATE ALTER TRUNCATE MERGE COPY ATTACH PRAGMA SET CALL EXECUTE GRANT VALUES INTO "
        "EXPLAIN DESCRIBE SHOW USE BEGIN COMMIT LOAD INSTALL EXPORT PIVOT UNPIVOT SUMMARIZE",
        "only questions are answered, and they begin with SELECT",
        ONE_TABLE,
    ),
    ("+ - * / // % ^ & | << >> ~ ** || !", "arithmetic is not answered", PLAIN),
    (":: :", "a cast or a named parameter is not answered", "Write the value itself. " + PLAIN),
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
    r"""|(?P<odd>[^\w \t\r\n(),.*=<>!;-]|(?![\x00-\x7f])\w)"""
)


@dataclass(frozen=True, slots=True)
class Source:
    """A question and what it is about."""

    text: str
    domain: Domain
    table: str

    def refused(self, position: int, reason: str, hint: str) -> UnsupportedQuery:
        """The error, short even if the question is huge."""
        text = self.text if len(self.text) <= MAX_LENGTH else self.text[:_SHOWN] + " ..."
        return UnsupportedQuery(text, position, _cut(reason, _SAID), _cut(hint, _SAID))

    def not_answered(self, position: int, word: str) -> UnsupportedQuery | None:
        """The refusal of a word or a sign that SQL has and this language has not; None if nothing is known of it."""
        found = _REASONS.get(word.upper().partition(" ")[0])
        return None if found is None else self.refused(position, *found)

    def declared(self, name: str) -> str | None:
        """The declared column of this name: spelled exactly so, or the only one that differs in case (of ASCII)."""
        if name in self.domain:
            return name
        alike = [each for each in self.domain.names if folded(each) == folded(name)]
        return alike[0] if len(alike) == 1 else None

    @property
    def example(self) -> str:
        """A hint for whoever is lost."""
        return f"A question looks like SELECT COUNT(*) FROM {_cut(self.table, _SHOWN)} WHERE condition. {PLAIN}"


def source(text: object, domain: object, table: object) -> Source:
    """The question, if its size and its characters are those of a question."""
    if not isinstance(text, str):
        raise ParameterError(f"a question is text in SQL, found {type(text).__name__}")
    if not isinstance(domain, Domain):
        raise ParameterError(f"domain must be a Domain, found {type(domain).__name__}")
    found = Source(str.__str__(text), domain, exact.text(table=table))
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
        hint = "Outside quotes a question holds letters, digits and the signs ( ) , . * = < > ! - ; only."
        raise known or found.refused(at, f"the character {character(sign)} is not read outside quotes", hint)
    return found


def folded(name: str) -> str:
    """Lower case, for ASCII letters only: the Kelvin sign is no k."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


def is_word(name: str) -> bool:
    """Whether SQL has this word: a name like it is better written in quotes."""
    return name.upper() in KEYWORDS or name.upper() in CALLS or name.upper() in _REASONS


def shown(part: str) -> str:
    """A part of the question for a message: short, and with odd characters spelled out."""
    return ascii(part) if len(part) <= _SHOWN else ascii(part[:_SHOWN]) + " ..."


def character(sign: str) -> str:
    """A character by its name."""
    return f"{unicodedata.name(sign, 'a control character')} (U+{ord(sign):04X})"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[:size] + " ..."

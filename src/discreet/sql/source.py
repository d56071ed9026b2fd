"""The text of a question: how long it may be, which characters it may hold, and the words of a refusal.

Everything here happens before the text is parsed. Outside quotes a question holds ASCII signs and letters only: a
quotation mark from a word processor or an invisible space is named, never read as the sign that it looks like.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from discreet.core import ParameterError, UnsupportedQuery, exact
from discreet.data import Domain, spell

MAX_LENGTH = 10_000
_SHOWN = 60  # characters of a question that a message quotes
_SAID = 600  # characters of a reason or a hint


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED = _words(
    "SELECT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET AND OR NOT IN BETWEEN IS NULL TRUE FALSE AS LIKE ILIKE "
    "CASE WHEN THEN ELSE END JOIN INNER ON USING WITH DISTINCT ASC DESC NULLS FILTER WITHIN UNION BY"
)
"""The words of the language that are no names, unless a column of this name is declared or they are in quotes."""

AGGREGATES = _words(
    "COUNT SUM AVG MEAN MEDIAN QUANTILE QUANTILE_CONT QUANTILE_DISC PERCENTILE PERCENTILE_CONT PERCENTILE_DISC "
    "VAR VARIANCE VAR_SAMP VAR_POP STDDEV STDDEV_SAMP STDDEV_POP STD COUNT_IF COUNTIF CORR COVAR_POP COVAR_SAMP "
    "REGR_SLOPE REGR_INTERCEPT REGR_R2 REGR_COUNT MIN MAX"
)

WINDOWS = frozenset(["RANK", "DENSE_RANK", "ROW_NUMBER", "LAG", "LEAD", "FIRST_VALUE"])
"""Functions that stand before OVER only."""

FUNCTIONS = _words(
    "FLOOR CEIL CEILING ROUND ABS POWER POW SQRT MOD COALESCE NULLIF IF LEAST GREATEST LOWER UPPER WIDTH_BUCKET "
    "DATE_TRUNC DATE_PART EXTRACT CAST YEAR MONTH DAY DAYOFMONTH QUARTER WEEK WEEKOFYEAR DAYOFWEEK WEEKDAY ISODOW "
    "DAYOFYEAR DECADE ISOYEAR HOUR MINUTE SECOND MONTHNAME DAYNAME DATE_DIFF STRFTIME LAST_DAY MAKE_DATE TRUNC SIGN LN "
    "LOG2 LOG10 EXP LENGTH INITCAP SUBSTR LEFT RIGHT TRIM LTRIM RTRIM REPLACE CONCAT STARTS_WITH ENDS_WITH CONTAINS "
    "GROUPING"
)

SAME = {
    **dict.fromkeys(("IFNULL", "NVL", "ISNULL"), "COALESCE"),
    **dict.fromkeys(("IFF", "IIF"), "IF"),
    **dict.fromkeys(("STDEV", "STDDEV_SAMPLE"), "STDDEV"),
    **dict.fromkeys(("STDEVP", "STDDEVP"), "STDDEV_POP"),
    **dict.fromkeys(("APPROX_QUANTILE", "APPROX_PERCENTILE", "PERCENTILE_APPROX"), "QUANTILE"),
    **dict.fromkeys(("LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"), "LENGTH"),
    **dict.fromkeys(("APPROX_COUNT_DISTINCT", "APPROX_DISTINCT"), "COUNT"),
    **dict.fromkeys(("STARTSWITH", "PREFIX"), "STARTS_WITH"),
    **dict.fromkeys(("ENDSWITH", "SUFFIX"), "ENDS_WITH"),
    **dict.fromkeys(("TRY_CAST", "SAFE_CAST"), "CAST"),
    **{"VARP": "VAR_POP", "APPROX_MEDIAN": "MEDIAN", "COUNT_BIG": "COUNT", "SUBSTRING": "SUBSTR"},
    **{"TRUNCATE": "TRUNC", "DAYOFWEEK_ISO": "ISODOW", "DATEFROMPARTS": "MAKE_DATE", "DATETRUNC": "DATE_TRUNC"},
    **{"EOMONTH": "LAST_DAY", "DATEPART": "DATE_PART", "TIMESTAMP_TRUNC": "DATE_TRUNC", "DATETIME_TRUNC": "DATE_TRUNC"},
}
"""What other dialects call the same function."""

REWRITTEN = frozenset(["SAFE_DIVIDE", "DATEDIFF", "DATEADD", "DATE_ADD", "DATE_SUB", "TO_CHAR", "FORMAT_DATE"])
REWRITTEN |= {"DATE_FORMAT", "FORMAT", "APPROX_QUANTILES", "DATE", "TO_DATE", "DIV0", "DATENAME", "DECODE"}
REWRITTEN |= {"FORMAT_TIMESTAMP", "FORMAT_DATETIME", "BOOL_OR", "BOOL_AND", "LOGICAL_OR", "LOGICAL_AND"}
"""Calls that are read as other expressions: `dialects`."""

_VALUES_OF_ROWS = _words(
    "MAX MIN FIRST LAST ANY_VALUE ARG_MAX ARG_MIN MAX_BY MIN_BY MODE STRING_AGG LISTAGG GROUP_CONCAT ARRAY_AGG LIST "
    "JSON_AGG"
)

ONE_TABLE = "Ask about one table: SELECT COUNT(*) FROM table WHERE condition."
JOINS = "A join looks like FROM visits v JOIN people p USING (person)."

_TOPICS: tuple[tuple[str, str, str], ...] = (
    (
        "LEFT RIGHT OUTER CROSS FULL NATURAL SEMI ANTI ASOF LATERAL POSITIONAL APPLY",
        "this kind of join is not answered",
        JOINS,
    ),
    ("SORT FETCH TOP", "this word is not answered here", "Write ORDER BY n DESC LIMIT 5."),
    ("RECURSIVE", "WITH RECURSIVE is not answered", "WITH may name a question that filters."),
    ("CONVERT COLLATE", "this is not answered", "A cast looks like CAST(x AS DOUBLE)."),
    (
        "DISTINCT",
        "DISTINCT is answered in COUNT(DISTINCT person) only",
        "Count rows: COUNT(*), or COUNT(column) for those that are not missing.",
    ),
    ("XOR", "this operator is not answered", "Conditions are joined by AND, OR and NOT."),
    ("UNION INTERSECT EXCEPT MINUS", "several SELECTs are combined by UNION ALL only", "Ask them one at a time."),
    (
        "OVER PARTITION WINDOW QUALIFY ROWS RANGE",
        "a window is answered over the groups of GROUP BY only, without a frame",
        "For example SUM(COUNT(*)) OVER (), or RANK() OVER (ORDER BY COUNT(*) DESC).",
    ),
    (
        "SIMILAR GLOB REGEXP RLIKE REGEXP_LIKE REGEXP_MATCHES REGEXP_CONTAINS ~",
        "a regular expression is not answered",
        "Write LIKE 'a%', or list the levels that are meant: column IN ('a', 'b').",
    ),
    ("EXISTS ANY SOME", "a subquery is not answered here", "A question in brackets is allowed only after FROM."),
    ("ALL", "ALL is not read here", "Leave it out, or compare with a plain value."),
    ("ROLLUP CUBE GROUPING SETS", "several groupings are answered after GROUP BY only", "GROUP BY ROLLUP (a, b)."),
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
    ("^ & | << >> ** !", "this operator is not answered", "Arithmetic has + - * / // and %, texts are joined by ||."),
    (":", "a named parameter is not answered", "Write the value itself."),
    ("? $ @ {", "a parameter is not answered", "Write the value itself."),
    (
        "[ ]",
        "a list in square brackets is not answered",
        "A list of values: column IN (1, 2, 3). Ask for one quantile.",
    ),
    ("`", "this backquote is not closed", 'Write names plainly, or in double quotes: "my column".'),
    ("== <=>", "this comparison is not read", "Comparisons are = <> != < <= > >=."),
    ("/*+", "a hint is not read", "Leave it out: there is nothing that it could change."),
    (
        "/* #",
        "a comment of this kind is not read",
        "A comment looks like -- to the end of the line, or /* like this */.",
    ),
    (
        "CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME LOCALTIMESTAMP NOW TODAY GETDATE SYSDATE GETUTCDATE CURDATE",
        "an answer must not depend on the day on which it is asked for",
        "Write the date itself: DATE '2024-01-31'.",
    ),
    ("PREPARE RANDOM RAND UUID NEWID", "chance is not answered: noise is added by the library alone", "Leave it out."),
    (";", "several statements are not answered", "Ask them one at a time; one semicolon may end a question."),
)
_ANSWERED = "Answered are COUNT, SUM, AVG, MEDIAN, QUANTILE, VAR, STDDEV, CORR, COVAR_POP, COUNT_IF, FLOOR, and others."
_INSTEAD = {
    "LOG": "Write LN, LOG2 or LOG10 of an answer.",
    "AGE": "Write DATE_DIFF('year', a, b).",
    **dict.fromkeys(("SKEWNESS", "KURTOSIS"), "Ask for AVG(x), AVG(POWER(x, 2)) and AVG(POWER(x, 3))."),
}
_REASONS = {word: (reason, hint) for words, reason, hint in _TOPICS for word in words.split()}

COMMENT = r"--[^\r\n]*|/\*(?!\+)(?:(?!\*/|/\*)[\s\S])*\*/"
"""To the end of the line, or in /* */; one inside another is read in two ways elsewhere, and refused here."""

ODD_NAME = r"`[^`\r\n]+`|(?<![\w)\]])\[[^\W\d][\w ]*\]|\[(?i:(?:SAFE_)?(?:OFFSET|ORDINAL))\([0-9]{1,3}\)\]"
"""A name as MySQL and T-SQL quote it, and one place of a list of quantiles."""

# Text and names in quotes, and comments, whole; then what may not be outside them.
_OUTSIDE = re.compile(
    r"""(?P<prefix>(?<=\w)['"])|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<open>['"])|"""
    + COMMENT
    + "|"
    + ODD_NAME
    + r"""|(?P<comment>/\*\+|/\*|\#)|(?P<odd>[^\w \t\r\n(),.*=<>!;+/%:|-]|(?![\x00-\x7f])\w)"""
)


@dataclass(frozen=True, slots=True)
class Known:
    """A table that may be asked about: its name, its declared columns, the column that names a person, if any, how
    many rows a person may have, whether it has a row of everybody who is in any table, and how many these are, where
    that is public and there are several tables."""

    name: str
    domain: Domain
    unit: str | None = None
    rows: int = 1
    everybody: bool = False
    size: int | None = None

    @property
    def names(self) -> list[str]:
        """The columns that a question may name: a column of texts that names persons says nothing but who it is."""
        return [name for name, column in self.domain.items() if name != self.unit or not column.free]


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
        if name in AGGREGATES | FUNCTIONS | WINDOWS | REWRITTEN or name in SAME:
            return
        known = None if self.declared(written) else self.not_answered(position, written)
        raise known or self.no_call(position, written)

    def no_call(self, position: int, name: str, target: str = "x") -> UnsupportedQuery:
        word = name.upper()
        reason, hint = f"the function {shown(name)} is not answered", _INSTEAD.get(word, _ANSWERED)
        if word in _VALUES_OF_ROWS:
            reason = f"{shown(name)} is not answered: one person's value would be seen"
            hint = "Count instead: SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY 2 DESC LIMIT 1."
        if word in ("MIN", "MAX"):
            end = "0.01" if word == "MIN" else "0.99"
            hint = f"Ask for a quantile instead, such as QUANTILE({_cut(target, _SHOWN)}, {end})."
        if word in ("NTILE", "LAST_VALUE", "NTH_VALUE", "PERCENT_RANK", "CUME_DIST"):
            reason = f"{shown(name)} is not answered: it is a window over rows, or over groups that may be empty"
            hint = "Make bins: FLOOR(x / w) * w. Groups have RANK() OVER (ORDER BY ...)."
        return self.refused(position, reason, hint)

    def declared(self, name: str) -> bool:
        """Whether some table has a column of this name, or is called so."""
        folds = {folded(column) for each in self.tables for column in (*each.domain.names, each.unit or "", each.name)}
        return folded(name) in folds

    @property
    def example(self) -> str:
        """A hint for whoever is lost."""
        return f"A question looks like SELECT COUNT(*) FROM {_cut(self.table, _SHOWN)} WHERE condition. {self.plain}"

    @property
    def plain(self) -> str:
        """A hint with conditions on this table's own columns."""
        columns: list[tuple[str, Any]] = [pair for each in self.tables for pair in each.domain.items()]
        columns = [(name, column) for name, column in columns if name.isidentifier()]
        numbers = [f"{name} >= {spell(column.low)}" for name, column in columns if column.bounded]
        texts = [(name, column.levels[0]) for name, column in columns if column.categorical]
        levels = [f"{name} = '{level}'" for name, level in texts if type(level) is str and "'" not in level]
        listed = ", ".join([*numbers[:1], *levels[:1]]) or "x >= 65, y = 'F'"
        return f"A condition compares a column with a plain value: {_cut(listed, _SHOWN)}."


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
    """Whether SQL has this word, other than as a function: a name like it is better written in quotes."""
    return name.upper() in RESERVED or name.upper() in _REASONS


def shown(part: str) -> str:
    """A part of the question for a message: short, and with odd characters spelled out."""
    return ascii(part) if len(part) <= _SHOWN else ascii(part[:_SHOWN]) + " ..."


def character(sign: str) -> str:
    """A character by its name."""
    return f"{unicodedata.name(sign, 'a control character')} (U+{ord(sign):04X})"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[:size] + " ..."

"""Questions in SQL: one SELECT, as a value that says what is asked. No SQL text ever reaches an engine.

    SELECT COUNT(*) FROM people WHERE age >= 65 AND (sex = 'F' OR visits > 3)
    SELECT region, COUNT(*) FROM people WHERE smoker = 'y' GROUP BY region
    SELECT AVG(visits) FROM people WHERE region = 'N'               also SUM
    SELECT MEDIAN(age) FROM people                                  also QUANTILE_CONT(age, 0.9) and
    SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) FROM people

COUNT(column) counts the rows where the column is not missing. Conditions: = <> != < <= > >=, BETWEEN, IN, IS [NOT] NULL
where missing values are declared, boolean columns, AND, OR, NOT and brackets, with SQL's three-valued logic. Names are
as in duckdb: matched without regard to case, in double quotes or not. Numbers are exact decimals.

The language is a list of what is understood, not of what is forbidden: whatever is not on it is an UnsupportedQuery
with its position (counted from 0), a reason and a hint, also a column that is not declared. Values must be on the
declared grid or among the declared levels; nothing is rounded and nothing is guessed. All of this happens before
anything is charged and looks at public things only.

    source.py      length, characters, words           tokens.py       tokens that may be there
    grammar.py     from words to a syntax tree         dialects.py     calls as other databases write them
    scope.py       what names mean                     rows.py         expressions of a row, cell by cell
    conditions.py  three-valued logic to predicates    values.py       what is summed and grouped by
    dates.py       parts of dates                      naming.py       what parts are called
    joins.py       tables joined by the person, a row  select.py       the statement
                   for each person                     statement.py    what is asked, as a value
    expressions.py, over_groups.py, released.py   what is made of released numbers, with intervals; questions about
                                                  the answers of questions
    render.py      predicates back to SQL
"""

from discreet.sql.expressions import (
    Chosen,
    Estimated,
    Expression,
    Group,
    KeyOf,
    MeanOf,
    Peers,
    QuantileOf,
    Total,
    sort_key,
)
from discreet.sql.render import literal_text, name_text, where_text
from discreet.sql.select import parse, parse_about
from discreet.sql.source import Known
from discreet.sql.statement import OutputColumn, Sorting, Statement, key_order
from discreet.sql.values import GroupedBy

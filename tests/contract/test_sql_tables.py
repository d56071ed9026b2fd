"""Every mechanism over rows in a database: the same release as in memory, or refused with nothing charged."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.errors import NotOffered, Unproven
from discreet.rng import SeededRng
from tests.contract.test_mechanisms import drawn, plain
from tests.examples import CASES, CONVERSATIONS, OLD, RELATIONS, columns, table
from tests.sql_tables import Databases

OFFERED = {
    *("AveragedWeights", "ChosenTables", "Exponential", "Gaussian", "GroupQuantiles", "Laplace", "Marginals"),
    *(
        "PermuteAndFlip",
        "ResidualMarginals",
        "StableHistogram",
        "StableMode",
        "StableGaussian",
        "CoordinateLaplace",
        "ProductLaplace",
    ),
}
"""The mechanisms that a database answers; all others need functions of a row that only the library computes."""


@pytest.fixture(scope="module")
def databases(cluster):
    made = Databases(cluster)
    yield made
    made.close()


RELEASED = [each for each in CASES if hasattr(each.mechanism, "run")]
seen: set[str] = set()


made: dict[tuple[str, str, str], list[dp.data.Dataset]] = {}


def tables_of(databases, case, relation):
    """The case's rows in both databases; many cases have the same."""
    key = (repr(case.rows), repr(case.domain), relation)
    if key not in made:
        made[key] = databases.tables(case.rows, case.domain, neighbours=relation)
    return made[key]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("case", RELEASED, ids=lambda case: case.name)
def test_a_release_is_the_same_or_is_refused_for_nothing(case, relation, databases, tmp_path):
    try:
        tables = tables_of(databases, case, relation)
    except Unproven:  # a column without bounds, or one that no table holds
        assert any(not column.listed and not column.free for column in case.domain.values())
        return
    released = []
    for each in tables:
        ledger = dp.Ledger.in_memory(dp.Budget(1000, 0.9), each.identity, testing=True)
        before = list(ledger.entries())
        try:
            released.append(plain(dp.release(case.mechanism, each, ledger=ledger, rng=SeededRng(5)).value))
        except NotOffered:
            assert list(ledger.entries()) == before
            needs = case.mechanism.needs(each.facts)
            own = [query for query in needs.queries if not hasattr(query, "tallies")]
            assert needs.functions or needs.slices or needs.gathers or own
    if released:
        seen.add(case.name)
        path = tmp_path / "rows.parquet"
        parquet.write_table(pa.table(case.rows), path)
        expected = drawn(case.mechanism, dp.Table(case.rows, case.domain, neighbours=relation, size=case.size))
        pushed = drawn(case.mechanism, dp.ParquetTable(path, case.domain, neighbours=relation, size=case.size))
        assert [*released, pushed] == [expected] * 3


def of_persons(databases, case):
    """The case's rows three times over as a Table, and in both databases if they are offered there."""
    key = (repr(case.rows), repr(case.domain), "persons")
    if key not in made:
        count = len(next(iter(case.rows.values())))
        rows = {name: [*values] * 3 for name, values in case.rows.items()}
        rows["whose row"] = [place * 2 // 7 for place in range(3 * count)]
        more = {"unit": "whose row", "rows_per_unit": 3}
        here = dp.Table(rows, case.domain, **more)
        try:
            made[key] = here, databases.tables(rows, case.domain, **more, size=here.facts.size)
        except Unproven:
            made[key] = here, None
    return made[key]


@pytest.mark.parametrize("case", RELEASED, ids=lambda case: case.name)
def test_a_release_about_persons_of_three_rows_is_the_same_or_is_refused_for_nothing(case, databases, tmp_path):
    """The rows three times over, of persons with three and a half rows each: some are left out."""
    here, tables = of_persons(databases, case)
    if tables is None:  # a column without bounds, one that no table holds, or texts, by whose hashes rows are ordered
        assert any(not column.listed for column in case.domain.values())
        return
    for each in tables:
        ledger = dp.Ledger.in_memory(dp.Budget(10**6, 0.9), each.identity, testing=True)
        before = list(ledger.entries())
        try:
            found = plain(dp.release(case.mechanism, each, ledger=ledger, rng=SeededRng(5)).value)
        except NotOffered:
            assert list(ledger.entries()) == before
            continue
        except dp.DiscreetError as refused:  # a mechanism that needs one row per person says so of every table
            with pytest.raises(type(refused)):
                drawn(case.mechanism, here)
            continue
        assert found == drawn(case.mechanism, here)


def test_the_mechanisms_that_are_offered_were_released():
    assert seen == OFFERED


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: type(each).__name__)
def test_a_conversation_says_the_same(conversation, databases):
    rows, here = columns(), table("replace-one")
    for each in databases.tables(rows, here.facts.domain.project([n for n in here.facts.domain.names if n != "any"])):
        said = []
        for data in (here, each):
            ledger = dp.Ledger.in_memory(dp.Budget(1000, 0.9), data.identity, testing=True)
            with dp.converse(conversation, data, ledger=ledger, rng=SeededRng(4)) as talk:
                said.append([talk.ask(dp.mechanisms.IsAbove(dp.Count(OLD), 5)) for _ in range(1)])
        assert said[0] == said[1]

"""Many files over processes: the doors give what a table in memory gives; losses, failures and refusals."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet.data import Batch, DistinctRows, Facts, Needs, far
from discreet.errors import LedgerMismatch, NotOffered, ParameterError, SchemaError, SourceUnavailable
from discreet.rng import SeededRng
from tests.contract.test_datasets import DOMAIN, ROWS, columns, transcript


@pytest.fixture(scope="module")
def run():
    made = dp.Processes(2)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path):
    """The rows of test_datasets in three files, shuffled."""
    made, rows = tmp_path / "files", pa.table(columns())
    made.mkdir()
    rows = rows.take(np.random.default_rng(2).permutation(ROWS))
    for place in range(3):
        parquet.write_table(rows.slice(90 * place, 90), made / f"{place}.parquet", row_group_size=25)
    return made


def fresh(table):
    return dp.Ledger.in_memory(dp.Budget(1000, 0.9), table.identity, testing=True)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_files_give_what_the_table_gives(parts, folder, run):
    expected = transcript(dp.Table(columns(), DOMAIN))
    found = dp.FilesTable(folder, DOMAIN, run=run, parts=parts)
    assert transcript(found) == expected
    assert transcript(dp.FilesTable(str(folder / "*.parquet"), DOMAIN, run=run, parts=parts)) == expected
    (folder / "a" / "b").mkdir(parents=True)
    for name, below in (("0", "a"), ("1", "a/b")):
        (folder / f"{name}.parquet").rename(folder / below / f"{name}.parquet")
    assert transcript(dp.FilesTable(str(folder / "**" / "*.parquet"), DOMAIN, run=run, parts=parts)) == expected


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_same_rows_of_a_person_are_kept_whatever_file_they_are_in(parts, rows, folder, run, monkeypatch):
    more = {"unit": "person", "rows_per_unit": rows, "name": "people"}
    memory = dp.Table(columns(), DOMAIN, **more)
    table = dp.FilesTable(folder, DOMAIN, run=run, parts=parts, **more)
    assert table.facts == memory.facts
    assert transcript(table) == transcript(memory)
    for query in (dp.Persons(), dp.Persons("age", dp.Missing("größe"))):
        assert table.exact_sum(query).tolist() == memory.exact_sum(query).tolist()


def test_a_person_in_many_parts_of_the_stage_is_kept_once(folder, run, monkeypatch):
    from discreet.data import files_table

    monkeypatch.setattr(files_table, "_ROWS_A_PART", 20)
    more = {"unit": "person", "rows_per_unit": 2, "name": "people"}
    table = dp.FilesTable(folder, DOMAIN, run=run, parts=3, **more)
    assert len(table._parts) > 5
    assert transcript(table) == transcript(dp.Table(columns(), DOMAIN, **more))


def test_staged_codes_give_the_same_and_are_removed(folder, run, tmp_path):
    stage = tmp_path / "stage"
    stage.mkdir()
    table = dp.FilesTable(folder, DOMAIN, run=run, stage=stage)
    (inside,) = stage.iterdir()
    assert inside.stat().st_mode & 0o077 == 0
    assert transcript(table) == transcript(dp.Table(columns(), DOMAIN))
    ledger = fresh(table)
    table.close()
    assert not list(stage.iterdir())
    before = list(ledger.entries())
    with pytest.raises(SourceUnavailable, match="make the table again"):
        dp.release(dp.Laplace(dp.Count(), 10), table, ledger=ledger, rng=SeededRng(1))
    assert list(ledger.entries()) == before


def test_distinct_rows_serve_a_session_by_one_pass(folder, run):
    domain = dp.Domain({name: DOMAIN[name] for name in ("sex", "smoker")})
    table = dp.FilesTable(folder, domain, run=run)
    counted = DistinctRows(table)
    query = dp.Histogram(("sex", "smoker"))
    assert counted.exact_sum(query).tolist() == dp.Table(columns(), domain).exact_sum(query).tolist()
    assert counted._counted is not None
    assert counted.exact_sum(dp.Count()) == ROWS


def test_a_learner_weighs_passes_by_what_the_dataset_says(folder):
    """The same table, far away: a descent of many passes is left for a method of few."""
    rng = np.random.default_rng(0)
    names = [f"x{place}" for place in range(8)]
    domain = dp.Domain({**{name: dp.Number(0, 1, step="0.01") for name in names}, "y": dp.Category(0, 1)})
    rows = {name: np.round(rng.random(2000), 2) for name in names} | {"y": rng.integers(0, 2, 2000)}

    class Dear(dp.Table):
        offers = dp.data.Offers(pass_seconds=1.0)

    taken = {}
    for kind in (dp.Table, Dear):
        table = kind(rows, domain)
        ledger = dp.Ledger.in_memory(dp.Budget(1, 1e-6), table)
        dp.LogisticRegression(epsilon="0.5", delta=1e-7, ledger=ledger).fit(table, "y")
        taken[kind] = [body["mechanism"]["name"] for body in ledger.entries() if body["kind"] == "charge"]
    assert taken == {dp.Table: ["descent/1"], Dear: ["objective-perturbation/1"]}


# Losses, failures, refusals.


def killed_once(batch):
    """The first process that comes here dies."""
    mark = os.environ["DISCREET_TEST_MARK"]
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return np.bincount(batch["smoker"], minlength=2).astype(np.int64)
    if batch.rows:
        os.kill(os.getpid(), signal.SIGKILL)
    os.unlink(mark)
    return np.bincount(batch["smoker"], minlength=2).astype(np.int64)


def test_a_process_that_is_killed_in_a_pass_changes_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_TEST_MARK", str(tmp_path / "mark"))
    own = dp.Processes(2)
    table = dp.FilesTable(folder, DOMAIN, run=own, parts=5)
    assert table.exact_sum(killed_once).tolist() == table.exact_sum(dp.Histogram("smoker")).tolist()
    assert (tmp_path / "mark").exists()
    own.close()


def test_a_program_without_its_guard_is_told_of_it(folder, tmp_path):
    """Each process would begin the program again, and dies of that."""
    program = tmp_path / "program.py"
    program.write_text(
        "import discreet as dp\n"
        f"dp.FilesTable({str(folder)!r}, dp.Domain(age=dp.Number(0, 100, step=1)), run=dp.Processes(1))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "DiscreetError: processes that read the rows died in each of 4 attempts" in done.stderr
    assert "begins under if __name__ == '__main__':" in done.stderr.splitlines()[-1]


def test_processes_have_ended_when_their_engine_is_forgotten(folder):
    """Pools that end while the interpreter does write a traceback."""
    others = multiprocessing.active_children()
    own = dp.Processes(1)
    table = dp.FilesTable(folder, DOMAIN, run=own)
    assert len(multiprocessing.active_children()) == len(others) + 1
    del table, own
    assert {*multiprocessing.active_children()} == {*others}


def quoted(batch):
    codes = batch["age"]
    if batch.rows:
        raise ValueError(f"the first age is {codes[0]}")
    return np.zeros((), dtype=np.int64)


class Quoting:
    NAME = "quoting/1"

    def guarantee(self, facts):
        return dp.Guarantee.of_pure(1, neighbours=facts.neighbours)

    def stated_record(self):
        return {"name": self.NAME}

    def needs(self, facts):
        return Needs(functions=True)

    def run(self, data, rng):
        return int(data.exact_sum(quoted))


def test_a_task_that_fails_leaves_the_charge_a_fixed_error_and_a_ledger_that_goes_on(folder, run):
    table = dp.FilesTable(folder, DOMAIN, run=run)
    ledger = fresh(table)
    with pytest.raises(dp.DiscreetError, match="failed after it was charged; the charge stays") as raised:
        dp.release(Quoting(), table, ledger=ledger, rng=SeededRng(1))
    assert raised.value.__context__ is None
    assert [body["kind"] for body in ledger.entries()][-2:] == ["charge", "burn"]
    with pytest.raises(dp.DiscreetError, match="nothing is shown of its error") as raised:
        table.exact_sum(quoted)
    assert raised.value.__context__ is None
    dp.release(dp.Laplace(dp.Count(), 10), table, ledger=ledger, rng=SeededRng(1))


def test_what_is_wrong_is_said_when_the_table_is_made(tmp_path, run):
    parquet.write_table(pa.table({"age": ["many"]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="'age'") as raised:
        dp.FilesTable(tmp_path, dp.Domain(age=dp.Number(0, 9, step=1)), run=run)
    assert "many" not in str(raised.value)
    with pytest.raises(SchemaError, match="'pay'"):
        dp.FilesTable(tmp_path, dp.Domain(pay=dp.Number(0, 9, step=1)), run=run)
    with pytest.raises(ParameterError, match=r"found no file in .*visits/\*\.csv"):
        dp.FilesTable(tmp_path / "*.csv", dp.Domain(age=dp.Number(0, 9, step=1)), run=run)
    with pytest.raises(ParameterError, match=r"found 'b\.parquet'"):
        dp.FilesTable(tmp_path / "b.parquet", dp.Domain(age=dp.Number(0, 9, step=1)), run=run)


@pytest.mark.parametrize("mark", ["_delta_log/0.json", ".hoodie/hoodie.properties", "metadata/1.metadata.json"])
def test_the_folder_of_a_table_format_holds_earlier_versions_of_rows(mark, folder, run):
    """A rewritten row is in the file before and in the one after: its person would count twice."""
    (folder / mark).parent.mkdir()
    (folder / mark).touch()
    domain = dp.Domain(age=DOMAIN["age"])
    (folder / "part=1").mkdir()
    (folder / "0.parquet").rename(folder / "part=1" / "0.parquet")
    for paths in (folder, folder / "*.parquet", folder / "*" / "*.parquet"):
        with pytest.raises(ParameterError, match="earlier versions of rows"):
            dp.FilesTable(paths, domain, run=run)
    assert dp.FilesTable([folder / "1.parquet", folder / "2.parquet"], domain, run=run).facts.size == ROWS - 90


@pytest.mark.parametrize("change", ["touched", "added", "removed", "replaced", "overwritten"])
def test_files_that_changed_are_another_table_before_a_charge_and_after_a_pass(change, folder, run):
    table = dp.FilesTable(folder, DOMAIN, run=run)
    ledger = fresh(table)
    if change == "touched":
        os.utime(folder / "0.parquet", ns=(1, 1))
    elif change == "added":
        parquet.write_table(pa.table(columns()), folder / "9.parquet")
    elif change == "removed":
        (folder / "2.parquet").unlink()
    else:  # by a file of the same size and time
        path = folder / "0.parquet"
        before, other = path.stat(), folder / "other"
        other.write_bytes(path.read_bytes()[::-1])
        if change == "replaced":
            os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
            other.replace(path)
        else:
            path.write_bytes(other.read_bytes())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(LedgerMismatch, match="another table"):
        dp.release(dp.Laplace(dp.Count(), 10), table, ledger=ledger, rng=SeededRng(1))
    assert not [body for body in ledger.entries() if body["kind"] == "charge"]


def test_a_file_that_comes_to_those_of_a_ledger_is_another_edition(folder, run, tmp_path):
    """The persons are the same, so that their number shows nothing; answers about the rows before are of edition 1."""
    more = {"run": run, "unit": "person", "rows_per_unit": 3, "name": "people"}
    table = dp.FilesTable(folder, DOMAIN, **more)
    ledger = dp.Ledger.create(tmp_path / "a.ledger", dp.Budget(1, 1e-6), table)
    question = "SELECT COUNT(*) FROM people WHERE smoker"
    dp.Session(table, ledger).ask(question)
    (folder / "9.parquet").write_bytes((folder / "0.parquet").read_bytes())
    before = list(ledger.entries())
    for ask in (
        lambda found: dp.Session(found, ledger).ask(question),
        lambda found: dp.release(dp.Laplace(dp.Count(), 100), found, ledger=ledger),
    ):
        with pytest.raises(LedgerMismatch, match=r"'9\.parquet' came.*another edition"):
            ask(dp.FilesTable(folder, DOMAIN, **more))
    assert list(ledger.entries()) == before
    answer = dp.Session(dp.FilesTable(folder, DOMAIN, edition="2", **more), ledger).ask(question)
    assert answer.source == "direct"
    dp.Session(dp.FilesTable(folder, DOMAIN, edition="2", **more), ledger).ask(question)
    assert sum(body["kind"] == "charge" for body in ledger.entries()) == 2


def test_gathering_is_refused_by_public_numbers_before_the_charge(folder, run):
    for relation, size, words in (("replace-one", None, "more than 0 MB"), ("add-remove", None, "declare size=")):
        table = dp.FilesTable(folder, DOMAIN, run=run, neighbours=relation, size=size, gather_limit=100)
        ledger = fresh(table)
        with pytest.raises(NotOffered, match=words):
            dp.release(interior(), table, ledger=ledger, rng=SeededRng(1))
        assert not [body for body in ledger.entries() if body["kind"] == "charge"]


def interior():
    from discreet.pac.interior import InteriorPoint, MinRank

    return InteriorPoint("age", MinRank(1))


def test_a_far_table_is_neither_pickled_nor_copied(folder, run):
    import copy
    import pickle

    table = dp.FilesTable(folder, DOMAIN, run=run)
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private rows"):
            act(table)


# More rows than 2^31.


def test_sums_of_parts_are_exact_beyond_64_bits_and_int64_where_they_fit():
    """A part's sums are below 2^62 in absolute value; any number of them is added exactly."""
    largest = 2**62 - 1
    parts = [np.array([largest, -largest, 5], dtype=np.int64)] * 1000
    found = far.far_total(parts)
    assert found.tolist() == [1000 * largest, -1000 * largest, 5000]
    assert found.dtype == object
    small = far.far_total([np.array([1, 2]), np.array([3, 4])])
    assert (small.dtype, small.tolist()) == (np.int64, [4, 6])
    assert far.far_total([Counter({(1,): 2}), Counter({(1,): 3})]) == Counter({(1,): 5})


def test_prices_and_sums_hold_for_more_than_two_billion_rows():
    """A made-up engine says that each of 2^9 parts has 2^30 rows: facts, prices and releases follow."""
    rows = 2**30

    class Huge(far.Far):
        __slots__ = ()

        def __init__(self, domain, parts):
            from discreet.data.ingest import facts_of, identity_of

            self.identity, self.source, self._domain = identity_of("huge", "replace-one"), None, domain
            self._offers = far.FarOffers(gather_limit=2**30)
            size = rows * parts
            self.facts = facts_of(domain, self.identity, size=None, persons_found=size, most=far.MAX_FAR_ROWS)

        def _folded(self, names, fold, *, persons):
            batch = Batch(self._domain, 1, {"pay": np.array([2**30], dtype=np.int64)}.__getitem__)
            return [fold([batch]) * rows] * 512

    domain = dp.Domain(pay=dp.Number(0, 2**31 - 1, step=1))
    table = Huge(domain, 512)
    assert table.facts.rows_bound == table.facts.size == 2**39
    assert int(table.exact_sum(dp.Sum("pay"))) == 512 * rows * 2**30
    ledger = dp.Ledger.in_memory(dp.Budget(1), table)
    got = dp.release(dp.Laplace(dp.Sum("pay"), 2**40), table, ledger=ledger)
    assert abs(got.value - 512 * rows * 2**30) < 2**50
    with pytest.raises(NotOffered, match="only counts and sums"):
        dp.release(dp.mechanisms.RankQuantile("pay", "1/2", "1e-12"), table, ledger=ledger)


def test_the_bound_on_rows_is_raised_by_a_size_beyond_it_alone():
    domain, one = dp.Domain(x=dp.Category(0, 1)), dp.Neighbours("replace-one")
    for size, expected in ((10, 10), (2**31 - 1, 2**31 - 1), (2**31, 2**31), (2**40, 2**40)):
        assert Facts(domain, one, size).rows_bound == expected
    several = dp.Neighbours("replace-one", 5)
    assert Facts(domain, several, 2**30).rows_bound == 2**31 - 1  # as every ledger before knew it
    assert Facts(domain, dp.Neighbours("add-remove"), None).rows_bound == 2**31 - 1
    assert Facts(domain, dp.Neighbours("add-remove"), 2**33).rows_bound == 2**33

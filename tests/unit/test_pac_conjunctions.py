"""Conjunctions and finite classes: the lecture's runs, lists that are complete, sizes that match their formulas."""

from __future__ import annotations

import collections
import io
import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from discreet.cli import learn
from discreet.data import BitMatrix, Bits, Category, Domain, Facts, Number, Table
from discreet.errors import ParameterError
from discreet.funds import Funds
from discreet.guarantee import Budget, Neighbours
from discreet.method import Method
from discreet.pac import conjunctions as module
from discreet.pac.conjunctions import (
    COUNTS,
    EXACT,
    LECTURE,
    MOST,
    AllConjunctions,
    CentredLiterals,
    FalsifiedLiterals,
    GaussianCounts,
    LaplaceCounts,
    Listing,
    NoisyCounts,
    PackedRows,
    conjunctions,
    deletion,
    estimate,
    lecture_size,
    methods,
    tuned,
)
from discreet.pac.finite import (
    ClassMistakes,
    FiniteClass,
    Predictions,
    agnostic_excess,
    agnostic_population_size,
    empirical_size,
    population_size,
)
from discreet.pac.finite import methods as finite_methods
from discreet.pac.rules import Conjunction, FunctionRule, Labels, Literals, Mistakes, Where
from discreet.query import Between, Equals
from discreet.records import canonical, record, revive
from discreet.rng import SeededRng

BITS, LABELS = Literals("x"), Labels("y", True)
CLASSES = Category(False, True)
BOTH = ("replace-one", "add-remove")
BETA = Fraction(1, 20)


def facts(d, relation="replace-one", size=1000, rows=1):
    return Facts(Domain(x=Bits(d), y=CLASSES), Neighbours(relation, rows), size)


def matrix(rows, labels, relation="add-remove", **more):
    return BitMatrix(np.asarray(rows, dtype=bool), np.asarray(labels, dtype=bool), target=CLASSES, neighbours=relation)


def sample(text):
    """Labelled examples as the lecture writes them: (010101,1), ..."""
    pairs = [each.strip("() ").split(",") for each in text.split("), ")]
    return np.array([[int(bit) for bit in bits] for bits, _ in pairs], dtype=bool), np.array(
        [label == "1" for _, label in pairs]
    )


def true_of(numbers, rows):
    found = np.ones(len(rows), dtype=bool)
    for number in numbers:
        found &= rows[:, number // 2] ^ bool(number % 2)
    return found


# --- the lecture's examples -------------------------------------------------------------------------------------------


def test_the_lecture_s_sample_is_labelled_by_its_conjunction():
    rows, labels = sample("(010101,1), (010110,0), (111101,1), (111111,0), (000000,0)")
    target = (2, 9, 10)
    assert true_of(target, rows).tolist() == labels.tolist()
    assert Conjunction(BITS, target).sentence(Domain(x=Bits(6), y=CLASSES)) == "v2 and not v5 and v6"
    data = matrix(rows, labels)
    assert data.exact_sum(Mistakes(Conjunction(BITS, target), LABELS)) == 0


def test_the_lecture_s_deletion_run_ends_with_v4_and_not_v5_and_v6():
    rows, labels = sample(
        "(010101,1), (010110,0), (111101,1), (111111,0), (000000,0), (101101,1), (111101,1), (000101,1)"
    )
    kept = deletion(rows, labels)
    assert Conjunction(BITS, kept).sentence(Domain(x=Bits(6), y=CLASSES)) == "v4 and not v5 and v6"
    assert true_of(kept, rows).tolist() == labels.tolist()


def test_one_positive_example_deletes_the_literals_that_it_falsifies():
    assert deletion(np.array([[0, 1, 1, 0]]), [1]) == (1, 2, 4, 7)
    assert deletion(np.zeros((3, 2)), [0, 0, 0]) == (0, 1, 2, 3)
    assert "NOT PRIVATE" in deletion.__doc__


@pytest.mark.parametrize("seed", range(5))
def test_deletion_is_right_about_every_row_that_a_conjunction_explains(seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((60, 7)) < 0.6
    target = (0, 5, 8)
    labels = true_of(target, rows)
    kept = deletion(rows, labels)
    assert set(target) <= set(kept) or not labels.any()
    assert true_of(kept, rows).tolist() == labels.tolist()


# --- noisy counts -----------------------------------------------------------------------------------------------------

TINY = Fraction(1, 2**40)


def quiet(threshold):
    """The three mechanisms with noise that is always 0: the deletion algorithm with a threshold."""
    return [
        NoisyCounts(BITS, LABELS, TINY, threshold),
        GaussianCounts(BITS, LABELS, TINY, TINY, threshold),
        LaplaceCounts(BITS, LABELS, TINY, TINY / 2, threshold),
    ]


@pytest.mark.parametrize("threshold", [0, "1/2", 3, "7/2", 40])
def test_without_noise_the_counts_are_compared_with_the_threshold_exactly(threshold):
    rng = np.random.default_rng(3)
    rows, labels = rng.random((64, 5)) < 0.3, rng.random(64) < 0.2
    positives = rows[labels]
    counts = [count for v in positives.T for count in ((~v).sum(), v.sum())]
    expected = tuple(number for number, count in enumerate(counts) if count <= Fraction(threshold))
    for mechanism in quiet(threshold):
        assert mechanism.run(matrix(rows, labels), SeededRng(1)) == expected
    if threshold == 0:
        assert expected == deletion(rows, labels)


def test_the_centred_numbers_say_as_much_as_the_counts():
    rng = np.random.default_rng(4)
    data = matrix(rng.random((70, 4)) < 0.5, rng.random(70) < 0.5)
    counts = data.exact_sum(FalsifiedLiterals(BITS, LABELS))
    centred = data.exact_sum(CentredLiterals(BITS, LABELS))
    assert (centred[-1] - centred[:-1]).tolist() == (2 * counts[0::2]).tolist()
    assert (centred[-1] + centred[:-1]).tolist() == (2 * counts[1::2]).tolist()


def moved(query, rows):
    """The sums over these labelled rows."""
    bits, labels = zip(*rows, strict=True) if rows else (np.zeros((0, 3)), [])
    return matrix(np.array(bits).reshape(-1, 3), labels).exact_sum(query)


EVERY_ROW = [(bits, label) for bits in itertools.product((0, 1), repeat=3) for label in (0, 1)]


@pytest.mark.parametrize("relation", BOTH)
def test_the_stated_sensitivities_are_the_largest_of_all_pairs(relation):
    """L1 and squared L2 for three variables; the centred numbers are counted in halves of a row."""
    found = {}
    for query in (FalsifiedLiterals(BITS, LABELS), CentredLiterals(BITS, LABELS)):
        alone_ = [moved(query, [row]) for row in EVERY_ROW]
        others = alone_ if relation == "replace-one" else [0 * alone_[0]]
        changes = [one - other for one in alone_ for other in others]
        found[type(query)] = max(abs(c).sum() for c in changes), max((c * c).sum() for c in changes)
    raw = FalsifiedLiterals(BITS, LABELS).sensitivity(facts(3, relation))
    assert found[FalsifiedLiterals] == (raw.l1, raw.l2_squared) == ((6, 6) if relation == "replace-one" else (3, 3))
    assert found[CentredLiterals] == ((6, 12) if relation == "replace-one" else (4, 4))


@pytest.mark.parametrize("rows", [1, 3])
def test_the_prices_are_the_stated_ones(rows):
    d, v, w = 5, Fraction(70), Fraction(11)
    rho = {"add-remove": d / (2 * v) + 1 / (2 * w), "replace-one": max(2 * d / v, d / (2 * v) + 1 / (2 * w))}
    pure = {"add-remove": d / v + 1 / w, "replace-one": max(2 * d / v, d / v + 1 / w)}
    lecture = {"add-remove": d / v, "replace-one": 2 * d / v}
    for relation in BOTH:
        public = facts(d, relation, rows=rows)
        gaussian = GaussianCounts(BITS, LABELS, v, w, 3).guarantee(public)
        assert gaussian.pure is None
        assert gaussian.at(8.0) == pytest.approx(8 * float(rho[relation]) * rows**2, rel=1e-9)
        assert LaplaceCounts(BITS, LABELS, v, w, 3).guarantee(public).pure == pure[relation] * rows
        assert NoisyCounts(BITS, LABELS, v, 3).guarantee(public).pure == lecture[relation] * rows


def test_the_total_is_free_under_replace_one():
    public = facts(40)
    made = GaussianCounts.balanced(BITS, LABELS, Fraction(500), public)
    assert made.total_variance == Fraction(500, 120)
    assert made.guarantee(public).at(2.0) == pytest.approx(2 * 2 * 40 / 500, rel=1e-9)
    made = LaplaceCounts.balanced(BITS, LABELS, Fraction(500), public)
    assert made.guarantee(public).pure == Fraction(2 * 40, 500)


# Exact tails of what is drawn.


def lattice(weight, scale, far=60):
    """The probabilities of symmetric integer noise."""
    ks = np.arange(-int(far * scale) - 40, int(far * scale) + 41)
    weights = weight(ks)
    return weights / weights.sum()


def exact_reach(each, total, m):
    """P[sum of two noises >= m]."""
    joint = np.convolve(each, total)
    return joint[len(joint) // 2 + m :].sum()


@pytest.mark.parametrize("probability", [0.3, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("deviation", [0.2, 1.0, 5.0, 40.0])
def test_the_margins_of_gaussian_counts_hold_for_the_exact_noise(deviation, probability):
    v, w = Fraction(deviation**2), Fraction(deviation**2 / 9)
    each = lattice(lambda k: np.exp(-(k**2) / (2 * float(v))), deviation, far=12)
    total = lattice(lambda k: np.exp(-(k**2) / (2 * float(w))), deviation / 3, far=12)
    made = GaussianCounts(BITS, LABELS, v, w, 0)
    assert exact_reach(each, total, made.margin(probability)) <= probability
    assert exact_reach(np.ones(1), total, made.total_margin(probability)) <= probability
    assert made.margin(probability) <= 3 + 5 * deviation * 1.06


@pytest.mark.parametrize("probability", [0.3, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
def test_the_margins_of_laplace_counts_hold_for_the_exact_noise(scale, probability):
    b, c = Fraction(scale), Fraction(scale / 2)
    each = lattice(lambda k: np.exp(-abs(k) / float(b)), scale)
    total = lattice(lambda k: np.exp(-abs(k) / float(c)), scale / 2)
    made = LaplaceCounts(BITS, LABELS, b, c, 0)
    assert exact_reach(each, total, made.margin(probability)) <= probability
    assert exact_reach(np.ones(1), total, made.total_margin(probability)) <= probability
    assert made.margin(probability) <= 4 + scale * (math.log(1 / probability) + 0.3)


@pytest.mark.parametrize("probability", [0.2, 1e-3, 1e-6])
@pytest.mark.parametrize("d", [1, 3, 10])
def test_absolute_noises_together_stay_below_their_bound(d, probability):
    for made, weight in (
        (GaussianCounts(BITS, LABELS, 4, 1, 0), lambda k: np.exp(-(k**2) / 8)),
        (LaplaceCounts(BITS, LABELS, 2, 1, 0), lambda k: np.exp(-abs(k) / 2)),
    ):
        law = lattice(weight, 2.0)
        half = len(law) // 2
        folded = np.concatenate([[law[half]], 2 * law[half + 1 :]])
        summed = np.ones(1)
        for _ in range(d):
            summed = np.convolve(summed, folded)
        bound = made.sum_margin(d, probability)
        assert summed[bound + 1 :].sum() <= probability
        assert summed[max(0, bound - 3 * d - 8) :].sum() > probability / 50, "not far from the truth"


def test_lecture_thresholds_hold_for_the_exact_noise():
    for scale in (Fraction(1, 3), Fraction(3, 2), Fraction(20)):
        for t in range(200):
            q = math.exp(-1 / scale)
            assert 2 * q ** (t + 1) / (1 + q) <= math.exp(-t / scale) * (1 + 1e-12)


# --- published sizes --------------------------------------------------------------------------------------------------

TABLE = [(100, 5, 0.1), (1000, 5, 0.02), (1000, 20, 0.1), (10000, 50, 0.1)]


def offered(d, k, relation="add-remove", budget=None, size=10**4):
    public = facts(d, relation, size)
    return methods(BITS, LABELS, k, facts=public, beta=BETA, funds=Funds.of(budget or Budget(1, "1e-6")))


@pytest.mark.parametrize(("problem", "rows"), list(zip(TABLE, [246, 1.8e3, 1.1e3, 3.5e3], strict=True)))
def test_exponential_sizes_have_the_published_digits(problem, rows):
    d, k, alpha = problem
    found = empirical_size(math.log(conjunctions(d, k)), alpha, 0.05, 1.0)
    assert found == pytest.approx(rows, rel=0.03)


@pytest.mark.parametrize(("problem", "rows"), list(zip(TABLE, [6.6e6, 4.2e9, 8.5e8, 1.03e11], strict=True)))
def test_lecture_sizes_have_the_published_digits(problem, rows):
    d, k, alpha = problem
    found = offered(d, k, "replace-one").named(LECTURE).needed(alpha)
    assert found == pytest.approx(rows, rel=0.01)
    assert found == pytest.approx(8 * d * d / alpha * math.log(2 * d / 0.05), rel=1e-3)
    assert offered(d, k).named(LECTURE).needed(alpha) == pytest.approx(rows / 2, rel=0.01), "d, not 2d"


@pytest.mark.parametrize(("problem", "rows"), list(zip(TABLE, [1.8e5, 3.1e7, 6.2e6, 2.2e8], strict=True)))
def test_counts_need_fewer_rows_than_the_published_sizes(problem, rows):
    """The table's sizes follow from the same noise with the largest of 4d margins on every literal; adding up noises
    instead, and k chances for the k literals of a target, needs a half to two thirds of it."""
    d, k, alpha = problem
    method = offered(d, k).named(COUNTS)
    made = method.mechanism(alpha)
    assert isinstance(made, GaussianCounts)
    table = GaussianCounts(BITS, LABELS, _variance_of_table(d), _variance_of_table(d) / Fraction(math.sqrt(d)), 0)
    assert d * table.margin(0.05 / (4 * d)) / alpha == pytest.approx(rows, rel=0.03)
    assert 0.4 * rows < method.needed(alpha) < 0.65 * rows


def _variance_of_table(d):
    """d/(2v) + sqrt(d)/(2v) = 0.02436."""
    return Fraction((d + math.sqrt(d)) / (2 * 0.02436))


def test_a_promise_is_exactly_its_wrong_rows():
    made = GaussianCounts(BITS, LABELS, 400, 4, 0)
    found, wrong = tuned(made, k=3, d=20, beta=0.05)
    twice, total = made.margin(0.05 / 6) - 1, made.total_margin(0.05 / 4) - 1
    assert found.threshold == Fraction(twice, 2)
    assert wrong == (20 * (twice + total) + made.sum_margin(20, 0.05 / 4)) // 2
    assert lecture_size(100, 5, 0.25) == 8000


def test_pure_budgets_get_laplace_counts_and_others_gaussian_ones():
    pure = offered(20, 3, budget=Budget(1))
    assert isinstance(pure.named(COUNTS).mechanism(0.1), LaplaceCounts)
    assert isinstance(offered(20, 3).named(COUNTS).mechanism(0.1), GaussianCounts)
    assert pure.named(COUNTS).needed(0.1) < pure.named(LECTURE).needed(0.1) / 3


@pytest.mark.parametrize("relation", BOTH)
def test_every_method_spends_what_is_admitted_and_needs_less_for_more_error(relation):
    budget = Budget("0.7", "1e-5")
    for method in offered(12, 3, relation, budget):
        assert isinstance(method, Method)
        price = method.mechanism(0.1).guarantee(facts(12, relation, 10**4))
        assert 0.69 < price.epsilon(budget.delta) <= 0.7
        sizes = [method.needed(alpha) for alpha in (1e-9, 0.01, 0.1, 0.3, 0.5)]
        assert sizes == sorted(sizes, reverse=True)
        assert method.mechanism(0.1) == method.mechanism(0.4)


def test_methods_are_the_same_for_neighbouring_tables():
    for relation in BOTH:
        rows, labels = np.zeros((5, 3)), [True] * 5
        tables = matrix(rows, labels, relation), matrix(1 - rows, [False] * 5, relation)
        found = [
            [
                each.mechanism(0.1)
                for each in methods(BITS, LABELS, 2, facts=table.facts, beta=BETA, funds=Funds.of(Budget(1)))
            ]
            for table in tables
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("k", [0, 4, 1.5])
def test_k_beyond_the_variables_is_an_error(k):
    with pytest.raises(ParameterError, match="k must be"):
        offered(3, k)


# --- the list of all conjunctions -------------------------------------------------------------------------------------


def listed_by_hand(d, k):
    yield (0, 1)
    for j in range(k + 1):
        for variables in itertools.combinations(range(d), j):
            for signs in itertools.product((0, 1), repeat=j):
                yield tuple(2 * v + s for v, s in zip(variables, signs, strict=True))


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (4, 4), (6, 3), (9, 2)])
def test_the_number_of_conjunctions_is_the_stated_one(d, k):
    every = list(listed_by_hand(d, k))
    assert len(set(every)) == len(every) == conjunctions(d, k)


@pytest.mark.parametrize(("d", "k", "rows"), [(1, 1, 5), (2, 2, 0), (3, 2, 40), (4, 4, 70), (6, 3, 130), (7, 5, 64)])
def test_every_conjunction_is_listed_once_with_its_mistakes(d, k, rows, monkeypatch):
    monkeypatch.setattr(module, "_BUFFER", 50)
    rng = np.random.default_rng(d)
    bits, labels = rng.random((rows, d)) < 0.5, rng.random(rows) < 0.4
    everything = Listing(PackedRows.of(matrix(bits, labels), BITS, LABELS), k, lambda done: None)
    expected = collections.defaultdict(set)
    for numbers in listed_by_hand(d, k):
        expected[int((true_of(numbers, bits) != labels).sum())].add(numbers)
    levels, counts = everything.histogram()
    assert dict(zip(levels.tolist(), counts.tolist(), strict=True)) == {e: len(each) for e, each in expected.items()}
    for level, wanted in expected.items():
        found = [everything.conjunction(level, place) for place in range(everything.having(level))]
        assert len(found) == len(wanted)
        assert set(found) == wanted


@pytest.mark.parametrize("parts", [1, 3, 64])
def test_the_list_is_the_same_however_it_is_cut(parts, monkeypatch):
    rng = np.random.default_rng(9)
    bits = rng.random((50, 6)) < 0.5
    rows = PackedRows.of(matrix(bits, bits[:, 0]), BITS, LABELS)
    whole = Listing(rows, 3, lambda done: None)
    levels, _ = whole.histogram()
    monkeypatch.setattr(module, "_PARTS", parts)
    cut = Listing(rows, 3, lambda done: None)
    cut.histogram()
    for level in levels.tolist():
        assert [whole.conjunction(level, p) for p in range(whole.having(level))] == [
            cut.conjunction(level, p) for p in range(cut.having(level))
        ]


def test_progress_is_told_in_public_numbers():
    told = [[], []]
    for place, seed in enumerate((1, 2)):
        bits = np.random.default_rng(seed).random((80, 5)) < 0.5
        Listing(PackedRows.of(matrix(bits, bits[:, seed]), BITS, LABELS), 3, told[place].append).histogram()
    assert told[0] == told[1]
    assert sum(told[0]) == conjunctions(5, 3)


def test_a_clear_target_is_found_from_a_matrix_and_from_a_table():
    rng = np.random.default_rng(5)
    bits = rng.random((400, 6)) < 0.6
    labels = bits[:, 1] & ~bits[:, 4]
    assert AllConjunctions(BITS, LABELS, 3, 2).run(matrix(bits, labels), SeededRng(2)) == (2, 9)
    names = list("abcdef")
    domain = Domain({name: Category(0, 1) for name in names} | {"y": CLASSES})
    columns = {name: v.astype(int).tolist() for name, v in zip(names, bits.T, strict=True)}
    table = Table(columns | {"y": labels.tolist()}, domain)
    assert AllConjunctions(Literals(names), LABELS, 3, 2).run(table, SeededRng(2)) == (2, 9)


@pytest.mark.parametrize("labels", [np.ones(30, dtype=bool), np.zeros(30, dtype=bool)], ids=["positives", "negatives"])
def test_rows_of_one_label_are_ordinary(labels):
    bits = np.random.default_rng(6).random((30, 4)) < 0.5
    found = AllConjunctions(BITS, LABELS, 2, 50).run(matrix(bits, labels), SeededRng(3))
    assert true_of(found, bits).tolist() == labels.tolist()


def test_no_rows_are_ordinary():
    nobody = matrix(np.zeros((0, 4)), [])
    drawn = {AllConjunctions(BITS, LABELS, 1, 5).run(nobody, SeededRng(seed)) for seed in range(200)}
    assert drawn == set(listed_by_hand(4, 1))
    for mechanism in quiet(0):
        assert mechanism.run(nobody, SeededRng(1)) == tuple(range(8)), "all literals are kept: never"


def test_too_many_conjunctions_are_refused_before_the_charge_with_the_estimate():
    with pytest.raises(ParameterError, match=r"2\.65e\+14 conjunctions of 1000 variables.*about 56 days"):
        AllConjunctions(BITS, LABELS, 5, 1).guarantee(facts(1000))
    with pytest.raises(ParameterError, match="is refused"):
        AllConjunctions(BITS, LABELS, 3, 1).guarantee(facts(1000, size=2**30))
    refused = [each for each in offered(1000, 5) if each.imagined]
    assert [each.name for each in refused] == [EXACT]
    assert refused[0].imagined.endswith("; 363 rows would make the error at most 0.1")
    assert conjunctions(900, 3) < MOST
    AllConjunctions(BITS, LABELS, 3, 1).guarantee(facts(900, size=10**4))


def test_an_estimate_reads_as_a_sentence_and_looks_at_public_numbers():
    assert str(estimate(50, 3, facts(50, size=10**4))) == (
        "161,802 conjunctions of 50 variables, about 3.3e+06 words of 64 rows, about 0.1 s"
    )
    private = Facts(Domain(x=Bits(50), y=CLASSES), Neighbours("add-remove"), None)
    assert estimate(50, 3, private).words is None
    assert "an unknown number of words" in str(estimate(50, 3, private))
    assert "years" in str(estimate(10**4, 50, facts(10**4)))
    assert "minutes" in str(estimate(2000, 3, facts(2000, size=10**4)))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "patience", "shown"), [(Terminal, 0, True), (Terminal, 5, False), (io.StringIO, 0, False)]
)
def test_progress_is_shown_on_a_terminal_if_it_takes_long(stream, patience, shown, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setattr(learn, "SHOWN", patience)
    bits = np.random.default_rng(6).random((30, 4)) < 0.5
    with learn.conjunction_progress():
        AllConjunctions(BITS, LABELS, 2, 1).run(matrix(bits, bits[:, 0], "replace-one"), SeededRng(3))
    assert ("conjunctions of 4 variables" in sys.stderr.getvalue()) == shown
    assert capsys.readouterr().out == ""


def test_packed_rows_inside_a_run_say_nothing():
    rows = PackedRows.of(matrix([[1, 0]], [True]), BITS, LABELS)
    assert repr(rows) == "PackedRows(private rows)"
    with pytest.raises(TypeError, match="private rows"):
        rows.__reduce_ex__(2)


# --- any finite class -------------------------------------------------------------------------------------------------

PEOPLE = Domain(age=Number(0, 99, step=1), sex=Category("F", "M"), y=CLASSES)


def people():
    rng = np.random.default_rng(8)
    ages, sexes = rng.integers(0, 100, 300), rng.choice(["F", "M"], 300)
    return Table({"age": ages.tolist(), "sex": sexes.tolist(), "y": ((ages >= 30) & (ages <= 60)).tolist()}, PEOPLE)


def hypotheses():
    return (
        Where(Between("age", 30, 60)),
        Where(Equals("sex", "F")),
        FunctionRule("old", lambda row: row["age"] > 65),
        FunctionRule("wild", lambda row: 1 / (row["age"] - row["age"]) > 0),
        FunctionRule("text", lambda row: "yes"),
    )


def test_mistakes_of_a_list_are_counted_and_a_failing_function_says_no():
    data = people()
    found = data.exact_sum(ClassMistakes(hypotheses(), LABELS)).tolist()
    each = [int(data.exact_sum(Mistakes(rule, LABELS))) for rule in hypotheses()]
    assert found == each
    assert found[0] == 0
    positives = int(data.exact_sum(lambda batch: np.array(LABELS.mask(batch).sum())))
    assert found[3] == found[4] == positives


def test_the_best_of_a_list_is_found():
    mechanism = FiniteClass(hypotheses(), LABELS, 1)
    assert mechanism.run(people(), SeededRng(1)) == 0
    assert [rule.sentence(PEOPLE) for rule in hypotheses()][2:] == ["old", "wild", "text"]


def test_a_function_sees_one_row_at_a_time_with_booleans():
    seen = []

    def remembers(row):
        seen.append(row)
        return bool(row["x"][1])

    bits = np.random.default_rng(1).random((70, 3)) < 0.5
    data = matrix(bits, bits[:, 1])
    assert data.exact_sum(ClassMistakes((FunctionRule("second", remembers),), LABELS)).tolist() == [0]
    assert [row["x"].tolist() for row in seen] == bits.tolist()
    assert [row["y"] for row in seen] == bits[:, 1].tolist()


def test_a_matrix_of_predictions_is_a_class():
    bits = np.random.default_rng(2).random((200, 9)) < 0.5
    labels = bits[:, 6]
    data = matrix(bits, labels)
    found = data.exact_sum(ClassMistakes(Predictions("x"), LABELS))
    assert found.tolist() == (bits != labels[:, None]).sum(axis=0).tolist()
    assert FiniteClass(Predictions("x"), LABELS, 1).run(data, SeededRng(1)) == 6


@pytest.mark.parametrize("rows", [1, 4])
def test_the_price_of_a_list_is_its_range(rows):
    rate = Fraction(1, 7)
    for make in (lambda: FiniteClass(Predictions("x"), LABELS, rate), lambda: AllConjunctions(BITS, LABELS, 2, rate)):
        assert make().guarantee(facts(4, "add-remove", rows=rows)).pure == rows * rate
        assert make().guarantee(facts(4, "replace-one", rows=rows)).pure == 2 * rows * rate
    assert FiniteClass(Predictions("x"), LABELS, rate).guarantee(facts(1)).pure == 0


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ((), "at least one"),
        ((Between("age", 1, 2),), "Where"),
        ((len,), "FunctionRule"),
        ((FunctionRule("x"),), "needs"),
    ],
)
def test_what_is_no_list_of_rules_is_refused(wrong, complaint):
    public = Facts(PEOPLE, Neighbours("replace-one"), 10)
    with pytest.raises(ParameterError, match=complaint):
        finite_methods(wrong, LABELS, facts=public, beta=BETA, funds=Funds.of(Budget(1)))
    with pytest.raises(ParameterError, match="needs a function"):
        FunctionRule("x", 5)


def test_predictions_need_bits():
    with pytest.raises(ParameterError, match="BitMatrix"):
        FiniteClass(Predictions("age"), LABELS, 1).guarantee(Facts(PEOPLE, Neighbours("replace-one"), 10))


def test_the_sizes_are_their_formulas():
    size, alpha, beta, rate = 1000, 0.1, 0.05, 0.5
    log = math.log(size)
    assert empirical_size(log, alpha, beta, rate) == math.ceil(math.log(size / beta) / (rate * alpha))
    assert population_size(log, alpha, beta, rate) == math.ceil(math.log(size / beta) / (alpha * (1 - math.exp(-rate))))
    assert agnostic_excess(log, beta, rate) == pytest.approx(math.log(size / beta) / rate)
    sampled = 8 / alpha**2 * math.log(4 * size / beta)
    assert agnostic_population_size(log, alpha, beta, rate) == math.ceil(sampled)
    assert agnostic_population_size(log, alpha, beta, 0.001) == math.ceil(
        2 / (0.001 * alpha) * math.log(2 * size / beta)
    )


def test_a_list_has_one_method():
    public = facts(40)
    (method,) = finite_methods(Predictions("x"), LABELS, facts=public, beta=BETA, funds=Funds.of(Budget(1)))
    assert isinstance(method, Method)
    assert method.needed(0.1) == math.ceil(math.log(40 / 0.05) / (0.5 * 0.1))
    assert method.mechanism(0.1).guarantee(public).epsilon(0) == pytest.approx(1, rel=1e-5)


# --- records ----------------------------------------------------------------------------------------------------------

RECORDED = [
    NoisyCounts(BITS, LABELS, "3/2", 7),
    GaussianCounts(BITS, LABELS, 40, "1/3", "7/2"),
    LaplaceCounts(BITS, LABELS, 40, "1/3", 0),
    AllConjunctions(Literals(("a", "b")), LABELS, 2, "0.1"),
    FiniteClass(Predictions("x"), LABELS, 2),
    FiniteClass((Where(Between("age", 1, 2)), Conjunction(BITS, (0, 3))), LABELS, 2),
]
CATALOGUE = {
    each.NAME: each
    for each in (NoisyCounts, GaussianCounts, LaplaceCounts, AllConjunctions, FiniteClass, Predictions, Where)
} | {each.NAME: each for each in (Literals, Labels, Conjunction, Between)}


@pytest.mark.parametrize("mechanism", RECORDED, ids=lambda each: type(each).__name__)
def test_a_mechanism_is_its_record_and_carries_its_theorem(mechanism):
    text = canonical(record(mechanism))
    assert revive(record(mechanism), CATALOGUE) == mechanism
    assert "." not in text
    assert all(word in type(mechanism).__doc__ for word in ("Theorem.", "Accuracy.", "Edges.", "Reference."))


def test_the_ledger_knows_a_function_by_its_label_and_prices_it_again():
    mechanism = FiniteClass((*hypotheses(), FunctionRule("1/2", bool)), LABELS, 2)
    text = canonical(record(mechanism))
    assert '{"label":"old","name":"function-rule/1"}' in text
    known = CATALOGUE | {"function-rule/1": FunctionRule, "equals/1": Equals}
    again = revive(record(mechanism), known)
    assert again == mechanism
    public = Facts(PEOPLE, Neighbours("replace-one"), 10)
    assert again.guarantee(public) == mechanism.guarantee(public)
    with pytest.raises(ParameterError, match="label only"):
        again.run(people(), SeededRng(1))


@pytest.mark.parametrize("threshold", [-1, 2**60, math.inf, None])
def test_thresholds_are_public_numbers_that_can_be_compared(threshold):
    with pytest.raises(ParameterError, match="threshold"):
        NoisyCounts(BITS, LABELS, 1, threshold)


@pytest.mark.parametrize("scale", [Fraction(1, 2**201), 2**51])
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(scale):
    for mechanism in (NoisyCounts(BITS, LABELS, scale, 0), LaplaceCounts(BITS, LABELS, scale, scale / 2, 0)):
        with pytest.raises(ParameterError, match="scale"):
            mechanism.guarantee(facts(3))
    with pytest.raises(ParameterError, match="variance"):
        GaussianCounts(BITS, LABELS, scale**2, 1, 0).guarantee(facts(3))
    with pytest.raises(ParameterError, match="rate"):
        FiniteClass(Predictions("x"), LABELS, 2**199).guarantee(facts(3, "add-remove"))


def test_two_laplace_noises_need_different_scales():
    with pytest.raises(ParameterError, match="total_scale"):
        LaplaceCounts(BITS, LABELS, 2, 2, 0)


def test_replacing_a_positive_by_another_moves_every_difference_by_two():
    """Four variables, a scale of 1 and 1/2 for the total: 2 d / scale = 8, which relabelling, 4 + 2, does not reach."""
    domain = Domain(x=Bits(4), y=Category(0, 1))
    facts = Facts(domain, Neighbours("replace-one"), 100)
    assert LaplaceCounts(Literals("x"), Labels("y", 1), 1, "1/2", 0).guarantee(facts).pure == 8
    added = Facts(domain, Neighbours("add-remove"), 100)
    assert LaplaceCounts(Literals("x"), Labels("y", 1), 1, "1/2", 0).guarantee(added).pure == 6

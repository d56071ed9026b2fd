"""Boxes face by face, all boxes of a grid, and paid certificates: what each part does."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.audit.laws import Setting, law
from discreet.data import Facts, ParquetTable
from discreet.errors import OutOfRange
from discreet.funds import Funds
from discreet.guarantee import Budget, Guarantee, Neighbours
from discreet.method import Method
from discreet.pac import all_boxes, greedy_boxes, mistake_bound
from discreet.pac.all_boxes import AllBoxes
from discreet.pac.greedy_boxes import CountedFaces, FaceByFace, GreedyCost
from discreet.pac.mistake_bound import certify, hidden_mistakes
from discreet.pac.rules import BoxRule, Labels
from discreet.records import record, revive
from discreet.rng import Rng, SeededRng
from tests.pac_game import mistakes

LABELS = Labels("y", 1)
RELATIONS = ["replace-one", "add-remove"]
LOUD = Fraction(10**6)


def domain(d, g, missing=False):
    numbers = {f"x{i}": dp.Number(0, g - 1, step=1, missing=missing) for i in range(d)}
    return dp.Domain({**numbers, "y": dp.Category(0, 1)})


def names(d):
    return tuple(f"x{i}" for i in range(d))


def table(codes, positive, g, relation="replace-one", **kwargs):
    codes = np.asarray(codes)
    columns = {f"x{i}": codes[:, i] for i in range(codes.shape[1])}
    columns["y"] = np.asarray(positive).astype(int)
    return dp.Table(columns, domain(codes.shape[1], g), neighbours=relation, **kwargs)


def planted(rng, d=3, g=30, n=2000, low=5, high=24):
    """Rows on a grid, those in the cube low .. high positive."""
    codes = rng.integers(0, g, (n, d))
    return codes, ((codes >= low) & (codes <= high)).all(axis=1)


def loud(kind, d):
    if kind == "all":
        return AllBoxes(names(d), LABELS, 100, LOUD)
    return FaceByFace(names(d), LABELS, 3, LOUD) if kind == "face" else CountedFaces(names(d), LABELS, 1, LOUD)


# --- the learners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d"), [("face", 1), ("face", 3), ("counted", 3), ("all", 1), ("all", 2)])
def test_almost_without_noise_the_planted_box_is_recovered(kind, d):
    codes, positive = planted(np.random.default_rng(d), d=d)
    rows = table(codes, positive, 30)
    low, high = loud(kind, d).run(rows, SeededRng(1))
    assert low.dtype == high.dtype == np.int64
    assert mistakes(BoxRule(names(d), low, high), rows, LABELS) == 0


@pytest.mark.parametrize("kind", ["face", "counted"])
def test_label_noise_hardly_moves_the_box(kind):
    rng = np.random.default_rng(3)
    codes, positive = planted(rng, n=5000)
    rows = table(codes, positive ^ (rng.random(5000) < 0.1), 30)
    low, high = loud(kind, 3).run(rows, SeededRng(1))
    clean = table(codes, positive, 30)
    assert mistakes(BoxRule(names(3), low, high), clean, LABELS) <= 50


def test_negatives_far_more_frequent_do_not_make_the_box_collapse():
    codes, positive = planted(np.random.default_rng(4), low=9, high=18)
    rows = table(codes, positive, 30)
    assert positive.mean() < 0.05
    low, high = CountedFaces(names(3), LABELS, 2, 5).run(rows, SeededRng(2))
    assert mistakes(BoxRule(names(3), low, high), rows, LABELS) < positive.sum() / 2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["face", "counted", "all"])
def test_one_class_alone_and_no_rows_are_ordinary(kind, relation):
    codes = np.random.default_rng(5).integers(3, 7, (50, 2))
    mechanism = loud(kind, 2)
    none = mechanism.run(table(codes, np.zeros(50), 10, relation), SeededRng(1))
    assert BoxRule(names(2), *none).is_empty or not ((codes >= none[0]) & (codes <= none[1])).all(axis=1).any()
    only = mechanism.run(table(codes, np.ones(50), 10, relation), SeededRng(1))
    assert ((codes >= only[0]) & (codes <= only[1])).all()
    if relation == "add-remove":
        low, high = mechanism.run(table(np.zeros((0, 2), dtype=int), [], 10, relation), SeededRng(1))
        assert low.shape == high.shape == (2,)


def test_a_row_with_a_missing_value_is_in_no_box():
    codes = np.array([[2.0, 2.0], [np.nan, 2.0], [2.0, np.nan]])
    columns = {"x0": codes[:, 0], "x1": codes[:, 1], "y": [1, 0, 0]}
    rows = dp.Table(columns, domain(2, 5, missing=True))
    for kind in ("face", "counted", "all"):
        low, high = loud(kind, 2).run(rows, SeededRng(1))
        assert mistakes(BoxRule(names(2), low, high), rows, LABELS) == 0
        assert (low <= 2).all()
        assert (high >= 2).all()
        assert (high <= 4).all()


@pytest.mark.parametrize(
    "mechanism", [FaceByFace(names(2), LABELS, "5/2", "1/3"), CountedFaces(names(2), LABELS, 9, 1)]
)
def test_gathering_a_column_draws_the_same_box_as_counting_it(mechanism, monkeypatch):
    codes, positive = planted(np.random.default_rng(6), d=2, n=300)
    rows = table(codes, positive, 30)
    counted = [mechanism.run(rows, SeededRng(seed)) for seed in range(30)]
    monkeypatch.setattr(greedy_boxes, "HISTOGRAM", 1)
    for seed, (low, high) in enumerate(counted):
        again = mechanism.run(rows, SeededRng(seed))
        assert np.array_equal(low, again[0])
        assert np.array_equal(high, again[1])


def test_a_number_without_bounds_can_be_a_column():
    rng = np.random.default_rng(7)
    values = rng.normal(size=4000)
    rows = dp.Table(
        {"x": values, "y": (np.abs(values) < 1).astype(int)}, dp.Domain(x=dp.Number.any(), y=dp.Category(0, 1))
    )
    low, high = FaceByFace(("x",), LABELS, 3, 1).run(rows, SeededRng(1))
    rule = BoxRule(("x",), low, high)
    assert mistakes(rule, rows, LABELS) < 120
    assert rule.sentence(rows.facts.domain).count("<=") == 2


def test_a_file_gives_the_same_box_as_memory(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    codes, positive = planted(np.random.default_rng(8), d=2, n=500)
    columns = {"x0": codes[:, 0], "x1": codes[:, 1], "y": positive.astype(int)}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    stored = ParquetTable(path, domain(2, 30), batch_rows=64)
    for mechanism in (CountedFaces(names(2), LABELS, 20, "0.2"), AllBoxes(names(2), LABELS, 10, "0.1")):
        for seed in range(5):
            found, other = (mechanism.run(rows, SeededRng(seed)) for rows in (table(codes, positive, 30), stored))
            assert [each.tolist() for each in found] == [each.tolist() for each in other]


def test_only_the_columns_of_moved_faces_are_read():
    codes, positive = planted(np.random.default_rng(9), d=3)
    rows, seen = table(codes, positive, 30), []

    class Watched:
        facts = rows.facts

        def exact_sum(self, partial):
            read: list[str] = []
            partial(dp.data.Batch.empty(rows.facts.domain, read))
            seen.append(set(read) - {"y"})
            return rows.exact_sum(partial)

    FaceByFace(names(3), LABELS, 3, LOUD).run(Watched(), SeededRng(1))
    assert [len(each) for each in seen] == [1, 2, 3]


def test_all_positions_of_a_run_are_equally_likely_and_empty_counts_once():
    # One positive at 2 of 0 .. 4. Low face first: 0..2 cut nothing, 3..5 cut it.
    setting = Setting(domain(1, 5), Neighbours("add-remove"))
    found = law(FaceByFace(names(1), LABELS, 1, 1), [{"x0": 2, "y": 1}], setting)
    w = math.exp(-1)

    def one_way(low, high):  # low drawn on 0..5, then high on low-1..4
        first = (1 if low <= 2 else w) / (3 + 3 * w)
        rest = [1 if low <= 2 <= b or low > 2 else w for b in range(low - 1, 5)]
        return first * (1 if high >= 2 or low > 2 else w) / sum(rest)

    for low, high in itertools.combinations_with_replacement(range(5), 2):
        expected = (one_way(low, high) + one_way(4 - high, 4 - low)) / 2
        assert found.mass[((low,), (high,))] == pytest.approx(expected, rel=1e-12)
    assert math.fsum(found.mass.values()) == pytest.approx(1)


def test_weights_follow_the_counts_and_fall_to_two():
    assert greedy_boxes.first_weight(5000, 5000, Fraction(1)) == 3 * 8
    assert greedy_boxes.first_weight(1000, 9000, Fraction(1)) == 10 * 8
    assert greedy_boxes.first_weight(-50, 9000, Fraction(300)) == 31 * 8  # lost in the noise: its scale
    assert greedy_boxes.first_weight(1, 10**9, Fraction(1)) == 64 * 8
    assert greedy_boxes.first_weight(10, -3, Fraction(1)) == 3 * 8
    assert [greedy_boxes.falling(80, turn, 4) for turn in range(5)] == [80, 53, 36, 24, 16]


# --- what one person can do -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["1", "3/2", "2", "7"])
def test_no_row_moves_two_positions_further_apart_than_stated_and_one_does(weight):
    cost, g = GreedyCost.of(Fraction(weight)), 4
    rows = [None, *itertools.product(range(g), (0, 1))]

    def costs(row):
        """What one row, or none, adds to the cost of every position of a lower face."""
        if row is None:
            return np.zeros(g + 1, dtype=int)
        code, positive = row
        cuts = np.arange(g + 1) > code
        return cost.positive * cuts if positive else cost.negative * ~cuts

    moved = {pair: np.ptp(costs(pair[0]) - costs(pair[1])) for pair in itertools.product(rows, rows)}
    added = max(span for pair, span in moved.items() if None in pair)
    replaced = max(span for pair, span in moved.items() if None not in pair)
    assert added == cost.range(Neighbours("add-remove"))
    assert replaced == cost.range(Neighbours("replace-one"))
    assert cost.range(Neighbours("replace-one", 3)) == 3 * replaced


def test_the_price_is_that_of_two_faces_a_column():
    for relation, span in (("replace-one", Fraction(7, 5)), ("add-remove", Fraction(1))):
        for rows in (1, 3):
            facts = Facts(domain(4, 9), Neighbours(relation, rows), 100)
            face = Guarantee.of_bounded_range(span * rows / 7, neighbours=facts.neighbours)
            assert FaceByFace(names(4), LABELS, "5/2", "1/7").guarantee(facts) == 8 * face
            counts = Guarantee.of_laplace(
                (2 if relation == "replace-one" else 1) * rows, scale=30, neighbours=facts.neighbours
            )
            normed = Guarantee.of_bounded_range(Fraction(rows, 7), neighbours=facts.neighbours)
            assert CountedFaces(names(4), LABELS, 30, "1/7").guarantee(facts) == counts + 8 * normed
    two = Facts(domain(2, 9), Neighbours("replace-one", 2), 100)
    assert AllBoxes(names(2), LABELS, 9, "1/7").guarantee(two).pure == Fraction(4, 7)


def test_wrong_public_arguments_are_named_before_anything_is_spent():
    facts = Facts(domain(2, 9), Neighbours("replace-one"), 100)
    with pytest.raises(dp.errors.ParameterError, match=r"weight must be >= 1, found 0\.5"):
        FaceByFace(names(2), LABELS, 0.5, 1)
    with pytest.raises(dp.errors.ParameterError, match="must not contain the target 'y'"):
        FaceByFace(("x0", "y"), LABELS, 2, 1)
    with pytest.raises(dp.errors.ParameterError, match="labels must be Labels"):
        CountedFaces(names(2), "y", 1, 1)
    with pytest.raises(dp.errors.ParameterError, match="distinct"):
        CountedFaces((), LABELS, 1, 1)
    with pytest.raises(dp.errors.ParameterError, match="needs Numbers"):
        FaceByFace(("c",), LABELS, 2, 1).guarantee(
            Facts(dp.Domain(c=dp.Category("a", "b"), y=dp.Category(0, 1)), Neighbours("replace-one"), 5)
        )
    with pytest.raises(dp.errors.ParameterError, match="not a declared level"):
        FaceByFace(names(2), Labels("y", 7), 2, 1).guarantee(facts)
    with pytest.raises(OutOfRange):
        FaceByFace(names(2), LABELS, 2, Fraction(1, 2**300)).guarantee(facts)
    with pytest.raises(OutOfRange):
        CountedFaces(names(2), LABELS, 2**60, 1).guarantee(facts)
    with pytest.raises(dp.errors.ParameterError, match="62 bits"):
        FaceByFace(names(2), LABELS, 2**60, 1).guarantee(facts)
    with pytest.raises(dp.errors.ParameterError, match="one or two columns, found 3"):
        AllBoxes(names(3), LABELS, 4, 1)
    with pytest.raises(dp.errors.ParameterError, match=r"more than 2\*\*25"):
        AllBoxes(names(2), LABELS, 200, 1).guarantee(Facts(domain(2, 500), Neighbours("replace-one"), 100))
    with pytest.raises(dp.errors.ParameterError, match="share of the rows"):
        greedy_boxes.methods(names(2), LABELS, facts=facts, beta=Fraction(1, 20), funds=None, negatives=2)


def test_mechanisms_are_their_records():
    known = {each.NAME: each for each in (FaceByFace, CountedFaces, AllBoxes, Labels)}
    for mechanism in (
        FaceByFace(names(2), LABELS, "5/2", 0.1),
        CountedFaces(names(2), LABELS, 30, 0.1),
        AllBoxes(names(2), LABELS, 9, 0.1),
    ):
        assert revive(record(mechanism), known) == mechanism


# --- the theorem: nearly best faces make a nearly right box -----------------------------------------------------------


class Adversary(SeededRng):
    """Picks any position whose cost is at most `slack` above the least; remembers the most that it took."""

    def __init__(self, seed, slack):
        super().__init__(seed)
        self.slack, self.taken, self.mind = slack, 0, np.random.default_rng(seed)

    def select(self, scores, rate, counts=None):
        gaps = max(scores) - np.asarray(scores)
        allowed = np.flatnonzero((gaps <= self.slack) & (np.asarray(counts) > 0))
        worst = allowed[gaps[allowed] == gaps[allowed].max()]
        found = int(self.mind.choice(worst if self.mind.random() < 0.5 else allowed))
        self.taken = max(self.taken, int(gaps[found]))
        return found


def near_optimal_run(seed, noise):
    """A run on random rows with an adversary; (what is wrong, what the theorem allows), (FP, FN) each."""
    mind = np.random.default_rng(seed)
    d, g, n = int(mind.integers(1, 4)), int(mind.integers(2, 7)), int(mind.integers(5, 40))
    codes = mind.integers(0, g, (n, d))
    ends = np.sort(mind.integers(0, g, (2, d)), axis=0)
    truth = ((codes >= ends[0]) & (codes <= ends[1])).all(axis=1)
    positive = truth ^ (mind.random(n) < noise)
    weight = Fraction(int(mind.integers(2, 9)), 2)
    adversary = Adversary(seed, int(mind.integers(0, 8)))
    low, high = FaceByFace(names(d), LABELS, weight, 1).run(table(codes, positive, g), adversary)
    learned = ((codes >= low) & (codes <= high)).all(axis=1)
    x, negatives = Fraction(adversary.taken, weight.numerator), int((~positive).sum())
    kept, cut = int((truth & ~positive).sum()), int((~truth & positive).sum())  # FP*, FN* of the planted box
    allowed = (
        kept + 2 * d * weight * x + d * weight * cut,
        cut + 2 * d * x + negatives / weight,
    )
    return (int((learned & ~positive).sum()), int((~learned & positive).sum())), allowed, 2 * d * x + cut


@pytest.mark.parametrize(
    ("noise", "runs"),
    [
        (0.0, 700),
        (0.15, 700),
        pytest.param(0.0, 5_000, marks=pytest.mark.slow),
        pytest.param(0.15, 5_000, marks=pytest.mark.slow),
    ],
)
def test_false_positives_and_negatives_stay_within_the_theorem_on_near_optimal_runs(noise, runs):
    nearest, beyond = [0.0, 0.0], 0
    for seed in range(runs):
        found, allowed, without_negatives = near_optimal_run(seed, noise)
        for side in (0, 1):
            assert found[side] <= allowed[side]
            if allowed[side]:
                nearest[side] = max(nearest[side], float(found[side] / allowed[side]))
        beyond += found[1] > without_negatives
    assert min(nearest) > 0.6  # the bounds are not idle
    assert beyond > 0  # and the term (negatives) / W is needed


# --- promises ---------------------------------------------------------------------------------------------------------


def facts_of(d, bits, relation="replace-one", size=None):
    return Facts(domain(d, 2**bits), Neighbours(relation), size)


def method_of(module, d, bits, relation="replace-one", epsilon=1, delta="1e-6", name=None, **more):
    facts = facts_of(d, bits, relation)
    funds = Funds.of(Budget(epsilon, delta))
    listed = module.methods(names(d), LABELS, facts=facts, beta=Fraction(1, 20), funds=funds, **more)
    (found,) = [each for each in listed if name in (None, each.name)]
    assert isinstance(found, Method)
    return found, facts


def test_the_size_of_face_by_face_is_the_formula():
    found, _ = method_of(greedy_boxes, 2, 32, name="faces-proven")
    log, face = math.log(2 * 2 * (2**32 + 1) / 0.05), 1 / 4  # pure: a quarter of epsilon for each face
    assert found.needed(0.1) == pytest.approx(8 * 2 * log * 1.1 / (face * 0.01), rel=1e-4)
    added, _ = method_of(greedy_boxes, 2, 32, "add-remove", name="faces-proven")
    weight = (1 + math.sqrt(1.1)) / 0.1
    assert added.needed(0.1) == pytest.approx(4 * log / face * (weight + 1) / (0.1 - 1 / weight), rel=1e-4)
    half, _ = method_of(greedy_boxes, 2, 32, negatives=0.5, name="faces-proven")
    assert half.needed(0.1) == pytest.approx(8 * 2 * log * 0.6 / (face * 0.01), rel=1e-4)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_size_falls_with_alpha_and_is_that_of_the_mechanism_it_offers(relation):
    found, facts = method_of(greedy_boxes, 3, 10, relation, name="faces-proven")
    alphas = np.linspace(0.004, 0.5, 200)
    sizes = [found.needed(alpha) for alpha in alphas]
    assert sizes == sorted(sizes, reverse=True)
    for alpha in (0.1, 0.03):
        mechanism, n = found.mechanism(alpha), found.needed(alpha)
        assert mechanism.guarantee(facts).within(Budget(1, "1e-6"))
        weight, x = float(mechanism.weight), math.log(2 * 3 * 1025 / 0.05) / float(mechanism.rate)
        wrong = 6 * x * (weight + 1) + n / weight
        assert wrong <= alpha * n
        assert wrong > 0.999 * alpha * n


def test_faces_promises_nothing_and_spends_all_whatever_the_size():
    found, facts = method_of(greedy_boxes, 3, 10, name="faces")
    assert not found.proven
    for size in (1000, 10**9):
        offer = found.offer(size)
        assert isinstance(offer.mechanism, CountedFaces)
        assert offer.promise.bound is None
        assert "nothing is proved" in str(offer.promise)
    price = found.mechanism(0.5).guarantee(facts)
    assert price.within(Budget(1, "1e-6"))
    assert price.epsilon("1e-6") > 0.999


def test_what_face_by_face_proves_is_offered_under_its_own_name():
    found, _ = method_of(greedy_boxes, 3, 10, name="faces-proven")
    many = found.offer(found.needed(0.1))
    assert isinstance(many.mechanism, FaceByFace)
    assert many.promise.bound == pytest.approx(0.1, rel=0.002)


@pytest.mark.parametrize(("d", "bits", "rows"), [(5, 32, 4.5e3), (10, 32, 8.9e3), (30, 32, 2.7e4), (100, 32, 8.9e4)])
def test_all_boxes_of_many_columns_are_a_row_of_the_plan_only(d, bits, rows):
    found, _ = method_of(all_boxes, d, bits, delta=0)
    assert found.needed(0.1) == pytest.approx(rows, rel=0.03)  # g (g + 1) / 2 sides of a column, not g^2
    log = d * math.log(2**bits * (2**bits + 1) // 2) - math.log(0.05)
    assert found.needed(0.1) == pytest.approx(log / 0.05, rel=1e-3)
    with pytest.raises(dp.errors.ParameterError, match=r"at most two columns, found .* it would list about"):
        found.mechanism(0.1)


def test_all_boxes_of_a_small_grid_are_promised_for_the_grid_itself():
    found, facts = method_of(all_boxes, 2, 5)
    assert found.claim.best_of == "all boxes of the declared grid"
    count = (32 * 33 // 2) ** 2 + 1
    assert found.needed(0.1) == math.ceil((math.log(count) - math.log(0.05)) / (0.5 * 0.1) * (1 + 1e-9))
    assert found.mechanism(0.1).guarantee(facts).within(Budget(1, "1e-6"))
    coarse, _ = method_of(all_boxes, 2, 20)
    assert coarse.claim.best_of == "all boxes of a grid of 64 cells in each column"


# --- all boxes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", [2**22, 3])
@pytest.mark.parametrize(("d", "g", "cuts"), [(1, 5, 9), (2, 3, 9), (2, 5, 2)])
def test_the_law_over_all_boxes_is_exponential_in_the_mistakes(d, g, cuts, merge, monkeypatch):
    monkeypatch.setattr(all_boxes, "_MERGE", merge)
    rng = np.random.default_rng(10)
    rows = [{**{f"x{i}": int(rng.integers(g)) for i in range(d)}, "y": int(rng.integers(2))} for _ in range(9)]
    setting = Setting(domain(d, g), Neighbours("replace-one"))
    found = law(AllBoxes(names(d), LABELS, cuts, Fraction(1, 3)), rows, setting)
    data, starts = setting.table(rows), all_boxes.cell_starts(g, cuts).tolist()
    sides = [(a, b - 1) for a, b in itertools.combinations(starts, 2)]
    boxes = [tuple(zip(*box, strict=True)) for box in itertools.product(sides, repeat=d)]
    boxes.append(((1,) * d, (0,) * d))
    weights = {box: math.exp(-mistakes(BoxRule(names(d), *box), data, LABELS) / 3) for box in boxes}
    assert len(weights) == all_boxes.boxes([len(starts) - 1] * d)
    total = math.fsum(weights.values())
    assert found.mass == pytest.approx({box: weight / total for box, weight in weights.items()}, rel=1e-9)


def test_all_boxes_of_two_columns_of_a_hundred_cells_fit_in_memory():
    codes, positive = planted(np.random.default_rng(11), d=2, g=100, n=3000, low=20, high=70)
    rows = table(codes, positive, 100)
    mechanism = AllBoxes(names(2), LABELS, 100, 1)
    mechanism.guarantee(rows.facts)
    assert mistakes(BoxRule(names(2), *mechanism.run(rows, SeededRng(1))), rows, LABELS) < 60


# --- certificates -----------------------------------------------------------------------------------------------------


def test_noise_of_epsilon_a_twentieth_hides_78_rows_at_one_in_a_hundred():
    assert hidden_mistakes(Fraction(20), "0.01") == 78


@pytest.mark.parametrize("scale", ["1/5", "1", "7.5", "20", "1000"])
@pytest.mark.parametrize("beta", ["0.6", "0.5", "0.05", "1e-9"])
def test_what_the_noise_hides_is_the_least_number_with_the_wanted_tail(scale, beta):
    m, q = hidden_mistakes(Fraction(scale), beta), math.exp(-1 / Fraction(scale))
    assert q ** (m + 1) / (1 + q) <= float(beta)
    assert m == 0 or q**m / (1 + q) > float(beta)


def ledger_of(rows, epsilon=5):
    return dp.Ledger.in_memory(Budget(epsilon), rows.identity, testing=True)


def test_a_certificate_bounds_the_mistakes_and_is_charged_epsilon():
    codes, positive = planted(np.random.default_rng(12), d=1, n=1000)
    rows = table(codes, positive, 30)
    rule, ledger = BoxRule(("x0",), (5,), (20,)), ledger_of(rows)
    got = certify(rule, LABELS, rows, epsilon="0.05", beta="0.01", ledger=ledger, rng=SeededRng(1))
    assert got.rows == max(0, got.mistakes + 78)
    assert got.error == min(1.0, got.rows / 1000)
    assert got.guarantee.pure == Fraction(1, 20)
    charged = next(each for each in ledger.entries() if each["seq"] == got.entry)
    assert (charged["kind"], charged["memo"]) == ("charge", "certificate")
    assert "4.95 of 5 left" in str(ledger.remaining())
    assert str(got) == f"wrong on at most {got.rows:,} rows ({got.error:.2%} of all) with probability 0.99"


def test_a_certificate_counts_persons_of_several_rows_and_hides_a_private_size():
    rule = BoxRule(("x0",), (0,), (4,))
    columns = {"x0": [1, 2, 7, 8], "y": [1, 1, 1, 0], "who": [1, 1, 2, 3]}
    for relation in RELATIONS:
        rows = dp.Table(columns, domain(1, 10), neighbours=relation, unit="who", rows_per_unit=2)
        got = certify(rule, LABELS, rows, epsilon=1, beta="0.01", ledger=ledger_of(rows), rng=SeededRng(1))
        assert got.guarantee.pure == 1
        assert got.rows == max(0, got.mistakes + hidden_mistakes(Fraction(2), "0.01"))
        assert (got.error is None) == (relation == "add-remove")
        assert ("of all" in str(got)) == (relation == "replace-one")


def test_a_wrong_rule_or_beta_costs_nothing():
    rows = table([[1], [2]], [0, 1], 5)
    ledger = ledger_of(rows)
    before = ledger.remaining()
    for rule, beta in ((BoxRule(("z",), (0,), (1,)), "0.1"), (BoxRule(("x0",), (0,), (1,)), 1)):
        with pytest.raises(dp.DiscreetError):
            certify(rule, LABELS, rows, epsilon=1, beta=beta, ledger=ledger)
    assert ledger.remaining() == before
    assert mistake_bound.noisy_mistakes(BoxRule(("x0",), (0,), (1,)), LABELS, epsilon=1, facts=rows.facts).scale == 1


def test_a_real_run_draws_from_the_operating_system():
    codes, positive = planted(np.random.default_rng(13), d=2, n=200)
    drawn = {
        tuple(map(tuple, CountedFaces(names(2), LABELS, 5, "0.05").run(table(codes, positive, 30), Rng())))
        for _ in range(20)
    }
    assert len(drawn) > 5

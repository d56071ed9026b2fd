"""Learning rules: lecture 12's learners, each a mechanism with its price and the number of rows that it needs.

    rules              Labels, conditions (Literals, Thresholds), rules (Conjunction, BoxRule, Where, FunctionRule) and
                       Mistakes, the query that counts what a rule labels wrong
    finite             the exponential mechanism over any finite class, and sample sizes
    interior           interior points of a column: MinRank, BinarySearch, PrefixSearch, PairPrefix
    boxes              boxes from interior points of slices of the positive rows; Reorder-Slice-Compute
    greedy_boxes       boxes face by face, from both classes
    all_boxes          the exponential mechanism over all boxes of a coarse grid
    conjunctions       conjunctions by noisy counts of the literals that positive rows falsify
    greedy             conjunctions of any conditions, one condition at a time
    hazard_lemma       the price of the self-deleting greedy, which does not grow with its rounds
    all_conjunctions   the exponential mechanism over all conjunctions of at most k literals
    learners           every method for a problem, and which one is taken by default
    mistake_bound      a paid bound on the mistakes of any rule
    rank_bounds        bounds for a column that has none

Every learner's module ends with `methods`, which lists its algorithms for a problem and an amount of funds. Nothing
here imports a sibling such as `discreet.erm`. Other packages import from here, not from the modules.
"""

from discreet.pac.all_boxes import AllBoxes
from discreet.pac.all_conjunctions import PROGRESS, AllConjunctions, Estimate
from discreet.pac.boxes import ReorderSlice, SlicedBox, count_positives, empty_box
from discreet.pac.conjunctions import GaussianCounts, LaplaceCounts, NoisyCounts
from discreet.pac.finite import FiniteClass, Predictions
from discreet.pac.finite import methods as finite_methods
from discreet.pac.greedy import Falsified, GreedySelection, SelfDeleting, WeighedGreedy
from discreet.pac.greedy_boxes import EIGHTHS, FIRST, Cost, CountedFaces, FaceByFace
from discreet.pac.interior import BinarySearch, InteriorPoint, MinRank, PairPrefix, PrefixSearch
from discreet.pac.interior import methods as interior_methods
from discreet.pac.learners import MOST_BITS, box_methods, conjunction_methods, rule_methods, sample_size
from discreet.pac.mistake_bound import MistakeBound, bound_in_words, bound_of, certify, noisy_mistakes
from discreet.pac.rank_bounds import RankBounds, declaration
from discreet.pac.rules import (
    CUTS,
    BoxRule,
    Conjunction,
    FunctionRule,
    Labels,
    Literals,
    Mistakes,
    Rule,
    Thresholds,
    Where,
    interval_in_words,
    ordered,
)

"""Answering: any number of adaptive questions from one budget, workloads, and synthetic rows (lecture 13).

A question is a linear function of the rows: a count, a count by groups, a sum. The same small tensor over the columns
that it mentions, its *scope*, is applied to the rows (the truth, inside `release`) and to a public guess of the table,
the *hypothesis* (`discreet.hypothesis`). Everything here but the releases themselves is a function of what was
released: the ledger's entries are the state, and a session that was killed goes on where it stopped.

    linear_query.py       a query as a tensor over its scope; when two queries mean the same
    answer.py             an answer, assembled from the linear queries that a question in SQL is made of
    answer_json.py        an answer as JSON, and back
    quantiles.py          quantiles of a column, in all or in groups
    measurement.py        a noisy answer that was released, and what it proves about every other answer
    transcript.py         what the ledger says was measured, asked and answered
    calibration.py        what can be bought, with just enough noise, and its price
    adaptive.py           the default: from what was measured, else rent a count, or buy a marginal or a threshold;
                          quantiles of a column
    multiplicative_weights.py   the lecture's algorithm, and the same with better constants, both with a bound on the
                          updates; multiplicative_weights_parameters.py has their parameters
    workload.py           queries that are known in advance: one release answers them all, by noisy marginals, by
                          residuals, the least noise for marginals (residual_marginals.py), or by averaged
                          multiplicative weights (averaged_weights.py)
    epochs.py             questions about several epochs of a table that grows: answers are added up
    chosen_tables.py      what to measure for synthetic rows, chosen privately
    generalization.py     from the rows to the population they were drawn from
"""

from discreet.answering.adaptive import SOURCES, AdaptiveAnswers, Inquiry
from discreet.answering.answer import Answer, Assembly, asked_directly, frame_of
from discreet.answering.answer_json import answer_from, answer_record, cost_from, cost_record
from discreet.answering.averaged_weights import MAX_CELLS as MAX_AVERAGED
from discreet.answering.averaged_weights import AveragedWeights
from discreet.answering.calibration import Calibration, SessionTerms
from discreet.answering.chosen_tables import ChosenTables
from discreet.answering.epochs import EpochAnswers
from discreet.answering.generalization import FAILURE, Disclosures, drift
from discreet.answering.linear_query import meaning
from discreet.answering.measurement import noise_bound
from discreet.answering.multiplicative_weights import ClassicAnswers
from discreet.answering.multiplicative_weights_parameters import (
    BETTER,
    LECTURE,
    Classic,
    CountingProblem,
    better_for,
    least_alpha,
    lecture_for,
    needed,
    program,
)
from discreet.answering.quantiles import Ranked, drawn, needed_draws
from discreet.answering.residual_marginals import ResidualMarginals
from discreet.answering.transcript import SEVERAL, Transcript
from discreet.answering.unknown_keys import KeysPrice, ask_unknown_keys, keys_price, stable_keys
from discreet.answering.workload import Marginals
from discreet.hypothesis import Hypothesis

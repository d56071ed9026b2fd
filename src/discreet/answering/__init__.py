"""Private multiplicative weights: any number of adaptive questions from one budget, and synthetic rows (lecture 13).

A question is a linear function of the rows: a count, a count by groups, a sum. The same small tensor over the columns
that it mentions, its *scope*, is applied to the rows (the truth, inside `release`) and to a public guess of the table,
the *hypothesis*. Everything here but the releases themselves is a function of what was released: the ledger's entries
are the state, and a session that was killed goes on where it stopped.

    questions.py    a query as a tensor over its scope; when two questions mean the same
    measured.py     a noisy answer that was released, and what it proves about every other answer
    transcript.py   what the ledger says was measured, asked and answered; memory.py indexes it
    hypothesis.py   the public guess: dense (dense.py, tensor.py), or factored over the scopes that were measured
                    (factored.py, junction.py); axes.py is what both share
    fit.py          the maximum-entropy hypothesis that agrees with everything measured; expected.py is its arithmetic
    shop.py         what can be bought, with just enough noise, and its price
    answering.py    the default: answer from what was measured, else rent a count, or buy a marginal or a threshold
    classic.py      the lecture's algorithm, and the same with better constants, both with a bound on the updates;
                    programs.py has their parameters
    workload.py     questions that are known beforehand: one release answers them all, noisy marginals (marginals.py,
                    reading.py) or averaged multiplicative weights (mwem.py)
    quantiles.py    quantiles of a column
    population.py   from the rows to the population they were drawn from; heard.py reads the ledger for it
    plans.py        what a budget buys, before anything is asked
    sql/            the language; reply.py puts its aggregates together from linear questions
"""

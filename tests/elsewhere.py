"""A dataset that does what every cluster does: it copies the function, runs a copy on each part, and adds up.

`Elsewhere` pickles whatever goes through a door, runs a fresh copy of it for every batch, in another order than that of
the rows, some of them twice, and keeps what one copy returned. A function that counts on its caller's variables, on the
order, or on being called once finds nothing here; one that holds rows cannot be pickled at all.
"""

from __future__ import annotations

import itertools
import pickle
import random

import cloudpickle

import discreet as dp
from discreet.data import Batch, gathered_of, row_function
from discreet.data.rows import total_of
from discreet.data.slices import slices_of


class Elsewhere(dp.Table):
    """The rows of a Table, cut into parts of `part` rows; sums are taken by copies.

    values  True: functions must be values, pickled by the standard library; False: a user's own function may be any
    """

    __slots__ = ("_part", "_values")

    def __init__(self, rows, domain, *, part=77, values=True, **more):
        self._part, self._values = part, values
        super().__init__(rows, domain, **more)

    def _parts(self):
        """The batches, of whole persons, in another order."""
        found, columns, rows = [], self._codes, self._rows
        ends = [*range(0, rows, self._part), rows]
        for start, stop in itertools.pairwise(ends):
            while self._persons is not None and 0 < stop < rows and self._persons[stop] == self._persons[stop - 1]:
                stop += 1
            while self._persons is not None and 0 < start < rows and self._persons[start] == self._persons[start - 1]:
                start += 1
            if start < stop:
                found.append(self._batch(columns, slice(start, stop)))
        random.Random(len(found)).shuffle(found)
        return found or [Batch.empty(self.facts.domain)]

    def _batch(self, columns, here):
        persons = None if self._persons is None else (lambda: self._persons[here])
        texts = self._texts.__getitem__
        load = {name: codes[here] for name, codes in columns.items()}.__getitem__
        return Batch(self.facts.domain, here.stop - here.start, load, persons=persons, texts=texts)

    def _mapped(self, function):
        shipped = (pickle if self._values else cloudpickle).dumps(function)
        results = []
        for place, batch in enumerate(self._parts()):
            found = pickle.loads(shipped)(batch)
            if place % 3 == 0:  # a speculative or repeated task: its result is not needed
                pickle.loads(shipped)(batch)
            results.append(pickle.loads(pickle.dumps(found)))
        return results

    def exact_sum(self, query):
        return total_of(self._mapped(row_function(query)))

    def exact_gather(self, take):
        return gathered_of(self._mapped(take))

    def exact_slices(self, slices, *, where=None, disjoint):
        copied = pickle.loads(pickle.dumps((list(slices), where)))
        return slices_of(self._parts, copied[0], domain=self.facts.domain, where=copied[1], disjoint=disjoint)

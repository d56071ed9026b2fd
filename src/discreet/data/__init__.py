"""Datasets: private rows that answer by exact integers, and only through two doors.

    Table         rows in memory, from pandas, polars, pyarrow, a dict of sequences, or a .parquet or .csv file
    ParquetTable  a Parquet file larger than memory, read again for every sum
    Matrix        a feature matrix and labels: what fit(X, y) makes
    BitMatrix     booleans, packed, and labels; Integers: whole numbers of any length

All of them encode their rows by the same rules and sum and slice by the same code, so they give the same integers. What
is wrong with a row is said at ingest, without quoting it (a ParquetTable reads its file once for that, and encodes it
again for every sum; a file that changed meanwhile is refused); after ingest no row can cause an error. Rows live in
private attributes only; a dataset prints its declaration, never its rows, and refuses to be pickled or copied.

    rows.py      Facts, Batch and the two doors        encoding.py   values to codes
    table.py     Table, Matrix                         columns.py    frames to typed values (narwhals)
    parquet.py   ParquetTable                          files.py      files to frames (duckdb, pyarrow)
    persons.py   which rows of a person are kept       grid.py       features to integer vectors
    ingest.py    what the datasets share at ingest     packed.py     BitMatrix, Integers
    distinct.py  DistinctRows, the same sums from the distinct rows of a table
"""

from discreet.data.packed import BitMatrix, Integers
from discreet.data.parquet import ParquetTable
from discreet.data.rows import (
    MAX_ROWS,
    Batch,
    Codes,
    Dataset,
    Facts,
    Filter,
    Identity,
    IntArray,
    Key,
    Slice,
    Summed,
)
from discreet.data.table import Matrix, Table

__all__ = [
    "MAX_ROWS",
    "Batch",
    "BitMatrix",
    "Codes",
    "Dataset",
    "Facts",
    "Filter",
    "Identity",
    "IntArray",
    "Integers",
    "Key",
    "Matrix",
    "ParquetTable",
    "Slice",
    "Summed",
    "Table",
]

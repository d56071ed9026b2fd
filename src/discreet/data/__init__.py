"""Datasets: private rows that answer by exact integers, and only through two doors.

    Table         rows in memory, from pandas, polars, pyarrow, a dict of sequences, or a .parquet or .csv file
    ParquetTable  a Parquet file larger than memory, read again for every sum
    Matrix        a feature matrix and labels: what fit(X, y) makes
    BitMatrix     booleans, packed, and labels; Integers: whole numbers of any length

All of them encode their rows by the same rules and sum and slice by the same code, so they give the same integers. What
is wrong with a row is said at ingest, without quoting it (a ParquetTable reads its file once for that, and encodes it
again for every sum; a file that changed meanwhile is refused); after ingest no row can cause an error. Rows live in
private attributes only; a dataset prints its declaration, never its rows, and refuses to be pickled or copied.

    domain.py    Domain and the kinds of columns
    rows.py      Facts, Batch and the two doors        encoding.py   values to codes
    table.py     Table, Matrix                         columns.py    frames to typed values (narwhals)
    parquet.py   ParquetTable                          files.py      files to frames (duckdb, pyarrow)
    persons.py   which rows of a person are kept       grid.py       features to integer vectors
    ingest.py    what the datasets share at ingest     matrix.py     BitMatrix, Integers
    distinct.py  DistinctRows, the same sums from the distinct rows of a table

Other packages import from here, not from the modules; the array types of `discreet.arrays` are here too.
"""

from discreet.arrays import WORD, Codes, Floats, IntArray, Ints, Mask, Words, common_ones, packed, unpacked
from discreet.data.columns import Frame, quietly, read
from discreet.data.distinct import DistinctRows
from discreet.data.domain import (
    MAX_CODES,
    AnyNumber,
    Bits,
    Category,
    Column,
    Domain,
    Level,
    Number,
    Vector,
    Whole,
    common_unit,
    flag,
    near_misses,
    spell,
)
from discreet.data.encoding import encode
from discreet.data.files import Scan, parquet_types, write_parquet
from discreet.data.grid import grid_rows, shrunk
from discreet.data.ingest import FIRST_EDITION, checked_edition, require_columns
from discreet.data.matrix import BitMatrix, Integers
from discreet.data.parquet import ParquetTable
from discreet.data.rows import (
    MAX_ROWS,
    Batch,
    Dataset,
    Facts,
    Filter,
    Identity,
    Key,
    Slice,
    Summed,
    refuse_to_leave,
    sum_of,
)
from discreet.data.slices import slices_of
from discreet.data.table import Matrix, Table

__all__ = [
    "FIRST_EDITION",
    "MAX_CODES",
    "MAX_ROWS",
    "WORD",
    "AnyNumber",
    "Batch",
    "BitMatrix",
    "Bits",
    "Category",
    "Codes",
    "Column",
    "Dataset",
    "DistinctRows",
    "Domain",
    "Facts",
    "Filter",
    "Floats",
    "Frame",
    "Identity",
    "IntArray",
    "Integers",
    "Ints",
    "Key",
    "Level",
    "Mask",
    "Matrix",
    "Number",
    "ParquetTable",
    "Scan",
    "Slice",
    "Summed",
    "Table",
    "Vector",
    "Whole",
    "Words",
    "checked_edition",
    "common_ones",
    "common_unit",
    "encode",
    "flag",
    "grid_rows",
    "near_misses",
    "packed",
    "parquet_types",
    "quietly",
    "read",
    "refuse_to_leave",
    "require_columns",
    "shrunk",
    "slices_of",
    "spell",
    "sum_of",
    "unpacked",
    "write_parquet",
]

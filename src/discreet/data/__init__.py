"""Datasets: private rows that answer by exact integers, and only through three doors.

    Table         rows in memory, from pandas, polars, pyarrow, a dict of sequences, or a .parquet or .csv file
    ParquetTable  a Parquet file larger than memory, read again for every sum
    FilesTable    many Parquet files, row groups as tasks of an engine: processes, or a Spark cluster
    SparkTable    any Spark DataFrame
    Database      several Tables about the same persons; its views are datasets
    GrowingTable  rows that arrive epoch by epoch, of new persons or of persons who return
    Matrix        a feature matrix and labels: what fit(X, y) makes
    BitMatrix     booleans, packed, and labels; Integers: whole numbers of any length

All of them encode their rows by the same rules and sum and slice by the same code, so they give the same integers. What
is wrong with a row is said at ingest, without quoting it (a ParquetTable reads its file once for that, and encodes it
again for every sum; a file that changed meanwhile is refused); after ingest no row can cause an error. Rows live in
private attributes only; a dataset prints its declaration, never its rows, and refuses to be pickled or copied.

    domain.py    Domain and the kinds of columns         rows.py      Facts, Batch and the doors
    needs.py     what a mechanism needs, what a dataset offers
    calendar.py  instants, periods and parts of dates    database.py  several tables about the same persons
    encoding.py  frames to values to codes (narwhals)    files.py     files to frames (duckdb, pyarrow)
    ingest.py    what the datasets share; persons        slices.py    the door of the most extreme rows
    table.py     Table                                   matrix.py    Matrix, BitMatrix, Integers
    keys.py      rows as one number each                 distinct.py  DistinctRows: sums from the distinct rows
    far.py       the doors over an engine                engines.py   what runs functions on parts: Processes
    files_table.py  FilesTable, ParquetTable, staging    spark.py     Spark as an engine, SparkTable
    growing.py   GrowingTable, its epochs

Other packages import from here, not from the modules; but `sql_table` brings a parser, and is imported only where it is
needed. The array types of `discreet.arrays` are here too.
"""

from discreet.arrays import WORD, Codes, Floats, IntArray, Ints, Mask, Words, common_ones, packed, unpacked
from discreet.data.addresses import POSTGRES, DatabaseRows, StoredFiles, is_address, require_no_password
from discreet.data.calendar import iso_text
from discreet.data.database import JOIN, LEFT, Database, TableFacts, View, left_columns, priced_relation
from discreet.data.declaration import column_record, people, plain
from discreet.data.declaration import sheet as declaration_sheet
from discreet.data.distinct import DistinctRows, RowsOf
from discreet.data.domain import (
    AnyNumber,
    Bits,
    Category,
    Column,
    Date,
    Domain,
    Level,
    Number,
    Text,
    Timestamp,
    Vector,
    Whole,
    common_unit,
    decimal,
    in_words,
    near_misses,
    spell,
)
from discreet.data.encoding import Frame, encode, grid_rows, read, shrunk
from discreet.data.engines import Engine, Processes
from discreet.data.files import Scan, parquet_types, resolved, write_parquet
from discreet.data.files_table import FilesTable, ParquetTable
from discreet.data.growing import EpochsView, GrowingTable, epoch_code, epoch_column, epoch_label
from discreet.data.ingest import FIRST_EDITION, checked_edition, require_columns
from discreet.data.matrix import BitMatrix, Integers, Matrix
from discreet.data.needs import EVERYTHING, Needs, Offers, needs_of
from discreet.data.rows import (
    MAX_ROWS,
    Batch,
    Dataset,
    Facts,
    Filter,
    Growth,
    Identity,
    Key,
    Slice,
    Summand,
    Summed,
    Texts,
    gathered_of,
    is_dataset,
    refuse_to_leave,
    row_function,
    snapshot_of,
    sum_of,
)
from discreet.data.spark import Spark, SparkTable, stored_frame, this_session
from discreet.data.table import Table
from discreet.data.tally import (
    CodeOf,
    Condition,
    Every,
    Other,
    RowInteger,
    Some,
    Switch,
    Tallied,
    Tally,
    TextOf,
    WholeNumber,
    Within,
    added,
    multiplied,
)

"""Run by test_places.py in a process of its own: every cell of the matrix over Spark Connect.

python tests/far/connect.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests import matrix
from tests.far.test_places import CONNECT, places


def main(folder: str) -> None:
    session = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").remote("local[2]").getOrCreate()
    assert "connect" in type(session).__module__
    cells = matrix.Cells(Path(folder), places(session, 2))
    for row in CONNECT:
        cells.check(row)
    print(f"{len(CONNECT)} rows of the matrix are equal over Spark Connect")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])

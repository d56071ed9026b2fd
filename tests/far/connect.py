"""Run by test_spark.py in a process of its own: sums over Spark Connect are those of the table in memory."""

from __future__ import annotations

import sys

from pyarrow import parquet
from pyspark.sql import SparkSession

import discreet as dp
from tests.far import test_spark as here


def main(folder: str) -> None:
    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").remote("local[2]")
    session = builder.getOrCreate()
    assert "connect" in type(session).__module__
    memory = dp.Table(parquet.read_table(folder), here.DOMAIN, name="people")
    tables = [
        dp.FilesTable(folder, here.DOMAIN, run=dp.Spark(session), name="people"),
        dp.SparkTable(session.read.parquet(folder), here.DOMAIN, name="people"),
    ]
    for table in tables:
        for query in here.QUERIES:
            found, expected = table.exact_sum(query), memory.exact_sum(query)
            assert found == expected if isinstance(found, dict) else found.tolist() == expected.tolist()
    more = {"unit": "person", "rows_per_unit": 3, "name": "people"}
    kept = dp.SparkTable(session.read.parquet(folder), here.DOMAIN, **more)
    expected = dp.Table(parquet.read_table(folder), here.DOMAIN, **more)
    assert kept.facts == expected.facts
    query = dp.Histogram(("town", "ill"))
    assert kept.exact_sum(query).tolist() == expected.exact_sum(query).tolist()
    print("equal over Spark Connect")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])

"""Run by test_spark.py in a process of its own: a table of Hive and a view over it, with a metastore in FOLDER.

python tests/far/hive.py FILES FOLDER
"""

from __future__ import annotations

import sys

from pyarrow import parquet
from pyspark.sql import SparkSession

import discreet as dp
from discreet.rng import SeededRng
from tests.far import test_spark as here


def main(files: str, folder: str) -> None:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.sql.hive.convertMetastoreParquet": "false",  # rows come through Hive's own reader
    }
    builder = SparkSession.builder.master("local[2]").enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    assert session.conf.get("spark.sql.catalogImplementation") == "hive"
    session.read.parquet(files).createOrReplaceTempView("source")
    names = ", ".join(f"`{name}`" for name in (*here.DOMAIN.names, "person") if name != "town")
    session.sql(f"CREATE TABLE people STORED AS PARQUET AS SELECT {names}, town FROM source")
    session.sql("CREATE VIEW women AS SELECT * FROM people WHERE old")
    assert "Hive" in str(session.sql("DESCRIBE EXTENDED people").where("col_name = 'Provider'").collect()).title()
    rows = parquet.read_table(files)
    some = rows.filter(rows["old"])
    for name, found in (("people", rows), ("women", some)):
        for more in ({}, {"unit": "person", "rows_per_unit": 3}):
            memory = dp.Table(found, here.DOMAIN, name="people", **more)
            table = dp.SparkTable(session.table(name), here.DOMAIN, name="people", **more)
            assert table.facts == memory.facts
            for query in here.QUERIES:
                summed, expected = table.exact_sum(query), memory.exact_sum(query)
                assert summed == expected if isinstance(summed, dict) else summed.tolist() == expected.tolist()
            mechanism = dp.Laplace(dp.Histogram(("age", "town")), 3)
            released = [
                dp.release(mechanism, each, ledger=here.fresh(each), rng=SeededRng(2)).value.tolist()
                for each in (memory, table)
            ]
            assert released[0] == released[1]
            table.close()
    print("equal over Hive")
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

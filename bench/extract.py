"""Make the bundled tables of people: src/discreet/example/{people,years}.parquet, from the file that statsmodels ships.

.venv-aim/bin/python bench/extract.py     (an environment with statsmodels, pandas and pyarrow)
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import statsmodels

ROOT = Path(__file__).parents[1]
SOURCE = Path(statsmodels.__file__).parent / "datasets" / "randhie" / "src" / "randhie.csv"


def years() -> pd.DataFrame:
    """Every year of every person, with columns that speak for themselves; numbers are cut to whole ones."""
    raw = pd.read_csv(SOURCE)
    health = pd.Series("excellent", index=raw.index)
    for column, word in (("hlthg", "good"), ("hlthf", "fair"), ("hlthp", "poor")):
        health = health.mask(raw[column] == 1, word)
    found = pd.DataFrame(
        {
            "person": raw["zper"].astype("int32"),
            "year": raw["year"].astype("int8"),
            "site": raw["site"].astype("int8"),
            "coinsurance": raw["coins"].astype("int8"),
            "age": raw["xage"].astype("int8"),
            "sex": raw["female"].map({0: "M", 1: "F"}),
            "income": raw["income"].astype("int32"),
            "schooling": raw["educdec"].floordiv(1).astype("Int8"),
            "family": raw["num"].astype("int8"),
            "health": health,
            "limited": (raw["physlm"] >= 0.5).map({False: "no", True: "yes"}),
            "diseases": raw["disea"].astype("int8"),
            "visits": raw["mdvis"].astype("int8"),
            "admissions": raw["totadm"].astype("int8"),
            "spending": raw["meddol"].astype("int32"),
        }
    )
    return found.sort_values(["person", "year"], ignore_index=True)


def main() -> None:
    every = years()
    people = every.drop_duplicates("person").drop(columns=["person", "year"])
    folder = ROOT / "src" / "discreet" / "example"
    for name, frame in (("people", people), ("years", every)):
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd", compression_level=19)
        print(name, frame.shape, (folder / f"{name}.parquet").stat().st_size, "bytes")


if __name__ == "__main__":
    main()

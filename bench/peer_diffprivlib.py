"""diffprivlib at work, under its own interpreter: jobs in, scores and seconds out (see bench/peers.py)."""

import json
import sys
import time
import warnings

import numpy as np
import peak
from diffprivlib import tools
from diffprivlib.models import (
    DecisionTreeClassifier,
    GaussianNB,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
)


def main() -> None:
    work = json.load(sys.stdin)
    data = np.load(work["data"])
    warnings.simplefilter("ignore")  # a logistic regression that did not converge in 200 iterations says so
    print(json.dumps([answer(data, job) for job in work["jobs"]]))


def answer(data, job: dict) -> dict:
    """{"scores" or "values": one for each seed, "seconds": of each fit, "peak": MB}."""
    if job["what"] in ("mean", "median", "quantile"):
        return _repeated("values", job, lambda seed: _number(data["x"], job, seed))
    model = {"logistic": _logistic, "linear": _linear}.get(job["what"], _classifier)
    x, y, x_test, y_test = (data[name] for name in ("x", "y", "x_test", "y_test"))
    return _repeated("scores", job, lambda seed: model(job, seed).fit(x, y), lambda fit: fit.score(x_test, y_test))


def _logistic(job: dict, seed: int) -> LogisticRegression:
    return LogisticRegression(epsilon=job["epsilon"], data_norm=1.0, C=job["C"], max_iter=200, random_state=seed)


def _linear(job: dict, seed: int) -> LinearRegression:
    bounds = {"bounds_X": tuple(job["bounds_x"]), "bounds_y": tuple(job["bounds_y"])}
    return LinearRegression(epsilon=job["epsilon"], **bounds, random_state=seed)


def _classifier(job: dict, seed: int):
    """A tree, a forest or naive Bayes on features in [0, 1] and two classes."""
    common = {"epsilon": job["epsilon"], "bounds": (0, 1), "random_state": seed}
    if job["what"] == "bayes":
        return GaussianNB(**common)
    if job["what"] == "tree":
        return DecisionTreeClassifier(max_depth=job["depth"], classes=[0, 1], **common)
    forest = {"n_estimators": job["trees"], "max_depth": job["depth"], "classes": [0, 1]}
    return RandomForestClassifier(**forest, **common)


def _number(x, job: dict, seed: int) -> float:
    common = {"epsilon": job["epsilon"], "bounds": (0, 1), "random_state": seed}
    if job["what"] == "mean":
        return float(tools.mean(x, **common))
    if job["what"] == "median":
        return float(tools.median(x, **common))
    return float(tools.quantile(x, job["q"], **common))


def _repeated(name: str, job: dict, act, judge=lambda value: value) -> dict:
    found, seconds = [], []
    for seed in range(job["times"]):
        start = time.perf_counter()
        result = act(seed)
        seconds.append(time.perf_counter() - start)
        found.append(float(judge(result)))
    return {name: found, "seconds": seconds, "peak": peak.megabytes()}


if __name__ == "__main__":
    main()

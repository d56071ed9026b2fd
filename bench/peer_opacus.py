"""Opacus at work, under its own interpreter: jobs in, scores and seconds out (see bench/peers.py).

A linear model from zero, trained with noisy stochastic gradients; the noise is found by Opacus' default accountant. The
seconds hold all of `fit`: the search for the noise and the training.
"""

import json
import sys
import time
import warnings

import numpy as np
import peak
import torch
from opacus import PrivacyEngine


def main() -> None:
    work = json.load(sys.stdin)
    data = np.load(work["data"])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    x, y, x_test = (torch.tensor(data[name], dtype=torch.float32) for name in ("x", "y", "x_test"))
    print(json.dumps([answer(x, y, x_test, data["y_test"], job) for job in work["jobs"]]))


def answer(x, y, x_test, y_test, job: dict) -> dict:
    """{"scores": one for each seed, "seconds": of each fit, "peak": MB}."""
    scores, seconds = [], []
    for seed in range(job["times"]):
        start = time.perf_counter()
        model = fit(x, y, job, seed)
        seconds.append(time.perf_counter() - start)
        with torch.no_grad():
            scores.append(float(np.mean((model(x_test)[:, 0] > 0).numpy() == y_test)))
    return {"scores": scores, "seconds": seconds, "peak": peak.megabytes()}


def fit(x, y, job: dict, seed: int):
    torch.manual_seed(seed)
    model = torch.nn.Linear(x.shape[1], 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    data = torch.utils.data.TensorDataset(x, y)
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=job["rate"]),
        data_loader=torch.utils.data.DataLoader(data, batch_size=job["batch"] or len(x)),
        target_epsilon=job["epsilon"],
        target_delta=job["delta"],
        epochs=job["epochs"],
        max_grad_norm=job["clip"],
    )
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(job["epochs"]):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss(model(rows)[:, 0], labels).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    main()

"""Opacus at work, under its own interpreter: jobs in, scores and seconds out (see bench/peers.py).

A linear model from zero, trained with noisy stochastic gradients; the noise is found by Opacus' default accountant. The
seconds hold the search for the noise, which is done once for all seeds of a job, and the training. A batch is read from
the arrays at once, not row by row as `TensorDataset` does, which would take most of the time.
"""

import json
import sys
import time
import warnings

import numpy as np
import peak
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier


def main() -> None:
    work = json.load(sys.stdin)
    data = np.load(work["data"])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    x, y, x_test = (torch.tensor(data[name], dtype=torch.float32) for name in ("x", "y", "x_test"))
    print(json.dumps([answer(x, y, x_test, data["y_test"], job) for job in work["jobs"]]))


def answer(x, y, x_test, y_test, job: dict) -> dict:
    """{"scores": one for each seed, "seconds": of each fit, "peak": MB}."""
    scores, seconds, begun = [], [], time.perf_counter()
    loader = torch.utils.data.DataLoader(Rows(x, y), batch_size=job["batch"] or len(x), collate_fn=as_it_is)
    noise = get_noise_multiplier(
        target_epsilon=job["epsilon"],
        target_delta=job["delta"],
        sample_rate=1 / len(loader),
        epochs=job["epochs"],
        accountant=PrivacyEngine().accountant.mechanism(),
    )
    searched = time.perf_counter() - begun
    for seed in range(job["times"]):
        start = time.perf_counter()
        model = fit(loader, x.shape[1], noise, job, seed)
        seconds.append(time.perf_counter() - start + searched)
        with torch.no_grad():
            scores.append(float(np.mean((model(x_test)[:, 0] > 0).numpy() == y_test)))
    return {"scores": scores, "seconds": seconds, "peak": peak.megabytes()}


class Rows(torch.utils.data.TensorDataset):
    """Rows whose batches are slices of the arrays."""

    def __getitems__(self, places: list[int]):
        return tuple(tensor[places] for tensor in self.tensors)


def as_it_is(batch):
    return batch


def fit(loader, features: int, noise: float, job: dict, seed: int):
    torch.manual_seed(seed)
    model = torch.nn.Linear(features, 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    model, optimizer, batches = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=job["rate"]),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=job["clip"],
    )
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(job["epochs"]):
        for rows, labels in batches:
            optimizer.zero_grad()
            loss(model(rows)[:, 0], labels).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    main()

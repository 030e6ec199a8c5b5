"""DP-SGD whose noise and sampling follow the validation loss, within a budget that a filter keeps.

    python examples/adaptive_dp_sgd.py [--eps 3] [--delta 1e-5] [--seed 0]

A small network learns scikit-learn's digits. Training starts with cheap epochs; whenever the
validation loss stops falling, the next epoch uses less noise and larger batches, which cost more.
Which epochs run is thus decided by what training has shown, and the filter still proves the
whole run to be within (eps, delta): it stops training when nothing on the menu fits any more.

The validation images stand for public data. What is chosen from private data must be paid for like
any other query; the number of private records is private, too, so a public guess takes its place.

Needs: pip install 'residua[opacus]' scikit-learn
"""

import argparse
import warnings
from typing import Any, NamedTuple

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import residua as rz
from residua.interop.opacus import BudgetedTraining, steps_of


class Epoch(NamedTuple):
    noise_multiplier: float
    sample_rate: float
    expected_batch_size: float

    def query(self) -> rz.Mechanism:
        return steps_of(self.noise_multiplier, self.sample_rate, int(1 / self.sample_rate))


PUBLIC = 360
ABOUT = 1440
"""A public guess of how many private records there are: it decides what gradients are divided by.
If it is wrong, steps are longer or shorter than meant; the guarantee is the same."""

# From cheap to expensive.
MENU = (
    Epoch(2.0, 1 / 16, ABOUT / 16), Epoch(1.5, 1 / 16, ABOUT / 16), Epoch(1.5, 1 / 8, ABOUT / 8),
)  # fmt: skip


class Outcome(NamedTuple):
    epochs: tuple[tuple[Epoch, float], ...]
    accuracy: float
    spent: float
    refusal: rz.Decision


def train(filter: rz.Filter, delta: float, seed: int = 0, log: Any = print) -> Outcome:
    """Train until the filter refuses even the cheapest epoch."""
    torch.set_num_threads(1)  # the model is tiny: more threads would wait for each other
    torch.manual_seed(seed)
    images, labels = _digits()
    public = images[:PUBLIC], labels[:PUBLIC]
    private = TensorDataset(images[PUBLIC:], labels[PUBLIC:])
    model: nn.Module = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.5)
    with warnings.catch_warnings():
        # An example may use the fast random numbers of torch; see docs/known-limits.md.
        warnings.filterwarnings("ignore", message="Secure RNG turned off")
        engine = PrivacyEngine(accountant="residua")
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        # What make_private takes from this batch size and the number of records is replaced by
        # each request, before any step can run.
        data_loader=DataLoader(private, batch_size=ABOUT // 16),
        noise_multiplier=MENU[0].noise_multiplier,
        max_grad_norm=1.0,
    )
    training = BudgetedTraining(engine, optimizer, loader, filter)
    level, best, done = 0, float("inf"), []
    while True:
        decision = training.spend(**MENU[level]._asdict())
        if not decision.admitted and level > 0:
            level = 0
            decision = training.spend(**MENU[level]._asdict())
        if not decision.admitted:
            break
        for inputs, targets in training.batches():
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        loss = _loss(model, *public)
        done.append((MENU[level], loss))
        log(f"epoch {len(done):2d}  {MENU[level]}  validation loss {loss:.3f}")
        if loss > 0.97 * best and level + 1 < len(MENU):
            level += 1
        best = min(best, loss)
    with torch.no_grad():
        accuracy = float((model(public[0]).argmax(dim=1) == public[1]).float().mean())
    # Rate, divisor and steps were public: the sum is one under add-remove, as the filter's.
    spent = engine.accountant.get_epsilon(delta, relation="add-remove")
    return Outcome(tuple(done), accuracy, spent, decision)


def _digits() -> tuple[torch.Tensor, torch.Tensor]:
    digits = load_digits()
    order = torch.randperm(len(digits.target))
    images = torch.tensor(digits.data, dtype=torch.float32)[order] / 16.0
    return images, torch.tensor(digits.target)[order]


def _loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(images), labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--eps", type=float, default=3.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("working out the price list ...")
    filter = rz.MenuFilter(options.eps, options.delta, menu=tuple(epoch.query() for epoch in MENU))
    outcome = train(filter, options.delta, options.seed)
    print(f"\nstopped: {outcome.refusal.query} does not fit any more")
    print(f"accuracy on the validation images: {outcome.accuracy:.1%}")
    print(f"guarantee, whatever was chosen on the way: ({options.eps:g}, {options.delta:g})-DP")
    print(f"what this very sequence would have cost, fixed in advance: eps {outcome.spent:.3f}")


if __name__ == "__main__":
    main()

"""Individual accounting in training: `python -m examples.training`.

Softmax regression on handwritten digits (`sklearn.datasets.load_digits`, 1,797 images) by noisy
gradient descent on everybody at once. Each person is one image. In each step a person's gradient is
clipped to norm 1, the sum over those who still take part gets Gaussian noise of `sigma`, and

* the worst-case filter charges everybody `nu = 1 / sigma`: after `mu² sigma²` steps all is spent;
* the individual filter charges everybody the norm of their own gradient over `sigma`. Who is well
  predicted hardly pays, and training goes on for the number of steps that was announced;
* the worst-case filter again, by an owner who knows how many steps and how much noise suit these
  data, and takes so much more noise that the budget lasts. Here that does about as well. It is
  what individual accounting spares: finding it out costs budget too.

All keep the same promise to everyone: nothing anybody learns from all the models together goes
beyond `G_mu`. The conditions of `docs/individual.md` hold: a norm depends on the model (public)
and on that person's image; the sum is divided by a public constant, never by how many take part;
noise and number of steps are fixed beforehand. Who is out of budget is not shown: the figure
shows accuracy on images that nobody's budget pays for, and models are public.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import residua as rz

Floats = NDArray[np.float64]

SIZE = 1400.0
"""What sums of gradients are divided by: a public guess of how many people there are."""
HELD_OUT = 400


def digits() -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Images and labels to train on, and images and labels to test on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    # Brightness between 0 and 1, a constant feature, and norms near 1 by a public factor.
    features = np.hstack([images / 16.0, np.ones((len(images), 1))]) / 4.0
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[HELD_OUT:], order[:HELD_OUT]
    return features[train], np.eye(10)[labels[train]], features[test], labels[test]


def gradients(weights: Floats, images: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Everybody's error in the ten classes, and the norm of everybody's gradient."""
    scores = images @ weights
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    errors = chances - targets
    return errors, np.linalg.norm(errors, axis=1) * np.linalg.norm(images, axis=1)


def train(individual: bool, mu: float, sigma: float, steps: int, rate: float, seed: int) -> Floats:
    """Test accuracy after each step."""
    images, targets, test_images, test_labels = digits()
    people = np.arange(len(images))
    rng = np.random.default_rng(seed)
    state = rz.individual.create("memory:", filter=rz.GdpFilter(mu=mu))
    noise = rz.Gaussian(sigma=sigma)
    weights = np.zeros((images.shape[1], 10))
    path: list[Floats] = []
    accuracy = np.empty(steps)
    for step in range(steps):
        errors, norms = gradients(weights, images, targets)
        clipped = np.minimum(norms, 1.0)
        loss = clipped if individual else np.ones_like(clipped)
        losses = pa.table({"subject": people, "sensitivity": loss})
        # Nothing is replayed: this state is new, and each step has an id of its own.
        spent = state.spend(losses, mechanism=noise, spend_id=f"step-{step}")
        # The sum over the active set and nobody else; without anyone it is noise alone.
        rows = spent.active["subject"].to_numpy()
        scale = clipped[rows] / np.maximum(norms[rows], 1e-12)
        total = (images[rows] * scale[:, None]).T @ errors[rows]
        if individual or len(rows):
            weights = weights - rate * (total + rng.normal(0.0, sigma, weights.shape)) / SIZE
        path.append(weights)
        # The mean of the later models, which is public as they are.
        mean = np.mean(path[len(path) // 2 :], axis=0)
        if not individual and not len(rows):
            accuracy[step] = accuracy[step - 1]
            continue
        accuracy[step] = np.mean(np.argmax(test_images @ mean, axis=1) == test_labels)
    return accuracy


def figure(results: dict[str, Floats], whole: int, mu: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (name, runs), colour in zip(
        results.items(), ("#888888", "#c08a3e", "#1f5f8b"), strict=True
    ):
        steps = np.arange(1, runs.shape[1] + 1)
        ax.plot(steps, runs.mean(axis=0), label=name, color=colour)
        ax.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.15, lw=0)
    ax.axvline(whole, color="#888888", ls=":", lw=1)
    ax.annotate("worst-case budget spent", (whole, 0.87), xytext=(4, 0), textcoords="offset points")
    ax.set(xlabel="steps", ylabel="test accuracy", ylim=(0.8, 0.97))
    ax.set_title(f"Digits at mu = {mu:g} for everyone")
    ax.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.training", description=__doc__)
    parser.add_argument("--mu", type=float, default=2.0, help="everybody's budget")
    parser.add_argument("--steps", type=int, default=40, help="steps that the worst case pays for")
    parser.add_argument("--rate", type=float, default=80.0, help="learning rate")
    parser.add_argument("--runs", type=int, default=6, help="runs with different noise")
    parser.add_argument("--out", type=Path, default=Path("out/training.png"), help="the figure")
    given = parser.parse_args()
    whole = 2 * given.steps
    results = {}
    for name, individual, planned in (
        ("worst-case filter", False, given.steps),
        ("worst-case filter, more noise", False, whole),
        ("individual filter", True, given.steps),
    ):
        # A hair more, so that the last of the planned steps is not refused by a rounding.
        sigma = math.sqrt(planned) / given.mu * (1.0 + 1e-12)
        runs = [
            train(individual, given.mu, sigma, whole, given.rate, seed)
            for seed in range(given.runs)
        ]
        results[name] = np.array(runs)
        ends = results[name][:, -1]
        spread = f"{100 * ends.min():.1f} to {100 * ends.max():.1f} in {given.runs} runs"
        print(f"{name}: {100 * ends.mean():.1f} % correct ({spread})")
    figure(results, given.steps, given.mu, given.out)
    print(f"everyone's guarantee in all: mu = {given.mu:g}; the figure is {given.out}")


if __name__ == "__main__":
    main()

"""Opacus itself: our accountant in its engine, and training that stops when the budget is spent."""

import importlib.util
import math
from typing import Any

import pytest

import residuum as rz
from snippets import ROOT

pytestmark = [
    pytest.mark.needs("opacus", "sklearn"),
    # Of torch and Opacus themselves.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

RECORDS = 64


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Models this small are slower on several, and much slower on a busy machine."""
    import torch

    torch.set_num_threads(1)


def private(
    noise_multiplier: float = 1.0, poisson: bool = True, epsilon: float | None = None
) -> Any:
    """An engine, and a small model with its optimizer and data."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    rz.interop.opacus.register()
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(RECORDS, 3), torch.randint(0, 2, (RECORDS,)))
    model = torch.nn.Linear(3, 2)
    engine = PrivacyEngine(accountant="residuum")
    arguments = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": DataLoader(data, batch_size=8),
        "max_grad_norm": 1.0,
        "poisson_sampling": poisson,
    }
    if epsilon is None:
        made = engine.make_private(noise_multiplier=noise_multiplier, **arguments)
    else:
        made = engine.make_private_with_epsilon(
            target_epsilon=epsilon, target_delta=1e-5, epochs=2, **arguments
        )
    return engine, *made


def step(model: Any, optimizer: Any, batch: Any) -> None:
    import torch

    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
    optimizer.step()


def weights(model: Any) -> Any:
    return [p.detach().clone() for p in model.parameters()]


def test_the_engine_accounts_with_us() -> None:
    engine, model, optimizer, loader = private(noise_multiplier=1.1)
    for batch in loader:
        step(model, optimizer, batch)
    optimizer.noise_multiplier = 2.0
    for batch in loader:
        step(model, optimizer, batch)
    assert isinstance(engine.accountant, rz.interop.opacus.Accountant)
    assert engine.accountant.history == [(1.1, 0.125, 8), (2.0, 0.125, 8)]
    assert len(engine.accountant) == 16
    loss = 8 * rz.subsampled_gaussian(1.1, 0.125) + 8 * rz.subsampled_gaussian(2.0, 0.125)
    expected = max(loss.epsilon(1e-5), loss.reverse().epsilon(1e-5))
    assert engine.get_epsilon(1e-5) == pytest.approx(expected, rel=1e-9)
    copy = rz.interop.opacus.Accountant()
    copy.load_state_dict(engine.accountant.state_dict())
    assert copy.get_epsilon(1e-5) == engine.get_epsilon(1e-5)


def test_their_bounds_are_around_ours() -> None:
    """The Rényi accountant is above the truth; the PRV accountant says how far off it may be."""
    from opacus.accountants import PRVAccountant, RDPAccountant

    history = [(1.0, 0.02, 60), (1.3, 0.01, 40)]
    ours, renyi, prv = rz.interop.opacus.Accountant(), RDPAccountant(), PRVAccountant()
    for one in (ours, renyi, prv):
        one.history = list(history)
    eps = ours.get_epsilon(1e-5)
    assert eps < renyi.get_epsilon(1e-5)
    assert eps == pytest.approx(prv.get_epsilon(1e-5, eps_error=0.01), abs=0.02)


def test_an_accountant_has_limits() -> None:
    made = rz.interop.opacus.Accountant()
    assert made.get_epsilon(1e-5) == 0.0 and len(made) == 0
    for bad in ({"noise_multiplier": math.nan}, {"sample_rate": 1.5}, {"noise_multiplier": -1.0}):
        with pytest.raises(ValueError):
            made.step(**{"noise_multiplier": 1.0, "sample_rate": 0.1, **bad})
    made.step(noise_multiplier=0.0, sample_rate=0.0)
    assert made.get_epsilon(1e-5) == 0.0
    made.step(noise_multiplier=0.0, sample_rate=0.1)
    assert made.get_epsilon(1e-5) == math.inf


def test_noise_for_a_target_ends_within_it() -> None:
    _, _, optimizer, _ = private(epsilon=2.0)
    spent = 16 * rz.subsampled_gaussian(optimizer.noise_multiplier, 0.125)
    assert 1.9 < spent.epsilon(1e-5) <= 2.0


def test_no_step_without_admission() -> None:
    engine, model, optimizer, loader = private()
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    start = weights(model)
    with pytest.raises(rz.BudgetError, match="a step was not admitted"):
        step(model, optimizer, next(iter(loader)))
    with pytest.raises(rz.BudgetError, match="no epoch is admitted"):
        next(training.batches())
    assert all((a == b).all() for a, b in zip(start, weights(model), strict=True))
    assert training.request(noise_multiplier=4.0, sample_rate=0.25, steps=2).admitted
    assert optimizer.expected_batch_size == RECORDS // 4
    batches = list(training.batches())
    assert len(batches) == 2
    for batch in batches:
        step(model, optimizer, batch)
    assert training.steps_left == 0 and engine.accountant.history == [(4.0, 0.25, 2)]
    moved = weights(model)
    with pytest.raises(rz.BudgetError, match="a step was not admitted"):
        step(model, optimizer, batches[0])
    assert all((a == b).all() for a, b in zip(moved, weights(model), strict=True))


def test_noise_cannot_be_turned_down_behind_the_filter() -> None:
    engine, model, optimizer, loader = private()
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    assert training.request(noise_multiplier=4.0, sample_rate=0.25, steps=3).admitted
    optimizer.noise_multiplier = 1.0
    with pytest.raises(rz.BudgetError, match="noise and sampling must be as admitted"):
        step(model, optimizer, next(training.batches()))
    optimizer.noise_multiplier = 4.0
    step(model, optimizer, next(training.batches()))
    refused = training.request(noise_multiplier=0.1)
    assert not refused.admitted and training.steps_left == 0
    assert optimizer.noise_multiplier == 4.0


def test_what_does_not_sample_is_refused() -> None:
    engine, _, optimizer, loader = private(poisson=False)
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    with pytest.raises(rz.UnsupportedError, match="data_loader must sample as Poisson does"):
        rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    with pytest.raises(rz.ArgumentTypeError, match="filter must be a filter"):
        rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, 1.0)
    with pytest.raises(rz.ArgumentTypeError, match="optimizer must be the one of make_private"):
        rz.interop.opacus.BudgetedTraining(engine, None, loader, budget)


def test_training_follows_the_validation_loss_and_stops_at_the_budget() -> None:
    """The example, with a filter that is quick to set up."""
    spec = importlib.util.spec_from_file_location(
        "adaptive_dp_sgd", ROOT / "examples" / "adaptive_dp_sgd.py"
    )
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    lines: list[str] = []
    budget = rz.RenyiFilter(alpha=8.0, rho=2.0)
    outcome = example.train(budget, 1e-5, log=lines.append)
    chosen = {epoch for epoch, _ in outcome.epochs}
    assert len(chosen) > 1, "the loss rose at least once, and another epoch was chosen"
    assert len(lines) == len(outcome.epochs) and not outcome.refusal.admitted
    # Everything that ran was admitted, and no more would have been.
    admitted = [one.query for one in budget.history if one.admitted]
    assert admitted == [epoch.query() for epoch, _ in outcome.epochs]
    assert not budget.check(example.MENU[0].query()).admitted
    assert outcome.spent <= budget.guarantee.epsilon(1e-5)
    assert outcome.accuracy > 0.5

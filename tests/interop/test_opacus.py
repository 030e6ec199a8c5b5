"""Opacus itself: our accountant in its engine, and training that stops when the budget is spent."""

import importlib.util
import math
from typing import Any

import pytest

import residua as rz
from snippets import ROOT

pytestmark = [
    pytest.mark.needs("opacus", "sklearn"),
    # Of torch and Opacus themselves.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

RECORDS = 64
EPOCH: dict[str, Any] = {
    "noise_multiplier": 4.0,
    "sample_rate": 0.25,
    "expected_batch_size": 16.0,
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Models this small are slower on several, and much slower on a busy machine."""
    import torch

    torch.set_num_threads(1)


def private(
    noise_multiplier: float = 1.0,
    poisson: bool = True,
    epsilon: float | None = None,
    **more: Any,
) -> Any:
    """An engine, and a small model with its optimizer and data."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    rz.interop.opacus.register()
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(RECORDS, 3), torch.randint(0, 2, (RECORDS,)))
    model = torch.nn.Linear(3, 2)
    engine = PrivacyEngine(accountant="residua")
    arguments = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": DataLoader(data, batch_size=8),
        "max_grad_norm": 1.0,
        "poisson_sampling": poisson,
        **more,
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
    steps = [rz.SubsampledGaussian(sigma, 0.125) for sigma in (1.1, 2.0)]
    loss = sum((8 * one.pld(relation="replace-one") for one in steps), start=rz.identity())
    expected = max(loss.epsilon(1e-5), loss.reverse().epsilon(1e-5))
    assert engine.get_epsilon(1e-5) == pytest.approx(expected, rel=1e-9)
    fewer = 8 * rz.subsampled_gaussian(1.1, 0.125) + 8 * rz.subsampled_gaussian(2.0, 0.125)
    found = engine.accountant.get_epsilon(1e-5, relation="add-remove")
    both = max(fewer.epsilon(1e-5), fewer.reverse().epsilon(1e-5))
    assert found == pytest.approx(both, rel=1e-9) and found < expected
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
    eps = ours.get_epsilon(1e-5, relation="add-remove")
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
    with pytest.raises(rz.ArgumentError, match="relation must be"):
        made.get_epsilon(1e-5, relation="neighbours")


def test_noise_for_a_target_ends_within_it() -> None:
    engine, model, optimizer, loader = private(epsilon=2.0)
    for batch in [*loader, *loader]:
        step(model, optimizer, batch)
    assert len(engine.accountant) == 16 and 1.9 < engine.get_epsilon(1e-5) <= 2.0


def test_no_step_without_admission() -> None:
    engine, model, optimizer, loader = private()
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    start = weights(model)
    with pytest.raises(rz.BudgetError, match="this step was not admitted"):
        step(model, optimizer, next(iter(loader)))
    with pytest.raises(rz.BudgetError, match="no epoch has been admitted"):
        next(training.batches())
    assert all((a == b).all() for a, b in zip(start, weights(model), strict=True))
    assert training.spend(**EPOCH, steps=2).admitted
    assert optimizer.expected_batch_size == EPOCH["expected_batch_size"]
    batches = list(training.batches())
    assert len(batches) == 2
    for batch in batches:
        step(model, optimizer, batch)
    assert training.steps_left == 0 and engine.accountant.history == [(4.0, 0.25, 2)]
    moved = weights(model)
    with pytest.raises(rz.BudgetError, match="this step was not admitted"):
        step(model, optimizer, batches[0])
    assert all((a == b).all() for a, b in zip(moved, weights(model), strict=True))


def test_noise_cannot_be_turned_down_behind_the_filter() -> None:
    engine, model, optimizer, loader = private()
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    assert training.spend(**EPOCH, steps=3).admitted
    changes = [
        (optimizer, "noise_multiplier", 1.0),
        (optimizer, "expected_batch_size", RECORDS // 4 - 1),
        (loader.batch_sampler, "sample_rate", 0.5),
    ]
    for thing, name, value in changes:
        admitted = getattr(thing, name)
        setattr(thing, name, value)
        with pytest.raises(rz.BudgetError, match="must be as admitted"):
            step(model, optimizer, next(training.batches()))
        setattr(thing, name, admitted)
    step(model, optimizer, next(training.batches()))
    refused = training.spend(**EPOCH | {"noise_multiplier": 0.1})
    assert not refused.admitted and training.steps_left == 0
    assert optimizer.noise_multiplier == 4.0


def test_noise_that_adaptive_clipping_adds_is_the_noise_that_counts() -> None:
    """Ghost clipping reads another attribute than the one that is reported."""
    import torch

    engine, model, optimizer, criterion, loader = private(grad_sample_mode="ghost")
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    assert training.spend(**EPOCH, steps=2).admitted

    def ghost_step() -> None:
        inputs, targets = next(training.batches())
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()

    ghost_step()
    optimizer._adjusted_noise_multiplier = 0.01
    before = weights(model)
    with pytest.raises(rz.BudgetError, match="must be as admitted"):
        ghost_step()
    assert all(map(torch.equal, before, weights(model)))


# -- the number of records ----------------------------------------------------------------------


def zeros(records: int) -> Any:
    """An engine and a model of 10,000 weights, on records whose gradients are zero."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    rz.interop.opacus.register()
    torch.manual_seed(2)
    data = TensorDataset(torch.zeros(records, 100), torch.zeros(records, dtype=torch.long))
    model = torch.nn.Linear(100, 100, bias=False)
    engine = PrivacyEngine(accountant="residua")
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(data, batch_size=20),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        noise_generator=torch.Generator().manual_seed(3),
    )
    return engine, *made


def test_neighbours_get_the_same_noise() -> None:
    """The attack: read the divisor, and with it the number of records, off the released model.

    The update of a step is noise of deviation 1 over the divisor, in 10,000 weights: their spread
    tells 1/20 from 1/19 with seven standard errors between them. It must be the same.
    """
    import torch

    updates, settings = [], []
    for records in (200, 199):
        engine, model, optimizer, loader = zeros(records)
        budget = rz.RenyiFilter(alpha=8.0, rho=8.0)
        training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
        epoch = {"noise_multiplier": 1.0, "sample_rate": 0.1, "expected_batch_size": 20}
        assert training.spend(**epoch, steps=1).admitted
        (before,) = weights(model)
        for batch in training.batches():
            step(model, optimizer, batch)
        (after,) = weights(model)
        updates.append(after - before)
        deviation = optimizer.noise_multiplier * optimizer.max_grad_norm
        settings.append((deviation, optimizer.expected_batch_size, loader.sample_rate, len(loader)))
    assert settings == [(1.0, 20.0, 0.1, 1)] * 2
    assert round(1.0 / float(updates[0].std())) == 20, "the spread shows the divisor"
    assert torch.equal(*updates), "and it is the same for neighbours, as is everything else"


def test_what_comes_from_the_number_of_records_must_be_given() -> None:
    engine, _, optimizer, loader = private()
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    training = rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    for name in EPOCH:
        given = {other: value for other, value in EPOCH.items() if other != name}
        with pytest.raises(rz.ArgumentTypeError, match=f"{name} must be given.*number of records"):
            training.spend(**given)
    for bad in (0, -1.0, math.nan, math.inf, "20"):
        with pytest.raises((rz.ArgumentError, rz.ArgumentTypeError), match="expected_batch_size"):
            training.spend(**EPOCH | {"expected_batch_size": bad})
    assert not budget.history and training.steps_left == 0, "nothing was asked of the filter"


def test_without_public_values_neighbours_have_equally_many_records() -> None:
    """`make_private` divides by a share of the records: its steps are charged for an exchange."""
    divisors, costs = [], []
    for records in (200, 199):
        engine, model, optimizer, loader = zeros(records)
        step(model, optimizer, next(iter(loader)))
        divisors.append(optimizer.expected_batch_size)
        costs.append(engine.get_epsilon(1e-5))
    assert divisors == [20, 19], "Opacus itself: one record more or less shows in the noise"
    exchanged = rz.SubsampledGaussian(1.0, 0.1).pld(relation="replace-one")
    assert costs == [exchanged.epsilon(1e-5)] * 2


def test_what_does_not_sample_is_refused() -> None:
    engine, _, optimizer, loader = private(poisson=False)
    budget = rz.RenyiFilter(alpha=8.0, rho=1.0)
    with pytest.raises(rz.UnsupportedError, match="data_loader must sample as Poisson does"):
        rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    engine, _, optimizer, loader = private(rand_on_empty=True)
    with pytest.raises(rz.UnsupportedError, match="data_loader must give an empty batch"):
        rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, budget)
    engine, _, optimizer, loader = private()
    with pytest.raises(rz.ArgumentTypeError, match="filter must be a filter"):
        rz.interop.opacus.BudgetedTraining(engine, optimizer, loader, 1.0)
    with pytest.raises(
        rz.ArgumentTypeError, match="optimizer must be the optimizer of make_private"
    ):
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

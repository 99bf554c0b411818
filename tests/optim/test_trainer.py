"""The optimisers in the Trainer of transformers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import attnmargin as am

transformers = pytest.importorskip("transformers")
Maker = Callable[[torch.nn.Module], torch.optim.Optimizer]


def _spectral(model: torch.nn.Module) -> torch.optim.Optimizer:
    groups = am.optim.parameter_groups(model, rest_lr=0.01)
    return am.SteepestDescent(groups, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)


def _mirror(model: torch.nn.Module) -> torch.optim.Optimizer:
    return am.MirrorDescent(model.parameters(), lr=1.0, p=1.5)


@pytest.mark.parametrize("make", [_spectral, _mirror])
def test_a_tiny_model_learns(make: Maker, tmp_path: Path) -> None:
    """Eight rows by heart: the loss falls below half of what it was."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=8, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    rows = [torch.randint(1, 20, (6,)) for _ in range(8)]
    optimiser = make(model)
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=60, per_device_train_batch_size=8, use_cpu=True, max_grad_norm=0.0,
        save_strategy="no", report_to="none", disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model,
        arguments,
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],
        optimizers=(optimiser, transformers.get_cosine_schedule_with_warmup(optimiser, 5, 60)),
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < 0.5 * losses[0]

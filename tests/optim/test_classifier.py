"""The optimisers on the classifier of paper B, with a small corpus, on the CPU."""

from collections.abc import Callable

import pytest
import torch

import attnmargin as am
from tests import texts

Maker = Callable[[torch.nn.Module], torch.optim.Optimizer]

MAKERS: dict[str, Maker] = {
    "spectral": lambda model: am.SteepestDescent(
        am.optim.parameter_groups(model, rest_lr=0.003), lr=0.05, momentum=0.9, nesterov=True
    ),
    "max": lambda model: am.SteepestDescent(model.parameters(), lr=0.003, norm="max", momentum=0.9),
    "rows": lambda model: am.SteepestDescent(model.parameters(), lr=0.02, norm="rows"),
    "mirror": lambda model: am.MirrorDescent(model.parameters(), lr=0.1, p=1.5),
}


@pytest.mark.parametrize("name", MAKERS)
def test_the_classifier_learns_which_word_decides(name: str) -> None:
    torch.manual_seed(0)
    data = texts.pieces(80)
    model = am.text.TextClassifier(texts.shape(data))
    optimiser = MAKERS[name](model)
    ids = torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(data.row(i).astype("int64")) for i in range(len(data))],
        batch_first=True, padding_value=model.padding,
    )  # fmt: skip
    labels = torch.from_numpy(data.labels).long()
    for _ in range(150):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(ids), labels).backward()
        optimiser.step()
    model.eval()
    assert float((model(ids).argmax(-1) == labels).double().mean()) >= 0.95

"""Heads along training: records, callbacks, the classifier of paper B, the picture."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.models import Head, Settings, Watch, classifier_heads
from tests.models.instances import small_model

FAST = Settings(queries=3, draws=2)


def classifier() -> am.text.TextClassifier:
    torch.manual_seed(0)
    shape = am.text.Shape(vocabulary=50, layers=2, heads=2, width=16, hidden=32, length=8)
    return am.text.TextClassifier(shape)


ROWS = [[2, 7, 8, 9, 3], [2, 9, 3], [2, 11, 12, 3]]


def test_heads_of_the_classifier_attend_as_it_does() -> None:
    model = classifier()
    own = classifier_heads(model, ROWS)
    assert model.training  # and dropout was off
    model.eval()
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ROWS], batch_first=True)
    expected = model.attention(ids)  # of the first position, mean over heads
    for layer in range(2):
        mean = torch.stack([own[2 * layer + h].attention[:, 0] for h in range(2)]).mean(0)
        torch.testing.assert_close(mean, expected[:, layer], atol=1e-6, rtol=0.0)
    assert not bool(own[3].attention[:, 1:].any())  # the last layer is read at one position


def test_a_plain_loop_records_at_its_steps() -> None:
    model = classifier()
    watch = Watch(lambda: classifier_heads(model, ROWS), every=2, settings=FAST)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ROWS], batch_first=True)
    for step in range(5):
        watch(step)
        loss = torch.nn.functional.cross_entropy(model(ids), torch.tensor([0, 1, 0]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert watch.steps == [0, 2, 4]
    assert watch.places == [(0, 0), (0, 1), (1, 0), (1, 1)]
    length = watch.of("length")
    assert length.shape == (3, 4)
    assert bool((length[0] != length[1]).all())
    assert bool(np.isfinite(watch.of("efficiency", null=True)).all())
    assert watch.summary()["heads"] == "4"


def test_records_are_studies_of_the_heads_as_they_were() -> None:
    model = classifier()
    watch = Watch(lambda: classifier_heads(model, ROWS), settings=FAST)
    watch.record(0)
    before = am.models.study_heads(classifier_heads(model, ROWS), FAST)
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(3.0)
    watch.record(1)
    assert watch.of("cosine")[0].tolist() == [own.cosine.value for own in before]
    torch.testing.assert_close(
        watch.of("length")[1], 9.0 * watch.of("length")[0], rtol=1e-5, atol=0
    )


def test_the_callback_of_a_trainer_records() -> None:
    model = small_model("gpt2")
    watch = Watch(lambda: am.models.read_heads(model, ROWS, heads=0), every=5, settings=FAST)
    callback = watch.callback()
    for step in (0, 4, 5):
        state = SimpleNamespace(global_step=step)
        event = callback.on_train_begin if step == 0 else callback.on_step_end
        event(None, state, None, model=model)
    assert watch.steps == [0, 5]


def test_a_trainer_of_transformers_records(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    rows = [torch.randint(1, 20, (6,)) for _ in range(16)]
    watch = Watch(lambda: am.models.read_heads(model, ROWS), every=2, settings=FAST)
    trainer = Trainer(
        model,
        TrainingArguments(
            str(tmp_path), max_steps=5, per_device_train_batch_size=4, learning_rate=0.05,
            use_cpu=True, save_strategy="no", report_to="none", disable_tqdm=True,
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],
        callbacks=[watch.callback()],
    )  # fmt: skip
    trainer.train()
    assert watch.steps == [0, 2, 4]
    assert watch.places == [(0, 0), (0, 1)]
    length = watch.of("length")
    assert bool((length[1:] != length[:-1]).all())  # the heads are those of the moment
    last = am.models.study_heads(am.models.read_heads(model, ROWS), FAST)
    assert [own.spectrum.frobenius for own in last] != length[-1].tolist()  # step 5 came after


def test_the_picture_has_curves_of_heads_and_random_ones() -> None:
    model = classifier()
    watch = Watch(lambda: classifier_heads(model, ROWS), settings=FAST)
    for step in (0, 10):
        watch.record(step)
    figure = am.plot.watch(watch)
    assert [axes.get_xlabel() for axes in figure.axes] == ["training step"] * 4
    curve = np.asarray(figure.axes[0].lines[0].get_ydata())
    assert curve.tolist() == pytest.approx(watch.of("efficiency")[:, 0].tolist())
    _, names = figure.axes[0].get_legend_handles_labels()
    assert names == ["heads", "random heads"]


def test_the_picture_of_studies_has_a_point_per_head() -> None:
    heads = classifier_heads(classifier(), ROWS)
    studies = am.models.study_heads(heads, FAST)
    axes = am.plot.heads(studies).axes[0]
    points = {float(y) for line in axes.lines for y in np.asarray(line.get_ydata())}
    assert points >= {own.efficiency.value for own in studies}


def test_wrong_watches_are_one_sentence() -> None:
    with pytest.raises(am.InputError, match="every: got 0; needs a whole number"):
        Watch(list, every=0)
    with pytest.raises(am.InputError, match="read: got a list; needs a function"):
        Watch([])  # type: ignore[arg-type]
    W, X = torch.ones(1, 2), torch.eye(2)
    several = iter([[Head(W, W, X)], [Head(W, W, X, index=1)]])
    watch = Watch(lambda: next(several), settings=FAST)
    watch.record(0)
    with pytest.raises(am.InputError, match=r"read: got the heads \[\(0, 1\)\]; needs the same"):
        watch.record(1)
    with pytest.raises(am.InputError, match="name: got 'loss'; needs one of saturation"):
        watch.of("loss")
    with pytest.raises(am.InputError, match="watch: got one without records"):
        am.plot.watch(Watch(list))

"""The command train."""

import json
from pathlib import Path

import pytest

import attnmargin as am
from tests.commands import command


def test_an_empty_batch_is_trained_in_no_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = am.random_data(2, 3, 4, trials=0).save(tmp_path / "none.npz")
    code, out, _ = command(capsys, "train", path, "--steps", "2", "--json")
    assert (code, json.loads(out)["results"]) == (0, [])


def test_train_compares_with_the_svm(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    code, out, err = command(capsys, "train", data_file, "--steps", 3000, "--json", "--out", path)
    assert (code, err) == (0, "")
    record = json.loads(out)
    (result,) = record["results"]
    assert result["correlation"] > 0.99
    expected = am.train(am.AttentionData.load(data_file), steps=3000, record=100)
    assert result["selection"] == expected.selection[-1].tolist()
    assert am.Trajectory.load(path).W.shape == (31, 6, 6)
    code, out, _ = command(capsys, "train", data_file, "--parameter", "KQ", "--steps", 50)
    assert code == 0
    assert "correlation with the SVM of the selected tokens, norm nuc: mean" in out
    code, out, _ = command(capsys, "train", data_file, "--p", 3, "--steps", 50, "--plain")
    assert code == 0
    data = am.AttentionData.load(data_file)
    headless = am.AttentionData(data.X, data.z, data.y).save(tmp_path / "headless.npz")
    code, out, _ = command(capsys, "train", headless, "--parameter", "vW", "--steps", 50, "--json")
    assert json.loads(out)["results"][0]["optimal tokens"] is None
    code, out, err = command(capsys, "train", data_file, "--steps", -1)
    assert code == 2
    assert err == "attnmargin: --steps: got -1; needs a whole number of at least 0\n"

"""AttentionData: checks, padding, files."""

import numpy as np
import pytest
import torch

import attnmargin as am


def working() -> dict[str, object]:
    rng = np.random.default_rng(0)
    return {
        "X": rng.standard_normal((2, 3, 4, 5)),
        "z": rng.standard_normal((2, 3, 5)),
        "y": np.ones((2, 3)),
        "v": rng.standard_normal((2, 5)),
    }


def test_shapes_and_sizes() -> None:
    data = am.AttentionData(**working())
    assert (data.batch_shape, data.n, data.T, data.d) == ((2,), 3, 4, 5)
    assert repr(data) == "AttentionData(batch (2,), n=3, T=4, d=5, torch.float64)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(dtype: torch.dtype) -> None:
    parts = {name: torch.as_tensor(value).to(dtype) for name, value in working().items()}
    data = am.AttentionData(**parts)
    assert {x.dtype for x in (data.X, data.z, data.y, data.v)} == {dtype}  # type: ignore[union-attr]


def test_integers_become_floats_like_the_tokens() -> None:
    data = am.AttentionData(np.ones((1, 2, 3), np.float32), np.ones((1, 3), int), [1], [1, 0, 0])
    assert data.z.dtype == torch.float32


def test_list_of_unequal_sequences_is_padded_and_masked() -> None:
    data = am.AttentionData([np.ones((3, 2)), np.ones((1, 2))], np.ones((2, 2)))
    assert data.mask is not None
    assert data.mask.tolist() == [[True, True, True], [True, False, False]]
    assert data.X[1, 1:].abs().max() == 0


def test_list_of_equal_sequences_needs_no_mask() -> None:
    assert am.AttentionData([np.ones((2, 2)), np.ones((2, 2))], np.ones((2, 2))).mask is None


def test_hidden_tokens_may_hold_anything() -> None:
    X = np.ones((1, 2, 2))
    X[0, 1] = np.nan
    data = am.AttentionData(X, np.ones((1, 2)), mask=[[True, False]])
    assert bool(torch.isfinite(data.X).all())


def test_batch_dimensions_broadcast() -> None:
    parts = working() | {"v": np.ones(5), "z": np.ones((1, 3, 5))}
    assert am.AttentionData(**parts).batch_shape == (2,)


@pytest.mark.parametrize("several", [False, True])
def test_save_and_load(tmp_path, several: bool) -> None:  # type: ignore[no-untyped-def]
    parts = working()
    if several:
        mask = np.random.default_rng(1).random((2, 3, 6, 4)) < 0.5
        parts |= {"z": np.ones((2, 3, 6, 5)), "y": np.ones((2, 3, 6)), "mask": mask}
    data = am.AttentionData(**parts)
    loaded = am.AttentionData.load(data.save(tmp_path / "data.npz"))
    for name in ("X", "z", "y", "v", "mask"):
        torch.testing.assert_close(getattr(loaded, name), getattr(data, name), rtol=0, atol=0)


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "X too flat": ({"X": np.ones((3, 5))}, "X: got shape (3, 5); needs tokens of shape"),
    "X empty": ({"X": np.ones((2, 3, 0, 5))}, "X: got shape (2, 3, 0, 5)"),
    "X too large": (
        {"X": np.full((2, 3, 4, 5), 1e200)},
        "X: got 1e+200 at (0, 0, 0, 0); needs finite",
    ),
    "X NaN": ({"X": np.full((2, 3, 4, 5), np.nan)}, "X: got nan at (0, 0, 0, 0)"),
    "X words": ({"X": [["a"]]}, "needs real numbers"),
    "X half": ({"X": np.ones((2, 3, 4, 5), np.float16)}, "X: got torch.float16"),
    "X widths": ({"X": [np.ones((2, 2)), np.ones((2, 3))]}, "sequences of width [2, 3]"),
    "z width": ({"z": np.ones((2, 3, 6))}, "z: got shape (2, 3, 6)"),
    "z sequences": ({"z": np.ones((2, 4, 5))}, "z: got shape (2, 4, 5)"),
    "z dims": ({"z": np.ones(5)}, "z: got shape (5,)"),
    "z dtype": ({"z": np.ones((2, 3, 5), np.float32)}, "z: got torch.float32"),
    "z infinite": ({"z": np.full((2, 3, 5), np.inf)}, "z: got inf"),
    "y zero": ({"y": np.zeros((2, 3))}, "y: got the label 0; needs labels −1 or +1"),
    "y shape": ({"y": np.ones((2, 4))}, "y: got shape (2, 4)"),
    "v shape": ({"v": np.ones((2, 4))}, "v: got shape (2, 4); needs (*B, 5)"),
    "mask shape": ({"mask": np.ones((2, 3, 3), bool)}, "mask: got shape (2, 3, 3)"),
    "mask numbers": ({"mask": np.ones((2, 3, 4))}, "mask: got torch.float64 entries"),
    "mask queries": ({"mask": np.ones((2, 3, 2, 4), bool)}, "a mask for 2 queries"),
    "batch": ({"v": np.ones((7, 5))}, "batch dimensions: got"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_thing(name: str) -> None:
    change, words = WRONG[name]
    with pytest.raises(am.InputError) as caught:
        am.AttentionData(**(working() | change))
    assert words in str(caught.value)


def test_ragged_list_and_mask_exclude_each_other() -> None:
    with pytest.raises(am.InputError, match="one of the two"):
        am.AttentionData([np.ones((2, 2)), np.ones((1, 2))], np.ones((2, 2)), mask=[[True] * 2] * 2)


def test_mixed_devices_are_refused() -> None:
    with pytest.raises(am.InputError, match="z: got device meta"):
        am.AttentionData(torch.ones(1, 2, 3), torch.ones(1, 3, device="meta"))

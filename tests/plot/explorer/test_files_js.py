"""Files, Python lines and links of the explorer, in node."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.cli.inputs import read_words
from attnmargin.plot.explorer.bundle import tour_steps
from tests.plot.explorer.pieces import ask, ask_one, needs_node

pytestmark = needs_node

DATA: dict[str, Any] = {
    "X": [[[0.1, -2.5e-7], [1 / 3, 4.0]], [[1e21, 0.0], [2.0, 3.0], [0.5, -0.25]]],
    "z": [[1.0, 0.5], [-0.75, 1e-300]],
    "y": [1, -1],
    "v": [0.3, -1.0],
}
WORDS = [["naïve", "🙂 b"], ["c", "", "d"]]
SETTINGS: dict[str, Any] = {
    "method": "gd", "parameter": "W", "norm": "fro", "p": 2, "lr": 0.1, "normalize": True,
    "loss": "logistic",
}  # fmt: skip


def numbers(data: dict[str, Any]) -> am.AttentionData:
    """Build the same data in Python."""
    return am.AttentionData(data["X"], data["z"], data["y"], data["v"])


def same(a: am.AttentionData, b: am.AttentionData) -> bool:
    """Compare bits."""
    pairs = [(getattr(a, name), getattr(b, name)) for name in ("X", "z", "y", "v", "mask")]
    return all((x is None) == (y is None) and (x is None or torch.equal(x, y)) for x, y in pairs)


def drawn(n: int, T: int, d: int) -> dict[str, Any]:
    """Draw data of odd decimals."""
    rng = np.random.default_rng(n)
    X, z = rng.normal(size=(n, T, d)), rng.normal(size=(n, d))
    return {"X": X.tolist(), "z": z.tolist(), "y": [1, -1] * (n // 2), "v": [1.0] * d}


def test_files_of_the_page_are_read_by_the_library(tmp_path: Path) -> None:
    path = tmp_path / "page.npz"
    ask_one("write", path=str(path), data=DATA, words=WORDS)
    loaded = am.AttentionData.load(path)
    assert same(loaded, numbers(DATA))
    assert read_words(path, loaded) == [["naïve", "🙂 b", ""], WORDS[1]]
    assert zipfile.ZipFile(path).testzip() is None


def test_files_of_the_library_are_read_by_the_page(tmp_path: Path) -> None:
    own = numbers(DATA)
    path = own.save(tmp_path / "own.npz", [[*WORDS[0], ""], WORDS[1]])
    assert ask_one("read", path=str(path)) == {"data": DATA, "words": WORDS}


def test_every_kind_of_array_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cube = rng.normal(size=(2, 3, 4))
    arrays: dict[str, Any] = {
        "f8": cube, "f4": cube.astype("f4"), "columns": np.asfortranarray(cube),
        "big": cube.astype(">f8"), "i8": np.array([-(2**40), 7]), "i4": np.arange(3, dtype="i4"),
        "b1": np.array([[True, False]]), "text": np.array([["a", "éé"], ["", "c d"]], order="F"),
        "zero": np.zeros((0, 3)), "number": np.float64(2.5),
    }  # fmt: skip
    np.savez_compressed(tmp_path / "deflated.npz", **arrays)
    np.savez(tmp_path / "stored.npz", **arrays)
    for name in ("deflated", "stored"):
        found = ask_one("arrays", path=str(tmp_path / f"{name}.npz"))
        assert list(found) == list(arrays)
        for key, array in arrays.items():
            assert tuple(found[key]["shape"]) == array.shape
            np.testing.assert_array_equal(
                np.array(found[key]["values"], dtype=array.dtype.newbyteorder("=")),
                array.ravel(),
            )


def test_numpy_reads_every_kind_of_array(tmp_path: Path) -> None:
    path = str(tmp_path / "page.npz")
    arrays = {
        "f": {"kind": "float", "shape": [2, 1], "values": [1.5, -0.1]},
        "i": {"kind": "int", "shape": [2], "values": [-3, 2**40]},
        "b": {"kind": "bool", "shape": [1, 2], "values": [1, 0]},
        "t": {"kind": "text", "shape": [3], "values": ["", "ab", "é🙂x"]},
        "nothing": {"kind": "text", "shape": [0], "values": []},
    }
    ask_one("writeArrays", path=path, arrays=arrays)
    with np.load(path, allow_pickle=False) as found:
        assert found["f"].tolist() == [[1.5], [-0.1]]
        assert found["i"].tolist() == [-3, 2**40]
        assert found["b"].tolist() == [[True, False]]
        assert found["t"].tolist() == ["", "ab", "é🙂x"]
        assert found["nothing"].shape == (0,)
        assert [found[k].dtype.str for k in "fibt"] == ["<f8", "<i8", "|b1", "<U3"]


def test_what_a_file_lacks_is_filled_in(tmp_path: Path) -> None:
    X = np.arange(12.0).reshape(2, 3, 2)
    mask = np.array([[False, True, True], [True, True, False]])
    X[0, 0] = np.nan
    np.savez(tmp_path / "few.npz", X=X, z=X[:, 1], mask=mask)
    found = ask_one("read", path=str(tmp_path / "few.npz"))
    assert found["data"]["X"] == [X[0, 1:].tolist(), X[1, :2].tolist()]
    assert (found["data"]["y"], found["data"]["v"], found["words"]) == ([1, 1], [1, 0], None)


GOOD: dict[str, Any] = {"X": np.ones((2, 3, 2)), "z": np.ones((2, 2))}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((4, 2, 3, 2))}, "this page shows one instance, not a batch."),
        ({"z": np.ones((2, 5, 2))}, "this page shows one query per sequence."),
        ({"mask": np.ones((2, 1, 3), dtype=bool)}, "mask differs from query to query: this page"),
        ({"z": np.ones((3, 2))}, "z has the shape (3, 2); this page needs shape (2, 2)."),
        ({"y": np.array([1.0, 0.5])}, "y holds labels other than −1 and +1."),
        ({"v": np.array(["a", "b"])}, "v holds text; it needs numbers."),
        ({"X": np.full((2, 3, 2), np.inf)}, "X holds a number that is not finite, or above"),
        ({"X": np.full((2, 3, 2), 1e101)}, "X holds a number that is not finite, or above 1e100."),
        ({"mask": np.zeros((2, 3), dtype=bool)}, "Sequence 1 has no visible token."),
        ({"words": np.array(["a"])}, "words needs one name per token, shape (2, 3)."),
        ({"X": np.ones((2, 300, 2))}, "this page shows at most 400 tokens in all, of width"),
        ({"X": np.ones((2, 20, 100))}, "this page shows at most 20 tokens in all, of width"),
        ({"X": np.ones((2, 3), dtype=complex)}, "has entries of type c16; this page reads f4,"),
    ],
)
def test_data_that_the_page_cannot_show(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "bad.npz", **(GOOD | change))
    error = ask_one("read", path=str(tmp_path / "bad.npz"))["error"]
    assert message in error
    assert error.endswith(".")


def test_a_file_without_tokens_or_with_objects(tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz", z=np.ones((2, 2)))
    np.savez(tmp_path / "objects.npz", X=np.array([{}, None]), z=np.ones(2))
    np.savez(tmp_path / "records.npz", X=np.zeros(2, dtype=[("a", "f8")]), z=np.ones(2))
    names = ("empty", "objects", "records")
    found = ask(*[("read", {"path": str(tmp_path / f"{name}.npz")}) for name in names])
    assert found[0]["error"] == "The file has no array named X."
    assert "entries of type O" in found[1]["error"]
    assert "objects or records" in found[2]["error"]


def test_damaged_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "good.npz", **GOOD)
    whole = (tmp_path / "good.npz").read_bytes()
    rng = np.random.default_rng(1)
    for k in range(150):
        broken = bytearray(whole)
        if k % 3 == 0:
            del broken[int(rng.integers(len(whole))) :]
        else:
            for place in rng.integers(len(whole), size=1 + k % 5):
                broken[place] = int(rng.integers(256))
        (tmp_path / f"{k}.npz").write_bytes(bytes(broken))
    (tmp_path / "150.npz").write_bytes(b"")
    np.save(tmp_path / "151.npz", np.ones(3))
    files = [str(tmp_path / f"{k}.npz") for k in range(150)]
    files += [str(tmp_path / "150.npz"), str(tmp_path / "151.npz.npy")]
    found = ask(*[("read", {"path": path}) for path in files])
    good = {"X": np.ones((2, 3, 2)).tolist(), "z": [[1, 1], [1, 1]], "y": [1, 1], "v": [1, 0]}
    # Bytes that nothing reads, such as times, may change; numbers may not.
    assert all("error" in own or own["data"] == good for own in found)
    errors = [own["error"] for own in found if "error" in own]
    assert len(errors) > 100
    assert [text for text in errors if not text.endswith(".") or len(text) > 120] == []
    assert found[150]["error"] == "This is not an .npz file, or it is damaged."


def test_a_file_that_swells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\0" * (70 << 20))
    assert ask_one("read", path=str(path))["error"] == "This file is too large for this page."


SMALL = DATA | {
    "X": [[[0.1, -2.5e-7], [1 / 3, 4.0]], [[2.0, 3.0], [0.5, -0.25]]],
    "z": [[1.0, 0.5], [-0.75, 0.1]],
}
K, Q = [0.5, -0.1, 0.3, 0.25], [0.1, 0.2, 0.3, 1e-17]


@pytest.mark.parametrize(
    ("change", "start", "wanted"),
    [
        ({}, None, {}),
        ({}, [0.0] * 4, {}),
        ({}, [0.5, -0.125, 1 / 3, 0.0], {"init": [[0.5, -0.125], [1 / 3, 0.0]]}),
        ({"method": "mirror", "p": 1.75, "lr": 0.05}, None, {"p": 1.75, "lr": 0.05}),
        ({"method": "gd", "p": 1.75, "loss": "log"}, None, {"loss": "log"}),
        ({"normalize": False, "lr": 1e-7}, None, {"normalize": False, "lr": 1e-7}),
        ({"method": "steepest", "norm": "max"}, None, {"method": "steepest", "norm": "max"}),
        (
            {"parameter": "KQ"},
            {"K": K, "Q": Q},
            {"parameter": "KQ", "init": ([K[:2], K[2:]], [Q[:2], Q[2:]])},
        ),
    ],
)
def test_the_lines_of_python_build_the_same_data_and_call(
    change: dict[str, Any], start: Any, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ask_one("python", data=SMALL, settings=SETTINGS | change, start=start)
    calls: list[Any] = []
    monkeypatch.setattr(am, "predict", lambda data, **options: calls.append((data, options)))
    exec(text, {"print": lambda _: None})
    assert same(calls[0][0], numbers(SMALL))
    assert calls[0][1] == wanted
    assert max(map(len, text.splitlines())) <= 88


def test_factors_of_a_start_are_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    W = [0.5, -0.125, 1 / 3, 0.25]
    text = ask_one("python", data=SMALL, settings=SETTINGS | {"parameter": "KQ"}, start=W)
    calls: list[Any] = []
    monkeypatch.setattr(am, "predict", lambda data, **options: calls.append(options["init"]))
    exec(text, {"print": lambda _: None})
    ((left, right),) = calls
    torch.testing.assert_close(left @ right.T, torch.tensor(W).double().reshape(2, 2))
    torch.testing.assert_close(left.T @ left, right.T @ right)


def test_the_lines_of_python_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = ask_one("python", data=SMALL, settings=SETTINGS, start=[0.5, -0.125, 1 / 3, 0.0])
    exec(text, {})
    init = torch.tensor([[0.5, -0.125], [1 / 3, 0.0]], dtype=torch.float64)
    assert capsys.readouterr().out == f"{am.predict(numbers(SMALL), init=init)}\n"


def test_long_data_break_into_lines_and_stay_exact() -> None:
    for n, T, d in ((2, 3, 2), (4, 6, 2), (2, 5, 30)):
        data = drawn(n, T, d)
        text = ask_one("python", data=data, settings=SETTINGS, start=None)
        scope: dict[str, Any] = {}
        exec(text.split("prediction =")[0], scope)
        assert same(scope["data"], numbers(data))
        assert max(map(len, text.splitlines())) <= 88
        assert text.endswith("prediction = am.predict(data)\nprint(prediction)\n")


SENTENCES = [
    {"text": "the soup was cold", "query": 1, "label": -1},
    {"text": "naïve fun 🙂 &c.", "query": 0, "label": 1},
]
STATE: dict[str, Any] = {
    "scene": "plane", "data": DATA, "words": WORDS, "settings": SETTINGS, "second": None,
    "start": [0, 0, 0, 0], "focus": 1, "sentences": SENTENCES, "graph": "a b -> b\nb → b",
}  # fmt: skip


def test_links_bring_back_the_same_state() -> None:
    second = SETTINGS | {"method": "mirror", "p": 1.1, "loss": "log", "lr": 1e-3}
    sentences = ask_one("defaults")
    own = ask_one("sentences", sentences=sentences)
    states = [
        STATE,
        STATE | {"words": None, "second": second, "start": [1 / 3, -2.0, 1e-7, 5]},
        STATE | {"scene": "graph", "graph": "", "sentences": [], "focus": 0},
        STATE | {"scene": "sentences", "sentences": sentences, "start": [0] * 64} | own,
    ]
    found = ask(*[("link", {"state": state}) for state in states])
    assert [own["state"] for own in found] == states
    assert all(own["text"].replace(".", "").replace("-", "").isascii() for own in found)
    assert len(found[3]["text"]) < 200  # sentences bring their vectors along


def test_links_are_short() -> None:
    data = drawn(4, 6, 2)
    data["X"] = np.round(data["X"], 3).tolist()
    data["z"] = np.round(data["z"], 3).tolist()
    found = ask_one("link", state=STATE | {"data": data, "words": None, "sentences": []})
    assert found["state"]["data"] == data
    assert len(found["text"]) < 1500


def test_the_largest_state_fits_and_no_larger_one() -> None:
    large = STATE | {"data": drawn(8, 24, 32), "words": None, "start": [0] * 1024}
    fits, too_wide, too_long = ask(
        ("link", {"state": large}),
        ("link", {"state": large | {"data": drawn(2, 2, 33), "start": [0] * 33**2}}),
        ("link", {"state": large | {"data": drawn(2, 25, 32)}}),
    )
    assert fits["state"] == large
    assert (too_wide["text"], too_long["text"]) == ("", "")


def test_the_steps_of_the_tour_have_links() -> None:
    states = []
    for step in tour_steps():
        state = STATE | {"words": None, "focus": 0} | step["state"]
        states.append(state | {"start": step["state"].get("start", [0] * 4)})
    found = ask(*[("link", {"state": state}) for state in states])
    assert [own["state"] for own in found] == states
    assert max(len(own["text"]) for own in found) < 1500


def packed(state: dict[str, Any]) -> dict[str, Any]:
    """Write a good record as ``link.js`` does."""
    data = state["data"]
    one = [SETTINGS[key] for key in ("method", "parameter", "norm", "p", "lr")] + [1, "logistic"]
    return {"s": "plane", "d": [data["X"], data["z"], data["y"], data["v"]], "o": one}


BAD_RECORDS: list[dict[str, Any]] = [
    {"s": "nowhere"}, {"s": None}, {"d": 3}, {"d": [[], [], [], []]}, {"d": [[[[1]]], [[1]], [1]]},
    {"d": [[[[1]]], [[1]], [2], [1]]}, {"d": [[[[1]]], [[1]], [1], [1, 2]]},
    {"d": [[[["1"]]], [[1]], [1], [1]]}, {"d": [[[[None]]], [[1]], [1], [1]]},
    {"d": [[[[1e300]]], [[1]], [1], [1]]}, {"d": [[[[1]]], [[1], [2]], [1], [1]]},
    {"o": None}, {"o": ["gd"]}, {"o": ["gd", "W", "fro", 2, 0.1, 1, "odd"]},
    {"o": ["gd", "W", "fro", 0, 0.1, 1, "log"]}, {"o": ["gd", "W", "fro", 2, -1, 1, "log"]},
    {"o": ["constructor", "W", "fro", 2, 0.1, 1, "log"]}, {"o2": []}, {"b": [0]}, {"b": "0000"},
    {"f": 5}, {"f": -1}, {"f": 0.5}, {"w": [["a"]]}, {"w": "ab"}, {"w": [[1, 2], ["a", "b", "c"]]},
    {"t": 1}, {"t": None}, {"t": [["", 0, 1]]}, {"t": [["a b", 2, 1]]}, {"t": [["a b", 0, 0]]},
    {"t": [["a", 0, 1]] * 9}, {"t": [["a " * 13, 0, 1]]}, {"g": 5}, {"g": "x" * 5000},
]  # fmt: skip


def test_records_that_are_wrong_in_one_place_are_refused() -> None:
    good = packed(STATE)
    found = ask_one("record", records=[good, *[good | change for change in BAD_RECORDS]])
    assert found[0]["data"] == DATA
    assert found[1:] == [None] * len(BAD_RECORDS)
    assert ask_one("record", records=[3, None, [], {}, "a"]) == [None] * 5


def test_garbage_is_no_state() -> None:
    text = ask_one("link", state=STATE)["text"]
    rng = np.random.default_rng(2)
    texts = ["", "1", "1.", "2" + text[1:], text + ".", text[:-9], "1.%%%", "é", "1.e30", "1." * 99]
    letters = "ABab01-_.%=+/ é{}"
    for _ in range(300):
        place = int(rng.integers(len(text)))
        texts.append(text[:place] + letters[int(rng.integers(len(letters)))] + text[place + 1 :])
    found = ask_one("decode", texts=texts)
    assert found[:10] == [None] * 10
    for own in found:  # what is accepted is a whole state
        assert own is None or set(own) == set(STATE)
    assert json.dumps(found)

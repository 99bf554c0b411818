"""A thousand random states in a real browser: the page computes what the library computes."""

from typing import Any

import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.base.seeds import seed_of
from attnmargin.plot.explorer.bundle import bundled
from attnmargin.report.pages.explorer import write_explorer

pytestmark = pytest.mark.slow
# Shapes (n, T, d), and states of each.
SHAPES = (
    (1, 3, 2), (1, 6, 2), (2, 4, 2), (2, 6, 2), (3, 4, 2),
    (3, 5, 2), (4, 4, 2), (2, 3, 3), (3, 3, 4), (4, 6, 2),
)  # fmt: skip
EACH, STEPS = 100, 200
METHODS: dict[str, dict[str, Any]] = {
    "gradient descent": {"method": "gd", "lr": 0.02},
    "plain": {"method": "gd", "normalize": False, "lr": 0.2},
    "factors": {"method": "gd", "parameter": "KQ", "lr": 0.02},
    "mirror, p = 1.5": {"method": "mirror", "p": 1.5, "lr": 0.02},
    "mirror, p = 3": {"method": "mirror", "p": 3.0, "lr": 0.02},
    "sign": {"method": "steepest", "norm": "max", "lr": 0.02},
    "spectral": {"method": "steepest", "norm": "spectral", "lr": 0.02},
}
_EXPOSED = "window.parts = { ...$frobenius, ...$rows, ...$selections, ...$training };"
_ANSWER = """([states, methods, steps]) => states.map(({data, selection, start, K, Q}) => {
  const own = parts.solveRows(parts.tokenRows(data, selection), data.z);
  const local = parts.localSelections(data);
  const runs = Object.entries(methods).map(([name, settings]) => {
    const matrix = (x) => Float64Array.from(x);
    const given = name === "factors" ? {K: matrix(K), Q: matrix(Q)} : matrix(start);
    const run = parts.startRun(data, {normalize: true, ...settings, start: given});
    parts.advanceRun(run, steps);
    return [...parts.runW(run)];
  });
  const locals = local.selections.map((one) => [one.selection, one.margin]);
  const {status, margin, support} = own;
  return {status, margin, support, W: [...own.W], complete: local.complete, locals, runs};
})"""


def _draw(shape: tuple[int, int, int]) -> tuple[am.AttentionData, Tensor, dict[str, Tensor]]:
    """Draw states of one shape: data, a selection each, and a start each; some W, some (K, Q)."""
    n, T, d = shape
    data = am.random_data(n, T, d, trials=EACH, name="explorer states")
    generator = torch.Generator().manual_seed(seed_of("explorer states", *map(str, shape)))
    chosen = torch.randint(T, (EACH, n), generator=generator)
    best = torch.rand(EACH, 1, generator=generator) < 0.6
    starts = {
        name: 0.5 * torch.randn(EACH, d, d, generator=generator, dtype=torch.float64)
        for name in ("start", "K", "Q")
    }
    return data, torch.where(best, am.optimal_tokens(data), chosen), starts


def _asked(
    data: am.AttentionData, selection: Tensor, starts: dict[str, Tensor]
) -> list[dict[str, Any]]:
    assert data.y is not None
    assert data.v is not None
    names = {"X": data.X, "z": data.z, "y": data.y, "v": data.v.expand(EACH, data.d)}
    return [
        {
            "data": {name: value[k].tolist() for name, value in names.items()},
            "selection": selection[k].tolist(),
            **{name: value[k].flatten().tolist() for name, value in starts.items()},
        }
        for k in range(EACH)
    ]


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(write_explorer(tmp_path_factory.mktemp("page") / "page.html").as_uri())
    opened.add_script_tag(content=bundled("page") + _EXPOSED, type="module")
    opened.wait_for_function("window.parts !== undefined")
    yield opened
    context.close()


def _trained(data: am.AttentionData, starts: dict[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    """Train; tell which runs do not amplify a change of the start in the 14th digit.

    Steps of a fixed length go to and fro where the loss is level, and may double any difference.
    """
    last = []
    for scale in (1.0, 1.0 + 1e-13):
        K, Q, W = (scale * starts[key] for key in ("K", "Q", "start"))
        init = (K, Q) if name == "factors" else W
        run = am.train(data, steps=STEPS, record=STEPS, init=init, **METHODS[name])
        last.append(run.W[-1])
    first, second = last
    moved = (first - second).norm(dim=(-2, -1))
    return first, moved <= 1e-10 * first.norm(dim=(-2, -1))


def _close(found: Tensor, expected: Tensor) -> Tensor:
    """Tell which matrices agree to nine digits."""
    return (found - expected).norm(dim=(-2, -1)) <= 1e-9 * expected.norm(dim=(-2, -1))


@pytest.mark.parametrize("shape", SHAPES)
def test_states_agree(page: Any, shape: tuple[int, int, int]) -> None:
    data, selection, starts = _draw(shape)
    found = page.evaluate(_ANSWER, [_asked(data, selection, starts), METHODS, STEPS])
    solution = am.solve(am.token_problem(data.X, data.z, selection))
    assert [own["status"] for own in found] == solution.status.tolist()
    good = solution.optimal
    W = torch.tensor([own["W"] for own in found], dtype=torch.float64).reshape_as(solution.W)
    assert bool(_close(W[good], solution.W[good]).all())
    clear = good & ~solution.doubtful.any(-1)
    assert int(clear.sum()) >= EACH // 3
    for k in clear.nonzero().flatten().tolist():
        assert found[k]["support"] == solution.support[k].tolist()
    for k, own in enumerate(found):
        known = am.selections.local_selections(data[k])
        assert own["complete"]
        assert sorted(s for s, _ in own["locals"]) == sorted(known.selections.tolist())
        margins = {tuple(s): m for s, m in own["locals"]}
        given = [margins[tuple(s)] for s in known.selections.tolist()]
        assert given == pytest.approx(known.margin.tolist(), rel=1e-9)
    for m, name in enumerate(METHODS):
        expected, steady = _trained(data, starts, name)
        W = torch.tensor([own["runs"][m] for own in found], dtype=torch.float64)
        agree = _close(W.reshape_as(expected), expected)
        assert bool(agree[steady].all()), (name, (~agree & steady).nonzero().flatten().tolist())
        assert int(steady.sum()) >= 0.8 * EACH, (name, int(steady.sum()))

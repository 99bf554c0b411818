"""Which rows are tight: right, or in doubt."""

import numpy as np
import pytest
import torch

import attnmargin as am

SCALES = [1.0, 3.0, 10.0, 1e4, 1e8]
POWERS = [1.1, 1.75, 2.0, 3.0, 4.0, 6.0, 10.0]


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("scale", SCALES)
def test_rows_of_different_scales_are_all_tight(p: float, scale: float) -> None:
    """Each row fixes an entry of its own: W = (1, 1/scale), whatever p."""
    solution = am.solve(am.margin_problem([[1.0, 0.0], [0.0, scale]], [[1.0]]), p)
    assert solution.status == am.Status.OPTIMAL
    expected = torch.tensor([1.0, 1.0 / scale], dtype=torch.float64)
    torch.testing.assert_close(solution.vector, expected, rtol=1e-8, atol=0.0)
    assert solution.support.tolist() == [True, True]
    assert not bool(solution.doubtful.any())


def two_scales(scale: float) -> am.AttentionData:
    """Data whose tokens (1, 0) and (0, scale) win only against tokens one margin below."""
    X = [[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]], [[0.0, scale], [0.0, 0.0], [0.0, -1.0]]]
    return am.AttentionData(X, [[1.0, 0.0]] * 2, [1, 1], [1.0, -1.0])


@pytest.mark.parametrize("norm", ["nuc", *POWERS])
@pytest.mark.parametrize("scale", [10.0, 1e4])
def test_a_small_entry_does_not_hide_what_pulls(norm: str | float, scale: float) -> None:
    assert not bool(am.selections.locally_optimal(two_scales(scale), [0, 0], norm))


@pytest.mark.parametrize("p", POWERS)
def test_a_tight_row_without_force_is_tight(p: float) -> None:
    """The third row holds with equality, but the first alone gives the same W."""
    problem = am.token_problem([[[-1.0, 1], [-1, 0], [-2, 2], [0, 2]]], [[-1.0, 1]], [2])
    assert am.solve(problem, p).support.tolist() == [True, False, True]


@pytest.mark.parametrize("norm", ["fro", "nuc", 1.1, 3.0, 10.0])
def test_nearly_equal_rows_are_not_confused(norm: str | float) -> None:
    """The second row is the first one, longer by 1e-10: it has slack, or is in doubt."""
    problem = am.margin_problem([[1.0, 0.5], [1.0 + 1e-10, 0.5 * (1.0 + 1e-10)]], [[1.0]])
    solution = am.solve(problem, norm)
    assert not bool(solution.support[1])
    assert bool(solution.support[0]) or bool(solution.doubtful[0])


@pytest.mark.parametrize("norm", ["fro", "nuc", 1.1, 1.75, 3.0, 10.0])
def test_ordinary_data_leave_nothing_open(norm: str | float) -> None:
    data = am.random_data(5, 5, 5, trials=40, name="doubt")
    solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)), norm)
    assert not bool(solution.doubtful.any())
    tight = (solution.problem.apply(solution.W) - 1.0).abs() < 1e-7
    assert torch.equal(solution.support, tight)


def test_members_and_batch_decide_alike() -> None:
    problem = am.margin_problem(
        torch.tensor([[[1.0, 0.0], [0.0, 1e4]], [[1.0, 0.2], [0.3, 1.0]]]), torch.ones(2, 2, 1)
    )
    both = am.solve(problem, 10.0)
    for i in range(2):
        one = am.solve(problem[i], 10.0)
        assert torch.equal(one.support, both.support[i])
        assert torch.equal(one.doubtful, both.doubtful[i])
        assert torch.equal(both[i].support, both.support[i])


def test_unproved_solutions_are_in_doubt() -> None:
    problem = am.margin_problem([[1.0, 0.0], [0.0, 1.0]], [[1.0]])
    W, dual = torch.tensor([[1.0], [1.1]], dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    check = am.certify(problem, "fro", W, dual)
    solution = am.Solution(problem, am.solve(problem).norm, W, dual, check, torch.tensor(0))
    assert solution.doubtful.tolist() == [True, True]
    assert bool(solution.feasible)
    assert not bool(solution.infeasible)


def test_an_open_selection_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    data = two_scales(10.0)
    found = am.selections.locality(data, [0, 0])
    monkeypatch.setattr(
        type(found.solution), "doubtful", property(lambda s: torch.ones_like(s.problem.mask))
    )
    monkeypatch.setattr(
        type(found.solution), "support", property(lambda s: torch.zeros_like(s.problem.mask))
    )
    with pytest.raises(am.InaccurateError, match="rounding hides the support tokens of 1"):
        am.selections.locally_optimal(data, [0, 0])


def test_rows_whose_slack_drowns_in_rounding_are_in_doubt() -> None:
    """Closed form: two orthogonal parts of W, 2e8 and 7e-9 long; the last row has slack one."""
    short, long = np.array([1.0, 2.0, 2.0]) * 2.0**-16, np.array([2.0, 1.0, -2.0]) * 2.0**13
    X = [[0 * short, -short, -short], [-long, -2 * long, 0 * long]]
    solution = am.solve(am.token_problem(X, [2 * short, long / 4], [0, 2]), "nuc")
    assert not bool(solution.support[3])
    assert bool(solution.doubtful[3])


def test_slack_below_the_rounding_of_a_long_solution_is_in_doubt() -> None:
    """W is 2e9 long; row 0 has an exact slack of 1.07e-6 and no force, rounding is 2e-5."""
    X = [
        [[1.141613657292435, -1.4908481201871862], [-0.7987206577542657, -0.8526291447325535],
         [-1.0166327474247612, -2.4616608353078893], [1.1416196327569788, -1.4908438187078576]],
        [[-0.9542141892022826, 1.299512683609877], [0.36456889346486004, 1.2570396051937425],
         [-1.1016107321245128, 0.1454909575826868], [-0.95421418897564, 1.2995126829558794]],
        [[1.0581944170608613, 0.4388368671309499], [-0.18570403717231576, 1.6674171588153988],
         [-0.5440879428766694, 0.6086137772480229], [1.0582067773795099, 0.4388371326512096]],
    ]  # fmt: skip
    z = [[-0.45913807253471667, 0.3502625381916553], [0.06523922102265035, -0.775136855948563],
         [0.650778026163874, 0.3402645338565144]]  # fmt: skip
    solution = am.solve(am.token_problem(X, z, [1, 0, 3]))
    assert solution.support.nonzero().flatten().tolist() == [1, 2, 5]
    assert solution.doubtful.nonzero().flatten().tolist() == [0]


def test_rows_that_may_share_their_multipliers_are_in_doubt() -> None:
    """Rows 3 and 5 are 1e-11 apart, and rounding is larger: force may be on either."""
    X = [
        [
            [-0.3925314285717816, 0.13761538779695587, -0.9731588311313489],
            [0.3506527022656284, -0.8429045436643228, -0.46299249541501936],
            [0.5660012132042354, -0.19368920963445707, -2.365929445778514],
            [-0.3925315513695019, 0.1376153294202035, -0.9731588197267838],
        ],
        [
            [1.1851594005219839, 0.4833035870253849, -1.0091899474948753],
            [-0.06179741999929881, 0.17326941620096184, -1.3426423523468882],
            [-0.23838190520102964, -1.3821378743736068, 0.5672255544615885],
            [1.185159400521405, 0.4833035870258476, -1.0091899474956534],
        ],
        [
            [-1.043270568747653, -0.25565009514431636, 0.11416880008103683],
            [1.032548961435924, -1.7565943419635675, 1.5690078532637832],
            [-0.49014814414512253, -0.2618982943359887, -0.14147140830110602],
            [-1.0439549311929346, -0.25666331901646583, 0.11568295439844806],
        ],
    ]
    z = [
        [0.5123232457408791, 1.3735330656261227, -0.30134116691681967],
        [0.21081556185911995, 1.8391718374642974, 0.34838048586332593],
        [0.8413218727346479, 1.2466655330622773, -0.13287273713605777],
    ]
    solution = am.solve(am.token_problem(X, z, [1, 2, 0]), 10)
    assert not bool(solution.support[3])
    assert bool(solution.doubtful[3])


def test_a_row_with_a_small_multiplier_may_be_slack() -> None:
    """Interior points end with a multiplier of 8e-7 on a row whose slack is 4e-9."""
    X = [[[-1, -1, -1], [0, -1, 2], [2, -1, 2]], [[0, 0, -1], [0, -2, -2], [1, 2, 1]]]
    data = am.AttentionData(
        torch.tensor(X).double(), [[2, 0, -2], [2, 1, -2]], [1, -1], [1.0, 0.0, -1.0]
    )
    found = am.selections.locality(data, [0, 2], 1.1)
    assert found.solution.support.tolist() == [True, False, True, False]
    assert bool(found.local)

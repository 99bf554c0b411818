"""What extras add to the library alone: it works with the extra, and is asked for without."""

from pathlib import Path

from attnmargin.base.extras import install_line
from tests.release.environments import Environment

_PROBLEM = """
import attnmargin as am
data = am.random_data(3, 3, 4, name="release", min_gap=0.1)
problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
"""
SNIPPETS = {
    "sklearn": """
from attnmargin.sklearn import MaxMarginAttention
X, y = [[[2.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [2.0, 0.0]]], [0, 1]
assert MaxMarginAttention().fit(X, y).predict(X).tolist() == y
""",
    "notebook": f"{_PROBLEM}assert am.plot.explore(data).data.n == 3",
    "verify": f"""{_PROBLEM}
own, other = am.solve(problem), am.solve(problem, method="reference")
assert abs(float(own.value / other.value) - 1) < 1e-6
""",
}


def try_snippets(found: dict[str, Environment], none: Environment, place: Path) -> list[str]:
    """Run each snippet with its extra and without; return what is wrong."""
    place.mkdir(parents=True)
    wrong = []
    for name, snippet in SNIPPETS.items():
        done = found[name].run("-c", snippet, place=place)
        if done.returncode:
            wrong.append(f"the library with {name}: {done.stderr}")
        told = none.run("-c", snippet, place=place).stderr.rstrip().rpartition("\n")[2]
        if not told.endswith(install_line(name)):
            wrong.append(f"the library without {name}: {told}")
    print(f"the library with and without {', '.join(SNIPPETS)}: {'WRONG' if wrong else 'right'}")
    return wrong

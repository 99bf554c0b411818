"""
The start decides where training ends
=====================================

The instance has several locally optimal selections (paper A, Definition 2). Training starts far
along the direction of each of them and stays with it (Theorem 7).
"""

from typing import TYPE_CHECKING

import attnmargin as am

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def main() -> "Figure":
    data = am.random_data(n=4, T=4, d=4, name="start decides", seed=3)
    prediction = am.predict(data)
    print(f"verdict: {prediction.verdict}")
    search = prediction.search
    assert search is not None
    print(search)
    print(f"from zero: {am.train(data, record=2000).selection[-1].tolist()}")
    lines: list[am.plot.Series] = []
    for selection, W, margin in zip(
        search.selections, search.solution.W, search.margin, strict=True
    ):
        run = am.train(data, init=300.0 * W, record=20)
        aligned = float(am.correlation(run.W[-1], W))
        off = (1.0 - am.correlation(run.W, W)).clamp_min(1e-16)
        name = f"selection {', '.join(map(str, selection.tolist()))}"
        lines.append(
            am.plot.Series(
                kind="line", name=name, x=run.steps.numpy(), y=off.numpy(), style=len(lines)
            )
        )
        print(
            f"from near {selection.tolist()} (margin {float(margin):.3f}): "
            f"{run.selection[-1].tolist()}, correlation {aligned:.5f}"
        )
    panel = am.plot.Panel(
        title="runs that start near a stable selection", axes=("training step", "1 − correlation"),
        logarithmic=(False, True), series=lines,
    )  # fmt: skip
    caption = "Distance of W from the direction of the selection that it started near."
    return am.plot.picture(am.plot.Picture(name="starts", caption=caption, panels=[panel]))


if __name__ == "__main__":
    figure = main()

"""Show that the start decides where training ends: every stable selection attracts its neighbours.

The instance has several locally optimal selections (paper A, Definition 2). Training starts far
along the direction of each of them and stays with it (Theorem 7). Run it:

    python examples/start_decides.py
"""

import attnmargin as am


def main() -> None:
    data = am.random_data(n=4, T=4, d=4, name="start decides", seed=3)
    prediction = am.predict(data)
    print(f"verdict: {prediction.verdict}")
    search = prediction.search
    assert search is not None
    print(search)
    print(f"from zero: {am.train(data, record=2000).selection[-1].tolist()}")
    for selection, W, margin in zip(
        search.selections, search.solution.W, search.margin, strict=True
    ):
        run = am.train(data, init=300.0 * W, record=2000)
        aligned = float(am.correlation(run.W[-1], W))
        print(
            f"from near {selection.tolist()} (margin {float(margin):.3f}): "
            f"{run.selection[-1].tolist()}, correlation {aligned:.5f}"
        )


if __name__ == "__main__":
    main()

"""The explorer in a browser: milliseconds from a drag to the redrawn page, and training steps.

    python -m benchmarks.explorer    # where Chromium is installed

Writes ``results/explorer.json``. A drag changes one token; all that the page knows follows from it:
the end of the run, its direction, support tokens and all stable selections.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

import attnmargin as am
from attnmargin.report.pages.explorer import write_explorer
from benchmarks.harness import RESULTS, machine, save

SHAPES = ((1, 5, 2), (2, 4, 2), (4, 6, 2), (3, 8, 3))
STATES, MOVES, STEPS = 20, 40, 100_000
_DRAG = """(moves) => Array.from({length: moves}, (_, k) => {
  const data = structuredClone(attnmargin.state().data);
  data.X[0][0][0] += 0.01 * Math.sin(k / 5);
  const begin = performance.now();
  attnmargin.set({data}, true);
  document.body.offsetHeight;  // the page is laid out
  return performance.now() - begin;
})"""
_RUN = """(steps) => {
  const begin = performance.now();
  attnmargin.frames(steps);
  return performance.now() - begin;
}"""


def measure(page: Page, shape: tuple[int, int, int], folder: Path) -> dict[str, Any]:
    """Drag a token of several random states; train one of them."""
    times: list[float] = []
    for k in range(STATES):
        data = am.random_data(*shape, name=f"explorer benchmark {k}")
        page.goto(write_explorer(folder / "page.html", data).as_uri())
        page.evaluate(_DRAG, MOVES)  # warms up
        times += page.evaluate(_DRAG, MOVES)
    times.sort()
    row = {
        "shape (n, T, d)": shape,
        "median ms": times[len(times) // 2],
        "95 % ms": times[int(0.95 * len(times))],
        "steps/s": 1000.0 * STEPS / float(page.evaluate(_RUN, STEPS)),
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        results = [measure(page, shape, Path(folder)) for shape in SHAPES]
        record = {**machine(), "browser": browser.version, "results": results}
        browser.close()
    save(record, chosen.out / "explorer.json")


if __name__ == "__main__":
    main()

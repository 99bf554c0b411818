"""The gallery and the tutorials: their order, their pictures, and the page to play with."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

from attnmargin.plot.drawing import save
from attnmargin.report.pages.explorer import write_explorer

_ORDER = (
    "predicted_direction", "certified_solution", "contradiction", "norms_side_by_side",
    "regularization_path", "next_token", "deciding_tokens", "optimiser_margins", "sweep_widths",
    "many_selections", "start_decides", "predict_words", "watch_heads", "watch_classifier",
    "theorist", "engineer", "optimiser", "teacher",
)  # fmt: skip


class Order:
    """Sort key of programs: from easy to special."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        return _ORDER.index(Path(name).stem)


def scrape(block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Save every figure that a block has drawn; return what shows it."""
    known = variables["example_globals"].setdefault("_shown", [])
    paths = []
    for value in list(variables["example_globals"].values()):
        if isinstance(value, Figure) and not any(value is own for own in known):
            known.append(value)
            paths.append(str(next(variables["image_path_iterator"])))
            with open(paths[-1], "wb") as stream:
                save(value, "png", stream)
    return figure_rst(paths, settings["src_dir"])


def write_play(app: Sphinx, error: Exception | None) -> None:
    """Put the explorer beside the pages."""
    if error is None and app.builder.name == "html":
        write_explorer(Path(app.outdir) / "play.html")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_play)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

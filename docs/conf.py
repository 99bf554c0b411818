"""Settings of the site; `make docs` builds it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "src")]

project = "attnmargin"
author = copyright = "The attnmargin authors"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "code_links",
    "docstrings",
    "formulas",
    "pictures",
    "reference",
]
exclude_patterns = ["_build", "tutorials", "results/B/table1"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 70

html_theme = "furo"
html_title = "attnmargin"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("search.js", {"defer": "defer"})]
html_copy_source = False
# A page that is opened from disk may not read the others, so results come without excerpts.
html_show_search_summary = False
html_math_renderer = "mathml"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "tutorials"],
    "gallery_dirs": ["gallery", "learn"],
    "filename_pattern": "",
    "within_subsection_order": "pictures.Order",
    "image_scrapers": ("pictures.scrape",),
    "reset_modules": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "backreferences_dir": None,
    "min_reported_time": 3600,
    "notebook_extensions": set(),
    "abort_on_example_error": True,
}

suppress_warnings = ["toc.not_readable", "myst.header"]

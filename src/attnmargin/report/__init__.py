"""Results → self-contained HTML pages."""

from attnmargin.report.pages.demo import write_demo
from attnmargin.report.pages.prediction import prediction_page, write_prediction

__all__ = ["prediction_page", "write_demo", "write_prediction"]

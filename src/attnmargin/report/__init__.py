"""Results → self-contained HTML pages."""

from attnmargin.report.demo import write_demo
from attnmargin.report.prediction_page import prediction_page, write_prediction

__all__ = ["prediction_page", "write_demo", "write_prediction"]

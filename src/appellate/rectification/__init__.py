"""From a table to labels, a review page and a model, as one object.

`preparation` reads the table and makes the classifier, `features` collects what is learned from,
`fitting` fits and tabulates the labels, `scoring` compares them with baselines and suggests items
to review, `decisions` reads what reviewers decided, `pages` collects what the review page shows,
`run` holds and writes all of it, `prediction` labels new rows.
"""

from __future__ import annotations

from appellate.rectification.prediction import predict
from appellate.rectification.run import Rectification, load, rectify

__all__ = ["Rectification", "load", "predict", "rectify"]

"""Data to learn from: known sets, a user's own files, and generators of candidate sets.

The names below are loaded on first use, so that the terminal can list data sets quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from appellate.datasets.catalogue import known_datasets

if TYPE_CHECKING:
    from appellate.datasets.download import fetch_dataset as fetch_dataset
    from appellate.datasets.generators import CandidateSummary as CandidateSummary
    from appellate.datasets.generators import make_partial_labels as make_partial_labels
    from appellate.datasets.generators import summarize_candidates as summarize_candidates
    from appellate.datasets.home import get_data_home as get_data_home
    from appellate.datasets.matfiles import load_partial_mat as load_partial_mat
    from appellate.datasets.own import load_partial_csv as load_partial_csv
    from appellate.datasets.synthetic import (
        make_ambiguous_classification as make_ambiguous_classification,
    )
    from appellate.datasets.synthetic import make_crowd as make_crowd
    from appellate.datasets.synthetic import make_long_tailed as make_long_tailed
    from appellate.datasets.typed import *  # noqa: F403  # the loaders

_HOME_OF = {
    **{f"load_{name}": entry.loader for name, entry in known_datasets().items()},
    "CandidateSummary": "generators",
    "fetch_dataset": "download",
    "get_data_home": "home",
    "load_partial_csv": "own",
    "load_partial_mat": "matfiles",
    "make_ambiguous_classification": "synthetic",
    "make_crowd": "synthetic",
    "make_long_tailed": "synthetic",
    "make_partial_labels": "generators",
    "summarize_candidates": "generators",
}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"appellate.datasets.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'appellate.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""Data to learn from: known sets, a user's own files, and generators of candidate sets.

The names below are loaded on first use, so that the terminal can list data sets quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.datasets.crowd import (
        load_cifar10h,
        load_cifar10n,
        load_labelme,
        load_music_genre,
        load_plcifar10,
        load_rte,
        load_sentence_polarity,
    )
    from appellate.datasets.download import fetch_dataset
    from appellate.datasets.generators import make_partial_labels
    from appellate.datasets.home import get_data_home
    from appellate.datasets.images import load_cifar10, load_cifar100, load_fashion_mnist
    from appellate.datasets.matfiles import load_partial_mat
    from appellate.datasets.realworld import (
        load_birdsong,
        load_fgnet,
        load_lost,
        load_mirflickr,
        load_msrcv2,
        load_soccer_player,
        load_yahoo_news,
    )
    from appellate.datasets.summary import CandidateSummary, summarize_candidates
    from appellate.datasets.synthetic import (
        make_ambiguous_classification,
        make_crowd,
        make_long_tailed,
    )
    from appellate.datasets.tables import load_partial_csv

__all__ = [
    "CandidateSummary",
    "fetch_dataset",
    "get_data_home",
    "load_birdsong",
    "load_cifar10",
    "load_cifar10h",
    "load_cifar10n",
    "load_cifar100",
    "load_fashion_mnist",
    "load_fgnet",
    "load_labelme",
    "load_lost",
    "load_mirflickr",
    "load_msrcv2",
    "load_music_genre",
    "load_partial_csv",
    "load_partial_mat",
    "load_plcifar10",
    "load_rte",
    "load_sentence_polarity",
    "load_soccer_player",
    "load_yahoo_news",
    "make_ambiguous_classification",
    "make_crowd",
    "make_long_tailed",
    "make_partial_labels",
    "summarize_candidates",
]

_HOMES = {
    "crowd": "load_cifar10h load_cifar10n load_labelme load_music_genre load_plcifar10 load_rte "
    "load_sentence_polarity",
    "download": "fetch_dataset",
    "generators": "make_partial_labels",
    "home": "get_data_home",
    "images": "load_cifar10 load_cifar100 load_fashion_mnist",
    "matfiles": "load_partial_mat",
    "realworld": "load_birdsong load_fgnet load_lost load_mirflickr load_msrcv2 "
    "load_soccer_player load_yahoo_news",
    "summary": "CandidateSummary summarize_candidates",
    "synthetic": "make_ambiguous_classification make_crowd make_long_tailed",
    "tables": "load_partial_csv",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"appellate.datasets.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'appellate.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

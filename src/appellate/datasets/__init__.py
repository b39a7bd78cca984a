"""Data to learn from: known sets, a user's own files, and generators of candidate sets.

The names below are loaded on first use, so that the terminal can list data sets quickly.
"""

# ruff: noqa: I001  # several names of a module are handed on in one statement

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.datasets.crowd import (
        load_cifar10h as load_cifar10h,
        load_cifar10n as load_cifar10n,
        load_labelme as load_labelme,
        load_music_genre as load_music_genre,
        load_plcifar10 as load_plcifar10,
        load_rte as load_rte,
        load_sentence_polarity as load_sentence_polarity,
    )
    from appellate.datasets.download import fetch_dataset as fetch_dataset
    from appellate.datasets.generators import (
        CandidateSummary as CandidateSummary,
        make_partial_labels as make_partial_labels,
        summarize_candidates as summarize_candidates,
    )
    from appellate.datasets.home import get_data_home as get_data_home
    from appellate.datasets.images import (
        load_cifar10 as load_cifar10,
        load_cifar100 as load_cifar100,
        load_fashion_mnist as load_fashion_mnist,
    )
    from appellate.datasets.matfiles import load_partial_mat as load_partial_mat
    from appellate.datasets.realworld import (
        load_birdsong as load_birdsong,
        load_fgnet as load_fgnet,
        load_lost as load_lost,
        load_mirflickr as load_mirflickr,
        load_msrcv2 as load_msrcv2,
        load_soccer_player as load_soccer_player,
        load_yahoo_news as load_yahoo_news,
    )
    from appellate.datasets.synthetic import (
        make_ambiguous_classification as make_ambiguous_classification,
        make_crowd as make_crowd,
        make_long_tailed as make_long_tailed,
    )
    from appellate.datasets.own import load_partial_csv as load_partial_csv

_HOMES = {
    "crowd": "load_cifar10h load_cifar10n load_labelme load_music_genre "
    "load_plcifar10 load_rte load_sentence_polarity",
    "download": "fetch_dataset",
    "generators": "CandidateSummary make_partial_labels summarize_candidates",
    "home": "get_data_home",
    "images": "load_cifar10 load_cifar100 load_fashion_mnist",
    "matfiles": "load_partial_mat",
    "realworld": "load_birdsong load_fgnet load_lost load_mirflickr "
    "load_msrcv2 load_soccer_player load_yahoo_news",
    "synthetic": "make_ambiguous_classification make_crowd make_long_tailed",
    "own": "load_partial_csv",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"appellate.datasets.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'appellate.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""The networks' methods by name, for tables and the command line; torch is not needed here.

A row of `LOSSES` is a loss of other authors. Titles, help, ``loss=`` and the docstring of
`RivalClassifier` follow from it; its class is in `appellate.deep.rivals`.
"""

from __future__ import annotations

from typing import NamedTuple

_FENG = """Feng, Lv, Han, Xu, Niu, Geng, An, Sugiyama (2020). Provably consistent partial-label
   learning. NeurIPS."""
_SEVERAL = """Feng, Kaneko, Han, Niu, An, Sugiyama (2020). Learning with multiple complementary
   labels. ICML."""
_LV = """Lv, Liu, Feng, Xu, Xu, An, Niu, Geng, Sugiyama (2023). On the robustness of average
   losses for partial-label learning. IEEE TPAMI."""
_WEN = """Wen, Cui, Hang, Liu, Wang, Lin (2021). Leveraged weighted loss for partial label
   learning. ICML."""
_ZHANG = """Zhang, Feng, Han, Liu, Niu, Qin, Sugiyama (2022). Exploiting class activation value
   for partial-label learning. ICLR."""
_XU = """Xu, Liu, Lv, Qiao, Geng (2023). Progressive purification for instance-dependent
   partial label learning. ICML."""
_WU = """Wu, Wang, Zhang (2022). Revisiting consistency regularization for deep partial label
   learning. ICML."""
_WANG = """Wang, Xia, Li, Mao, Feng, Chen, Zhao (2022). SoLar: Sinkhorn label refinery for
   imbalanced partial-label learning. NeurIPS."""
_HONG = """Hong, Yao, Zhou, Zhang, Wang (2023). Long-tailed partial label learning via dynamic
   rebalancing. ICLR."""


class Loss(NamedTuple):
    """A loss of other authors.

    Attributes
    ----------
    name : str
        For ``loss=`` and ``--methods``.
    class_name : str
        Class in `appellate.deep.rivals`.
    title : str
        Name in tables of results.
    help : str
        The loss in a line, as the docstring of `RivalClassifier` explains its symbols.
    reference : str
        Authors, title and place.
    has_targets : bool
        Whether it has targets that a class prior, or networks that did not see the row, can
        change.
    views : tuple of str
        Views of an image that it compares.
    """

    name: str
    class_name: str
    title: str
    help: str
    reference: str
    has_targets: bool = False
    views: tuple[str, ...] = ("none",)


#: The losses of other authors.
LOSSES = (
    # So weighted RC is PRODEN; its authors take w by one more pass after the step.
    Loss(
        "rc",
        "Proden",
        "RC",
        "``-sum_S w_j log p_j``, ``w = p`` within S; PRODEN's targets",
        _FENG,
        has_targets=True,
    ),
    Loss("cc", "CC", "CC", "``-log sum_S p_j``", _FENG),
    Loss(
        "lws",
        "LWS",
        "LWS",
        "``sum_S w_j s(-f_j) + 2 sum_{not S} w_j s(f_j)``, s the sigmoid",
        _WEN,
        has_targets=True,
    ),
    Loss(
        "cavl",
        "CAVL",
        "CAVL",
        "``-log p_k``, k the candidate of the largest ``abs(f_k - 1) f_k``",
        _ZHANG,
    ),
    Loss(
        "mse",
        "MSE",
        "MSE",
        "unbiased squared error of several complementary labels",
        _SEVERAL,
    ),
    Loss("exp", "EXP", "EXP", "``exp(-sum_S p_j) (l - 1) / (l - abs(S))``", _SEVERAL),
    Loss("abs-mae", "AbsMAE", "ABS-MAE", "``mean_S 2 - 2 p_j``", _LV),
    Loss("abs-gce", "AbsGCE", "ABS-GCE", "``mean_S (1 - p_j^0.7) / 0.7``", _LV),
    Loss(
        "pop",
        "POP",
        "POP",
        "as rc, and candidates far behind the best are dropped for good",
        _XU,
        has_targets=True,
    ),
    Loss(
        "cr-dpll",
        "CRDPLL",
        "CR-DPLL",
        "``-sum_{not S} log(1 - p_j)``, and views that agree",
        _WU,
        has_targets=True,
        views=("simple", "strong"),
    ),
    Loss(
        "solar",
        "SoLar",
        "SoLar",
        "as rc, w by transport to an estimated frequency of the labels",
        _WANG,
    ),
    Loss(
        "records",
        "Records",
        "RECORDS",
        "as rc, w of logits less the log of an estimated frequency",
        _HONG,
        has_targets=True,
    ),
)
#: Title in tables of results, by the name for ``--methods``.
NETWORKS = {"proden": "PRODEN", "pico": "PiCO"} | {loss.name: loss.title for loss in LOSSES}

"""What candidate sets and answers say about the true labels.

`likelihood` has the evidence of one row and the posterior that follows from it, `scales` turns
scores into probabilities, `held_out` scores predictions without the true labels. `ambiguity` tells
how the candidate sets arose, `order` whether the labels have an order, `groups` how labels of one
group cover its candidates, `costs` what a wrong label costs, and `confidence` has the shares and
the blur of the paper.
"""

# ruff: noqa: I001  # one statement hands on several names of a module

from __future__ import annotations

from typing import TYPE_CHECKING

from appellate._lazy import load_on_use

if TYPE_CHECKING:
    from appellate.evidence.ambiguity import (
        choose_tau as choose_tau,
        read_ambiguity as read_ambiguity,
        resemblance as resemblance,
    )
    from appellate.evidence.confidence import (
        blur as blur,
        initial_confidence as initial_confidence,
    )
    from appellate.evidence.costs import cost_matrix as cost_matrix
    from appellate.evidence.groups import Groups as Groups
    from appellate.evidence.held_out import (
        above_chance as above_chance,
        choose_round as choose_round,
        criterion as criterion,
        row_criterion as row_criterion,
        suspicion as suspicion,
    )
    from appellate.evidence.likelihood import (
        Evidence as Evidence,
        estep as estep,
        set_odds as set_odds,
    )
    from appellate.evidence.order import (
        choose_width as choose_width,
        label_places as label_places,
        order_matrix as order_matrix,
    )
    from appellate.evidence.scales import (
        Scale as Scale,
        fit_scale as fit_scale,
        fit_temperature as fit_temperature,
        mixture_weights as mixture_weights,
        soften as soften,
    )

_HOMES = {
    "Evidence": "likelihood",
    "Groups": "groups",
    "Scale": "scales",
    "above_chance": "held_out",
    "blur": "confidence",
    "choose_round": "held_out",
    "choose_tau": "ambiguity",
    "choose_width": "order",
    "cost_matrix": "costs",
    "criterion": "held_out",
    "estep": "likelihood",
    "fit_scale": "scales",
    "fit_temperature": "scales",
    "initial_confidence": "confidence",
    "label_places": "order",
    "mixture_weights": "scales",
    "order_matrix": "order",
    "read_ambiguity": "ambiguity",
    "resemblance": "ambiguity",
    "row_criterion": "held_out",
    "set_odds": "likelihood",
    "soften": "scales",
    "suspicion": "held_out",
}
__all__ = list(_HOMES)
__getattr__ = load_on_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)

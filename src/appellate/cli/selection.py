"""Choose base classifier and settings without the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appellate.cli.hearing import Setting
    from appellate.cli.roles import Case

SCORE = "candidate_likelihood"
_BASES = ("aggd", "sure", "knn")
_MOST = 1_000  # samples that are compared


def select(case: Case, frame: Any, setting: Setting, given: str | None) -> Setting:
    """Try bases and settings on a sample of the rows and return the best by a truth-free score.

    The score is the likelihood that the partner, with each row left out, gives to the row's
    candidates; it reads no truth. A base that the user named is kept.

    Parameters
    ----------
    case : Case
        Candidates and features.
    frame : object
        Features as the pipeline takes them.
    setting : Setting
        Chosen so far.
    given : str or None
        Base that the user named.
    """
    import numpy as np

    from appellate.bases import make_base
    from appellate.cli.hearing import build, take
    from appellate.model_selection import PLCPClassifierCV

    chosen = np.random.default_rng(setting.seed).permutation(len(case))[:_MOST]
    prepare = build(case, replace(setting, kernel="exact"))[0]
    X, sets = prepare.fit_transform(take(frame, chosen)), case.sets[chosen]
    if setting.kernel == "nystroem":
        bases = [given or "sure"]  # the only one that is quick on all rows
    else:
        bases = [given] if given else list(_BASES)
    found: list[tuple[float, str, dict[str, Any]]] = []
    for name in bases:
        search = PLCPClassifierCV(
            make_base(name), costs=[setting.cost], scoring=SCORE, random_state=setting.seed
        )
        search.fit(X, sets)
        chosen_params = {k: v for k, v in search.best_params_.items() if k != "cost"}
        found.append((float(search.best_score_), name, chosen_params))
    _, base, params = max(found, key=lambda each: each[0])
    tried = ", ".join(f"{name} {value:.4f}" for value, name, _ in found)
    why = f"{setting.why}; chosen by {SCORE} on {len(chosen)} samples ({tried})"
    return replace(setting, base=base, params=params, why=why)

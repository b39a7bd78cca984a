"""Samples whose false label led at first and was corrected (Fig. 2 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Name of `representative_errors`, for `Method.details`.
TRACED = "appellate.paper.traces:representative_errors"
TRACES = {
    "starts high": "the false label starts above the true one and, although it does not rise, "
    "stays above",
    "rises": "the confidence in the false label rises",
    "other": "the false label starts at or below the true one and does not rise",
}


def representative_errors(
    model: Any, truth: NDArray[np.intp], rows: NDArray[np.intp], n_examples: int = 2
) -> dict[str, Any]:
    """Sort the corrected samples by the error of the base and pick the clearest.

    A sample counts if its first label is wrong and its final label correct. FP is the first
    label, GT the true one. "Alone" goes from the base's initial confidence to that of the
    first label, "coupled" on to that of the final label.

    Parameters
    ----------
    model : PLCPClassifier
        Fitted on candidates without class names.
    truth : ndarray of int, shape (n,)
        True labels of its training rows.
    rows : ndarray of int, shape (n,)
        Number of each training row in the data set.
    n_examples : int, default=2
        Examples to keep of each kind.

    Returns
    -------
    dict
        ``mislabeled``, ``corrected``, ``counts`` and ``examples`` by kind.
    """
    verdict, appeal = model.label_history_[[0, -1]]
    wrong = verdict != truth
    sample = np.flatnonzero(wrong & (appeal == truth))
    false, true = verdict[sample], truth[sample]
    matrices = model.initial_confidence_, model.verdict_confidence_, model.confidence_
    fp, gt = (np.stack([m[sample, label] for m in matrices], axis=1) for label in (false, true))
    kinds = np.select(
        [fp[:, 1] > fp[:, 0] + 1e-9, fp[:, 0] > gt[:, 0] + 1e-9],
        ["rises", "starts high"],
        "other",
    )
    clearness = np.minimum(fp[:, 1] - gt[:, 1], gt[:, 2] - fp[:, 2])
    order = np.argsort(-clearness, kind="stable")
    examples = {
        kind: [
            {
                "row": int(rows[sample[i]]),
                "position": int(sample[i]),
                "false_label": int(false[i]),
                "true_label": int(true[i]),
                "false_confidence": fp[i].tolist(),
                "true_confidence": gt[i].tolist(),
            }
            for i in order[kinds[order] == kind][:n_examples].tolist()
        ]
        for kind in TRACES
    }
    return {
        "mislabeled": int(wrong.sum()),
        "corrected": len(sample),
        "counts": {kind: int(np.count_nonzero(kinds == kind)) for kind in TRACES},
        "examples": examples,
    }

"""The demo's experiment: digits with candidate sets, bases alone and coupled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.plcp import PLCPClassifier

METHODS = ("PL-KNN", "SURE")


@dataclass(frozen=True)
class Digits:
    """Half of scikit-learn's digits to train on, the other half to test.

    Attributes
    ----------
    ids : ndarray, shape (n,)
        Number of every training sample in `sklearn.datasets.load_digits`.
    train, test : ndarray, shape (n, 64) and (m, 64)
        Pixels, in [0, 1].
    candidates : ndarray of bool, shape (n, 10)
        Candidate sets of the training samples.
    truth, test_truth : ndarray, shape (n,) and (m,)
        True digits.
    """

    ids: NDArray[np.intp]
    train: NDArray[np.float64]
    test: NDArray[np.float64]
    candidates: NDArray[np.bool_]
    truth: NDArray[np.intp]
    test_truth: NDArray[np.intp]


@dataclass(frozen=True)
class Score:
    """How one classifier did."""

    test_accuracy: float
    transductive_accuracy: float
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """One base alone and coupled with a partner.

    Attributes
    ----------
    method : str
        Name of the base.
    model : PLCPClassifier
        The coupled one, fitted.
    alone, coupled : Score
        How they did.
    correction_ratio, broken_ratio : float or None
        See `appellate.metrics`; None where there was nothing to correct or to break.
    overturned, corrected, broken : int
        Training samples whose label the appeal changed, put right, spoilt.
    """

    method: str
    model: PLCPClassifier
    alone: Score
    coupled: Score
    correction_ratio: float | None
    broken_ratio: float | None
    overturned: int
    corrected: int
    broken: int

    def rows(self) -> list[dict[str, Any]]:
        """Return the two rows of a table, base first; it has no appeals, so None there."""
        appeals = {
            name: getattr(self, name)
            for name in ("correction_ratio", "broken_ratio", "overturned", "corrected", "broken")
        }
        base = {"classifier": self.method, **asdict(self.alone)}
        coupled = {"classifier": f"{self.method}-PLCP", **asdict(self.coupled)}
        return [base | dict.fromkeys(appeals), coupled | appeals]


def load(*, flip_probability: float, seed: int) -> Digits:
    """Split the digits into halves and hide the training labels in candidate sets."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from appellate.datasets import make_partial_labels

    X, y = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=seed)
    candidates = make_partial_labels(
        y[train], flip_probability=flip_probability, random_state=seed
    )
    return Digits(train, X[train] / 16, X[test] / 16, candidates, y[train], y[test])


def compare(data: Digits, *, seed: int, begin: Callable[[str], None]) -> dict[str, Comparison]:
    """Train every base alone and coupled, on the same rows and with the same seed.

    Parameters
    ----------
    data : Digits
        What to train and test on.
    seed : int
        Random state of the coupled classifiers.
    begin : callable
        Told the name of every fit before it starts.

    Returns
    -------
    dict
        The comparison of every method, by its name.
    """
    from appellate.plcp import PLCPClassifier

    comparisons = {}
    for method in METHODS:
        begin(f"{method} alone")
        alone = _fit_and_score(_base(method), data)
        begin(f"{method} with its partner")
        model = PLCPClassifier(_base(method), keep_confidences=True, random_state=seed)
        comparisons[method] = _compared(method, model, alone, _fit_and_score(model, data), data)
    return comparisons


def compile_loops(data: Digits) -> None:
    """Fit a few rows, so that the compilation of the loops is not timed with a method."""
    from appellate.plcp import PLCPClassifier

    few = slice(0, 20)
    PLCPClassifier(_base("SURE"), max_rounds=1).fit(data.train[few], data.candidates[few])


def _base(method: str) -> Any:
    from appellate.bases.knn import PLKNNClassifier
    from appellate.bases.sure import SUREClassifier

    return {"PL-KNN": PLKNNClassifier, "SURE": SUREClassifier}[method]()


def _fit_and_score(model: Any, data: Digits) -> Score:
    from appellate.metrics import accuracy

    start = perf_counter()
    model.fit(data.train, data.candidates)
    seconds = perf_counter() - start
    return Score(
        test_accuracy=model.score(data.test, data.test_truth),
        transductive_accuracy=accuracy(data.truth, model.transduction_),
        seconds=seconds,
    )


def _compared(
    method: str, model: PLCPClassifier, alone: Score, coupled: Score, data: Digits
) -> Comparison:
    import numpy as np

    from appellate.metrics import broken_ratio, correction_ratio

    hearing = (data.truth, model.verdict_, model.transduction_)
    before, after = model.verdict_ == data.truth, model.transduction_ == data.truth
    return Comparison(
        method,
        model,
        alone,
        coupled,
        correction_ratio=_or_none(correction_ratio(*hearing)),
        broken_ratio=_or_none(broken_ratio(*hearing)),
        overturned=int(np.count_nonzero(model.overturned_)),
        corrected=int(np.count_nonzero(~before & after)),
        broken=int(np.count_nonzero(before & ~after)),
    )


def _or_none(ratio: float) -> float | None:
    return ratio if ratio == ratio else None

"""What a cost of wrong labels costs: prediction without one, and with a matrix.

Ratios of times, one thread: `predict` without a cost against the argmax of the scores alone, which
is all it was before there were costs; and the added time of a matrix against one (n, l) x (l, l)
product and the probabilities that it needs.
"""

from __future__ import annotations

import numpy as np
from _common import best_time, make_data, make_parser
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from appellate import SUREClassifier
from appellate.evidence.costs import cost_matrix

REPEATS = 7


def main():
    print(f"{'rows':>6} {'labels':>6} {'none / argmax':>14} {'matrix / product + proba':>25}")
    for n, l in ((5000, 20), (5000, 100), (5000, 400)):
        X, candidates = make_data(n + 500, l, 20)
        model = SUREClassifier(max_iter=5).fit(X[:500], candidates[:500])
        new = X[500:]

        def argmax(model=model, new=new):
            check_is_fitted(model)
            rows = validate_data(model, new, dtype=[np.float64, np.float32], reset=False)
            return model.classes_[np.argmax(model._model.decision(rows), axis=1)]

        plain = best_time(lambda model=model, new=new: model.predict(new), REPEATS)
        before = best_time(argmax, REPEATS)
        matrix = cost_matrix("absolute", range(l))
        chances = model.predict_proba(new)
        product = best_time(lambda p=chances, c=matrix: p @ c, REPEATS)
        proba = best_time(lambda model=model, new=new: model.predict_proba(new), REPEATS)
        model.cost_ = matrix
        costly = best_time(lambda model=model, new=new: model.predict(new), REPEATS)
        print(f"{n:>6} {l:>6} {plain / before:>14.2f} {costly / (proba + product):>25.2f}")


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    with threadpool_limits(limits=1):
        main()

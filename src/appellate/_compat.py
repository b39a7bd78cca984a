"""The only module that imports private scikit-learn names."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as effective_threads
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_n_features as check_n_features

__all__ = ["Interval", "StrOptions", "check_n_features", "effective_threads", "fit_context"]

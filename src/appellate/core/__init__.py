"""What every classifier is made of: the contract, the problem it solves and its result.

To write a classifier of your own, meet `BaseClassifier` or derive from
`PartialLabelClassifier`; `check_base` tells what is missing.
"""

from appellate.core.base import BaseClassifier, PartialLabelClassifier, check_base

__all__ = ["BaseClassifier", "PartialLabelClassifier", "check_base"]

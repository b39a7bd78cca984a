"""The jury: an ensemble whose members never judge rows they were trained on.

`classifier` is what a user sees. `rounds` has the steps of a fit as functions of the members'
outputs, `members` what a member can be, `exact` the kernel members on the whole kernel matrix and
`nystroem` the same members on features of some landmarks, for many rows.
"""

from appellate.methods.jury.classifier import JuryClassifier

__all__ = ["JuryClassifier"]

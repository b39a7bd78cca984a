"""The jury: an ensemble whose members never judge rows they were trained on.

- `classifier`: `JuryClassifier`, its parameters and `fit`
- `rounds`: the steps of a fit, as functions of replicas and the members' outputs
- `members`: replicas of the targets; forests, networks and classifiers with ``supervision=``;
  what remains of the members in a fitted jury
- `exact`: the kernel members on the whole kernel matrix
- `nystroem`: the same members on features of some landmarks, for many rows
"""

from appellate.methods.jury.classifier import JuryClassifier

__all__ = ["JuryClassifier"]

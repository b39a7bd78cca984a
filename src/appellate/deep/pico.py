"""PiCO: contrasted embeddings and their class prototypes choose the targets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from appellate.deep.estimator import DeepClassifier
from appellate.deep.networks import NetworkFactory
from appellate.deep.settings import Contrast, Network


@dataclass(eq=False, repr=False)
class PiCOClassifier(DeepClassifier):
    """Contrastive label disambiguation by a network [1]_, alone or coupled with a partner.

    A query network classifies a weakly augmented view of each row and embeds it; a slowly
    following key network embeds a strongly augmented one. Embeddings of rows that are thought
    to be of one class are drawn together. Each class has a prototype, a moving average of its
    embeddings, and the confidence in the candidates moves towards the candidate of the nearest
    prototype.

    With a partner, a second network (encoder and classifier, without the rest) sees the weak
    view; its losses are those of `PRODENClassifier` [2]_. ``partner="independent"`` is a second
    PiCO with all its parts.

    Cost: two networks are run forwards and one backwards for each row, a third both ways with
    a partner; twice that of one PiCO with an independent one. Memory: two to four networks, a
    queue of embeddings for each PiCO, and n x l confidences.

    Parameters
    ----------
    network : str, callable or Network, default="resnet18"
        As of `PRODENClassifier`. It is made with ``n_outputs=None`` and must then return
        features, (m, any number).
    @parameters@
    contrast : Contrast or None, default=None
        Constants of embeddings, queue and prototypes; None: those of the authors.

    Attributes
    ----------
    @attributes@

    References
    ----------
    .. [1] Wang, Xiao, Li, Feng, Niu, Chen, Zhao (2022). PiCO: Contrastive label disambiguation
       for partial label learning. ICLR.
    .. [2] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate.deep import Contrast, PiCOClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> contrast = Contrast(queue_size=6)
    >>> model = PiCOClassifier("mlp", contrast=contrast, n_epochs=60, random_state=0).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    network: str | NetworkFactory | Network = "resnet18"
    _: KW_ONLY
    n_epochs: int = 800
    contrast: Contrast | None = None

    _parameter_constraints = {
        **DeepClassifier._parameter_constraints,
        "contrast": [Contrast, None],
    }
    _method = "PiCO"
    _image_views = ("simple", "strong")
    _usual = {
        **DeepClassifier._usual,
        "sgd": {**DeepClassifier._usual["sgd"], "schedule": "cosine", "batch_size": 256},
    }

    def _options(self) -> Contrast:
        return Contrast() if self.contrast is None else Contrast.of(self.contrast)

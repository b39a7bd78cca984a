"""PiCO: contrasted embeddings and their class prototypes choose the targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import torch

from appellate._compat import Interval
from appellate.deep.estimator import DeepClassifier
from appellate.deep.methods import ContrastNetwork, Method, Pico, PicoSettings
from appellate.deep.networks import count_features


class PiCOClassifier(DeepClassifier):
    """Contrastive label disambiguation by a network [1]_, alone or coupled with a partner.

    A query network classifies a weakly augmented view of each row and embeds it; a slowly
    following key network embeds a strongly augmented one. Embeddings of rows that are thought
    to be of one class are drawn together. Each class has a prototype, a moving average of its
    embeddings, and the confidence in the candidates moves towards the candidate of the nearest
    prototype.

    With a partner, a second network (encoder and classifier, without the rest) sees the weak
    view; its losses are those of `PRODENClassifier` [2]_. ``partner="candidate"`` does not read
    `partner_output` and `reduction`; ``partner="independent"``, a second PiCO with all its
    parts, reads none of `collaboration`, `blur`, `direction`, `partner_output` and `reduction`.

    Cost: two networks are run forwards and one backwards for each row, a third both ways with
    a partner; twice that of one PiCO with an independent one. Memory: two to four networks, a
    queue of embeddings for each PiCO, and n x l confidences.

    Parameters
    ----------
    network : str or callable, default="resnet18"
        As of `PRODENClassifier`. It is made with ``n_outputs=None`` and must then return
        features, (m, any number).
    network_options, partner, collaboration, blur, partner_output, reduction, direction, head, \
n_epochs, batch_size, drop_last, optimizer, learning_rate, momentum, weight_decay, schedule, \
decay, decay_every, standardize, validation_fraction, selection, warm_start, precision, device, \
n_workers, run_dir, resume, checkpoint_every, random_state, verbose, cost
        As of `PRODENClassifier`, with the defaults of PiCO's authors; but they drop the last
        batch.
    weak_augmentation, strong_augmentation : str, default="simple", "strong"
        Of the query's and of the key's view, see `appellate.deep.augment.make_augmentation`;
        ``"none"`` for vectors.
    projection_size : int, default=128
        Length of the embedding.
    queue_size : int, default=8192
        Embeddings kept from earlier batches to contrast with.
    temperature : float, default=0.07
        Of the contrast.
    contrast_weight : float, default=0.5
        Weight of the contrastive loss.
    key_momentum : float, default=0.999
        Share of the key network that is kept in a step.
    prototype_momentum : float, default=0.99
        Share of a prototype that is kept for each of its rows.
    prototype_start : int, default=1
        First epoch, counted from 0, in which prototypes are used; before it each row is
        contrasted with itself alone.
    target_momentum : tuple of two floats, default=(0.95, 0.8)
        Share of the old confidence that is kept, from the second epoch to the last.

    Attributes
    ----------
    classes_, candidates_, training_output_, confidence_, transduction_, verdict_, \
verdict_confidence_, overturned_, history_, best_epoch_, input_shape_, n_iter_
        As of `PRODENClassifier`.

    References
    ----------
    .. [1] Wang, Xiao, Li, Feng, Niu, Chen, Zhao (2022). PiCO: Contrastive label disambiguation
       for partial label learning. ICLR.
    .. [2] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate.deep import PiCOClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = PiCOClassifier(
    ...     "mlp", weak_augmentation="none", strong_augmentation="none", n_epochs=30,
    ...     queue_size=6, random_state=0,
    ... ).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {
        **DeepClassifier._parameter_constraints,
        "weak_augmentation": [str],
        "strong_augmentation": [str],
        "projection_size": [Interval(Integral, 1, None, closed="left")],
        "queue_size": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "contrast_weight": [Interval(Real, 0, None, closed="left")],
        "key_momentum": [Interval(Real, 0, 1, closed="both")],
        "prototype_momentum": [Interval(Real, 0, 1, closed="both")],
        "prototype_start": [Interval(Integral, 0, None, closed="left")],
        "target_momentum": [tuple, list],
    }

    def __init__(
        self,
        network: str | Callable[..., Any] = "resnet18",
        *,
        network_options: dict[str, Any] | None = None,
        partner: str | None = None,
        collaboration: float = 0.5,
        blur: float | None = -1.0,
        partner_output: str = "complement",
        reduction: str = "auto",
        direction: str = "both",
        head: str = "mean",
        n_epochs: int = 800,
        batch_size: int = 256,
        drop_last: bool = False,
        optimizer: str = "sgd",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        weight_decay: float = 1e-3,
        schedule: str = "cosine",
        decay: float = 0.9,
        decay_every: int = 10,
        weak_augmentation: str = "simple",
        strong_augmentation: str = "strong",
        projection_size: int = 128,
        queue_size: int = 8192,
        temperature: float = 0.07,
        contrast_weight: float = 0.5,
        key_momentum: float = 0.999,
        prototype_momentum: float = 0.99,
        prototype_start: int = 1,
        target_momentum: tuple[float, float] = (0.95, 0.8),
        standardize: bool = True,
        validation_fraction: float = 0.0,
        selection: str = "last",
        warm_start: bool = False,
        precision: str = "float32",
        device: Any = "auto",
        n_workers: int = 0,
        run_dir: Any = None,
        resume: bool = False,
        checkpoint_every: int = 1,
        random_state: Any = None,
        verbose: bool = False,
        cost: Any = None,
    ) -> None:
        self.network = network
        self.network_options = network_options
        self.partner = partner
        self.collaboration = collaboration
        self.blur = blur
        self.partner_output = partner_output
        self.reduction = reduction
        self.direction = direction
        self.head = head
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.decay = decay
        self.decay_every = decay_every
        self.weak_augmentation = weak_augmentation
        self.strong_augmentation = strong_augmentation
        self.projection_size = projection_size
        self.queue_size = queue_size
        self.temperature = temperature
        self.contrast_weight = contrast_weight
        self.key_momentum = key_momentum
        self.prototype_momentum = prototype_momentum
        self.prototype_start = prototype_start
        self.target_momentum = target_momentum
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.selection = selection
        self.warm_start = warm_start
        self.precision = precision
        self.device = device
        self.n_workers = n_workers
        self.run_dir = run_dir
        self.resume = resume
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.verbose = verbose
        self.cost = cost

    def _make_base(
        self, network: Callable[[int | None], Any], shape: tuple[int, ...], start: torch.Tensor
    ) -> Method:
        encoder = network(None)
        n_features = count_features(encoder, shape)
        head = ContrastNetwork(encoder, n_features, start.shape[1], self.projection_size)
        names = (field.name for field in fields(PicoSettings))
        return Pico(head, start, PicoSettings(**{name: getattr(self, name) for name in names}))

    def _views(self) -> tuple[str, ...]:
        return (self.weak_augmentation, self.strong_augmentation)

"""PRODEN: the network's own probabilities, kept to the candidates, become its targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from appellate.deep.estimator import DeepClassifier
from appellate.deep.methods import Method, Proden


class PRODENClassifier(DeepClassifier):
    """Progressive identification of the true label by a network [1]_, alone or coupled.

    Every training row carries a confidence W over its candidates, at first even. A step on a
    batch minimises ``-sum_j W_ij log g_ij`` and then sets ``W_i <- rownorm(y_i * g_i)`` with
    the probabilities g of that same pass.

    With ``partner="non-candidate"`` a second network of the same kind learns what a sample is
    *not*, and both are drawn together through blurred confidences [2]_:

        L = L_base + L_com + collaboration * L_col
        L_com = -sum over non-candidates of log p^      (p^: the partner's confidence that a
                                                         label is not the true one)
        L_col = 1 - <blur(g), blur(1 - p^)>             (over the candidates)

    Cost: that of plain training of the same network, twice with a partner. Memory: the
    network, one batch, and n x l confidences.

    Parameters
    ----------
    network : str or callable, default="mlp"
        ``"linear"``, ``"mlp"``, ``"convnet"``, ``"resnet18"``, ``"resnet32"``, or a function
        ``(input_shape, n_outputs) -> torch.nn.Module`` whose module returns logits.
    network_options : dict or None, default=None
        More for a network by name, such as ``{"hidden": (300, 300, 300)}``, see
        `appellate.deep.networks.make_network`.
    partner : {"non-candidate", "candidate", "independent"} or None, default=None
        None trains the base alone. ``"non-candidate"`` is PLCP. ``"candidate"`` is the
        ablation whose partner is an ordinary classifier; it does not read `partner_output` and
        `reduction`. ``"independent"`` is the control, a second base that never hears of the
        first; it reads none of `collaboration`, `blur`, `direction`, `partner_output` and
        `reduction`. None reads neither these nor `head`.
    collaboration : float, default=0.5
        Weight of the collaborative loss (the paper's mu).
    blur : float or None, default=-1.0
        Temperature of the blur (k); None turns blurring off.
    partner_output : {"complement", "softmax", "softmax_rescaled", "sigmoid"}, \
default="complement"
        How the partner's logits become non-candidate confidences; the paper does not say. See
        `appellate.deep.losses.noncandidate_confidence`.
    reduction : {"auto", "sum", "mean"}, default="auto"
        Of L_com over the labels of a row.
    direction : {"both", "to_base", "to_partner"}, default="both"
        Whom L_col teaches.
    head : {"base", "partner", "mean"}, default="mean"
        Who predicts, if there is a partner; read at prediction. Training labels and docket
        are those of the head at the time of fitting.
    n_epochs : int, default=100
        Passes over the data.
    batch_size : int, default=128
        Rows of a step.
    drop_last : bool, default=False
        Whether an epoch leaves out the last rows of its order if they do not fill a batch, as
        the authors of PRODEN and PiCO do. Other rows are left out in every epoch; data smaller
        than a batch are one batch.
    optimizer : {"sgd", "adam"}, default="sgd"
        Stochastic gradient descent, as the authors of PRODEN, PiCO and PLCP use it, or Adam,
        which on small tables was the better by far.
    learning_rate, momentum, weight_decay : float, default=0.01, 0.9, 0.001
        Of the optimiser; Adam has no use for the momentum.
    schedule : {"constant", "cosine", "step"}, default="constant"
        Of the learning rate: unchanged, falling to a thousandth, or times `decay` every
        `decay_every` epochs.
    decay, decay_every : float, int, default=0.9, 10
        Of the step schedule.
    augmentation : str, default="none"
        Of training images, see `appellate.deep.augment.make_augmentation`. PRODEN's authors use
        none.
    standardize : bool, default=True
        Whether to centre and scale features, or channels of images, by those of the training
        rows. A torch dataset is taken as it comes.
    validation_fraction : float, default=0.0
        Share of the rows that is not trained on but scored after every epoch, by their
        candidate sets alone.
    selection : {"last", "covering_rate", "approximated_accuracy", "candidate_likelihood"}, \
default="last"
        Epoch to keep: the last, or the best on those rows. No truth is used.
    warm_start : bool, default=False
        Whether `fit` goes on from the networks of the last `fit`, with the confidence begun
        anew from the candidates or from `supervision`.
    precision : {"float32", "bfloat16", "float16"}, default="float32"
        Of the networks; losses and confidences are always float32.
    device : str or torch.device, default="auto"
        ``"auto"`` takes an accelerator if there is one.
    n_workers : int, default=0
        Processes that read ahead from a torch dataset.
    run_dir : path or None, default=None
        Folder for the checkpoint and the log (``log.jsonl``, and TensorBoard's if that is
        installed). Each fit needs a new one, so a base of `PLCPClassifier` has none.
    resume : bool, default=False
        Whether to go on from the checkpoint in `run_dir`. The result is that of a run that was
        never stopped.
    checkpoint_every : int, default=1
        Epochs between checkpoints.
    random_state : int, RandomState instance or None, default=None
        Seed of all streams: networks, batches, augmentation. With the same seed the base of a
        coupled classifier starts from the same weights and sees the same batches as alone.
    verbose : bool, default=False
        Whether to write a line for every epoch to the standard error.
    cost : None, str, dict or (l, l) matrix, default=None
        What a wrong label costs (`appellate.costs.cost_matrix`), such as ``"absolute"`` or
        ``"within:3"``: the label of the smallest expected cost is predicted, and given to a
        training row among its candidates as verdict and as appeal. None: the most likely one.

    Attributes
    ----------
    classes_ : ndarray, shape (l,)
        Class names.
    candidates_ : ndarray of bool, shape (n, l)
        Candidate sets of the training rows.
    training_output_ : ndarray, shape (n, l)
        Probabilities of the training rows by the head, without augmentation.
    confidence_ : ndarray, shape (n, l)
        The same, normalised over the candidates.
    transduction_ : ndarray, shape (n,)
        Label of every training row: its most probable candidate.
    verdict_, verdict_confidence_, overturned_ : ndarray
        Label and confidence by the base, and where the head says otherwise.
    history_ : list of dict
        A record for every epoch: losses, learning rate, share of labels that changed, mean
        confidence, agreement with the partner, scores of the rows kept aside, rows a second.
    best_epoch_ : int
        Epoch that was kept, counted from 1.
    input_shape_ : tuple of int
        Shape of one row.
    n_iter_ : int
        Epochs run.

    References
    ----------
    .. [1] Lv, Xu, Feng, Niu, Geng, Sugiyama (2020). Progressive identification of true labels
       for partial-label learning. ICML.
    .. [2] Si, Wang, Wang, Yang, Shen. Appeal: Allow mislabeled samples the chance to be
       rectified in partial label learning.

    Examples
    --------
    >>> from appellate.deep import PRODENClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> model = PRODENClassifier(n_epochs=30, partner="non-candidate", random_state=0).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _parameter_constraints = {**DeepClassifier._parameter_constraints, "augmentation": [str]}

    def __init__(
        self,
        network: str | Callable[..., Any] = "mlp",
        *,
        network_options: dict[str, Any] | None = None,
        partner: str | None = None,
        collaboration: float = 0.5,
        blur: float | None = -1.0,
        partner_output: str = "complement",
        reduction: str = "auto",
        direction: str = "both",
        head: str = "mean",
        n_epochs: int = 100,
        batch_size: int = 128,
        drop_last: bool = False,
        optimizer: str = "sgd",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        weight_decay: float = 1e-3,
        schedule: str = "constant",
        decay: float = 0.9,
        decay_every: int = 10,
        augmentation: str = "none",
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
        self.augmentation = augmentation
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
        return Proden(network(start.shape[1]), start)

    def _views(self) -> tuple[str, ...]:
        return (self.augmentation,)

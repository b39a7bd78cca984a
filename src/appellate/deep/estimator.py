"""PRODEN and PiCO with the scikit-learn API, and the base class of all deep classifiers."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch.utils.data import Dataset

from appellate._parameters import allow
from appellate.core.base import COUNT, AppealClassifier
from appellate.core.results import Model, ProbabilityModel, Result
from appellate.deep.data import ArrayInputs, InputScaling, open_inputs
from appellate.deep.methods import Committee, DeepMethod, MethodPlan, make_committee, weights
from appellate.deep.networks import NetworkFactory
from appellate.deep.panel import Panel
from appellate.deep.processes import agreed
from appellate.deep.settings import (
    PARTNERS,
    Ambiguity,
    Contrast,
    Coupling,
    Network,
    Optimizer,
    Run,
    Selection,
    Settings,
)
from appellate.deep.streams import Streams, isolated
from appellate.deep.trainer import predict_rows
from appellate.evidence.confidence import normalize_entries
from appellate.evidence.costs import candidate_costs
from appellate.numerics.entries import Values

if TYPE_CHECKING:
    from appellate.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Networks(ProbabilityModel):
    """The fitted networks: what remains of a fit.

    As state, for files and copies, they are plain arrays and the plan to make them again.
    """

    plan: MethodPlan
    method: DeepMethod | Committee
    scaling: InputScaling
    head: str = "mean"

    def heads(self, X: Any) -> dict[str, NDArray[np.float32]]:
        """Probabilities of new rows by every network that can predict, (m, l)."""
        return predict_rows(self.method, open_inputs(X), self.scaling)

    def decision(self, X: Any) -> NDArray[np.float32]:
        """Probabilities of new rows by the head, (m, l)."""
        heads = self.heads(X)
        return heads.get(self.head, heads["base"])

    def light(self) -> Networks:
        """Forget the training rows."""
        return self.with_state(training_output=None)

    def __getstate__(self) -> dict[str, Any]:
        """Return plain values and arrays."""
        kept = weights(self.method.state_dict())
        return {
            **{k: v for k, v in self.__dict__.items() if k not in ("method", "scaling")},
            "weights": {k: v.cpu().numpy() for k, v in kept.items()},
            "scaling": tuple(each.numpy() for each in self.scaling),
            "n_labels": self.method.confidence.shape[1],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the networks again and restore their weights."""
        plain = dict(state)
        l, weights, scaling = (plain.pop(name) for name in ("n_labels", "weights", "scaling"))
        plan, start = state["plan"], torch.full((1, l), 1 / l)
        with isolated(torch.device("cpu")):
            members = [plan.make(start, Streams(0)) for _ in range(plan.n_members)]
        method = make_committee(members, plan.others)
        tensors = {k: torch.from_numpy(np.array(v)) for k, v in weights.items()}
        method.load_state_dict({**method.state_dict(), **tensors})
        scaling = InputScaling(*(torch.from_numpy(np.array(each)) for each in scaling))
        self.__dict__.update(plain, method=method, scaling=scaling)

    def with_state(self, **changes: Any) -> Networks:
        """Return the same networks with another state, on the CPU."""
        other = object.__new__(Networks)
        other.__setstate__({**self.__getstate__(), **changes})
        return other


@dataclass(eq=False, repr=False)
class DeepClassifier(AppealClassifier):
    """Base class of `PRODENClassifier` and `PiCOClassifier`, whose docstrings take this over.

    Parameters
    ----------
    partner : {"non-candidate", "candidate", "independent"}, Coupling or None, \
default=None
        A second network; `Coupling` says what the words mean and how both hear each other.
    ambiguity : {"label-first", "set-first", "auto"}, float or Ambiguity, default="label-first"
        How candidate sets arise. Label-first is the method as published. A number divides that
        power of a moving class prior out of the targets. ``"auto"`` trains networks on folds,
        and chooses by what they say of rows that they did not see between label-first, that
        correction (0.5) and rounds of targets from networks that did not see the row. `Ambiguity`
        has the details. With a partner every network has a second one.
    n_networks : int or None, default=None
        Networks whose mean predicts, and with ``"auto"`` also the number of folds. None: one,
        with ``"auto"`` five.
    head : {"base", "partner", "mean"}, default="mean"
        Who predicts, if there is a partner or more than one network; read at prediction.
        Training labels and docket are those of the head at the time of fitting.
    n_epochs : int, default=@n_epochs@
        Passes over the data.
    optimizer : {"auto", "adam", "sgd"} or Optimizer, default="auto"
        With learning rate, schedule and batches. ``"auto"`` is Adam for tables and for images
        SGD, with the settings of the method's authors.
    augmentation : str or tuple of str, default="auto"
        Augmentation of training images, one word or one for each view, see
        `appellate.deep.augment.make_augmentation`. ``"auto"`` is as the authors have it: none
        for PRODEN, ``("simple", "strong")`` for the query's and the key's view of PiCO, and
        none for vectors.
    standardize : bool, default=True
        Whether to centre and scale features, or channels of images, by those of the training
        rows. A torch dataset is not scaled.
    selection : {"last", "covering_rate", "approximated_accuracy", "candidate_likelihood"} or \
Selection, default="last"
        Epoch to keep: the last, or the best on a share of the rows that is not trained on, by
        their candidate sets alone.
    warm_start : bool, default=False
        Whether `fit` continues with the networks of the last `fit`. The confidence starts
        again from the candidates or from `supervision`.
    run : path, Run or None, default=None
        Folder for checkpoint and log; `Run` also has resuming, device and progress.
    random_state : int, RandomState instance or None, default=None
        Seed of all streams: networks, batches, augmentation. With the same seed the base of a
        coupled classifier starts from the same weights and sees the same batches as alone.
    cost : None, str or (l, l) matrix, default=None
        What a wrong label costs (`appellate.evidence.cost_matrix`), such as ``"absolute"`` or
        ``"within:3"``: the label of the smallest expected cost is predicted, and given to a
        training row as first and final label, among its candidates. None: the most likely one.

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
        Label and confidence by the base, the first network taken label-first, and where the
        head says otherwise.
    ambiguity_ : float
        How the sets were taken: 0 label-first to 1 set-first.
    resemblance_ : float or None
        Whether the false labels look like the true ones, .5 if not and up to 1 if they do; None
        if `ambiguity` is not ``"auto"`` or too few rows are confident
        (`appellate.evidence.resemblance`).
    targets_ : {"label-first", "in-sample", "honest", "given"}
        Whose output the targets were made of, if any.
    criterion_ : dict
        What the networks on folds proved about the sets, by step; empty if nothing was asked.
    history_ : list of dict
        A record for every epoch of the first network: losses, learning rate, share of labels
        that changed, mean confidence, agreement with the partner, scores of the held-out
        rows, rows per second.
    best_epoch_ : int
        Epoch that was kept, counted from 1.
    input_shape_ : tuple of int
        Shape of one row.
    n_iter_ : int
        Epochs run.
    """

    network: str | NetworkFactory | Network = allow("mlp", str, callable, Network)
    _: KW_ONLY
    partner: str | Coupling | None = allow(None, PARTNERS, Coupling, None)
    ambiguity: str | float | Ambiguity = allow("label-first", str, Real, Ambiguity)
    n_networks: int | None = allow(None, COUNT, None)
    head: str = allow("mean", {"base", "partner", "mean"})
    n_epochs: int = allow(100, COUNT)
    optimizer: str | Optimizer = allow("auto", {"auto", "adam", "sgd"}, Optimizer)
    augmentation: str | tuple[str, ...] = allow("auto", str, tuple, list)
    standardize: bool = allow(True, "boolean")
    selection: str | Selection = allow("last", str, Selection)
    warm_start: bool = allow(False, "boolean")
    run: str | os.PathLike[str] | Run | None = allow(None, str, os.PathLike, Run, None)
    random_state: Any = None
    cost: Any = None

    #: Parameters that are settings objects, or words for them.
    _groups: ClassVar[dict[str, type[Settings]]] = {
        **{"network": Network, "partner": Coupling, "ambiguity": Ambiguity},
        **{"optimizer": Optimizer, "selection": Selection, "run": Run},
    }
    #: What `Optimizer` leaves open, and augmentations of images, one for each view.
    _usual: ClassVar[dict[str, tuple[Any, ...]]] = {
        "adam": (0.003, 1e-4, "cosine", 32),
        "sgd": (0.01, 1e-3, "constant", 128),
    }
    _image_views: ClassVar[tuple[str, ...]] = ("none",)
    _method: ClassVar[str] = "PRODEN"  # one of `appellate.deep.methods.METHODS`
    _n_solved = 0

    def __init_subclass__(cls, **more: Any) -> None:
        """Add the parts of the docstring that all share."""
        super().__init_subclass__(**more)
        shared = inspect.cleandoc(DeepClassifier.__doc__ or "").split("\n----------\n")
        told = {"parameters": shared[1].removesuffix("\n\nAttributes"), "attributes": shared[2]}
        told["n_epochs"] = str(getattr(cls.n_epochs, "default", cls.n_epochs))  # or its field
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "")
        for name, part in told.items():
            cls.__doc__ = cls.__doc__.replace(f"@{name}@", part)

    # -- what the house asks of a classifier --------------------------------------------

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        """Train; `start` is the confidence to start from."""
        entries = problem.entries
        inputs = open_inputs(problem.matrix, Run.of(self.run).n_workers)
        settings = self._settled(inputs.row_shape)
        seed = agreed(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        initial = entries.uniform(np.float32) if start is None else start
        scales = self.standardize and isinstance(inputs, ArrayInputs)
        folder = None if settings.run.folder is None else Path(settings.run.folder)
        if folder is not None and self._n_solved:
            folder /= f"round-{self._n_solved + 1}"
        scaling = InputScaling.of(inputs) if scales else InputScaling()
        start_matrix, sets = entries.scatter(initial), problem.candidates
        panel = Panel(settings, inputs, sets, scaling, start_matrix, seed, folder)
        before = getattr(self, "_networks", None) if self.warm_start else None
        judgement = panel.judge(before and before.method)
        first, heads = judgement.heard[0], judgement.heads()
        output = heads.get(self.head, heads["base"])
        members, others = [each.method for each in judgement.heard], judgement.others
        plan = replace(panel.plan, n_members=len(members), others=others)
        networks = Networks(output, plan, make_committee(members, others), scaling, self.head)
        confidences = [
            normalize_entries(entries.gather(each), entries) for each in (heads["base"], output)
        ]
        if judgement.confidence is not None and self.head != "base":
            confidences[1] = entries.gather(judgement.confidence)
        costs = problem.cost
        ranks = [v if costs is None else -candidate_costs(v, entries, costs) for v in confidences]
        self._networks, self._n_solved = networks, self._n_solved + 1
        return Result(
            initial=initial,
            confidence=confidences[1],
            output=entries.gather(output),
            n_iter=len(first.history),
            model=lambda: networks,
            ranking=confidences[1],
            details={
                "history_": first.history,
                "best_epoch_": first.best_epoch,
                "ambiguity_": judgement.tau,
                "resemblance_": judgement.resemblance,
                "targets_": judgement.targets,
                "criterion_": {k: each.criterion for k, each in judgement.readings.items()},
                "input_shape_": inputs.row_shape,
                "verdict_confidence_": entries.scatter(confidences[0]),
                "label_history_": np.array([entries.argmax(rank) for rank in ranks]),
            },
        )

    def _keep(self, problem: Problem, result: Result) -> None:
        super()._keep(problem, result)
        self._n_solved = 0

    def _blocks_of(self, X: Any) -> Iterator[Any]:
        return iter([X])

    def _head(self) -> Model:
        return replace(self._fitted, head=self.head)

    @property
    def _fitted(self) -> Networks:
        return cast(Networks, self._model)

    def predict_heads(self, X: Any) -> dict[str, NDArray[np.float32]]:
        """Probabilities of new rows by every network that can predict.

        Returns
        -------
        dict of str to ndarray, shape (m, l)
            ``"base"``, with a partner ``"partner"``, with more than one network ``"network 1"``
            and so on, and ``"mean"``.
        """
        check_is_fitted(self)
        return self._fitted.heads(self._check_rows(X, reset=False))

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes; the networks are in the model."""
        state = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_networks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take parameters and fitted attributes; a warm start goes on from the model."""
        super().__setstate__(state)
        if "_model" in state:
            self._networks = state["_model"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    # -- opening ------------------------------------------------------------------------

    def _settled(self, shape: tuple[int, ...] = ()) -> Any:
        """Copy, with objects for all settings, checked, and nothing open for rows of a shape."""
        params, images = self.get_params(deep=False), self._image_views
        params |= {name: group.of(params[name]) for name, group in self._groups.items()}
        settled: Any = type(self)(**params)
        settled.optimizer = settled.optimizer.settled(self._usual, shape)
        views = self.augmentation
        if views == "auto":
            views = images if len(shape) > 1 else "none"
        settled.augmentation = (views,) * len(images) if isinstance(views, str) else tuple(views)
        if len(settled.augmentation) != len(images):
            raise ValueError(
                f"augmentation={views!r} must be one word, or a word for each of {len(images)} "
                "views."
            )
        if settled.run.resume and self.random_state is None:
            raise ValueError("resume=True needs the same random_state= as the first call.")
        tau, targets = settled.ambiguity.tau, settled.ambiguity.targets
        folds = tau is None or (tau > 0 and targets == "honest")
        if folds and self.n_networks == 1:
            raise ValueError(
                "n_networks=1 leaves no network that did not see a row: set n_networks=5, or give "
                "ambiguity a number."
            )
        if self.warm_start and (folds or (self.n_networks or 1) > 1):
            raise ValueError("warm_start=True goes on from one network: set n_networks=1.")
        return settled

    def _check_rows(self, X: Any, reset: bool) -> Any:
        """Take vectors, images (bytes or floats), a memory-mapped array or a dataset."""
        if not isinstance(X, Dataset):
            dtypes = [np.float64, np.float32, np.uint8]
            if reset or getattr(X, "ndim", 2) < 3:
                X = validate_data(self, X, dtype=dtypes, allow_nd=True, reset=reset)
            else:  # images in any layout; their shape is compared below
                X = check_array(X, dtype=dtypes, allow_nd=True)
            if X.ndim > 4:
                raise ValueError(
                    f"X has shape {X.shape}; give vectors (n, q), grey images (n, h, w) or "
                    "colour images (n, c, h, w) or (n, h, w, c)."
                )
        inputs = open_inputs(X, Run.of(self.run).n_workers)
        if not reset and inputs.row_shape != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {inputs.row_shape}, but {type(self).__name__} was fitted on "
                f"rows of shape {self.input_shape_}."
            )
        return inputs


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
    network : str, callable or Network, default="mlp"
        ``"linear"``, ``"mlp"``, ``"convnet"``, ``"resnet18"``, ``"resnet32"``, or a function
        ``(input_shape, n_outputs) -> torch.nn.Module`` whose module returns logits. `Network`
        has the options of those by name: ``Network("mlp", hidden=(300, 300, 300))``.
    @parameters@

    Attributes
    ----------
    @attributes@

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
    >>> model = PRODENClassifier(n_epochs=60, partner="non-candidate", random_state=0).fit(X, y)
    >>> model.predict([[0.05], [4.9]])
    array(['cat', 'dog'], dtype='<U3')
    """


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

    network: str | NetworkFactory | Network = allow("resnet18", str, callable, Network)
    _: KW_ONLY
    n_epochs: int = allow(800, COUNT)
    contrast: Contrast | None = allow(None, Contrast, None)

    _groups = DeepClassifier._groups | {"contrast": Contrast}
    _method = "PiCO"
    _image_views = ("simple", "strong")
    _usual = DeepClassifier._usual | {"sgd": (0.01, 1e-3, "cosine", 256)}

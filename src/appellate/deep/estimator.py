"""Deep classifiers with scikit-learn's manners: what PRODEN and PiCO have in common."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch.utils.data import Dataset

from appellate._compat import Interval, StrOptions
from appellate.base import AppealClassifier, Model, Result
from appellate.confidence import normalize_entries
from appellate.costs import candidate_costs
from appellate.deep.data import ArrayInputs, DatasetInputs, Inputs, Scaling, in_order, open_inputs
from appellate.deep.evidence import Panel
from appellate.deep.hearing import Hearing, weights
from appellate.deep.methods import Committee, Method, Plan
from appellate.deep.networks import NetworkFactory
from appellate.deep.processes import agreed
from appellate.deep.settings import Ambiguity, Coupling, Network, Optimizer, Run, Selection
from appellate.deep.streams import Streams, isolated
from appellate.deep.trainer import predict
from appellate.numerics.entries import Values

if TYPE_CHECKING:
    from appellate.problem import Problem

#: Parameters that change where and how a run is done, not what it computes.
_SURROUNDINGS = ("cost", "run", "warm_start")


@dataclass(frozen=True, eq=False)
class Networks(Model):
    """The fitted networks: what remains of a fit.

    As state, for files and copies, they are plain arrays and the plan to make them anew.
    """

    plan: Plan
    method: Method | Committee
    scaling: Scaling
    head: str = "mean"

    def heads(self, X: Any) -> dict[str, NDArray[np.float32]]:
        """Probabilities of new rows by every network that can predict, (m, l)."""
        inputs, device = open_inputs(X), next(self.method.parameters()).device
        batches = inputs.batches(in_order(len(inputs), 1024), device)
        return predict(self.method, batches, self.scaling)

    def decision(self, X: Any) -> NDArray[np.float32]:
        """Probabilities of new rows by the head, (m, l)."""
        heads = self.heads(X)
        return heads.get(self.head, heads["base"])

    def probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return the scores, which are probabilities already."""
        return scores

    def light(self) -> Networks:
        """Forget the training rows."""
        return self._with(self._arrays(), training_output=None)

    def load(self, weights: Mapping[str, NDArray[Any]]) -> Networks:
        """Return the same networks with other weights, on the CPU."""
        return self._with({**self._arrays(), **weights})

    def __getstate__(self) -> dict[str, Any]:
        """Return plain values and arrays."""
        scaling = (self.scaling.mean.numpy(), self.scaling.deviation.numpy())
        n_labels = self.method.confidence.shape[1]
        return {
            **{"training_output": self.training_output, "plan": self.plan, "head": self.head},
            **{"weights": self._arrays(), "scaling": scaling, "n_labels": n_labels},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the networks anew and give them their weights back."""
        l, rest = state["n_labels"], ("training_output", "plan", "head")
        with isolated(torch.device("cpu")):
            method = state["plan"].make_all(torch.full((1, l), 1 / l), Streams(0))
        weights = {k: torch.from_numpy(np.array(v)) for k, v in state["weights"].items()}
        method.load_state_dict({**method.state_dict(), **weights})
        scaling = Scaling(*(torch.from_numpy(np.array(each)) for each in state["scaling"]))
        kept = {name: state[name] for name in rest}
        self.__dict__.update(method=method, scaling=scaling, **kept)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {k: v.cpu().numpy() for k, v in weights(self.method).items()}

    def _with(self, weights: Mapping[str, NDArray[Any]], **changes: Any) -> Networks:
        other = object.__new__(Networks)
        other.__setstate__({**self.__getstate__(), "weights": weights, **changes})
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
        has the details. With a partner every network has one beside it.
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
        Of training images, one word or one for each view, see
        `appellate.deep.augment.make_augmentation`. ``"auto"`` is as the authors have it: none
        for PRODEN, ``("simple", "strong")`` for the query's and the key's view of PiCO, and
        none for vectors.
    standardize : bool, default=True
        Whether to centre and scale features, or channels of images, by those of the training
        rows. A torch dataset is taken as it comes.
    selection : {"last", "covering_rate", "approximated_accuracy", "candidate_likelihood"} or \
Selection, default="last"
        Epoch to keep: the last, or the best on a share of the rows that is not trained on, by
        their candidate sets alone.
    warm_start : bool, default=False
        Whether `fit` goes on from the networks of the last `fit`, with the confidence begun
        anew from the candidates or from `supervision`.
    run : path, Run or None, default=None
        Folder for checkpoint and log; `Run` also has resuming, device and progress.
    random_state : int, RandomState instance or None, default=None
        Seed of all streams: networks, batches, augmentation. With the same seed the base of a
        coupled classifier starts from the same weights and sees the same batches as alone.
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
        Label and confidence by the base, the first network taken label-first, and where the
        head says otherwise.
    ambiguity_ : float
        How the sets were taken: 0 label-first to 1 set-first.
    targets_ : {"label-first", "in-sample", "honest"}
        Whose output the targets were made of.
    criterion_ : dict
        What the networks on folds proved about the sets, by step; empty if nothing was asked.
    history_ : list of dict
        A record for every epoch of the first network: losses, learning rate, share of labels
        that changed, mean confidence, agreement with the partner, scores of the rows kept
        aside, rows a second.
    best_epoch_ : int
        Epoch that was kept, counted from 1.
    input_shape_ : tuple of int
        Shape of one row.
    n_iter_ : int
        Epochs run.
    """

    network: str | NetworkFactory | Network = "mlp"
    _: KW_ONLY
    partner: str | Coupling | None = None
    ambiguity: str | float | Ambiguity = "label-first"
    n_networks: int | None = None
    head: str = "mean"
    n_epochs: int = 100
    optimizer: str | Optimizer = "auto"
    augmentation: str | tuple[str, ...] = "auto"
    standardize: bool = True
    selection: str | Selection = "last"
    warm_start: bool = False
    run: str | os.PathLike[str] | Run | None = None
    random_state: Any = None
    cost: Any = None

    _parameter_constraints = {
        **AppealClassifier._parameter_constraints,
        "network": [str, callable, Network],
        "partner": [StrOptions({"non-candidate", "candidate", "independent"}), Coupling, None],
        "ambiguity": [str, Real, Ambiguity],
        "n_networks": [Interval(Integral, 1, None, closed="left"), None],
        "head": [StrOptions({"base", "partner", "mean"})],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "optimizer": [StrOptions({"auto", "adam", "sgd"}), Optimizer],
        "augmentation": [str, tuple, list],
        "standardize": ["boolean"],
        "selection": [str, Selection],
        "warm_start": ["boolean"],
        "run": [str, os.PathLike, Run, None],
        "random_state": ["random_state"],
    }

    #: What `Optimizer` leaves open, and augmentations of images, one for each view.
    _usual: ClassVar[dict[str, dict[str, Any]]] = {
        "adam": {
            **{"learning_rate": 0.003, "weight_decay": 1e-4},
            **{"schedule": "cosine", "batch_size": 32},
        },
        "sgd": {
            **{"learning_rate": 0.01, "weight_decay": 1e-3},
            **{"schedule": "constant", "batch_size": 128},
        },
    }
    _image_views: ClassVar[tuple[str, ...]] = ("none",)
    _method: ClassVar[str] = "PRODEN"  # one of `appellate.deep.methods.METHODS`
    _n_solved = 0

    def __init_subclass__(cls, **more: Any) -> None:
        """Write out the parts of the docstring that all have in common."""
        super().__init_subclass__(**more)
        shared = inspect.cleandoc(DeepClassifier.__doc__ or "").split("\n----------\n")
        parts = {
            "parameters": shared[1].removesuffix("\n\nAttributes"),
            "attributes": shared[2],
            "n_epochs": str(inspect.signature(cls).parameters["n_epochs"].default),
        }
        text = inspect.cleandoc(cls.__doc__ or "")
        for name, part in parts.items():
            text = text.replace(f"@{name}@", part)
        cls.__doc__ = text

    # -- what the house asks of a classifier --------------------------------------------

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        """Train; `start` is the confidence to start from."""
        self._check_params()
        entries, run = problem.entries, Run.of(self.run)
        seed = agreed(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        initial = entries.uniform(np.float32) if start is None else start
        hearing = self._open_hearing(problem, run)
        before = getattr(self, "_networks", None) if self.warm_start else None
        ambiguity, start_matrix = Ambiguity.of(self.ambiguity), entries.scatter(initial)
        panel = Panel(hearing, start_matrix, self.n_epochs, seed, ambiguity, self.n_networks)
        judgement = panel.judge(before and before.method)
        first, heads = judgement.heard[0], judgement.heads()
        output = heads.get(self.head, heads["base"])
        plan = replace(hearing.plan, n_members=len(judgement.heard), others=judgement.others)
        networks = Networks(output, plan, judgement.method, hearing.scaling, self.head)
        confidences = [
            normalize_entries(entries.gather(each), entries) for each in (heads["base"], output)
        ]
        if judgement.confidence is not None and self.head != "base":
            confidences[1] = entries.gather(judgement.confidence)
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
                **judgement.details,
                "input_shape_": hearing.inputs.row_shape,
                **_appeal(problem, *confidences),
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
        tags.non_deterministic = False
        return tags

    # -- opening ------------------------------------------------------------------------

    def _check_rows(self, X: Any, reset: bool) -> Any:
        """Take vectors, images (bytes or floats), a memory-mapped array or a dataset."""
        if isinstance(X, Dataset):
            inputs: Inputs = DatasetInputs(X, Run.of(self.run).n_workers)
        else:
            dtypes = [np.float64, np.float32, np.uint8]
            if reset or getattr(X, "ndim", 2) < 3:
                checked = validate_data(self, X, dtype=dtypes, allow_nd=True, reset=reset)
            else:  # images in any layout; their shape is compared below
                checked = check_array(X, dtype=dtypes, allow_nd=True)
            if checked.ndim > 4:
                raise ValueError(
                    f"X has shape {checked.shape}; give vectors (n, q), grey images (n, h, w) or "
                    "colour images (n, c, h, w) or (n, h, w, c)."
                )
            inputs = ArrayInputs(checked)
        if not reset and inputs.row_shape != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {inputs.row_shape}, but {type(self).__name__} was fitted on "
                f"rows of shape {self.input_shape_}."
            )
        return inputs

    def _check_params(self) -> None:
        """Check what the settings inside are, and what two parameters together need."""
        self._plan(())
        Optimizer.of(self.optimizer)
        Selection.of(self.selection)
        if Run.of(self.run).resume and self.random_state is None:
            raise ValueError("resume=True needs the random_state that the run was begun with.")
        tau = Ambiguity.of(self.ambiguity).tau
        targets = Ambiguity.of(self.ambiguity).targets
        folds = tau is None or (tau > 0 and targets == "honest")
        if folds and self.n_networks == 1:
            raise ValueError(
                "n_networks=1 leaves no network that did not see a row: set n_networks=5, or give "
                "ambiguity a number."
            )
        if self.warm_start and (folds or (self.n_networks or 1) > 1):
            raise ValueError("warm_start=True goes on from one network: set n_networks=1.")
        if len(self._views((1, 1, 1))) != len(self._image_views):
            raise ValueError(
                f"augmentation={self.augmentation!r} must be one word, or a word for each of "
                f"{len(self._image_views)} views."
            )

    # -- parts of a fit -----------------------------------------------------------------

    def _options(self) -> Any:
        """Constants of the method."""
        return None

    def _plan(self, shape: tuple[int, ...]) -> Plan:
        network, coupling = Network.of(self.network), Coupling.of(self.partner)
        return Plan(self._method, network, coupling, self._options(), shape)

    def _open_hearing(self, problem: Problem, run: Run) -> Hearing:
        inputs = open_inputs(problem.matrix, run.n_workers)
        shape, params = inputs.row_shape, self.get_params(deep=False)
        scales = self.standardize and isinstance(inputs, ArrayInputs)
        folder = None if run.folder is None else Path(run.folder)
        if folder is not None and self._n_solved:
            folder /= f"round-{self._n_solved + 1}"
        return Hearing(
            inputs,
            problem.candidates,
            self._plan(shape),
            Optimizer.of(self.optimizer).settled(self._usual, shape),
            self._views(shape),
            Scaling.of(inputs) if scales else Scaling.none(),
            Selection.of(self.selection),
            self.head,
            run,
            folder,
            {k: v for k, v in params.items() if k not in _SURROUNDINGS}
            | {"class": type(self).__name__},
        )

    def _views(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Name the augmentation of every view of rows of a shape."""
        if self.augmentation == "auto":
            return self._image_views if len(shape) > 1 else ("none",) * len(self._image_views)
        if isinstance(self.augmentation, str):
            return (self.augmentation,) * len(self._image_views)
        return tuple(self.augmentation)


def _appeal(problem: Problem, verdict: Values, appeal: Values) -> dict[str, Any]:
    """Labels of the training rows by the base and by the head."""
    entries, cost = problem.entries, problem.cost
    labels = [
        entries.argmax(each if cost is None else -candidate_costs(each, entries, cost))
        for each in (verdict, appeal)
    ]
    return {
        "verdict_confidence_": entries.scatter(verdict),
        "label_history_": np.array(labels),
    }

"""Settings of the deep classifiers, what belongs together in one object each.

All follow the scikit-learn API: ``get_params``, ``clone``, and nested names such as
``optimizer__learning_rate`` for a search.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator, clone
from torch import nn

from appellate._compat import Interval
from appellate._parameters import allow, stated_constraints
from appellate.core.base import COUNT, NOT_NEGATIVE, POSITIVE, SHARE
from appellate.deep.losses import PARTNER_OUTPUTS
from appellate.deep.networks import NetworkFactory, Shape, make_network
from appellate.evidence.ambiguity import AMBIGUITY_WORDS, read_ambiguity

Record = dict[str, Any]
Listener = Callable[[Record], None]

#: Ways to choose an epoch without the truth.
SCORES = ("covering_rate", "approximated_accuracy", "candidate_likelihood")


PARTNERS = {"non-candidate", "candidate", "independent"}


class Settings(BaseEstimator):  # type: ignore[misc]
    """Base class: settings that can be given by one word, their first field."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the constraints that the class states by `allow`."""
        super().__init_subclass__(**options)
        cls._parameter_constraints = stated_constraints(cls)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Copy settings, or take anything else as their first field; then check."""
        settings: Self = clone(value) if isinstance(value, cls) else cls(value)
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse values that make no sense."""
        self._validate_params()


@dataclass(repr=False)
class Network(Settings):
    """A network and its options, see `appellate.deep.networks.make_network`.

    Parameters
    ----------
    name : str or callable, default="mlp"
        ``"linear"``, ``"mlp"``, ``"convnet"``, ``"resnet18"``, ``"resnet32"``, or a function
        ``(input_shape, n_outputs) -> torch.nn.Module``, which has no options.
    hidden : tuple of int, default=None
        Sizes of the hidden layers of the MLP; None: 300, 301, 302, 303.
    norm : {"before", "after"}, default=None
        Where the MLP normalises: before (None) or after each activation.
    start : {"xavier", "torch"}, default=None
        First weights of the MLP: Xavier's (None) without bias but in the last layer, as its
        authors have it; or torch's own, with a bias in every layer.
    width : float, default=None
        Factor on the channels of the networks for images.

    Examples
    --------
    >>> Network("mlp", hidden=(30,)).make((48,), 5)(torch.zeros(8, 48)).shape
    torch.Size([8, 5])
    """

    name: str | NetworkFactory = allow("mlp", str, callable)
    _: KW_ONLY
    hidden: tuple[int, ...] | None = None
    norm: str | None = allow(None, {"before", "after"}, None)
    start: str | None = allow(None, {"xavier", "torch"}, None)
    width: float | None = allow(None, POSITIVE, None)

    def make(self, shape: Shape, n_outputs: int | None) -> nn.Module:
        """Make the network with fresh weights; None gives the encoder alone."""
        options = {k: v for k, v in self.get_params().items() if k != "name" and v is not None}
        return make_network(self.name, shape, n_outputs, **options)


@dataclass(repr=False)
class Optimizer(Settings):
    """How a network learns: the optimiser, its learning rate, its batches.

    Parameters
    ----------
    name : {"auto", "adam", "sgd"}, default="auto"
        ``"auto"`` is Adam for tables and for images stochastic gradient descent, as the
        authors of PRODEN, PiCO and PLCP use it.
    learning_rate, weight_decay : float, default=None
        None: 0.003 and 0.0001 of Adam, 0.01 and 0.001 of SGD.
    momentum : float, default=0.9
        Momentum of SGD.
    schedule : {"constant", "cosine", "step"}, default=None
        Schedule of the learning rate: unchanged, falling to a thousandth, or times `decay` every
        `decay_every` epochs. None: cosine, but constant for PRODEN with SGD.
    decay, decay_every : float, int, default=0.9, 10
        Factor and period of the step schedule.
    batch_size : int, default=None
        Rows of a step, of all processes together. None: 32 with Adam; with SGD 128 for PRODEN
        and 256 for PiCO.
    drop_last : bool, default=False
        Whether an epoch leaves out the last rows of its order if they do not fill a batch, as
        the authors of PRODEN and PiCO do. Other rows are left out in every epoch; data smaller
        than a batch are one batch.
    precision : {"float32", "bfloat16", "float16"}, default="float32"
        Precision of the networks; losses and confidences are always float32.
    fused : bool, default=False
        Whether torch takes a step in one piece of code: sooner for small networks, and other
        last bits.

    Examples
    --------
    >>> Optimizer("sgd", learning_rate=1.0, schedule="step", decay=0.5).rate(10, n_epochs=30)
    0.5
    """

    name: str = allow("auto", {"auto", "adam", "sgd"})
    _: KW_ONLY
    learning_rate: float | None = allow(None, POSITIVE, None)
    momentum: float = allow(0.9, Interval(Real, 0, 1, closed="left"))
    weight_decay: float | None = allow(None, NOT_NEGATIVE, None)
    schedule: str | None = allow(None, {"constant", "cosine", "step"}, None)
    decay: float = allow(0.9, Interval(Real, 0, 1, closed="right"))
    decay_every: int = allow(10, COUNT)
    batch_size: int | None = allow(None, Interval(Integral, 2, None, closed="left"), None)
    drop_last: bool = allow(False, "boolean")
    precision: str = allow("float32", {"float32", "bfloat16", "float16"})
    fused: bool = allow(False, "boolean")

    def settled(self, usual: Mapping[str, tuple[Any, ...]], shape: Shape) -> Optimizer:
        """Fill in what is left open: by the usual settings of each optimiser, and the rows.

        The usual ones are learning rate, weight decay, schedule and batch size.
        """
        by_rows = "adam" if len(shape) == 1 else "sgd"
        name = by_rows if self.name == "auto" else self.name
        fields = ("learning_rate", "weight_decay", "schedule", "batch_size")
        filled = zip(fields, usual[name], strict=True)
        left_open = {field: value for field, value in filled if getattr(self, field) is None}
        settled: Optimizer = clone(self).set_params(name=name, **left_open)
        return settled

    def rate(self, epoch: int, n_epochs: int) -> float:
        """Return the learning rate of an epoch."""
        assert self.learning_rate is not None
        first = float(self.learning_rate)
        if self.schedule == "step":
            return first * self.decay ** (epoch // self.decay_every)
        if self.schedule == "cosine":
            least = first * 1e-3
            return least + (first - least) * (1 + math.cos(math.pi * epoch / n_epochs)) / 2
        return first

    def make(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Make the optimiser of some parameters."""
        options: dict[str, Any] = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        options["fused"] = self.fused or None  # None: torch's choice
        if self.name == "adam":
            return torch.optim.Adam(parameters, **options)
        return torch.optim.SGD(parameters, momentum=self.momentum, **options)


@dataclass(repr=False)
class Coupling(Settings):
    """A second network, and how both learn from each other.

    Parameters
    ----------
    partner : {"non-candidate", "candidate", "independent"} or None, default="non-candidate"
        None trains the base alone. ``"non-candidate"`` is PLCP. ``"candidate"`` is the
        ablation whose partner is an ordinary classifier; it does not read `partner_output` and
        `reduction`. ``"independent"`` is the control, a second base that never hears of the
        first, and reads nothing else here.
    collaboration : float, default=0.5
        Weight of the collaborative loss (the paper's mu).
    blur : float or None, default=-1.0
        Temperature of the blur (k); None turns blurring off.
    partner_output : {"complement", "softmax", "softmax_rescaled", "sigmoid"}, \
default="complement"
        How the partner's logits become non-candidate confidences; the paper does not say. See
        `appellate.deep.losses.noncandidate_confidence`.
    reduction : {"auto", "sum", "mean"}, default="auto"
        Reduction of the partner's loss over the labels of a row.
    direction : {"both", "to_base", "to_partner"}, default="both"
        Whom the collaborative loss teaches.

    Examples
    --------
    >>> Coupling("non-candidate", blur=None).get_params()["collaboration"]
    0.5
    """

    partner: str | None = allow("non-candidate", PARTNERS, None)
    _: KW_ONLY
    collaboration: float = allow(0.5, NOT_NEGATIVE)
    blur: float | None = allow(-1.0, Interval(Real, None, None, closed="neither"), None)
    partner_output: str = allow("complement", {*PARTNER_OUTPUTS})
    reduction: str = allow("auto", {"auto", "sum", "mean"})
    direction: str = allow("both", {"both", "to_base", "to_partner"})


@dataclass(repr=False)
class Ambiguity(Settings):
    """How candidate sets arise, and from whose output a network's targets are made.

    Parameters
    ----------
    ambiguity : {"label-first", "set-first", "auto"} or float, default="auto"
        Label-first (0): a label was drawn, and others joined it; the method as published.
        Set-first (1): a set was there, and one of it is the row's. A number between them is
        the power of the class prior that is divided out. ``"auto"`` finds out which it is, by
        what networks say of rows that they did not see.
    targets : {"auto", "in-sample", "honest", "given"}, default="auto"
        From the output of the network itself, in training; or of networks that did not see the
        row, in rounds over folds. ``"auto"``: in-sample for a number, else whichever proves
        more about the sets. ``"given"``: the `supervision` of `fit`, which stays as it is; for
        label-first only, as nothing is divided out of it.
    n_rounds : int, default=None
        Honest rounds; all of them together have `n_epochs` epochs. None: 8, for images 4.

    Examples
    --------
    >>> Ambiguity("set-first").tau, Ambiguity(0.5).tau, Ambiguity("auto").tau
    (1.0, 0.5, None)
    """

    ambiguity: str | float = allow("auto", {"auto", *AMBIGUITY_WORDS}, SHARE)
    _: KW_ONLY
    targets: str = allow("auto", {"auto", "in-sample", "honest", "given"})
    n_rounds: int | None = allow(None, Interval(Integral, 2, None, closed="left"), None)

    def check(self) -> None:
        """Refuse values that make no sense."""
        super().check()
        if self.targets == "given" and self.tau != 0:
            raise ValueError(
                f"targets='given' stay as they are, whatever ambiguity={self.ambiguity!r} says: "
                "set ambiguity='label-first'."
            )

    @property
    def tau(self) -> float | None:
        """As a number; None if it is to be found."""
        taus = read_ambiguity(self.ambiguity)
        return taus[0] if len(taus) == 1 else None


@dataclass(repr=False)
class Contrast(Settings):
    """Constants of PiCO, with the values of its authors' runs on CIFAR-10.

    Parameters
    ----------
    projection_size : int, default=128
        Length of the embedding that is contrasted.
    queue_size : int, default=8192
        Embeddings kept from earlier batches to contrast with.
    temperature : float, default=0.07
        Temperature of the contrast.
    contrast_weight : float, default=0.5
        Weight of the contrastive loss.
    key_momentum : float, default=0.999
        Share of the key network that is kept in a step.
    prototype_momentum : float, default=0.99
        Share of a prototype that is kept for each of its rows.
    prototype_start : int, default=1
        First epoch, counted from 0, in which prototypes say what is a positive and what is the
        target; before it each row is contrasted with itself alone.
    target_momentum : tuple of two floats, default=(0.95, 0.8)
        Share of the old confidence that is kept, in the second and at the end of the last
        epoch; the first epoch keeps 0.99.

    Examples
    --------
    >>> Contrast(target_momentum=(0.9, 0.5)).keep(1, n_epochs=10)
    0.9
    """

    projection_size: int = allow(128, COUNT)
    _: KW_ONLY
    queue_size: int = allow(8192, COUNT)
    temperature: float = allow(0.07, POSITIVE)
    contrast_weight: float = allow(0.5, NOT_NEGATIVE)
    key_momentum: float = allow(0.999, SHARE)
    prototype_momentum: float = allow(0.99, SHARE)
    prototype_start: int = allow(1, Interval(Integral, 0, None, closed="left"))
    target_momentum: tuple[float, float] = allow((0.95, 0.8), tuple, list)

    @classmethod
    def of(cls, value: Contrast | None) -> Self:
        """Copy constants, or take those of the authors; then check."""
        return super().of(cls() if value is None else value)

    def check(self) -> None:
        """Refuse values that make no sense."""
        super().check()
        shares = self.target_momentum
        if len(shares) != 2 or not all(isinstance(s, Real) and 0 <= s <= 1 for s in shares):
            raise ValueError(
                "target_momentum must be two shares between 0 and 1, of the second and of the "
                f"last epoch, such as (0.95, 0.8); got {shares!r}."
            )

    def keep(self, epoch: int, n_epochs: int) -> float:
        """Share of the old confidence that an epoch keeps (phi)."""
        first, last = self.target_momentum
        return 0.99 if epoch == 0 else first + (last - first) * (epoch - 1) / n_epochs


@dataclass(repr=False)
class Selection(Settings):
    """Which epoch to keep, by rows that are not trained on. No truth is used.

    Parameters
    ----------
    selection : {"last", "covering_rate", "approximated_accuracy", "candidate_likelihood"}, \
default="candidate_likelihood"
        The last epoch, or the one whose score of the candidate sets of those rows is best.
    validation_fraction : float, default=None
        Share of the rows that is kept aside and scored after every epoch; None: a tenth, but
        none for ``"last"``.

    Examples
    --------
    >>> Selection("last").fraction, Selection("covering_rate").fraction
    (0.0, 0.1)
    """

    selection: str = allow("candidate_likelihood", {"last", *SCORES})
    _: KW_ONLY
    validation_fraction: float | None = allow(None, Interval(Real, 0, 1, closed="left"), None)

    @property
    def fraction(self) -> float:
        """Share of the rows that is kept aside."""
        if self.validation_fraction is not None:
            return float(self.validation_fraction)
        return 0.0 if self.selection == "last" else 0.1

    def check(self) -> None:
        """Refuse values that make no sense."""
        super().check()
        if self.selection != "last" and not self.fraction:
            raise ValueError(
                f"selection={self.selection!r} needs rows to select on: set "
                "validation_fraction, such as 0.1."
            )


@dataclass(repr=False)
class Run(Settings):
    """Where and how a run is done; nothing here changes what it computes.

    Parameters
    ----------
    folder : path or None, default=None
        For the checkpoint and the log (``log.jsonl``, and TensorBoard's if that is installed).
        Each fit needs a new one; under `PLCPClassifier` the second round is kept in its
        sub-folder ``round-2``, and so on.
    resume : bool, default=False
        Whether to continue from the checkpoint in the folder. The result is that of a run that
        was never stopped.
    checkpoint_every : int, default=1
        Epochs between checkpoints.
    device : str or torch.device, default="auto"
        ``"auto"`` takes an accelerator if there is one.
    n_workers : int, default=0
        Processes that read ahead from a torch dataset.
    n_jobs : int or None, default=None
        Networks of one fit that are trained at a time, each in a process with one thread, on
        the devices in turn; as in joblib. At equal numbers of threads it changes no number.
    verbose : bool or callable, default=False
        Whether to write a line for every epoch to the standard error; or a function, which gets
        the record of every epoch instead.

    Examples
    --------
    >>> str(Run(device="cpu").find_device())
    'cpu'
    """

    folder: str | os.PathLike[str] | None = allow(None, str, os.PathLike, None)
    _: KW_ONLY
    resume: bool = allow(False, "boolean")
    checkpoint_every: int = allow(1, COUNT)
    device: str | torch.device = allow("auto", str, torch.device)
    n_workers: int = allow(0, Interval(Integral, 0, None, closed="left"))
    n_jobs: int | None = allow(None, Integral, None)
    verbose: bool | Listener = allow(False, "boolean", callable)

    def check(self) -> None:
        """Refuse values that make no sense."""
        super().check()
        if self.resume and self.folder is None:
            raise ValueError("resume=True needs the folder that holds the checkpoint.")

    @property
    def listener(self) -> Listener | None:
        """Who hears of every epoch."""
        if callable(self.verbose):
            return self.verbose
        return _tell if self.verbose else None

    def devices(self) -> list[str]:
        """Name all devices of the kind that is meant, or the one that is named by number."""
        found = self.find_device()
        if found.type == "cpu" or (found.index is not None and str(self.device) == str(found)):
            return [str(found)]
        return [f"{found.type}:{k}" for k in range(torch.accelerator.device_count())]

    def find_device(self) -> torch.device:
        """Find the device that is meant."""
        if str(self.device) != "auto":
            try:
                return torch.empty(0, device=self.device).device
            except (AssertionError, RuntimeError) as error:
                raise ValueError(f"cannot use the device {str(self.device)!r}: {error}") from error
        found = torch.accelerator.is_available() and torch.accelerator.current_accelerator()
        return found or torch.device("cpu")

    def __getstate__(self) -> dict[str, Any]:
        """Return plain values, for files."""
        folder = None if self.folder is None else os.fspath(self.folder)
        told = {"folder": folder, "device": str(self.device), "verbose": self.verbose is True}
        return {**super().__getstate__(), **told}


def describe_epoch(record: Record, n_epochs: int | None = None) -> str:
    """Say in one line how far a training is, how fast, and when it will end.

    Examples
    --------
    >>> pace = {"rows_per_second": 9.6, "seconds_left": 0}
    >>> describe_epoch({"epoch": 2, "loss": 0.5, "changed": 0.25, **pace}, n_epochs=2)
    'epoch 2/2: loss 0.5000, labels changed 25.0%, 10 rows/s'
    """
    part = record.get("part")  # which has epochs of its own
    of = f"/{n_epochs}" if n_epochs and not part else ""
    losses = [f"{k[5:]} {v:.4f}" for k, v in record.items() if k.startswith("loss_")]
    among = f" ({', '.join(losses)})" if len(losses) > 1 else ""
    said = [f"epoch {record['epoch']}{of}: loss {record['loss']:.4f}{among}"]
    shares = {"changed": "labels changed", "agreement": "partner agrees"}
    shares["approximated_accuracy"] = "held-out approximated accuracy"
    said += [f"{name} {record[key]:.1%}" for key, name in shares.items() if key in record]
    said.append(f"{record['rows_per_second']:.0f} rows/s")
    if left := timedelta(seconds=round(record["seconds_left"])):
        said.append(f"{left} left, until {datetime.now() + left:%a %d %b %H:%M}")
    return (f"{part}: " if part else "") + ", ".join(said)


def _tell(record: Record) -> None:
    sys.stderr.write(f"{describe_epoch(record)}\n")

"""Finished deep runs as lines of a table: which belong together, and which are pairs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.deep.configuration import all_settings, make_classifier, read_configuration
from appellate.deep.sources import NAMES
from appellate.experiments.paper import Figure, lookup
from appellate.metrics import PairedComparison, paired_comparison

Record = dict[str, Any]

#: Image sets by name: as the paper writes them, and their rows to train and to test on.
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
ROWS = {"cifar10": (50_000, 10_000), "cifar100": (50_000, 10_000)}

#: Options of the coupling that each partner reads.
_READ: dict[str | None, tuple[str, ...]] = {
    None: (),
    "independent": ("head",),
    "candidate": ("head", "collaboration", "blur", "direction"),
    "non-candidate": (
        *("head", "collaboration", "blur", "direction"),
        *("partner_output", "reduction"),
    ),
}
_COUPLING = ("partner", *_READ["non-candidate"])
_SURROUNDINGS = ("checkpoint_every", "cost")  # change no test accuracy

#: Of a variant: the configuration, the paper's table, and its name of the method there.
_DEEP, _ABLATION = "deep_accuracy_percent", "ablation_pico_accuracy_percent"
_PRINTED = {
    "base": ("", _DEEP, ""),
    "PLCP": ("-plcp", _DEEP, "-PLCP"),
    "no blur": ("-plcp-no-blur", _ABLATION, "-PLCP partner=P blur=no"),
    "partner O": ("-plcp-partner-o", _ABLATION, "-PLCP partner=O blur=yes"),
}
_VARIANTS = {
    "base": "{}",
    "PLCP": "{}-PLCP",
    "no blur": "{}-PLCP without blur",
    "partner O": "{}-PLCP with partner O",
    "partner O, no blur": "{}-PLCP with partner O without blur",
    "uncoupled": "{} with a partner that it never hears",
    "independent": "two independent {}s",
}


class DeepTableError(ValueError):
    """Runs that no table can be made of, and why."""


@dataclass(frozen=True)
class DeepRun:
    """What a table needs of one finished run.

    Attributes
    ----------
    folder : str
        Where it is.
    method : {"PRODEN", "PiCO"}
        The base method.
    data : tuple
        Name of the data, rows to train and to test on, and for data in a file the hash of
        their candidate sets.
    flip : float or None
        Flip probability of made-up candidate sets.
    settings : dict
        All parameters of the classifier that its partner reads, defaults too.
    seed : int
        Of the run.
    candidates : str
        Hash of its candidate sets.
    head : str
        Who predicts.
    selected_by : str or None
        Score that chose the epoch without the truth; None for the last epoch.
    accuracies : dict of str to float
        Test accuracy by head.
    smoke : bool
        Whether it was a trial, whose accuracy means nothing.
    """

    folder: str
    method: str
    data: tuple[Any, ...]
    flip: float | None
    settings: Record
    seed: int
    candidates: str
    head: str
    selected_by: str | None
    accuracies: dict[str, float]
    smoke: bool = False


def read_run(folder: str, record: Record) -> DeepRun | None:
    """Take from the record of a finished run what a table needs; None without test labels.

    Raises
    ------
    DeepTableError
        If the record is damaged.
    """
    try:
        results, data = record["results"], record["data"]
        if results["test"] is None:
            return None
        accuracies = {head: float(v) for head, v in results["test"]["accuracy"].items()}
        run = DeepRun(
            folder,
            record["method"],
            _data_key(data, record["candidates"]["sha256"]),
            data["flip"],
            _effective(record["method"], record["settings"]),
            int(record["seed"]),
            record["candidates"]["sha256"],
            results["head"],
            results["selected_by"],
            accuracies,
            bool(record["smoke"]),
        )
    except KeyError as error:
        raise DeepTableError(f"the record of '{folder}' has no {error}: it is damaged.") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise DeepTableError(f"the record of '{folder}' cannot be read: {error}") from error
    if run.head not in accuracies or not all(0 <= v <= 1 for v in accuracies.values()):
        raise DeepTableError(f"the record of '{folder}' is damaged: {accuracies}.")
    return run


@dataclass(frozen=True)
class DeepLine:
    """Runs that differ in their seed alone, scored by one head.

    Attributes
    ----------
    runs : dict of int to DeepRun
        By seed, in order.
    head : str
        Whose accuracy is taken.
    data : str
        Name of the data, with what sets them apart from others of the name.
    varied : tuple of str
        Settings that other runs of this method on these data have otherwise.
    """

    runs: dict[int, DeepRun]
    head: str
    data: str
    varied: tuple[str, ...] = ()

    @property
    def first(self) -> DeepRun:
        """Return one of its runs, to read from it what all have in common."""
        return next(iter(self.runs.values()))

    @property
    def variant(self) -> str:
        """Name what stands beside the base."""
        settings = self.first.settings
        partner = settings["partner"]
        if partner in (None, "independent"):
            return partner or "base"
        if settings["collaboration"] == 0:
            return "uncoupled"
        blurred = settings["blur"] is not None
        if partner == "candidate":
            return "partner O" if blurred else "partner O, no blur"
        return "PLCP" if blurred else "no blur"

    @property
    def title(self) -> str:
        """Name the method, with what sets it apart from others of the name."""
        return self.stem if self.head == self.first.head else f"{self.stem}, {self.head} head"

    @property
    def stem(self) -> str:
        """Return the title without the head."""
        title = _VARIANTS[self.variant].format(self.first.method)
        settings, usual = self.first.settings, _usual(self.first.method)
        named = _named_by(self.variant)
        told = [
            key
            for key in _COUPLING
            if key in settings and key not in named and settings[key] != usual[key]
        ]
        apart = [f"{key} = {json.dumps(settings[key])}" for key in (*told, *self.varied)]
        return f"{title} ({', '.join(apart)})" if apart else title

    def percent(self, seeds: Iterable[int] | None = None) -> NDArray[np.float64]:
        """Return the test accuracy of every seed, in per cent."""
        chosen = self.runs if seeds is None else seeds
        return np.array([100 * self.runs[seed].accuracies[self.head] for seed in chosen])

    def printed(self) -> Figure | None:
        """Return the paper's figure of this data set, flip and method, if it has one."""
        run = self.first
        if self.variant not in _PRINTED or run.data[0] not in TITLES or run.flip is None:
            return None
        if self.head != run.head:
            return None
        _, table, name = _PRINTED[self.variant]
        method, column = f"{run.method}{name}", f"{TITLES[run.data[0]]} q={run.flip:g}"
        if run.flip == 0:
            method, column = f"{method} fully supervised", TITLES[run.data[0]]
        return lookup(table, method, column)

    def departures(self) -> list[str]:
        """Say in what the runs depart from the settings of the paper's figure."""
        run = self.first
        source, *rows = run.data
        name = f"{run.method.lower()}{_PRINTED[self.variant][0]}-{source}"
        found = read_configuration(name)
        theirs = _effective(run.method, found.settings_for(run.flip, source))
        said = [
            f"{key} = {json.dumps(run.settings[key])}, not {json.dumps(theirs[key])}"
            for key in theirs
            if run.settings[key] != theirs[key]
        ]
        for what, ours, all_rows in zip(("training", "test"), rows, ROWS[source], strict=True):
            if ours != all_rows:
                said.append(f"{ours} {what} rows, not {all_rows}")
        return said


@dataclass(frozen=True)
class DeepPair:
    """A line and one to compare it with, seed by seed.

    Attributes
    ----------
    line, other : DeepLine
        The coupled runs, and those of the base alone or of two bases.
    seeds : tuple of int
        Seeds that both have, on the same candidate sets.
    unlike : tuple of int
        Seeds that both have, but on other candidate sets.
    result : PairedComparison or None
        In points; None for fewer than two seeds.
    """

    line: DeepLine
    other: DeepLine
    seeds: tuple[int, ...]
    unlike: tuple[int, ...]
    result: PairedComparison | None


def collect(runs: Iterable[DeepRun], *, all_heads: bool = False) -> list[DeepLine]:
    """Put runs that differ in their seed alone into one line, the base first.

    Raises
    ------
    DeepTableError
        If two runs differ in nothing.
    """
    groups: dict[str, dict[int, DeepRun]] = {}
    for run in runs:
        place = [run.data, run.method, run.flip, run.settings, run.selected_by]
        group = groups.setdefault(json.dumps(place, sort_keys=True), {})
        if run.seed in group:
            raise DeepTableError(
                f"'{group[run.seed].folder}' and '{run.folder}' are the same run, with seed "
                f"{run.seed}: a seed counts once, so leave one of them out."
            )
        group[run.seed] = run
    firsts = [next(iter(group.values())) for group in groups.values()]
    lines = []
    for first, group in zip(firsts, groups.values(), strict=True):
        ordered = dict(sorted(group.items()))
        heads = dict.fromkeys([first.head, *(first.accuracies if all_heads else ())])
        told = _data_name(first, firsts), _varied(first, firsts)
        lines += [DeepLine(ordered, head, *told) for head in heads]
    return sorted(lines, key=_order)


def pair(lines: Iterable[DeepLine]) -> Iterator[DeepPair]:
    """Pair every line with the base alone, and one that predicts also with two bases."""
    lines = list(lines)
    for line in lines:
        for other in lines:
            if _comparable(line, other):
                yield _compare(line, other)


def _comparable(line: DeepLine, other: DeepLine) -> bool:
    predicts = line.head == line.first.head
    controls = {"independent"} if predicts and line.variant != "independent" else set()
    if line.variant == "base" or other.variant not in {"base", *controls}:
        return False
    if other.head != other.first.head:
        return False
    return _setting(line.first) == _setting(other.first)


def _compare(line: DeepLine, other: DeepLine) -> DeepPair:
    common = [seed for seed in line.runs if seed in other.runs]
    same = {s: line.runs[s].candidates == other.runs[s].candidates for s in common}
    seeds = tuple(seed for seed in common if same[seed])
    result = None
    if len(seeds) > 1:
        result = paired_comparison(line.percent(seeds), other.percent(seeds))
    return DeepPair(line, other, seeds, tuple(s for s in common if not same[s]), result)


def _setting(run: DeepRun) -> tuple[Any, ...]:
    """Return all that two runs must share to differ in the partner alone."""
    shared = {k: v for k, v in run.settings.items() if k not in _COUPLING}
    return run.data, run.method, run.flip, run.selected_by, shared


def _varied(run: DeepRun, runs: Iterable[DeepRun]) -> tuple[str, ...]:
    others = [o for o in runs if (o.data, o.method) == (run.data, run.method)]
    return tuple(
        key
        for key, value in run.settings.items()
        if key not in _COUPLING and any(other.settings[key] != value for other in others)
    )


def _data_name(run: DeepRun, runs: Iterable[DeepRun]) -> str:
    """Add the rows, and then the hash, where there are other data of the same name."""
    name, *rest = run.data
    others = [o.data for o in runs if o.data[0] == name and o.data != run.data]
    if not others:
        return str(name)
    sizes = [other[1:3] for other in others]
    if tuple(rest[:2]) not in sizes:
        return f"{name} ({rest[0]} + {rest[1]} rows)"
    return f"{name} (candidates {rest[2][:8]})"


def _order(line: DeepLine) -> tuple[Any, ...]:
    run = line.first
    flip = -1.0 if run.flip is None else run.flip
    heads = [run.head, "base", "partner", "mean"]
    variant = list(_VARIANTS).index(line.variant)
    return line.data, flip, run.method, variant, line.stem, heads.index(line.head)


def _data_key(data: Record, digest: str) -> tuple[Any, ...]:
    """Tell data sets apart; a file may lie elsewhere now, so its path does not count."""
    key = re.split(r"[\\/]", data["source"])[-1], data["rows"], data["test_rows"]
    return key if data["source"] in NAMES else (*key, digest)


def _effective(method: str, settings: Record) -> Record:
    """Return all settings that a run reads, defaults too, as JSON has them."""
    known = json.loads(json.dumps(all_settings(make_classifier(method, settings))))
    read = _READ[known["partner"]]
    left = [key for key in _COUPLING[1:] if key not in read] + list(_SURROUNDINGS)
    return {key: value for key, value in known.items() if key not in left}


@cache
def _usual(method: str) -> Record:
    """Return the settings of PLCP, as the paper has them."""
    return _effective(method, {"partner": "non-candidate"})


def _named_by(variant: str) -> tuple[str, ...]:
    """Settings that the name of a variant tells already."""
    if variant == "uncoupled":
        return "partner", "collaboration"
    return ("partner", "blur") if "no blur" in variant else ("partner",)

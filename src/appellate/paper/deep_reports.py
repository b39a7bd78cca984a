"""Deep runs as a table: mean over seeds, differences by seed, the paper's figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from appellate.experiments.layouts import Figure
from appellate.experiments.networks.configuration import (
    all_settings,
    make_classifier,
    read_configuration,
)
from appellate.experiments.networks.sources import NAMES
from appellate.experiments.reports import MARKS, Report, Sheet, p_value
from appellate.experiments.results import finite, mean_spread
from appellate.metrics import PairedComparison, paired_comparison
from appellate.metrics.paired import FEWEST
from appellate.paper.printed import lookup

if TYPE_CHECKING:
    from appellate.deep.settings import Record

#: Image sets by name as the paper writes them, and the rows of each to train and to test on.
IMAGE_SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
IMAGE_ROWS = {"training": 50_000, "test": 10_000}

#: Options of the coupling that each partner reads.
_HEARD = ("head", "collaboration", "blur", "direction")
_COUPLING = ("partner", *_HEARD, "partner_output", "reduction")
_READ = {None: (), "independent": ("head",), "candidate": _HEARD, "non-candidate": _COUPLING}
_SURROUNDINGS = ("checkpoint_every", "cost")  # change no test accuracy

#: Of a variant: its name, the settings that the name tells, and of those in the paper the
#: configuration, the paper's table, and its name of the method there.
_DEEP, _ABLATION = "deep_accuracy_percent", "ablation_pico_accuracy_percent"
_PARTNER, _SHARP = ("partner",), ("partner", "blur")
_O_PRINTED = ("-plcp-partner-o", _ABLATION, "-PLCP partner=O blur=yes")
_P_PRINTED = ("-plcp-no-blur", _ABLATION, "-PLCP partner=P blur=no")
_VARIANTS: dict[str, tuple[str, tuple[str, ...], tuple[str, str, str] | None]] = {
    "base": ("{}", _PARTNER, ("", _DEEP, "")),
    "PLCP": ("{}-PLCP", _PARTNER, ("-plcp", _DEEP, "-PLCP")),
    "no blur": ("{}-PLCP without blur", _SHARP, _P_PRINTED),
    "partner O": ("{}-PLCP with partner O", _PARTNER, _O_PRINTED),
    "partner O, no blur": ("{}-PLCP with partner O without blur", _SHARP, None),
    "uncoupled": ("{} with a partner that it never hears", ("partner", "collaboration"), None),
    "independent": ("two independent {}s", _PARTNER, None),
}


class DeepTableError(ValueError):
    """Runs that no table can be made of, and why."""


@dataclass(frozen=True)
class DeepRun:
    """What a table needs of one finished run.

    Attributes
    ----------
    folder : str
        Folder of the run.
    method : {"PRODEN", "PiCO"}
        The base method.
    data : tuple
        Name of the data, with the size of made-up bags, rows to train and to test on, and for
        data in a file the hash of their candidate sets.
    flip : float or None
        Flip probability of made-up candidate sets.
    settings : dict
        All parameters of the classifier that its partner reads, defaults too.
    seed : int
        Seed of the run.
    candidates : str
        Hash of its candidate sets.
    head : str
        Who predicts.
    selected_by : str or None
        Score that chose the epoch without true labels; None for the last epoch.
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


def read_deep_run(folder: str, record: Record) -> DeepRun | None:
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
        method, digest = record["method"], record["candidates"]["sha256"]
        settings = _effective(method, record["settings"])
        name = re.split(r"[\\/]", data["source"])[-1]  # a file may lie elsewhere now
        name += f", bags of {data['bag_size']}" if data.get("bag_size") else ""
        key: tuple[Any, ...] = name, int(data["rows"]), int(data["test_rows"])
        key = key if data["source"] in NAMES else (*key, digest)
        flip = None if data["flip"] is None else float(data["flip"])
        made = key, flip, settings, int(record["seed"]), str(digest)
        chosen = str(results["head"]), results["selected_by"]
        run = DeepRun(folder, method, *made, *chosen, accuracies, bool(record["smoke"]))
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
    def predicts(self) -> bool:
        """Whether the head is the one that predicts."""
        return self.head == self.first.head

    @property
    def variant(self) -> str:
        """Name what is coupled with the base."""
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
        return self.stem if self.predicts else f"{self.stem}, {self.head} head"

    @property
    def stem(self) -> str:
        """Return the title without the head."""
        title, named, _ = _VARIANTS[self.variant]
        settings, usual = self.first.settings, _usual(self.first.method)
        told = [k for k in _COUPLING if k in settings and k not in named]
        told = [key for key in told if settings[key] != usual[key]]
        apart = [f"{key} = {json.dumps(settings[key])}" for key in (*told, *self.varied)]
        return title.format(self.first.method) + (f" ({', '.join(apart)})" if apart else "")

    def percent(self, seeds: Iterable[int]) -> NDArray[np.float64]:
        """Return the test accuracy of some seeds, in per cent."""
        return np.array([100 * self.runs[seed].accuracies[self.head] for seed in seeds])

    def printed(self) -> Figure | None:
        """Return the paper's figure of this data set, flip and method, if it has one."""
        run, known = self.first, _VARIANTS[self.variant][2]
        column = IMAGE_SETS.get(run.data[0])
        if known is None or column is None or run.flip is None or not self.predicts:
            return None
        method = f"{run.method}{known[2]}"
        if run.flip == 0:
            return lookup(known[1], f"{method} fully supervised", column)
        return lookup(known[1], method, f"{column} q={run.flip:g}")

    @property
    def paper(self) -> tuple[float, float] | None:
        """Return the paper's figure, if the runs had its settings."""
        printed = self.printed()
        if printed is None or self.departures():
            return None
        return 100 * printed.mean, 100 * printed.std

    def departures(self) -> list[str]:
        """Say in what the runs depart from the settings of the paper's figure."""
        run, known = self.first, _VARIANTS[self.variant][2]
        source, *rows = run.data
        assert known is not None
        found = read_configuration(f"{run.method.lower()}{known[0]}-{source}")
        theirs = _effective(run.method, found.settings_for(run.flip, source))
        said = [
            f"{key} = {json.dumps(run.settings[key])}, not {json.dumps(theirs[key])}"
            for key in theirs
            if run.settings[key] != theirs[key]
        ]
        pairs = zip(IMAGE_ROWS.items(), rows, strict=True)
        return said + [f"{n} {what} rows, not {whole}" for (what, whole), n in pairs if n != whole]


@dataclass(frozen=True)
class DeepPair:
    """A line and one to compare it with, seed by seed.

    Attributes
    ----------
    line, other : DeepLine
        The coupled runs, and those of the base alone or of two bases.
    seeds : list of int
        Seeds that both have, on the same candidate sets.
    unlike : list of int
        Seeds that both have, but on other candidate sets.
    result : PairedComparison or None
        In points; None for fewer than two seeds.
    """

    line: DeepLine
    other: DeepLine
    seeds: list[int]
    unlike: list[int]
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
        alike = [o.settings for o in firsts if (o.data, o.method) == (first.data, first.method)]
        varied = tuple(
            key
            for key, value in first.settings.items()
            if key not in _COUPLING and any(other[key] != value for other in alike)
        )
        data, *sizes = first.data[:3]  # told apart from others of the name by rows, then by sets
        others = [o.data for o in firsts if o.data[0] == data and o.data != first.data]
        if others and tuple(sizes) in [other[1:3] for other in others]:
            data = f"{data} (candidates {first.data[3][:8]})"
        elif others:
            data = f"{data} ({sizes[0]} + {sizes[1]} rows)"
        heads = dict.fromkeys([first.head, *(first.accuracies if all_heads else ())])
        lines += [DeepLine(dict(sorted(group.items())), head, data, varied) for head in heads]
    return sorted(lines, key=_order)


def pair(lines: Iterable[DeepLine]) -> Iterator[DeepPair]:
    """Pair every line with the base alone, and one that predicts also with two bases."""
    for line, other in permutations(lines, 2):
        control = line.predicts and line.variant != "independent"
        rivals = ("base", "independent") if control else ("base",)
        if line.variant == "base" or other.variant not in rivals or not other.predicts:
            continue
        if _setting(line.first) != _setting(other.first):
            continue
        common = [seed for seed in line.runs if seed in other.runs]
        same = {s: line.runs[s].candidates == other.runs[s].candidates for s in common}
        seeds, unlike = ([s for s in common if same[s] == alike] for alike in (True, False))
        tested = len(seeds) > 1
        found = paired_comparison(line.percent(seeds), other.percent(seeds)) if tested else None
        yield DeepPair(line, other, seeds, unlike, found)


def _setting(run: DeepRun) -> tuple[Any, ...]:
    """Return all that two runs must share to differ in the partner alone."""
    shared = {k: v for k, v in run.settings.items() if k not in _COUPLING}
    return run.data, run.method, run.flip, run.selected_by, shared


def _order(line: DeepLine) -> tuple[Any, ...]:
    run = line.first
    flip = -1.0 if run.flip is None else run.flip
    heads = [run.head, *run.accuracies]
    variant = list(_VARIANTS).index(line.variant)
    return line.data, flip, run.method, variant, line.stem, heads.index(line.head)


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


CAPTION = (
    "Test accuracy in per cent, mean ± standard deviation over seeds, of the last epoch or of one "
    "selected without true labels; never of the best test epoch. A bullet (•) or circle (○): "
    "better or worse by a paired t-test at 0.05, not corrected for several tests."
)
#: Seeds that Wilcoxon's test needs before its smallest p-value, 2 / 2^n, lies below 0.05.
WILCOXON_SEEDS = 6


def report_deep(
    records: Mapping[str, Record],
    *,
    all_heads: bool = False,
    left_out: Iterable[str] = (),
) -> Report:
    """Report finished runs of ``appellate deep train``.

    Runs that differ in their seed alone are one line. A coupled line is compared, seed by
    seed, with the base alone and with two independent bases, if those were run on the same
    data and candidate sets with the same settings. The paper's figure is shown only
    if the runs had the settings of its configuration. Otherwise a note says what
    differs. Loads torch.

    Parameters
    ----------
    records : mapping of str to dict
        Folders, and the content of their ``run.json``.
    all_heads : bool, default=False
        Whether the heads that do not predict have a line too.
    left_out : iterable of str, default=()
        Runs that are not in `records`, and why.

    Raises
    ------
    DeepTableError
        If a record is damaged, if two are of the same run, or if none has a test accuracy.

    Examples
    --------
    >>> def record(partner, head, seed, accuracy):  # json.loads of a run.json
    ...     return {
    ...         "method": "PRODEN", "settings": {"partner": partner}, "seed": seed,
    ...         "data": {"source": "my.npz", "rows": 60, "test_rows": 30, "flip": None},
    ...         "candidates": {"sha256": "0a"}, "smoke": False,
    ...         "results": {"head": head, "selected_by": None,
    ...                     "test": {"accuracy": {head: accuracy}}},
    ...     }
    >>> records = {f"base-{i}": record(None, "base", i, 0.7 + i / 50) for i in range(3)}
    >>> records |= {f"both-{i}": record("non-candidate", "mean", i, 0.75) for i in range(3)}
    >>> report = report_deep(records)
    >>> for line in report.sheets[0].rows:
    ...     print(*line, sep=" | ")
    my.npz | PRODEN | 3 | 72.00 ± 2.00
    my.npz | PRODEN-PLCP | 3 | 75.00 ± 0.00
    >>> report.records[-1]["against"], round(report.records[-1]["t_pvalue"], 2)
    ('PRODEN', 0.12)
    """
    runs, told = [], [f"Left out: {reason}." for reason in left_out]
    for folder, record in records.items():
        run = read_deep_run(folder, record)
        if run is None:
            told.append(f"Left out: '{folder}' has no test rows with labels.")
        else:
            runs.append(run)
    if not runs:
        raise DeepTableError("none of the runs has a test accuracy. " + " ".join(told))
    lines = collect(runs, all_heads=all_heads)
    pairs = list(pair(lines))
    alone = [_record(line) for line in lines]
    paired = [_record(each.line, each) for each in pairs if each.result]
    sheets = [_overview(alone), *([_differences(paired)] if paired else [])]
    notes = [*told, *_notes(lines, pairs)]
    rows = (*alone, *paired)
    return Report("deep", "Deep runs", CAPTION, tuple(sheets), rows, tuple(notes))


def _overview(records: list[Record]) -> Sheet:
    rows = []
    for each in records:
        paper = each["paper_mean"]
        beside = "" if paper is None else _figure(paper, each["paper_deviation"])
        ours = _figure(each["mean"], each["deviation"])
        rows.append((*_place(each), each["method"], str(len(each["seeds"])), ours, beside))
    return _sheet("Accuracy", ("data", "flip", "method", "seeds", "ours", "paper"), rows)


def _differences(records: list[Record]) -> Sheet:
    rows = []
    for each in records:
        n = len(each["seeds"])
        low = each["difference_low"]
        printed = each["paper_difference"]
        effect, points = each["effect_size"], f"{each['difference']:+.2f} "
        rows.append(
            (
                *(*_place(each), each["method"], each["against"], str(n)),
                (points + MARKS[each["outcome"]]).rstrip(),
                "-" if low is None else f"{low:+.2f} to {each['difference_high']:+.2f}",
                p_value(each["t_pvalue"]),
                "" if n < WILCOXON_SEEDS else p_value(each["wilcoxon_pvalue"]),
                "-" if effect is None else f"{effect:+.2f}",
                "" if printed is None else f"{printed:+.2f}",
            )
        )
    header = ("data", "flip", "method", "against", "seeds", "points", "95 %")
    return _sheet("Paired by seed", (*header, "p (t)", "p (Wilcoxon)", "d", "paper"), rows)


def _sheet(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
    """Lay out rows without the columns that are empty in all of them."""
    kept = [j for j in range(len(header)) if any(row[j] for row in rows)]
    cells = (tuple(row[j] for j in kept) for row in rows)
    return Sheet(title, tuple(header[j] for j in kept), tuple(cells))


def _record(line: DeepLine, pair: DeepPair | None = None) -> Record:
    """Return one line as numbers; of a pair, over the seeds that it has in common."""
    run, paper = line.first, line.paper or (None, None)
    seeds = list(line.runs if pair is None else pair.seeds)
    mean, deviation = mean_spread(line.percent(seeds))
    record: Record = {
        "data": line.data,
        "training_rows": run.data[1],
        "test_rows": run.data[2],
        "flip": run.flip,
        "base": run.method,
        "variant": line.variant,
        "head": line.head,
        "method": line.title,
        "selected_by": run.selected_by,
        "against": None,
        "seeds": seeds,
        "mean": mean,
        "deviation": deviation,
        "paper_mean": paper[0],
        "paper_deviation": paper[1],
        **dict.fromkeys(_TESTED),
    }
    if pair is not None and (found := pair.result) is not None:
        exact = found.wilcoxon_pvalue if len(seeds) >= WILCOXON_SEEDS else np.nan
        numbers = (found.difference, *found.difference_interval, found.t_pvalue, exact)
        shares = map(finite, (*numbers, found.effect_size))
        theirs, others = line.paper, pair.other.paper
        gain = None if theirs is None or others is None else round(theirs[0] - others[0], 2)
        record |= zip(_TESTED, (*shares, found.outcome(), gain), strict=True)
        record["against"] = pair.other.title
    return record


_TESTED = (
    *("difference", "difference_low", "difference_high", "t_pvalue", "wilcoxon_pvalue"),
    *("effect_size", "outcome", "paper_difference"),
)


def _notes(lines: list[DeepLine], pairs: list[DeepPair]) -> Iterable[str]:
    for line in lines:
        name, printed = _name(line), line.printed()
        if line.first.smoke and line.predicts:
            yield f"{name}: SMOKE RUNS, whose accuracy means nothing."
        if line.first.selected_by and line.predicts:
            by = line.first.selected_by
            yield f"{name}: the epoch was selected by {by}, without true labels."
        if printed is not None and (apart := line.departures()):
            figure = _figure(100 * printed.mean, 100 * printed.std)
            yield f"{name}: the paper's {figure} is not comparable: {'; '.join(apart)}."
        rivals = {each.other.variant for each in pairs if each.line is line}
        if line.variant != "base" and "base" not in rivals:
            yield (
                f"{name}: no run of {line.first.method} alone on the same data with the same "
                "settings, so nothing to compare it with."
            )
    for each in pairs:
        line = each.line
        other = each.other
        n = len(each.seeds)
        name = f"{_name(line)} against {other.title}"
        if each.unlike:
            yield f"{name}: {_seeds(each.unlike)} not paired, the candidate sets are not the same."
        if each.result is None:
            yield f"{name}: {'one' if n else 'no'} common seed, so no test."
            continue
        alone = [
            f"{_seeds(rest)} of {one.title}"
            for one, another in ((line, other), (other, line))
            if (rest := [seed for seed in one.runs if seed not in another.runs])
        ]
        if alone:
            said = " and ".join(alone)
            yield f"{name}: the {n} common seeds only; no counterpart for {said}."
        if n < FEWEST:
            yield f"{name}: {n} common seeds, too few for a test."
        elif finite(each.result.t_pvalue) is None:
            yield f"{name}: the same difference for every seed, so no t-test."
    if any(each.result and len(each.seeds) < WILCOXON_SEEDS for each in pairs):
        yield (
            f"Wilcoxon's test is left out below {WILCOXON_SEEDS} seeds: its p-value cannot be "
            "below 0.05."
        )


def _place(record: Record) -> tuple[str, str]:
    return record["data"], "" if record["flip"] is None else f"{record['flip']:g}"


def _name(line: DeepLine) -> str:
    flip = line.first.flip
    return f"{line.title} on {line.data}{'' if flip is None else f', flip {flip:g}'}"


def _seeds(seeds: Iterable[int]) -> str:
    numbers = list(map(str, seeds))
    return f"seed{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _figure(mean: float, deviation: float | None) -> str:
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"

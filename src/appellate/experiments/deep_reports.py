"""The report of deep runs: mean over seeds, differences by seed, the paper's figures beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from appellate.experiments.deep_lines import (
    DeepLine,
    DeepPair,
    DeepTableError,
    Record,
    collect,
    pair,
    read_run,
)
from appellate.experiments.reports import MARKS, Report, Sheet, p_value
from appellate.experiments.results import finite, spread
from appellate.metrics.paired import FEWEST

CAPTION = (
    "Test accuracy in per cent, mean ± standard deviation over seeds, of the last epoch or of one "
    "selected without the truth; never of the best test epoch. A bullet (•) or circle (○): better "
    "or worse by a paired t-test at 0.05, not corrected for several tests."
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
    data and candidate sets with the same settings. The paper's figure stands beside ours only
    where the runs had the settings of its configuration; where not, a note says in what they
    differ. Loads torch.

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
        run = read_run(folder, record)
        if run is None:
            told.append(f"Left out: '{folder}' has no test rows with labels.")
        else:
            runs.append(run)
    if not runs:
        raise DeepTableError("none of the runs has a test accuracy. " + " ".join(told))
    lines = collect(runs, all_heads=all_heads)
    pairs = list(pair(lines))
    sheets = [_overview(lines)]
    if any(each.result for each in pairs):
        sheets.append(_differences(pairs))
    notes = [*told, *_notes(lines, pairs)]
    rows = [*map(_line_record, lines), *(_pair_record(each) for each in pairs if each.result)]
    return Report("deep", "Deep runs", CAPTION, tuple(sheets), tuple(rows), tuple(notes))


def _overview(lines: list[DeepLine]) -> Sheet:
    rows = []
    for line in lines:
        values, paper = line.percent(), _paper(line)
        beside = "" if paper is None else _figure(*paper)
        ours = _figure(float(values.mean()), spread(values))
        rows.append((*_place(line), line.title, str(len(values)), ours, beside))
    return _sheet("Accuracy", ("data", "flip", "method", "seeds", "ours", "paper"), rows)


def _differences(pairs: list[DeepPair]) -> Sheet:
    rows = []
    for each in pairs:
        found = each.result
        if found is None:
            continue
        low, high = found.difference_interval
        printed = _paper_difference(each)
        effect = finite(found.effect_size)
        rows.append(
            (
                *_place(each.line),
                each.line.title,
                each.other.title,
                str(len(each.seeds)),
                f"{found.difference:+.2f} {MARKS[found.outcome()]}".rstrip(),
                "-" if finite(low) is None else f"{low:+.2f} to {high:+.2f}",
                p_value(found.t_pvalue),
                "" if len(each.seeds) < WILCOXON_SEEDS else p_value(_wilcoxon(each)),
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


def _line_record(line: DeepLine, pair: DeepPair | None = None) -> dict[str, Any]:
    """Return one line as numbers; of a pair, over the seeds that it has in common."""
    run, paper = line.first, _paper(line)
    seeds = list(line.runs if pair is None else pair.seeds)
    values, found = line.percent(seeds), None if pair is None else pair.result
    low, high = (None, None) if found is None else map(finite, found.difference_interval)
    return {
        "data": line.data,
        "training_rows": run.data[1],
        "test_rows": run.data[2],
        "flip": run.flip,
        "base": run.method,
        "variant": line.variant,
        "head": line.head,
        "method": line.title,
        "selected_by": run.selected_by,
        "against": None if pair is None else pair.other.title,
        "seeds": seeds,
        "mean": float(values.mean()),
        "deviation": spread(values),
        "paper_mean": None if paper is None else paper[0],
        "paper_deviation": None if paper is None else paper[1],
        "difference": None if found is None else found.difference,
        "difference_low": low,
        "difference_high": high,
        "t_pvalue": None if found is None else finite(found.t_pvalue),
        "wilcoxon_pvalue": None if pair is None else _wilcoxon(pair),
        "effect_size": None if found is None else finite(found.effect_size),
        "outcome": None if found is None else found.outcome(),
        "paper_difference": None if pair is None else _paper_difference(pair),
    }


def _pair_record(pair: DeepPair) -> dict[str, Any]:
    return _line_record(pair.line, pair)


def _notes(lines: list[DeepLine], pairs: list[DeepPair]) -> Iterable[str]:
    for line in lines:
        name, printed = _name(line), line.printed()
        if line.first.smoke and line.head == line.first.head:
            yield f"{name}: SMOKE RUNS, whose accuracy means nothing."
        if line.first.selected_by and line.head == line.first.head:
            yield f"{name}: the epoch was selected by {line.first.selected_by}, without the truth."
        if printed is not None and (apart := line.departures()):
            figure = _figure(100 * printed.mean, 100 * printed.std)
            yield f"{name}: the paper's {figure} is no comparison: {'; '.join(apart)}."
        if line.variant != "base" and not _compared_with_base(line, pairs):
            yield (
                f"{name}: no run of {line.first.method} alone on the same data with the same "
                "settings, so nothing to compare it with."
            )
    for each in pairs:
        yield from _notes_of_pair(each)
    if any(each.result and len(each.seeds) < WILCOXON_SEEDS for each in pairs):
        yield (
            f"Wilcoxon's test is left out below {WILCOXON_SEEDS} seeds, where it cannot come "
            "below 0.05."
        )


def _notes_of_pair(pair: DeepPair) -> Iterable[str]:
    line, other = pair.line, pair.other
    name = f"{_name(line)} against {other.title}"
    if pair.unlike:
        yield f"{name}: {_seeds(pair.unlike)} not paired, the candidate sets are not the same."
    alone = [
        f"{_seeds(rest)} of {one.title}"
        for one, another in ((line, other), (other, line))
        if (rest := [seed for seed in one.runs if seed not in another.runs])
    ]
    if pair.result is None:
        n = "no" if not pair.seeds else "one"
        yield f"{name}: {n} common seed, so no test."
    elif alone:
        yield (
            f"{name}: the {len(pair.seeds)} common seeds only; no counterpart for "
            f"{' and '.join(alone)}."
        )
    if pair.result is not None and len(pair.seeds) < FEWEST:
        yield f"{name}: {len(pair.seeds)} common seeds, too few for a test."
    elif pair.result is not None and finite(pair.result.t_pvalue) is None:
        yield f"{name}: the same difference for every seed, so no t-test."


def _compared_with_base(line: DeepLine, pairs: list[DeepPair]) -> bool:
    return any(each.line is line and each.other.variant == "base" for each in pairs)


def _paper(line: DeepLine) -> tuple[float, float] | None:
    """Return the paper's figure, if the runs had the settings that it stands for."""
    printed = line.printed()
    if printed is None or line.departures():
        return None
    return 100 * printed.mean, 100 * printed.std


def _paper_difference(pair: DeepPair) -> float | None:
    line, other = _paper(pair.line), _paper(pair.other)
    return None if line is None or other is None else round(line[0] - other[0], 2)


def _wilcoxon(pair: DeepPair) -> float | None:
    if pair.result is None or len(pair.seeds) < WILCOXON_SEEDS:
        return None
    return finite(pair.result.wilcoxon_pvalue)


def _place(line: DeepLine) -> tuple[str, str]:
    return line.data, "" if line.first.flip is None else f"{line.first.flip:g}"


def _name(line: DeepLine) -> str:
    data, flip = _place(line)
    return f"{line.title} on {data}{f', flip {flip}' if flip else ''}"


def _seeds(seeds: Iterable[int]) -> str:
    numbers = list(map(str, seeds))
    return f"seed{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _figure(mean: float, deviation: float | None) -> str:
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"

"""What the demo says: the table, the appeals with their pictures, and what to do next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.pictures import can_shade, draw_picture

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from appellate.cli.digits import Comparison, Digits
    from appellate.plcp import PLCPClassifier

_CARD_WIDTH = 40
_NEXT = """\
from appellate import AGGDClassifier, PLCPClassifier
model = PLCPClassifier(AGGDClassifier(), random_state=0)
model.fit(X, candidates)  # 0/1 matrix, lists, or strings such as "cat|dog"
model.docket()            # verdict, appeal and outcome of every sample"""
_NUMBERS = {
    "test_accuracy": ("test\naccuracy", ".3f"),
    "transductive_accuracy": ("transductive\naccuracy", ".3f"),
    "correction_ratio": ("correction\nratio", ".3f"),
    "broken_ratio": ("broken\nratio", ".3f"),
    "seconds": ("\nseconds", ".2f"),
}
_MEANINGS = {
    "docket": "all verdicts and appeals",
    "trajectories": "confidences of four appeals",
}
_STYLES = {"rectified": "green", "broken": "red", "still wrong": "yellow"}


def show_setting(console: Console, data: Digits, flip_probability: float, seed: int) -> None:
    """Say what is trained on what."""
    n, l = data.candidates.shape
    console.print(
        f"Handwritten digits, {n} to train and {len(data.test)} to test (seed {seed}). Each false "
        f"digit is a candidate with probability {flip_probability:g}: "
        f"{data.candidates.sum() / n:.1f} candidates of {l} a sample."
    )


def results_table(comparisons: Collection[Comparison]) -> Table:
    """Lay out the results, one row a classifier."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("\nclassifier", no_wrap=True)
    for heading, _ in _NUMBERS.values():
        table.add_column(heading, justify="right")
    for comparison in comparisons:
        base, coupled = (_cells(row) for row in comparison.rows())
        table.add_row(*base)
        table.add_row(*coupled, style="bold", end_section=True)
    return table


def show_results(console: Console, comparisons: Collection[Comparison], n_samples: int) -> None:
    """Print the table, what its columns mean, and what coupling did."""
    console.print(results_table(comparisons))
    console.print(
        "Transductive: training samples whose label is true. Correction: wrong verdicts that the "
        "appeal puts right. Broken: right verdicts that it spoils.\n",
        style="dim",
    )
    for comparison in comparisons:
        console.print(summary(comparison, n_samples))


def summary(comparison: Comparison, n_samples: int) -> str:
    """Tell in words what coupling did to one base, be it good or bad."""
    corrected, broken = comparison.corrected, comparison.broken
    before, after = comparison.alone.test_accuracy, comparison.coupled.test_accuracy
    word = "higher than" if after > before else "lower than" if after < before else "as high as"
    return (
        f"{comparison.method}: {comparison.overturned} of {n_samples} verdicts overturned: "
        f"{corrected} rectified, {broken} broken, "
        f"{comparison.overturned - corrected - broken} wrong before and after. "
        f"Test accuracy {word} alone."
    )


def pick_appeals(docket: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Rows of all overturned verdicts, the largest margin of the appeal first."""
    import numpy as np

    overturned = np.flatnonzero(docket["outcome"] == "overturned")
    return overturned[np.argsort(-docket["margin"][overturned], kind="stable")]


def show_appeals(
    console: Console, base: str, model: PLCPClassifier, data: Digits, rows: NDArray[np.intp]
) -> None:
    """Print pictures, labels and confidences of some training samples, side by side."""
    from rich.table import Table

    console.print()
    if not len(rows):
        console.print(f"No verdict of {base} was overturned; try a larger --flip.\n")
        return
    console.print(
        f"Overturned verdicts of {base}: the {len(rows)} with the largest margin", style="bold"
    )
    console.print(
        "Chosen by the margin alone, right or wrong. Below the number of a sample its candidates; "
        "then the confidence of the base alone -> after the appeal.\n",
        style="dim",
    )
    cards = [_card(console, model, data, int(row)) for row in rows]
    n_columns = max(1, console.width // _CARD_WIDTH)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for start in range(0, len(cards), n_columns):
        grid.add_row(*cards[start : start + n_columns])
        grid.add_row()
    console.print(grid)


def show_files(console: Console, files: Mapping[str, Path]) -> None:
    """Name the written files and what to type next."""
    from rich.text import Text

    for key, path in files.items():
        line = Text.assemble("wrote ", (str(path), "bold"), f" ({_MEANINGS[key]})")
        console.print(line, soft_wrap=True)
    console.print("\nYour own data, from Python:\n")
    console.print(Text(_NEXT, style="cyan"), soft_wrap=True)


def _cells(row: Mapping[str, Any]) -> list[str]:
    numbers = [
        "-" if row[name] is None else format(row[name], form)
        for name, (_, form) in _NUMBERS.items()
    ]
    return [row["classifier"], *numbers]


def _card(console: Console, model: PLCPClassifier, data: Digits, row: int) -> RenderableType:
    from rich.table import Table

    card = Table.grid(padding=(0, 2, 0, 0))
    picture = draw_picture(data.train[row].reshape(8, 8), shaded=can_shade(console))
    picture.no_wrap = True
    card.add_row(picture, _facts(model, data, row))
    return card


def _facts(model: PLCPClassifier, data: Digits, row: int) -> Text:
    """Write what is known of one sample, in lines of at most 20 characters."""
    from rich.text import Text

    verdict, appeal = (int(labels[row]) for labels in model.label_history_[[0, -1]])
    truth = int(data.truth[row])

    def line(word: str, label: int) -> str:
        before, after = model.verdict_confidence_[row, label], model.confidence_[row, label]
        return f"{word:<8}{label} {before:.2f}->{after:.2f}\n"

    end = "rectified" if appeal == truth else "broken" if verdict == truth else "still wrong"
    candidates = " ".join(str(label) for label in data.candidates[row].nonzero()[0])
    return Text.assemble(
        (f"sample {data.ids[row]}\n", "bold"),
        (f"{candidates}\n\n", "dim"),
        line("verdict", verdict),
        line("appeal", appeal),
        line("truth", truth) if truth not in (verdict, appeal) else f"truth   {truth} ",
        (end, _STYLES[end]),
        no_wrap=True,
    )

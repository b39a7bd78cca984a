"""``appellate demo``: the whole of PLCP on embedded data, in a few seconds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.files import check_folder, staged, write_csv
from appellate.cli.progress import steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.cli.digits import Comparison, Digits
    from appellate.plcp import PLCPClassifier

FILES = {"docket": "docket.csv", "trajectories": "trajectories.png"}
_N_SHOWN = 5
_N_DRAWN = 4
_N_STEPS = 6  # compile, two fits for each of two methods, write

_EPILOG = """\b
Examples:
  appellate demo
  appellate demo --out here --seed 3    another folder, split and candidates
  appellate demo --base sure            the appeals of SURE instead of PL-KNN
  appellate demo --json > demo.json     the numbers alone
"""


def _check_flip(_: click.Context, __: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is no probability; give one in [0, 1).")
    return value


@click.command(epilog=_EPILOG, short_help="See what appeals change, on handwritten digits.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default="appellate-demo",
    show_default=True,
    help="Folder for docket.csv and trajectories.png; made if it does not exist.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    default=0,
    show_default=True,
    help="Seed of the split and of the candidate sets.",
)
@click.option(
    "--flip",
    type=click.FloatRange(0, 1, max_open=True),
    callback=_check_flip,
    metavar="Q",
    default=0.7,
    show_default=True,
    help="Probability with which a false digit becomes a candidate, in [0, 1).",
)
@click.option(
    "--base",
    type=click.Choice(["pl-knn", "sure"]),
    default="pl-knn",
    show_default=True,
    help="Whose appeals are shown and written; both bases are in the table.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON, nothing else.")
def demo(folder: Path, seed: int, flip: float, base: str, as_json: bool) -> None:
    """Train on handwritten digits with ambiguous labels and show what appeals change.

    PL-KNN and SURE are trained alone and coupled with a partner (PLCP) on half of
    scikit-learn's digits, whose labels are hidden in random candidate sets. Nothing is
    downloaded. The environment variable NO_COLOR turns colours off.
    """
    check_folder(folder, list(FILES.values()))
    with steps(_N_STEPS) as begin:
        begin("loading and compiling")
        from appellate.cli import digits

        data = digits.load(flip_probability=flip, seed=seed)
        digits.compile_loops(data)
        comparisons = digits.compare(data, seed=seed, begin=begin)
        begin("writing docket and figure")
        files = _write(folder, comparisons[base.upper()].model, data)
    setting = {"seed": seed, "flip_probability": flip, "base": base.upper()}
    if as_json:
        click.echo(_as_json(setting, comparisons, data, files))
    else:
        _show(setting, comparisons, data, files)


def _write(folder: Path, model: PLCPClassifier, data: Digits) -> dict[str, Path]:
    """Write docket and figure; the figure only where matplotlib is installed."""
    from appellate.plotting import save_trajectories

    docket = model.docket(ids=data.ids, truth=data.truth, output="dict")
    names = dict(FILES)
    with staged(folder) as stage:
        write_csv(docket, stage / names["docket"])
        try:
            save_trajectories(
                stage / names["trajectories"],
                model,
                _rows_to_draw(docket),
                truth=data.truth,
                ids=data.ids,
            )
        except ImportError as error:
            click.echo(f"{names.pop('trajectories')} is not written. {error}", err=True)
    return {key: folder / name for key, name in names.items()}


def _rows_to_draw(docket: dict[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Overturned verdicts by margin; if too few, then upheld ones, the closest first."""
    import numpy as np

    from appellate.cli.show import pick_appeals

    contested = docket["n_candidates"] > 1
    upheld = np.flatnonzero((docket["outcome"] == "upheld") & contested)
    closest = upheld[np.argsort(docket["margin"][upheld], kind="stable")]
    uncontested = np.flatnonzero(~contested)
    return np.concatenate([pick_appeals(docket), closest, uncontested])[:_N_DRAWN]


def _as_json(
    setting: dict[str, Any],
    comparisons: dict[str, Comparison],
    data: Digits,
    files: dict[str, Path],
) -> str:
    import json

    document = {
        "setting": setting | {"n_train": len(data.train), "n_test": len(data.test)},
        "table": [row for comparison in comparisons.values() for row in comparison.rows()],
        "files": {key: str(path) for key, path in files.items()},
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _show(
    setting: dict[str, Any],
    comparisons: dict[str, Comparison],
    data: Digits,
    files: dict[str, Path],
) -> None:
    from rich.console import Console

    from appellate.cli import show

    console = Console(highlight=False)
    base = setting["base"]
    model = comparisons[base].model
    show.show_setting(console, data, setting["flip_probability"], setting["seed"])
    show.show_results(console, comparisons.values(), len(data.train))
    rows = show.pick_appeals(model.docket(output="dict"))[:_N_SHOWN]
    show.show_appeals(console, base, model, data, rows)
    show.show_files(console, files)

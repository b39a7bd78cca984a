"""``appellate demo``: the practitioner's journey, on handwritten digits with images."""

from __future__ import annotations

import json
import shlex
import struct
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli._options import json_option, out_option, random_state_option
from appellate.cli._terminal import progress, say, user_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLE = "digits.csv"
_PICTURES = "pictures"
_NEW = "new.csv"
_ZOOM = 6  # points of a picture a pixel

_EPILOG = """\b
Examples:
  appellate demo
  appellate demo --out here --random-state 3    other folder and candidates
  appellate demo --json > demo.json             only the scores, as JSON
"""


@click.command(epilog=_EPILOG, short_help="Try everything on handwritten digits.")
@out_option(
    "Output folder for the table, its images and the result.",
    metavar="DIR",
    default="appellate-demo",
    show_default=True,
)
@random_state_option
@click.option(
    "--flip-probability",
    "--flip",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="Q",
    default=0.7,
    show_default=True,
    help="Probability that a wrong digit is added as a candidate, in [0, 1).",
)
@json_option
def demo(out: Path, random_state: int, flip_probability: float, as_json: bool) -> None:
    """Write a table of handwritten digits with candidate sets, and label it.

    The table holds half of scikit-learn's digits, with images and random candidate sets. The
    command labels it as rectify does, then uses the saved model to label the other half. It
    downloads nothing.
    """
    from appellate._files import check_writable
    from appellate.cli.rectify import headline

    with user_errors():
        check_writable(out / _TABLE)
        with progress(3) as shown:
            shown.step("writing the table and its images")
            from appellate.notes import NoteWarning
            from appellate.rectification.preparation import prepare_table
            from appellate.rectification.run import label_items

            truth = _write(out, flip_probability, random_state)
            shown.step("labelling the table")
            columns: dict[str, Any] = {"candidates": "labels", "truth": "truth", "image": "image"}
            run = label_items(prepare_table(out / _TABLE, **columns, random_state=random_state))
            shown.step("saving the result and labelling the other half")
            run.save(out)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NoteWarning)  # of the column of pictures
                labels = run.predict(out / _NEW)["label"].astype(str).tolist()
    right = sum(a == b for a, b in zip(labels, truth, strict=True)) / len(truth)
    if as_json:
        setting = {"random_state": random_state, "flip_probability": flip_probability}
        document = {"setting": setting, "scores": run.scores, "test_accuracy": right}
        click.echo(json.dumps(document | {"out": str(out)}, indent=2))
        return
    table, place = (shlex.quote(str(path)) for path in (out / _TABLE, out))
    say(
        f"{out / _TABLE}: {len(run.docket)} handwritten digits. Each wrong digit was added as a "
        f"candidate with probability {flip_probability:g}.\n"
    )
    say(f"result      {headline(run)}", bold=True)
    say(
        f"{run.summary()}\n\n"
        f"On {len(truth)} digits it has not seen, the model is {right:.1%} accurate.\n\n"
        "To do the same step by step, run:\n\n"
        f"    appellate check {table}\n"
        f"    appellate rectify {table} --candidates labels --truth truth --image image "
        f"--out {place}\n"
        f"    appellate predict {place} {shlex.quote(str(out / _NEW))}\n\n"
        f"To review the labels, open {out / 'docket.html'}, or run:\n\n"
        f"    appellate serve {place}"
    )


def _write(out: Path, flip_probability: float, random_state: int) -> list[str]:
    """Write half of the digits with candidates, the other without; return its true labels."""
    import numpy as np
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from appellate._files import whole_folder
    from appellate.datasets import make_partial_labels
    from appellate.tables import write_table

    X, y = load_digits(return_X_y=True)
    halves = train_test_split(np.arange(len(y)), test_size=0.5, random_state=random_state)
    sets = make_partial_labels(
        y[halves[0]], flip_probability=flip_probability, random_state=random_state
    )
    cells = ["|".join(map(str, np.flatnonzero(row))) for row in sets]
    known: dict[str, Any] = {"labels": cells, "truth": y[halves[0]]}
    with whole_folder(out, owned=[_TABLE, _PICTURES, _NEW]) as stage:
        (stage / _PICTURES).mkdir()
        for rows, name, beside in zip(halves, (_TABLE, _NEW), (known, {}), strict=True):
            pixels = {f"pixel{j}": X[rows, j] for j in range(X.shape[1])}
            images = [f"{_PICTURES}/{i}.png" for i in rows]
            write_table({"image": images} | pixels | beside, stage / name)
        for i in halves[0]:
            grey = zoom(16 - X[i].reshape(8, 8), _ZOOM, order=1, mode="nearest", grid_mode=True)
            (stage / _PICTURES / f"{i}.png").write_bytes(_png(grey / 16))
    return [str(label) for label in y[halves[1]]]


def _png(grey: NDArray[Any]) -> bytes:
    """Write an image with values in [0, 1], from black to white, as PNG."""
    rows = (grey.clip(0, 1) * 255).round().astype("uint8")

    def part(name: bytes, body: bytes) -> bytes:
        check = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 0, 0, 0, 0)
    lines = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    start = b"\x89PNG\r\n\x1a\n"
    return start + part(b"IHDR", head) + part(b"IDAT", lines) + part(b"IEND", b"")

"""``appellate rectify``: from a table with ambiguous labels to one label per row, and a model."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate._table_formats import names_formats
from appellate.cli._options import (
    json_option,
    out_option,
    random_state_option,
    set_option,
    table_options,
    typed_options,
)
from appellate.cli._terminal import UserError, as_typed, progress, say, user_errors
from appellate.methods.registry import TITLES as BASES

if TYPE_CHECKING:
    from appellate.rectification.run import Rectification
    from appellate.tables.roles import Readings

_EPILOG = """\b
Examples:
  appellate rectify birds.csv --candidates names --out birds
  appellate rectify crowd.csv --annotators 'worker*' --id file --out crowd
  appellate rectify answers.csv --long image,label,worker \\
      --embeddings vgg.npy --out images
  appellate rectify birds.csv --candidates names --out birds2 \\
      --decisions birds/decisions.csv
  appellate rectify shirts.csv --candidates size --cost absolute \\
      --order S,M,L,XL --out shirts
  appellate rectify photos.csv --image file --image-model clip.onnx \\
      --annotators 'worker*' --out photos
  appellate rectify web.parquet --candidates tags --out web \\
      --method plcp --base sure --set n_landmarks=2000
"""


@click.command(epilog=_EPILOG, short_help="Label every row of a table.")
@click.argument("data", metavar="DATA")
@table_options()
@click.option(
    "--method",
    type=click.Choice(["auto", "jury", "plcp", "testimony"]),
    default="auto",
    show_default=True,
    help="Method. auto: plcp if --base is given, testimony if there are annotators, else jury.",
)
@click.option(
    "--base",
    metavar="NAME",
    help=f"Base classifier of plcp: {', '.join(BASES)}; auto chooses one (default: aggd; sure for "
    "many rows).",
)
@click.option(
    "--decisions",
    metavar="FILE",
    help="File of reviewed labels; these are treated as true (default: none).",
)
@click.option(
    "--cost",
    metavar="COST",
    help="Cost of a wrong label, for ordered or related labels: absolute, within:3, ordinal:3, "
    "or a FILE.csv with a cost table (default: every wrong label costs the same).",
)
@click.option(
    "--order",
    metavar="A,B,...",
    help="Order of the labels, from first to last, if they are ordered and are not numbers "
    "(default: detected).",
)
@click.option(
    "--tool",
    type=click.Choice(
        ["label-studio", "argilla", "prodigy", "doccano", "crowd-kit", "hugging-face"]
    ),
    help="Labelling tool to write suggestions for (default: the tool that exported DATA, if any).",
)
@random_state_option
@set_option("max_rounds=3")
@out_option(
    "Output folder. If the command fails, nothing is written.", required=True, metavar="DIR"
)
@json_option
@names_formats
def rectify(
    data: str, out: Path, as_json: bool, decisions: str | None, tool: str | None, **given: Any
) -> None:
    """Label every row of DATA.

    DATA is a file (<formats>), a folder or pattern of such files, or - for the standard
    input. Columns that you do not name are detected automatically. If the columns can be read in
    several ways, the command stops and shows one command for each.

    DIR gets rectified.csv (your table with the labels), docket.html (the review page),
    docket.csv (the rows of the review page), suggested.csv (rows worth checking),
    annotators.csv (reliability of each annotator, if there are annotators), model (for appellate
    predict) and run.json (settings and scores).
    """
    with user_errors():
        from appellate.rectification.folder import FILES, check_folder
        from appellate.rectification.preparation import prepare_table
        from appellate.rectification.run import label_items
        from appellate.review.decisions import DECISIONS
        from appellate.tables.roles import UnclearTableError
        from appellate.tables.tools import HUGGING_FACE, open_datasets

        check_folder(out)
        kept = {p.name for p in out.iterdir()} - {*FILES} if out.is_dir() else set()
        if tool == HUGGING_FACE:
            open_datasets()  # reports a missing package before the work
        try:
            prepared = prepare_table(data, step=lambda text: say(text, err=True), **given)
        except UnclearTableError as error:
            raise UserError(_commands(data, error.readings)) from error
        say(prepared.describe(as_typed), err=as_json)
        for note in prepared.notes:
            say(f"note: {as_typed(note)}", err=True)
        with progress(3 + (decisions is not None)) as shown:
            run = label_items(prepared, decisions, shown.step)
            shown.step("writing")
            run.settings["command"] = shlex.join(["appellate", *sys.argv[1:]])
            run.save(out, tool=tool, step=shown.step)
        if as_json:
            document = {"settings": run.settings, "scores": run.scores}
            click.echo(json.dumps(document, indent=2, allow_nan=False))
            return
        say(f"result      {headline(run)}", bold=True)
        say(as_typed(run.summary()))
        worth = run.suggest(5)["id"]
        say(f"check first {', '.join(map(str, worth))}")
        if decisions is None and DECISIONS in kept:
            taken = f"--decisions {shlex.quote(str(out / DECISIONS))}"
            say(f"note        The decisions in the folder were not used. To use them, add {taken}")
        names = sorted(p.name for p in out.iterdir() if p.name not in kept)
        say(f"wrote       '{out}': {', '.join(names)}")
        again = f"appellate serve {shlex.quote(str(out))}"
        say(f"next        open '{out / 'docket.html'}', or: {again}")


def headline(run: Rectification) -> str:
    """Say in one sentence how good the labels are: by the true labels, else by confidence."""
    scores = run.scores
    n = scores["items"] - scores["outcomes"].get("excluded", 0)
    if scores["accuracy"]:
        share, known = scores["accuracy"]["rectified"], scores["accuracy"]["items with truth"]
        which = "" if known == n else " with a known truth"
        return f"{share:.1%} of {known:,} labels{which} are correct."
    if "expected_wrong" not in scores:
        return f"{n:,} rows are labelled."
    right = n - scores["expected_wrong"]
    return f"About {right:,.0f} of {n:,} labels are correct."


def _commands(data: str, readings: Readings) -> str:
    """Write a command for each way to read a table, with all that the user typed."""
    from appellate.tables.commands import in_terminal, options_of

    lines = [as_typed(f"{readings.table.source}: {readings.doubt} {readings.advice}"), ""]
    path = f"./{data}" if len(data) > 1 and data.startswith("-") else data
    for roles in readings.roles:
        options = options_of(readings.table, roles)
        words = in_terminal(options | typed_options(but=options))
        lines.append("    " + shlex.join(["appellate", "rectify", path, *words]))
    return "\n".join(lines)

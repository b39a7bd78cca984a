"""``appellate rectify``: from a table with candidate labels to one label a row, and a model."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from appellate.cli.errors import UserError
from appellate.cli.labelcosts import COST_HELP, ORDER_HELP, split_order
from appellate.cli.progress import steps

if TYPE_CHECKING:
    from appellate.cli.hearing import Hearing, Setting
    from appellate.cli.roles import Case, Labels
    from appellate.cli.tables_in import Table
    from appellate.review import Decisions

_EPILOG = """\b
Examples:
  appellate rectify birds.csv --candidates names --out birds
  appellate rectify crowd.csv --annotators 'worker*' --id file --out crowd
  appellate rectify answers.csv --long image,label,worker \\
      --embeddings vgg.npy --out images
  appellate rectify birds.csv --candidates names --out birds \\
      --decisions decisions.csv --suggest 20
  appellate rectify shirts.csv --candidates size --cost absolute \\
      --order S,M,L,XL --out shirts
  appellate rectify web.parquet --candidates tags --out web \\
      --scheduler tcp://10.0.0.1:8786
"""


_IDLE = {
    "rule": "counts answers of people; a column of --candidates is taken as it is.",
    "separator": "parts the labels in a cell of --candidates; answers of people are one label.",
}


def _split_long(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    parts = () if value is None else tuple(part.strip() for part in value.split(","))
    if value is not None and (len(parts) not in (2, 3) or not all(parts)):
        raise click.BadParameter("give ITEM,LABEL or ITEM,LABEL,ANNOTATOR.")
    return parts


def _refuse_idle(given: dict[str, Any]) -> None:
    """Refuse options that would have no effect."""
    source = click.get_current_context().get_parameter_source
    idle = {"rule": not given["candidates"], "separator": bool(given["candidates"])}
    for name, used in idle.items():
        if not used and source(name) is not ParameterSource.DEFAULT:
            raise UserError(f"--{name} {_IDLE[name]} Leave it out.")


@click.command(epilog=_EPILOG, short_help="Find the label of every row of a table.")
@click.argument("data", metavar="DATA")
@click.option("--candidates", metavar="COLUMN", help="Column of candidates, such as 'cat|dog'.")
@click.option("--separator", default="|", show_default=True, help="Between two candidates.")
@click.option("--annotators", multiple=True, metavar="COL", help="One column a person; or 'w*'.")
@click.option(
    "--long",
    callback=_split_long,
    metavar="ITEM,LABEL[,WHO]",
    help="Columns of a table of answers.",
)
@click.option(
    "--rule", default="union", show_default=True, help="Answers that count: votes:k, share:p."
)
@click.option("--missing", multiple=True, metavar="TEXT", help="A label not given, such as -1.")
@click.option("--features", multiple=True, metavar="PATTERN", help="Columns to learn from.")
@click.option(
    "--embeddings", type=click.Path(path_type=Path), metavar="FILE.npy", help="Features instead."
)
@click.option("--id", "id_column", metavar="COL", help="Column that names the rows.")
@click.option("--truth", metavar="COL", help="Column of true labels, to score with; never used.")
@click.option("--image", metavar="COL", help="Column of picture files, shown on the page.")
@click.option("--text", metavar="COL", help="Column of text, shown on the page.")
@click.option("--base", metavar="NAME", help="Base classifier: aggd, sure, knn, svm, lalo, plcl.")
@click.option("--cost", metavar="COST", help=COST_HELP)
@click.option("--order", callback=split_order, metavar="A,B,...", help=ORDER_HELP)
@click.option("--select", is_flag=True, help="Choose base and settings; uses no truth.")
@click.option(
    "--kernel",
    type=click.Choice(["auto", "exact", "nystroem"]),
    default="auto",
    show_default=True,
    help="Whole kernel matrix, or features that approximate it.",
)
@click.option(
    "--landmarks",
    type=click.IntRange(1),
    metavar="N",
    help="Of the approximation.  [1024 or more, by the number of rows]",
)
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Keep the features there, not in memory.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers fit.")
@click.option(
    "--decisions",
    "decided",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Reviewed rows, taken as certain.",
)
@click.option(
    "--suggest", type=click.IntRange(0), default=0, metavar="N", help="List N rows to review next."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, metavar="N"
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder to write; appears whole or not at all.",
)
@click.option("--force", is_flag=True, help="Write beside files that are not ours.")
@click.option("--json", "as_json", is_flag=True, help="Print run.json, nothing else.")
def rectify(data: str, folder: Path, as_json: bool, force: bool, **given: Any) -> None:
    """Give every row of DATA its label, by a base classifier and its partner.

    DATA is a CSV, TSV, Parquet or JSON lines file, or - for the standard input. DIR gets
    rectified.csv (your table and the labels), docket.csv, docket.html (the page to review),
    model (for appellate predict) and run.json.
    """
    from appellate.cli.outputs import check_out
    from appellate.cli.roles import Labels

    ways = [given["candidates"], given["annotators"], given["long"]]
    if sum(map(bool, ways)) != 1:
        raise UserError(
            "say where the labels are, in one way: --candidates COLUMN, --annotators COL (again "
            "for each), or --long ITEM,LABEL[,ANNOTATOR]."
        )
    if given["features"] and given["embeddings"]:
        raise UserError("give --features or --embeddings, not both.")
    if not given["separator"]:
        raise UserError(
            "--separator '' parts nothing: every row would have one label, and nothing to decide. "
            "Give what stands between two candidates, such as '|' or ';'."
        )
    _refuse_idle(given)
    _check_base(given["base"])
    check_out(folder, force)
    labels = Labels(
        given["candidates"],
        given["annotators"],
        given["long"],
        given["separator"],
        given["rule"],
        tuple(text.strip() for text in given["missing"]),
    )
    document = _Run(data, folder, labels, given, as_json).run()
    if as_json:
        _print_json(document)


def _check_base(name: str | None) -> None:
    """Refuse an unknown base before anything is read."""
    from appellate.bases import make_base

    try:
        if name is not None:
            make_base(name)
    except (ValueError, ImportError, TypeError) as error:
        raise UserError(f"--base {name}: {error}") from error


def _print_json(document: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


class _Run:
    """One run, step by step; each step is timed."""

    def __init__(
        self, data: str, folder: Path, labels: Labels, given: dict[str, Any], quiet: bool
    ) -> None:
        self.data, self.folder, self.labels, self.given = data, folder, labels, given
        self.quiet = quiet
        self.timings: dict[str, float] = {}

    def run(self) -> dict[str, Any]:
        from appellate.cli import hearing, labelcosts, roles, selection, show_run
        from appellate.cli.tables_in import read_table

        given = self.given
        started = time.perf_counter()
        table = read_table(self.data)
        self._find_columns(table)
        asides = {f"--{o}": given[o] for o in ("truth", "image", "text") if given[o]}
        for option, name in asides.items():
            table.column(name, option)
        case = roles.understand(
            table,
            self.labels,
            id_column=given["id_column"],
            set_aside=asides,
            patterns=given["features"],
            embeddings=given["embeddings"],
        )
        case, cost = labelcosts.settle(case, given["cost"], given["order"])
        decisions = self._decisions(table, case)
        setting = hearing.choose(case, given, cost)
        show_run.say_inferred(self._say, table, case, self.labels, given, setting, decisions)
        if given["image"]:
            case.notes += show_run.picture_notes(self.data, table, case, given["image"])
        for note in case.notes:
            click.echo(f"appellate: note: {note}", err=True)
        truth = self._truth(table, case)
        self.timings["read"] = time.perf_counter() - started
        with steps(4 + (decisions is not None)) as begin:
            begin("selecting base and settings" if given["select"] else "preparing")
            frame = hearing.make_frame(case)
            if given["select"]:
                started = time.perf_counter()
                setting = selection.select(case, frame, setting, given["base"])
                self.timings["selecting"] = time.perf_counter() - started
            before = None
            if decisions is not None:
                before = self._timed(
                    begin,
                    "hearing without the decisions",
                    lambda: hearing.hear(case, frame, setting, truth),
                )
            heard = self._timed(
                begin,
                "hearing verdicts and appeals",
                lambda: hearing.hear(case, frame, setting, truth, decisions),
            )
            neighbors = self._timed(
                begin, "finding neighbours", lambda: hearing.find_neighbors(heard.pipeline, frame)
            )
            begin("writing")
            return self._write(table, case, setting, heard, before, decisions, neighbors)

    def _find_columns(self, table: Table) -> None:
        """Let names that are formulas mean the columns that an earlier run wrote of them."""
        from appellate.cli.cells import match

        for option in ("id_column", "truth", "image", "text"):
            if self.given[option]:
                self.given[option] = match(self.given[option], table.columns)
        candidates = self.labels.candidates and match(self.labels.candidates, table.columns)
        long = tuple(match(name, table.columns) for name in self.labels.long)
        self.labels = replace(self.labels, candidates=candidates, long=long)

    def _say(self, line: str) -> None:
        click.echo(line, err=self.quiet)

    def _timed(self, begin: Any, what: str, work: Any) -> Any:
        begin(what)
        started = time.perf_counter()
        result = work()
        self.timings[what] = time.perf_counter() - started
        return result

    def _decisions(self, table: Table, case: Case) -> Decisions | None:
        from appellate.review import DecisionError, read_decisions

        path = self.given["decided"]
        if path is None:
            return None
        try:
            return read_decisions(
                path,
                classes=case.sets.class_names.tolist(),
                candidates=case.sets.matrix,
                ids=case.ids if case.named else None,
                data=f"sha256:{table.sha256[:32]}",
            )
        except FileNotFoundError as error:
            raise UserError(f"there is no file '{path}'. Decide on some rows first.") from error
        except DecisionError as error:
            raise UserError(str(error)) from error

    def _truth(self, table: Table, case: Case) -> Any:
        import numpy as np

        from appellate.cli.cells import match

        if not self.given["truth"]:
            return None
        texts = [self.labels.read(cell) for cell in table.columns[self.given["truth"]]]
        texts = [case.spellings.get(text or "", text) for text in texts]
        known = {str(name): name for name in case.sets.class_names.tolist()}
        texts = [None if text is None else match(text, known) for text in texts]
        found: list[str | None] = [None] * len(case)
        for i, text in zip(case.owner.tolist(), texts, strict=True):
            if text is not None and found[i] not in (None, text):
                raise UserError(
                    f"{table.source}, column '{self.given['truth']}' (--truth): the rows of item "
                    f"'{case.ids[i]}' disagree, {found[i]!r} and {text!r}. Give it one truth."
                )
            found[i] = found[i] or text
        return np.array([None if t is None else known.get(t, t) for t in found], dtype=object)

    def _write(
        self,
        table: Table,
        case: Case,
        setting: Setting,
        heard: Hearing,
        before: Hearing | None,
        decisions: Decisions | None,
        neighbors: Any,
    ) -> dict[str, Any]:
        from appellate.cli import show_run
        from appellate.cli.outputs import whole_folder, write_json

        started = time.perf_counter()
        suggested = show_run.suggested(heard, neighbors, self.given["suggest"], decisions)
        with whole_folder(self.folder) as stage:
            names = show_run.write_tables(stage, table, case, heard, decisions, suggested)
            show_run.write_page(
                stage / "docket.html",
                self.folder,
                self.data,
                table,
                case,
                heard,
                decisions,
                neighbors,
                suggested,
                self.given,
            )
            show_run.write_model(stage / "model", table, case, setting, heard)
            self.timings["write"] = time.perf_counter() - started
            document = show_run.run_document(
                sys.argv, table, case, setting, heard, before, decisions, self.timings, self.given
            )
            document["columns"] = names
            write_json(document, stage / "run.json")
        show_run.say_result(self._say, self.folder, document, suggested, case)
        return document

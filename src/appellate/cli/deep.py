"""``appellate deep``: train, resume, evaluate and compare PRODEN and PiCO, alone and coupled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate._added import plain_columns
from appellate._files import check_writable, write_file
from appellate._text import install
from appellate.cli._options import (
    home_option,
    json_option,
    out_option,
    seed_option,
    set_option,
)
from appellate.cli._terminal import INTERRUPTED, UserError, show_reports, user_errors

if TYPE_CHECKING:
    from appellate.deep.settings import Listener, Record
    from appellate.experiments.networks.sources import RunData

SMOKE_WARNING = "SMOKE RUN: few rows, a narrow network, few epochs. Ignore its accuracy."

_EPILOG = """\b
Examples:
  appellate deep configs
  appellate deep train --config proden-plcp-cifar10 --flip 0.3 --out run
  appellate deep train --config pico-cifar10 --smoke --out trial
  appellate deep resume run
  appellate deep evaluate run
  appellate deep table runs/*

\b
Several GPUs or processes:
  torchrun --nproc-per-node 2 -m appellate deep train ...
"""
_TRAIN_EPILOG = """\b
NPZ files hold the arrays X (n, ...) and candidates (n, classes). The arrays
y_true, X_test, y_test and class_names are optional.

\b
Examples:
  appellate deep train --config proden-plcp-cifar10 --flip 0.3 --out run
  appellate deep train --config pico-plcp-cifar10 --smoke --out trial
  appellate deep train --config proden-independent-cifar10 --out control
  appellate deep train --config proden-cifar10 --bag-size 5 --out bags \\
      --set ambiguity=auto --set n_networks=5
  appellate deep train --config my.toml --data my.npz --out mine \\
      --set network=mlp --set hidden=[300,300] --set n_epochs=20
"""
_TABLE_EPILOG = """\b
Examples:
  for seed in 0 1 2 3 4; do
    for name in proden proden-plcp proden-independent; do
      appellate deep train --config $name-cifar10 --random-state $seed \\
          --out runs/$name-$seed
    done
  done
  appellate deep table runs/*
  appellate deep table runs/* --heads --out table.md
"""

_folder = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
_device = click.option(
    "--device", metavar="NAME", help="Device: cpu, cuda, cuda:1, mps or auto (default: auto)."
)


@click.group(epilog=_EPILOG, short_help="Train, resume and compare neural networks.")
def deep() -> None:
    """Train PRODEN and PiCO, alone or coupled with a partner network (PLCP).

    A configuration holds all settings of a method. There is one for each method of the paper's
    CIFAR tables, and one for the control with two independent bases. You can stop a run at any
    moment; resume gives the same result as an uninterrupted run.
    """


@deep.command(short_help="List the configurations, or show one.")
@click.argument("name", required=False)
def configs(name: str | None) -> None:
    """List the configurations with the paper's accuracies, or show all settings of NAME.

    Configurations named independent are controls: two bases trained separately.
    """
    from appellate.experiments.networks.configuration import (
        configuration_names,
        read_configuration,
    )

    if name is None:
        for each in configuration_names():
            found = read_configuration(each)
            printed = ((q, flip.paper) for q, flip in found.flips.items())
            figures = [f"flip {q:g}: {paper[0]:.2f} %" for q, paper in printed if paper]
            told = f"paper: {', '.join(figures)}" if figures else "not in the paper"
            click.echo(f"{each}\n  {found.title}; {told}")
        return
    with user_errors():
        found = read_configuration(name)
    click.echo(f"{found.title} on {found.dataset}")
    for key, value in found.settings.items():
        click.echo(f"  {key} = {json.dumps(value)}")
    for q, flip in found.flips.items():
        paper = f"paper {flip.paper[0]:.2f} ± {flip.paper[1]:.2f} %" if flip.paper else "no figure"
        more = (f"{key} = {json.dumps(value)}" for key, value in flip.settings.items())
        click.echo(f"flip {q:g}: {', '.join([paper, *more])}")


@deep.command(epilog=_TRAIN_EPILOG, short_help="Train a classifier into a new folder.")
@click.option(
    "--config",
    "name",
    required=True,
    metavar="NAME|FILE",
    help="Configuration; deep configs lists them.",
)
@click.option(
    "--data",
    "source",
    metavar="NAME|FILE",
    help="Data set: cifar10, cifar100, fashion-mnist, cifar10n (annotators' labels) or FILE.npz "
    "(default: the data set of the configuration).",
)
@out_option("Output folder of the run.", required=True, metavar="DIR")
@seed_option("Seed of networks, batches and candidate sets.")
@click.option(
    "--flip",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="Q",
    help="Probability that a wrong label is added as a candidate; 0 is full supervision "
    "(default: the smallest above 0 in the configuration).",
)
@click.option(
    "--bag-size",
    type=click.IntRange(1),
    metavar="N",
    help="Number of rows that share a candidate set: all labels of these rows "
    "(default: none, each row has its own set).",
)
@_device
@click.option(
    "--smoke",
    is_flag=True,
    help="Try the command in minutes: 2000 rows, a narrow network, 3 epochs. Ignore the accuracy.",
)
@set_option
@home_option
def train(
    name: str,
    source: str | None,
    out: Path,
    random_state: int,
    flip: float | None,
    bag_size: int | None,
    device: str | None,
    smoke: bool,
    settings: Record,
    data_home: Path | None,
) -> int:
    """Train the classifier of a configuration, and print its accuracy.

    --set changes a setting of the configuration: --set n_epochs=20, --set partner=independent
    (the control with two bases), --set precision=bfloat16.

    The output folder holds run.json (settings, versions, data, results), log.jsonl (one line per
    epoch), checkpoint.safetensors, model (a folder) and docket.csv. If TensorBoard is installed,
    it also holds a folder tensorboard.
    """
    _check_extra()
    from appellate.deep.processes import agreed, opened_group, rank
    from appellate.experiments.networks import runs
    from appellate.experiments.networks.configuration import read_configuration
    from appellate.experiments.networks.sources import resolve_source

    with user_errors():
        configuration = read_configuration(name)
        data_source = resolve_source(source or configuration.dataset)
        flip = runs.choose_flip(configuration, data_source, flip, bag_size)
        settings = runs.settle(configuration, data_source, flip, smoke=smoke, options=settings)
    device, refusal = device or "auto", None
    with opened_group(device):
        if rank() == 0:
            try:
                with user_errors():
                    check_writable(out / runs.RECORD)
                    runs.check_new(out)
                    told: Any = {"flip": flip, "bag_size": bag_size, "smoke": smoke}
                    told["seed"] = random_state
                    record, data = runs.make_record(
                        configuration, settings, data_source, data_home, device=device, **told
                    )
                    runs.write_record(record, out)
            except UserError as error:
                refusal = error
        refused = agreed(int(refusal is not None))  # the others wait for the record
        if refusal is not None:
            raise refusal
        if refused:
            return UserError.exit_code
        if rank() > 0:
            record = runs.read_record(out)
            data = runs.load_data(record, data_home)
        return _run(record, data, out, device, resume=False)


@deep.command(short_help="Resume a run that was stopped.")
@_folder
@_device
@home_option
def resume(folder: Path, device: str | None, data_home: Path | None) -> int:
    """Resume the run in DIR from its checkpoint.

    The result is the same as that of an uninterrupted run.
    """
    _check_extra()
    from appellate.deep.processes import opened_group
    from appellate.experiments.networks import runs

    with user_errors():
        record = runs.read_run(folder)
        if record["results"] is not None:
            click.echo(f"The run in '{folder}' is already finished.", err=True)
            click.echo(_describe(record))
            return 0
        with opened_group(device or record["device"]):
            data = runs.load_data(record, data_home)
            return _run(record, data, folder, device or record["device"], resume=True)


@deep.command(short_help="Score a finished run.")
@_folder
@home_option
@json_option
def evaluate(folder: Path, data_home: Path | None, as_json: bool) -> None:
    """Print the accuracy of the run in DIR: each head on the test rows, and the training labels.

    The model comes from the last epoch, or from the epoch that was selected without true labels.
    It never comes from the best test epoch. The command does not need a GPU.
    """
    _check_extra()
    from appellate.experiments.networks import runs

    with user_errors():
        record = runs.evaluate(folder, data_home)
    if as_json:
        click.echo(json.dumps(record, indent=2))
        return
    _announce(record, folder, click.echo)
    click.echo(_describe(record))


@deep.command(epilog=_TABLE_EPILOG, short_help="Compare finished runs, seed by seed.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR..."
)
@click.option("--heads", is_flag=True, help="Show the heads that do not predict, too.")
@out_option(
    "Output file: .md, .csv, .tex (only the accuracies) or .json (default: none).", metavar="FILE"
)
@json_option
def table(folders: tuple[Path, ...], heads: bool, out: Path | None, as_json: bool) -> None:
    """Compare the test accuracies of the runs in DIR..., mean and deviation over seeds.

    Runs that differ only in their seed share one line. Coupled runs are paired by seed with the
    base alone, and with two independent bases on the same candidate sets. If a run has the
    paper's settings, the table also shows the paper's figure. Otherwise a note names the
    difference.
    """
    _check_extra()
    from appellate.experiments.networks import runs
    from appellate.experiments.reports import to_csv, to_latex, to_markdown
    from appellate.paper.deep_reports import report_deep

    writers = {".md": to_markdown, ".csv": to_csv, ".tex": to_latex}
    endings = (*writers, ".json")
    if out is not None and out.suffix not in endings:
        raise UserError(f"Cannot write --out '{out}': its name must end in {', '.join(endings)}.")
    records, left_out = {}, []
    with user_errors():
        if out is not None:
            check_writable(out)
        for folder in dict.fromkeys(folders):
            record = runs.read_record(folder)
            if record.get("results") is not None:
                records[str(folder)] = record
                continue
            settings = record.get("settings")
            total = settings.get("n_epochs", "?") if isinstance(settings, dict) else "?"
            done, more = runs.count_epochs(folder), runs.resume_command(folder)
            told = f"'{folder}' is not finished ({done} of {total} epochs). Resume it: {more}"
            left_out.append(told)
        report = report_deep(records, all_heads=heads, left_out=left_out)
        document = {"table": list(report.records), "notes": list(report.notes)}
        if out is not None:
            plain = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
            write_file(out, writers[out.suffix](report) if out.suffix in writers else f"{plain}\n")
    if as_json:
        click.echo(json.dumps(document, indent=2, allow_nan=False))
        return
    show_reports(
        replace(report, title=sheet.title, caption="", sheets=(sheet,)) for sheet in report.sheets
    )
    click.echo(report.caption)
    for note in report.notes:
        click.echo(f"- {note}")
    if out is not None:
        click.echo(f"wrote {out}", err=True)


# -- the run ------------------------------------------------------------------------------


def _run(record: Record, data: RunData, folder: Path, device: str, *, resume: bool) -> int:
    """Train in this process; the first one writes and tells."""
    from appellate.deep.checkpoint import CHECKPOINT, LOG
    from appellate.deep.processes import rank
    from appellate.experiments.networks import runs
    from appellate.tables import write_table

    if rank() > 0:
        runs.train(record, data, folder, device=device, resume=resume)
        return 0
    total = record["settings"]["n_epochs"]
    _announce(record, folder, lambda text: click.echo(text, err=True))
    try:
        with user_errors():
            told: Any = {"device": device, "resume": resume, "verbose": _listener(total)}
            model = runs.train(record, data, folder, **told)
    except KeyboardInterrupt:
        click.echo(
            f"Stopped after {runs.count_epochs(folder)} of {total} epochs; they are saved. "
            f"To resume, run:\n  {runs.resume_command(folder)}",
            err=True,
        )
        return INTERRUPTED
    truth = None if data.truth is None else data.class_names[data.truth]
    with user_errors():
        docket = model.docket(truth=truth, output="docket").columns()
        write_table(None, folder / runs.DOCKET, added=plain_columns(docket), digits=6)
        runs.finish(record, model, data, folder)
    click.echo(_describe(record))
    names = [runs.RECORD, runs.MODEL, runs.DOCKET, LOG, CHECKPOINT]
    names += ["tensorboard"] if (folder / "tensorboard").exists() else []
    click.echo(f"wrote {', '.join(names)} to '{folder}'", err=True)
    return 0


def _check_extra() -> None:
    missing = [name for name in ("torch", "safetensors", "skops") if find_spec(name) is None]
    if missing:
        raise UserError(f"Neural networks need {' and '.join(missing)}: {install('deep')}")


def _listener(total: int) -> Listener:
    """Say a line after every epoch."""
    from appellate.deep.settings import describe_epoch

    return lambda record: click.echo(describe_epoch(record, total), err=True)


# -- what it has reached ------------------------------------------------------------------


def _announce(record: Record, folder: Path, say: Callable[[str], None]) -> None:
    """Say what will be run."""
    data, sets = record["data"], record["candidates"]
    source = data["source"]
    source = Path(source).name if source.endswith(".npz") else source
    say(
        f"{record['title']} ({record['configuration']}) on {source}, "
        f"seed {record['seed']}, {record['settings']['n_epochs']} epochs, in '{folder}'"
    )
    flip = "" if data["flip"] is None else f" (flip {data['flip']:g})"
    flip = f" (bags of {data['bag_size']})" if data.get("bag_size") else flip
    say(
        f"{data['rows']} training rows, {data['test_rows']} test rows, "
        f"{len(data['class_names'])} classes; "
        f"{sets['mean_size']:.2f} candidates per row{flip}, {sets['singleton_share']:.1%} with one"
    )
    if record["smoke"]:
        say(SMOKE_WARNING)
    elif record["changes"]:
        say(f"changed: {'; '.join(record['changes'])}")


def _describe(record: Record) -> str:
    """Say the results of a finished run in a few lines."""
    results, paper = record["results"], record["paper"]
    training = results["training"]
    epoch = f"epoch {results['epoch']} of {results['n_epochs']}"
    if results["selected_by"]:
        epoch += f", selected by {results['selected_by']} without true labels"
    lines = [SMOKE_WARNING] if record["smoke"] else []
    if results["test"] is None:
        lines.append("test accuracy: the data have no test rows with true labels")
    else:
        lines += _accuracies(f"test accuracy, {epoch}", results["test"], results["head"])
    if "test_last_epoch" in results:
        lines += _accuracies("test accuracy, last epoch", results["test_last_epoch"], "")
    if paper is not None:
        mean, deviation = f"{paper['mean']:6.2f}", f"{paper['deviation']:.2f}"
        lines.append(f"  paper    {mean} ± {deviation} %, mean of five runs")
        if record["changes"]:
            lines.append(f"           not comparable: this run has {'; '.join(record['changes'])}")
    if training is None:
        lines.append("training rows: the data have no true labels, so the accuracy is unknown")
    else:
        lines += _accuracies("labels of the training rows", training, results["head"])
        if len(training["accuracy"]) > 1:
            told = training["appeals"]
            lines.append(
                f"changed labels: {told['overturned']}; corrected {told['corrected']} of "
                f"{told['wrong_verdicts']} wrong first labels, lost {told['broken']} of "
                f"{told['right_verdicts']} correct ones"
            )
    for rows, name in (("training rows", "candidates"), ("held-out rows", "held_out")):
        if scores := results[name]:
            lines.append(
                f"without true labels, {rows}: covering rate {scores['covering_rate']:.1%}, "
                f"approximated accuracy {scores['approximated_accuracy']:.1%}"
            )
    return "\n".join(lines)


def _accuracies(heading: str, scores: Record, head: str) -> list[str]:
    lines = [f"{heading}, {scores['rows']} rows:"]
    for name, value in scores["accuracy"].items():
        mark = "  (predicts)" if name == head and len(scores["accuracy"]) > 1 else ""
        lines.append(f"  {name:<8} {100 * value:6.2f} %{mark}")
    return lines

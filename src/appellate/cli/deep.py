"""``appellate deep``: train, resume, evaluate and compare PRODEN and PiCO, alone and coupled."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError
from appellate.cli.files import check_folder

if TYPE_CHECKING:
    from appellate.cli.deep_data import DeepData

INTERRUPTED = 130  # 128 + SIGINT, as shells report it

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
NPZ files have the arrays X (n, ...) and candidates (n, classes), and may
have y_true, X_test, y_test and class_names.

\b
Examples:
  appellate deep train --config proden-plcp-cifar10 --flip 0.3 --out run
  appellate deep train --config pico-plcp-cifar10 --smoke --out trial
  appellate deep train --config proden-independent-cifar10 --out control
  appellate deep train --config my.toml --data my.npz --out mine \\
      --set network=mlp --set network_options.hidden=[300,300]
"""
_TABLE_EPILOG = """\b
Examples:
  for seed in 0 1 2 3 4; do
    for name in proden proden-plcp proden-independent; do
      appellate deep train --config $name-cifar10 --seed $seed \\
          --out runs/$name-$seed
    done
  done
  appellate deep table runs/*
  appellate deep table runs/* --heads --out table.md
"""

_home = click.option(
    "--data-home",
    "home",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the data sets; by default APPELLATE_DATA_HOME, or else one in your cache.",
)
_folder = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
_device = click.option(
    "--device", metavar="NAME", help="cpu, cuda, cuda:1, mps or auto.  [default: auto]"
)


@click.group(epilog=_EPILOG, short_help="Train deep classifiers, resume and compare them.")
def deep() -> None:
    """Train PRODEN and PiCO, alone or coupled with a partner network (PLCP).

    One configuration for each method of the paper's CIFAR tables, and for the control of two
    bases, says all settings. A run can be stopped at any moment and resumed as if it had not
    been.
    """


@deep.command(short_help="List the configurations, or show one.")
@click.argument("name", required=False)
def configs(name: str | None) -> None:
    """List the configurations with the paper's accuracies, or show all settings of NAME.

    Those named independent are controls: two bases that never meet.
    """
    from appellate.cli import deep_settings
    from appellate.deep.configuration import configuration_names

    if name is not None:
        deep_settings.show_configuration(deep_settings.read(name))
        return
    for each in configuration_names():
        found = deep_settings.read(each)
        figures = [
            f"flip {q:g}: {flip.paper[0]:.2f} %" for q, flip in found.flips.items() if flip.paper
        ]
        paper = f"paper: {', '.join(figures)}" if figures else "not in the paper"
        click.echo(f"{each}\n  {found.title}; {paper}")


@deep.command(epilog=_TRAIN_EPILOG, short_help="Train a classifier into a new folder.")
@click.option("--config", "name", required=True, metavar="NAME|FILE", help="See deep configs.")
@click.option(
    "--data",
    "source",
    metavar="NAME|FILE",
    help="cifar10, cifar100, fashion-mnist, cifar10n (people's candidate sets) or FILE.npz.  "
    "[default: the configuration's]",
)
@click.option(
    "--out",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the run; made if it does not exist.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    metavar="N",
    default=0,
    show_default=True,
    help="Of networks, batches and candidate sets; a base and its coupled version share all.",
)
@click.option(
    "--flip",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="Q",
    help="Probability that a false label becomes a candidate; 0 is full supervision.  "
    "[default: the least above 0 in the configuration]",
)
@click.option(
    "--partner",
    type=click.Choice(["none", "non-candidate", "candidate", "independent"]),
    help="Another partner than the configuration's; independent is the two-model control.",
)
@click.option(
    "--epochs",
    type=click.IntRange(1),
    metavar="N",
    help="Another number of epochs than the configuration's.",
)
@_device
@click.option(
    "--precision",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    help="Of the networks; losses are always float32.",
)
@click.option(
    "--smoke",
    is_flag=True,
    help="A trial of minutes: 2000 rows, a narrow network, 3 epochs. No result.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Another setting of the classifier; may be given several times.",
)
@_home
def train(
    name: str,
    source: str | None,
    folder: Path,
    seed: int,
    flip: float | None,
    partner: str | None,
    epochs: int | None,
    device: str | None,
    precision: str | None,
    smoke: bool,
    changes: tuple[str, ...],
    home: Path | None,
) -> int:
    """Train the classifier of a configuration, and say what it has reached.

    The folder then holds run.json (settings, versions, data, results), log.jsonl (a line an
    epoch), checkpoint.safetensors, model.safetensors and docket.csv, and where TensorBoard is
    installed a folder tensorboard for it.
    """
    _check_extra()
    from appellate.cli import deep_runs, deep_settings
    from appellate.cli.deep_data import resolve_source
    from appellate.datasets.home import get_data_home
    from appellate.deep.processes import agreed, opened_group, rank

    configuration = deep_settings.read(name)
    data_source = resolve_source(source or configuration.dataset)
    flip = deep_settings.choose_flip(configuration, data_source, flip)
    options = {"partner": partner, "n_epochs": epochs, "precision": precision}
    settings = deep_settings.settle(configuration, data_source, flip, smoke, options, changes)
    device, refusal = device or "auto", None
    with opened_group(device):
        if rank() == 0:
            try:
                check_folder(folder, deep_runs.FILES)
                deep_runs.check_new(folder)
                record, data = deep_runs.make_record(
                    configuration,
                    settings,
                    data_source,
                    get_data_home(home),
                    flip=flip,
                    seed=seed,
                    device=device,
                    smoke=smoke,
                )
                deep_settings.check_fit(record, data)
                deep_runs.write_record(record, folder)
            except UserError as error:
                refusal = error
        refused = agreed(int(refusal is not None))  # the others wait for the record
        if refusal is not None:
            raise refusal
        if refused:
            return UserError.exit_code
        if rank() > 0:
            record = deep_runs.read_record(folder)
            data = deep_runs.load_data(record, home)
        return _run(record, data, folder, device, resume=False)


@deep.command(short_help="Go on with a run that was stopped.")
@_folder
@_device
@_home
def resume(folder: Path, device: str | None, home: Path | None) -> int:
    """Go on with the run in DIR from its checkpoint, to the result it would have had anyway."""
    _check_extra()
    from appellate.cli import deep_runs
    from appellate.cli.deep_results import describe
    from appellate.deep.processes import opened_group

    record = deep_runs.read_record(folder)
    if record["results"] is not None:
        click.echo(f"the run in '{folder}' is finished already.", err=True)
        _tell(describe(record))
        return 0
    with opened_group(device or record["device"]):
        data = deep_runs.load_data(record, home)
        return _run(record, data, folder, device or record["device"], resume=True)


@deep.command(short_help="Score a finished run.")
@_folder
@click.option(
    "--data",
    "source",
    metavar="NAME|FILE",
    help="Other data to test on: a name or FILE.npz, as of train.  [default: the run's own]",
)
@_home
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def evaluate(folder: Path, source: str | None, home: Path | None, as_json: bool) -> None:
    """Score the run in DIR: all heads on the test rows, the labels of the training rows.

    The model is that of the last epoch, or of the one that was selected without the truth;
    never of the best test epoch. No GPU is needed.
    """
    _check_extra()
    from appellate.cli import deep_data, deep_results, deep_runs
    from appellate.deep.checkpoint import CheckpointError
    from appellate.deep.files import load_model

    record = deep_runs.read_record(folder)
    if record["results"] is None:
        done, total = deep_runs.count_epochs(folder), record["settings"]["n_epochs"]
        raise UserError(
            f"the run in '{folder}' is not finished ({done} of {total} epochs). Go on with it: "
            f"{deep_runs.resume_command(folder)}"
        )
    try:
        model = load_model(folder / deep_runs.MODEL)
        other = None if source is None else deep_data.resolve_source(source)
        if other in (None, record["data"]["source"]):
            data = deep_runs.load_data(record, home)
            record["results"] = deep_results.measure(model, data, folder)
        else:
            data = deep_data.load(str(other), home)
            record["results"] = deep_results.score_other(model, data)
    except (CheckpointError, FileNotFoundError, ValueError) as error:
        raise UserError(str(error)) from error
    if as_json:
        click.echo(json.dumps(record, indent=2))
        return
    deep_runs.announce(record, folder, click.echo)
    if other in (None, record["data"]["source"]):
        _tell(deep_results.describe(record))
    else:
        _tell(deep_results.describe_other(record, Path(str(other)).name))


@deep.command(epilog=_TABLE_EPILOG, short_help="Compare finished runs, seed by seed.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR..."
)
@click.option("--heads", is_flag=True, help="Also show the heads that do not predict.")
@click.option(
    "--out",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write it: .md, .csv, .tex (accuracies alone) or .json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def table(folders: tuple[Path, ...], heads: bool, target: Path | None, as_json: bool) -> None:
    """Show the test accuracies of the runs in DIR..., mean and deviation over seeds.

    Runs that differ in their seed alone are one line. Coupled runs are paired by seed with
    the base alone and with two independent bases on the same candidate sets. The paper's
    figure stands beside ours where a run had its settings; if not, a note says what differs.
    """
    _check_extra()
    from appellate.cli import deep_table

    if target is not None:
        deep_table.check_target(target)
    report = deep_table.make_report(folders, all_heads=heads)
    if target is not None:
        deep_table.write(report, target)
    if as_json:
        click.echo(json.dumps(deep_table.as_document(report), indent=2, allow_nan=False))
        return
    deep_table.show(report)
    if target is not None:
        click.echo(f"written: {target}", err=True)


def _run(
    record: dict[str, Any], data: DeepData, folder: Path, device: str, *, resume: bool
) -> int:
    """Train in this process; the first one writes and tells."""
    from appellate.cli import deep_runs
    from appellate.cli.deep_results import describe
    from appellate.deep.processes import rank

    model = deep_runs.make_model(record, device, run_dir=folder, resume=resume)
    first = rank() == 0
    try:
        if first:
            deep_runs.announce(record, folder, deep_runs.show_line)
            record["sessions"].append(deep_runs.new_session(str(model._find_device())))
            deep_runs.write_record(record, folder)
        deep_runs.train(model, data, folder)
        if first:
            deep_runs.finish(record, model, data, folder)
    except KeyboardInterrupt:
        if first:
            done = deep_runs.count_epochs(folder)
            click.echo(
                f"stopped after {done} of {model.n_epochs} epochs; nothing is lost. Go on with:\n"
                f"  {deep_runs.resume_command(folder)}",
                err=True,
            )
        return INTERRUPTED
    if first:
        _tell(describe(record))
        names = [*deep_runs.FILES, *(["tensorboard"] if (folder / "tensorboard").exists() else [])]
        click.echo(f"written: {', '.join(names)} in '{folder}'", err=True)
    return 0


def _check_extra() -> None:
    missing = [name for name in ("torch", "safetensors") if find_spec(name) is None]
    if missing:
        raise UserError(
            f"deep classifiers need {' and '.join(missing)}: pip install 'appellate[deep]'"
        )


def _tell(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)

"""The record of a deep run, from which it can be resumed and evaluated, and the run itself."""

from __future__ import annotations

import json
import os
import shlex
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.deep_data import DeepData, load, needs_flips
from appellate.cli.deep_progress import epochs
from appellate.cli.deep_results import SMOKE_WARNING, Record, measure
from appellate.cli.errors import UserError
from appellate.cli.files import staged, write_csv

if TYPE_CHECKING:
    from collections.abc import Callable

    from appellate.deep.configuration import Configuration
    from appellate.deep.estimator import DeepClassifier

FORMAT, FORMAT_VERSION = "appellate-deep-run", 1
RECORD, MODEL, DOCKET, LOG = "run.json", "model.safetensors", "docket.csv", "log.jsonl"
FILES = (RECORD, MODEL, DOCKET, LOG, "checkpoint.safetensors")


def make_record(
    configuration: Configuration,
    settings: Record,
    source: str,
    home: Path,
    *,
    flip: float | None,
    seed: int,
    device: str,
    smoke: bool,
) -> tuple[Record, DeepData]:
    """Write down everything that a run depends on, and load its data."""
    from appellate.deep.configuration import SMOKE_ROWS, SMOKE_TEST_ROWS, all_settings

    paper = configuration.paper(flip, source)
    record: Record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "title": configuration.title,
        "configuration": configuration.name,
        "method": configuration.method,
        "settings": settings,
        "changes": _changes(configuration.settings_for(flip, source), settings),
        "smoke": smoke,
        "seed": seed,
        "device": device,
        "data": {
            "source": source,
            "home": str(home.absolute()),
            "flip": flip,
            "most_rows": SMOKE_ROWS if smoke else None,
            "most_test_rows": SMOKE_TEST_ROWS if smoke else None,
        },
        "candidates": None,
        "paper": None if paper is None else {"mean": paper[0], "deviation": paper[1]},
        "sessions": [],
        "results": None,
    }
    record["settings"] = all_settings(make_model(record, device))
    data = load_data(record, home)
    record["data"] |= {
        "rows": len(data.X),
        "test_rows": 0 if data.X_test is None else len(data.X_test),
        "row_shape": list(data.X.shape[1:]),
        "class_names": data.class_names.tolist(),
    }
    if smoke:
        record["changes"].insert(0, f"at most {SMOKE_ROWS} training rows (--smoke)")
    record["candidates"] = data.describe_candidates()
    return record, data


def load_data(record: Record, home: Path | None) -> DeepData:
    """Load the data of a run: the same rows and candidate sets every time."""
    from appellate.deep.streams import Streams

    told = record["data"]
    recorded = Path(told["home"])
    data = load(told["source"], home or (recorded if recorded.is_dir() else None))
    streams = Streams(record["seed"])
    if needs_flips(told["source"]):
        data = data.flipped(told["flip"], streams.seed("candidates"))
    if told["most_rows"] is not None:
        n, m = len(data.X), 0 if data.X_test is None else len(data.X_test)
        rows = streams.permutation(n, "smoke rows")[: told["most_rows"]]
        data = data.part(rows, streams.permutation(m, "smoke tests")[: told["most_test_rows"]])
    before = record["candidates"]
    if before is not None and data.describe_candidates()["sha256"] != before["sha256"]:
        raise UserError(
            f"the candidate sets of '{told['source']}' are not those of the run: the data have "
            "changed since it began. Put the old data back, or begin a new run."
        )
    return data


def check_new(folder: Path) -> None:
    """Refuse a folder that has a run in it."""
    if not (folder / RECORD).exists():
        if (folder / "checkpoint.safetensors").exists():
            raise UserError(
                f"'{folder}' holds the checkpoint of another run. Name another folder with --out."
            )
        return
    if read_record(folder)["results"] is None:
        raise UserError(
            f"'{folder}' holds a run that is not finished. Go on with it: "
            f"{resume_command(folder)}. Or name another folder with --out."
        )
    raise UserError(
        f"'{folder}' holds a finished run. See it: "
        f"appellate deep evaluate {shlex.quote(str(folder))}. Or name another folder with --out."
    )


def read_record(folder: Path) -> Record:
    """Read the record of a run."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"'{folder}' holds no run: there is no {RECORD} in it. Begin one with "
            "appellate deep train."
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UserError(f"'{path}' is no record of a deep run of appellate.")
    if record.get("format_version", 0) > FORMAT_VERSION:
        raise UserError(f"'{path}' was written by a newer appellate; use that.")
    return record


def write_record(record: Record, folder: Path) -> None:
    """Write the record of a run; it appears whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{RECORD}.part"
        part.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        os.replace(part, folder / RECORD)
    except OSError as error:
        raise UserError(f"cannot write into '{folder}': {error.strerror or error}.") from error


def new_session(device: str) -> Record:
    """When and with what a run is begun or taken up."""
    names = ("appellate", "torch", "numpy")
    versions = {name: _version(name) for name in names} | {"python": python_version()}
    return {
        "began": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "device": device,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "versions": versions,
    }


def make_model(record: Record, device: str, **more: Any) -> DeepClassifier:
    """Make the classifier of a run."""
    from appellate.deep.configuration import ConfigurationError, make_classifier

    try:
        return make_classifier(
            record["method"],
            record["settings"],
            random_state=record["seed"],
            device=device,
            **more,
        )
    except ConfigurationError as error:
        raise UserError(str(error)) from error


def train(model: DeepClassifier, data: DeepData, folder: Path) -> None:
    """Fit a model and show its progress."""
    from appellate.candidates import CandidateSets
    from appellate.deep.checkpoint import CheckpointError
    from appellate.deep.processes import rank

    assert data.candidates is not None
    sets = CandidateSets(data.candidates, data.class_names, data.ids)
    done = count_epochs(folder)
    try:
        if rank() > 0:
            model.fit(data.X, sets)
            return
        with epochs(model.n_epochs, done) as show:
            model._listen = show
            model.fit(data.X, sets)
    except (CheckpointError, FileExistsError) as error:
        raise UserError(str(error)) from error
    except FloatingPointError as error:
        raise UserError(f"training failed: {error}") from error
    except OSError as error:
        raise UserError(
            f"cannot write into '{folder}': {error.strerror or error}. Make room, then go on: "
            f"{resume_command(folder)}"
        ) from error
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        raise UserError(
            "the device has not enough memory. Try --set batch_size=64 or another --device."
        ) from error


def finish(record: Record, model: DeepClassifier, data: DeepData, folder: Path) -> None:
    """Write the model, the docket and the results."""
    from appellate.deep.files import save_model

    truth = None if data.truth is None else data.class_names[data.truth]
    with staged(folder) as stage:
        save_model(model, stage / MODEL)
        write_csv(model.docket(truth=truth, output="docket").columns(), stage / DOCKET)
    record["results"] = measure(model, data, folder)
    write_record(record, folder)


def resume_command(folder: Path) -> str:
    """Return what to type to go on with a run."""
    return f"appellate deep resume {shlex.quote(str(folder))}"


def count_epochs(folder: Path) -> int:
    """Count the epochs in the log of a run."""
    try:
        return len((folder / LOG).read_text(encoding="utf-8").splitlines())
    except OSError:
        return 0


def announce(record: Record, folder: Path, say: Callable[[str], None]) -> None:
    """Say what will be run."""
    data, sets = record["data"], record["candidates"]
    n, l = data["rows"], len(data["class_names"])
    say(
        f"{record['title']} ({record['configuration']}) on {_shown(data['source'])}, "
        f"seed {record['seed']}, {record['settings']['n_epochs']} epochs, in '{folder}'"
    )
    flip = "" if data["flip"] is None else f" (flip {data['flip']:g})"
    say(
        f"{n} training rows, {data['test_rows']} test rows, {l} classes; "
        f"{sets['mean_size']:.2f} candidates a row{flip}, {sets['singleton_share']:.1%} with one"
    )
    if record["smoke"]:
        say(SMOKE_WARNING)
    elif record["changes"]:
        say(f"changed: {'; '.join(record['changes'])}")


def show_line(text: str) -> None:
    """Write a line to the standard error."""
    click.echo(text, err=True)


def _changes(configured: Record, settings: Record) -> list[str]:
    names = [key for key in settings if settings[key] != configured.get(key)]
    return [f"{name} = {json.dumps(settings[name])}" for name in names]


def _shown(source: str) -> str:
    return Path(source).name if source.endswith(".npz") else source


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None

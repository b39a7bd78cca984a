"""Deep runs in folders: what is run, on what data, how far it came, and what it has reached.

A run is a configuration, data and a seed; its folder holds ``run.json`` with all of it, and all
that is left of the run. `appellate deep` is these functions with a terminal around them::

    configuration = read_configuration("proden-plcp-cifar10")
    settings = settle(configuration, "cifar10", flip=0.3)
    record, data = make_record(configuration, settings, "cifar10", flip=0.3, seed=0)
    model = train(record, data, "run")
    finish(record, model, data, "run")
    record["results"]
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate._files import MemberError, check_members, read_json, read_member, write_file
from appellate.candidates import CandidateSets
from appellate.datasets.home import get_data_home
from appellate.deep.checkpoint import CHECKPOINT, LOG, CheckpointError, load_tree
from appellate.deep.estimator import DeepClassifier
from appellate.deep.methods import weights
from appellate.deep.processes import n_processes, rank
from appellate.deep.settings import SCORES, Record
from appellate.deep.streams import Streams
from appellate.experiments.networks import configuration as configurations
from appellate.experiments.networks.configuration import Configuration
from appellate.experiments.networks.sources import RunData, load_run_data, needs_flips
from appellate.io import load_model, save_model
from appellate.metrics import accuracy, approximated_accuracy, covering_rate

RUN_FORMAT, RUN_VERSION = "appellate-deep-run", 2
RECORD = "run.json"
MODEL = "model"
DOCKET = "docket.csv"
_LARGEST = 64 << 20  # bytes of a record or a log
_NUMBER = (int, float)
_SCORES: Record = {"rows": int, "accuracy": {"*": _NUMBER}}
_COVERED: Record = {"covering_rate": _NUMBER, "approximated_accuracy": _NUMBER}
# What a record has to hold, as far as it is used: types, lists of a type, tables. A name with "?"
# may be None, "*" stands for any name.
_SHAPE: Record = {
    "title": str, "configuration": str, "method": str, "device": str,
    "settings": {"n_epochs": int}, "changes": [str], "smoke": bool, "seed": int,
    "data": {
        "source": str, "home": str, "flip?": _NUMBER, "bag_size?": int, "rows": int,
        "test_rows": int, "row_shape": [int], "class_names": [(str, int, float, bool)],
    },
    "candidates": {"sha256": str, "mean_size": _NUMBER, "singleton_share": _NUMBER},
    "paper?": {"mean": _NUMBER, "deviation": _NUMBER},
    "sessions": [{}],
    "results?": {
        "epoch": int, "n_epochs": int, "selected_by?": str, "head": str, "test?": _SCORES,
        "training?": {
            **_SCORES,
            "appeals": dict.fromkeys(
                ("overturned", "corrected", "broken", "wrong_verdicts", "right_verdicts"), int
            ),
        },
        "candidates": _COVERED, "held_out?": {},
    },
}  # fmt: skip


class RunError(ValueError):
    """A folder without a run, or a run that cannot go on; and what to do."""


# -- before a run ---------------------------------------------------------------------------


def choose_flip(
    configuration: Configuration, source: str, flip: float | None, bag_size: int | None = None
) -> float | None:
    """Return the flip probability; None for data that have candidate sets, and for bags."""
    if not needs_flips(source):
        if flip is not None or bag_size is not None:
            given = "flip" if bag_size is None else "bag-size"
            raise RunError(
                f"'{Path(source).name}' has candidate sets of its own: leave {given} out."
            )
        return None
    if flip is not None and bag_size is not None:
        raise RunError("give a flip probability or the size of bags, not both.")
    if flip is not None and not 0 <= flip < 1:
        raise RunError(f"flip = {flip} is not a probability below 1.")
    if flip is not None or bag_size is not None:
        return flip
    listed = [q for q in configuration.flips if q > 0]
    if not listed:
        raise RunError(f"'{configuration.name}' lists no flip probability: give one.")
    return min(listed)


def settle(
    configuration: Configuration,
    source: str,
    flip: float | None = None,
    *,
    smoke: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Record:
    """Return all settings: the configuration's, then `smoke`, then `options`.

    Parameters
    ----------
    configuration : Configuration
        From `appellate.experiments.networks.configuration.read_configuration`.
    source : str
        Name or NPZ file of the data.
    flip : float, default=None
        Flip probability of the candidate sets, for data that have none.
    smoke : bool, default=False
        Whether it is a trial of minutes.
    options : mapping, default=None
        Settings instead of the configuration's.
    """
    settings, given = configuration.settings_for(flip, source), dict(options or {})
    if smoke:  # shrink the network that will be used
        named = {key: given[key] for key in given if key == "network"}
        settings = configurations.shrink(configurations.merge(settings, named))
    return configurations.merge(settings, given)


def make_record(
    configuration: Configuration,
    settings: Record,
    source: str,
    home: Path | None = None,
    *,
    flip: float | None = None,
    bag_size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    smoke: bool = False,
) -> tuple[Record, RunData]:
    """Write down everything that a run depends on, load its data, and try both out."""
    place = str(get_data_home(home).absolute())
    asked, paper = configuration.settings_for(flip, source), configuration.paper(flip, source)
    changed = (k for k, v in settings.items() if v != asked.get(k))
    record: Record = {
        "format": RUN_FORMAT,
        "format_version": RUN_VERSION,
        "title": configuration.title,
        "configuration": configuration.name,
        "method": configuration.method,
        "settings": settings,
        "changes": [f"{name} = {json.dumps(settings[name])}" for name in changed],
        "smoke": smoke,
        "seed": seed,
        "device": device,
        "data": {"source": source, "home": place, "flip": flip, "bag_size": bag_size},
        "candidates": None,
        "paper": None if paper is None else {"mean": paper[0], "deviation": paper[1]},
        "sessions": [],
        "results": None,
    }
    model, data = make_model(record), load_data(record, home)
    configurations.try_out(model, data.X, len(data.class_names))
    record["settings"] = configurations.all_settings(model, (1,) * (data.X.ndim - 1))
    record["data"] |= {
        "rows": len(data.X),
        "test_rows": 0 if data.X_test is None else len(data.X_test),
        "row_shape": list(data.X.shape[1:]),
        "class_names": data.class_names.tolist(),
    }
    if smoke:
        record["changes"].insert(0, f"at most {configurations.SMOKE_ROWS} training rows (--smoke)")
    record["candidates"] = data.describe_candidates()
    return record, data


def make_model(record: Record, **run: Any) -> DeepClassifier:
    """Make the classifier of a run; the rest are parameters of its `Run`."""
    run = {"device": record["device"], **run}
    method = record["method"]
    settings = record["settings"]
    seed = record["seed"]
    return configurations.make_classifier(method, settings, random_state=seed, **run)


def load_data(record: Record, home: Path | None = None) -> RunData:
    """Load the data of a run: the same rows and candidate sets every time."""
    told = record["data"]
    recorded = Path(told["home"])
    data = load_run_data(told["source"], home or (recorded if recorded.is_dir() else None))
    streams = Streams(record["seed"])
    if needs_flips(told["source"]):
        data = data.with_sets(streams.seed("candidates"), told["flip"], told["bag_size"])
    if record["smoke"]:
        n, m = len(data.X), 0 if data.X_test is None else len(data.X_test)
        rows, tests = streams.permutation(n, "smoke rows"), streams.permutation(m, "smoke tests")
        most = configurations.SMOKE_ROWS
        data = data.part(rows[:most], tests[:most])
    before = record["candidates"]
    if before is not None and data.describe_candidates()["sha256"] != before["sha256"]:
        raise RunError(
            f"the candidate sets of '{told['source']}' are not those of the run: the data have "
            "changed since it began. Put the old data back, or begin a new run."
        )
    return data


# -- the folder -----------------------------------------------------------------------------


def check_new(folder: Path) -> None:
    """Refuse a folder that has a run in it."""
    if not os.path.lexists(folder / RECORD):
        if os.path.lexists(folder / CHECKPOINT):
            raise RunError(f"'{folder}' holds the checkpoint of another run. Name another folder.")
        return
    kind, command = "a run that is not finished. Go on with it", resume_command(folder)
    if read_record(folder).get("results") is not None:
        kind, command = "a finished run. See it", command.replace("resume", "evaluate", 1)
    raise RunError(f"'{folder}' holds {kind}: {command}. Or name another folder.")


def read_record(folder: Path) -> Record:
    """Read the record of a run."""
    path = folder / RECORD
    try:
        record = read_json(folder, RECORD, _LARGEST)
        check_members(
            folder, {MODEL: "a folder"} | dict.fromkeys((LOG, CHECKPOINT, DOCKET), "a file")
        )
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(
            f"'{folder}' holds no run: {RECORD} is missing. Start one with appellate deep train."
        ) from None
    except MemberError as error:
        raise RunError(str(error)) from error
    if not isinstance(record, dict) or record.get("format") != RUN_FORMAT:
        raise RunError(f"'{path}' is not a record of a deep run of appellate.")
    written = record.get("format_version", 0)
    if not isinstance(written, int) or written > RUN_VERSION:
        raise RunError(f"'{path}' was written by a newer appellate; use that.")
    return record


def read_run(folder: Path) -> Record:
    """Read the record of a run to continue it; an incomplete one is refused."""
    record = read_record(folder)
    if wrong := _find_wrong(record, _SHAPE):
        raise RunError(
            f"'{folder / RECORD}' is damaged: {wrong}. Get the folder again, or begin a new run."
        )
    return record


def _find_wrong(value: Any, shape: Any, name: str = "it") -> str:
    """Say what of a record is not as it should be; empty if all is."""
    return next(_wrongs(value, shape, name), "")


def _wrongs(value: Any, shape: Any, name: str) -> Iterator[str]:
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            yield f"{name} is not a table"
            return
        for key, inner in shape.items():
            known = key.removesuffix("?")
            if known == "*":
                for each, found in value.items():
                    yield from _wrongs(found, inner, f"{name}, {each}")
            elif known not in value:
                yield f"{name} has no {known}"
            elif known == key or value[known] is not None:
                yield from _wrongs(value[known], inner, known)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{name} is not a list"
            return
        for each in value:
            yield from _wrongs(each, shape[0], f"an entry of {name}")
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape in (int, _NUMBER)):
        yield f"{name} is {str(value)[:50]!r}"


def write_record(record: Record, folder: Path) -> None:
    """Write the record of a run; it appears whole or not at all."""
    write_file(folder / RECORD, json.dumps(record, indent=2) + "\n")


def resume_command(folder: Path) -> str:
    """Return the command that continues a run."""
    return f"appellate deep resume {shlex.quote(str(folder))}"


def count_epochs(folder: Path) -> int:
    """Count the epochs in the log of a run."""
    try:
        return len(read_member(folder, LOG, _LARGEST).splitlines())
    except (OSError, MemberError):
        return 0


# -- the run --------------------------------------------------------------------------------


def train(record: Record, data: RunData, folder: str | Path, **run: Any) -> DeepClassifier:
    """Train the classifier of a run, or go on with it; the record says when and with what.

    Parameters
    ----------
    record : dict
        From `make_record` or `read_run`.
    data : RunData
        Its data.
    folder : path
        Where record, checkpoint and log are kept.
    **run
        Parameters of `appellate.deep.Run`: another device than the record's, `resume` to continue
        from the checkpoint, and `verbose`.

    Returns
    -------
    PRODENClassifier or PiCOClassifier
        Fitted.
    """
    folder = Path(folder)
    model = make_model(record, folder=folder, **run)
    if run.get("resume"):  # its record may have changed since it was tried out
        configurations.try_out(model, data.X, len(data.class_names))
    if rank() == 0:
        versions = {name: version(name) for name in ("appellate", "torch", "numpy")}
        record["sessions"].append(
            {
                "began": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "device": str(model._settled().run.find_device()),
                "processes": n_processes(),
                "versions": versions | {"python": python_version()},
            }
        )
        write_record(record, folder)
    assert data.candidates is not None
    try:
        model.fit(data.X, CandidateSets(data.candidates, data.class_names, data.ids))
    except (FloatingPointError, FileExistsError) as error:
        raise RunError(f"training failed: {error}") from error
    except OSError as error:
        raise RunError(
            f"cannot write into '{folder}': {error.strerror or error}. Free some space, "
            "then continue: "
            f"{resume_command(folder)}"
        ) from error
    except (ValueError, ImportError, MemoryError):
        raise
    except Exception as error:
        if "out of memory" in str(error):
            raise RunError(
                "the device has not enough memory. Try batch_size=64 or another device."
            ) from error
        if not run.get("resume"):
            raise
        raise RunError(
            f"the run in '{folder}' cannot go on ({type(error).__name__}: {str(error)[:200]}). If "
            f"its checkpoint was changed, remove '{CHECKPOINT}' to begin again."
        ) from error
    return model


def finish(record: Record, model: DeepClassifier, data: RunData, folder: str | Path) -> None:
    """Write the model and the results."""
    folder = Path(folder)
    save_model(model, folder / MODEL)
    record["results"] = measure(model, data, folder)
    write_record(record, folder)


# -- what it has reached --------------------------------------------------------------------


def evaluate(folder: Path, home: Path | None = None) -> Record:
    """Score a finished run again; return its record with the results.

    The model is that of the last epoch, or of the one that was selected without true labels;
    never of the best test epoch.
    """
    record = read_run(folder)
    if record["results"] is None:
        done, total = count_epochs(folder), record["settings"]["n_epochs"]
        raise RunError(
            f"the run in '{folder}' is not finished ({done} of {total} epochs). Go on with it: "
            f"{resume_command(folder)}"
        )
    model, data = load_model(folder / MODEL), load_data(record, home)
    try:
        record["results"] = measure(model, data, folder)
    except (RunError, CheckpointError, OSError, MemoryError):
        raise
    except Exception as error:  # whatever a changed model or checkpoint leads to
        raise RunError(
            f"the model in '{folder}' does not work on its data ({type(error).__name__}: "
            f"{str(error)[:200]}). Its files are damaged: get the folder again."
        ) from error
    return record


def measure(model: DeepClassifier, data: RunData, folder: Path) -> Record:
    """Score a fitted model: test rows by every head, training rows, corrections.

    If an epoch was selected without true labels, the last one is scored too. No epoch is ever
    chosen by the test rows.
    """
    plan, selection = model._fitted.plan, model._settled().selection.selection
    alone = plan.n_members == 1 and plan.coupling.partner is None
    head = "base" if alone else model.head
    output, candidates = model.training_output_, model.candidates_
    names = np.arange(candidates.shape[1])
    kept = model.history_[model.best_epoch_ - 1]
    results: Record = {
        "epoch": model.best_epoch_,
        "n_epochs": model.n_iter_,
        "selected_by": None if selection == "last" else selection,
        "head": head,
        "test": None,
        "training": None,
        "candidates": {
            "covering_rate": covering_rate(candidates, output.argmax(axis=1), classes=names),
            "approximated_accuracy": approximated_accuracy(candidates, output, classes=names),
        },
        "held_out": {name: kept[name] for name in SCORES if name in kept} or None,
    }
    if data.X_test is not None and data.test_truth is not None:
        results["test"] = _score(model.predict_heads(data.X_test), data.test_truth)
        if selection != "last" and plan.n_members == 1:  # the checkpoint holds the last epoch
            state = weights(load_tree(folder / CHECKPOINT)["trainer"]["method"])
            arrays = {name: tensor.numpy() for name, tensor in state.items()}
            heads = model._fitted.with_state(weights=arrays).heads(data.X_test)
            results["test_last_epoch"] = _score(heads, data.test_truth)
    if data.truth is not None:
        verdict, appeal = model.label_history_
        before, after = verdict == data.truth, appeal == data.truth
        results["training"] = {
            "rows": len(before),
            "accuracy": {"base": float(before.mean()), head: float(after.mean())},
            "appeals": {
                "overturned": int(np.count_nonzero(verdict != appeal)),
                "corrected": int(np.count_nonzero(~before & after)),
                "broken": int(np.count_nonzero(before & ~after)),
                "wrong_verdicts": int(np.count_nonzero(~before)),
                "right_verdicts": int(np.count_nonzero(before)),
            },
        }
    return results


def _score(heads: Mapping[str, NDArray[Any]], truth: NDArray[np.intp]) -> Record:
    """Accuracy by every network that can predict."""
    scores = {name: accuracy(truth, p.argmax(axis=1)) for name, p in heads.items()}
    return {"rows": len(truth), "accuracy": scores}

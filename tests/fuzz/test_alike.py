"""Five hundred odd files: all that reads a table reads the same, or refuses it alike."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections import Counter

import numpy as np
import pytest

from appellate._text import printable
from appellate.cli._terminal import as_typed
from appellate.cli.app import run
from appellate.datasets import load_partial_csv
from appellate.experiments.problems import load_own
from appellate.rectification.prediction import new_features
from appellate.rectification.preparation import prepare_table
from appellate.tables import TableError, find_roles, read_labels, read_table
from tests.fuzz.hostile import generator, make_table

pytest.importorskip("openpyxl")
FILES = 500


def said(options):
    """Options of the command line as those of Python."""
    pairs = (option[2:].partition("=")[::2] for option in options)
    return {name: value for name, value in pairs if name != "image"}


def sets(matrix, names):
    return [frozenset(np.asarray(names)[row].tolist()) for row in np.asarray(matrix)]


def by_rectify(path, options):
    return prepare_table(path, method="plcp", base="knn", **options)


def by_load(path, options):
    data = load_partial_csv(path, **options)
    return sets(data.candidates, data.class_names)


def by_compare(path, options):
    return load_own(path, **options).candidates.sum(axis=1).tolist()


def by_python(path, options):
    reading = {name: options[name] for name in ("encoding",) if name in options}
    frame = read_table(path, **reading).data.to_pandas()
    table = read_table(frame)
    rest = {name: value for name, value in options.items() if name not in reading}
    labels = read_labels(table, find_roles(table, **rest))
    return sets(labels.matrix, labels.class_names)


def by_check(path, options):
    out, err = io.StringIO(), io.StringIO()
    arguments = [f"--{name}={value}" for name, value in options.items()]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["check", path, *arguments, "--json"])
    if code:
        refusal, _, _ = err.getvalue().partition("\nnote: ")
        raise TableError(refusal.removeprefix("appellate: ").strip())
    return json.loads(out.getvalue())


def plain(text):
    """Text without spaces, with the names of options as in a terminal."""
    return "".join(as_typed(printable(text)).replace("\\n", " ").split())


def outcome(read, path, options):
    try:
        return read(path, options), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize(
    "seeds",
    [range(FILES // 2), pytest.param(range(FILES // 2, FILES), marks=pytest.mark.slow)],
    ids=["first half", "second half"],
)
def test_everything_reads_alike(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    seen = Counter()
    for seed in seeds:
        table = make_table(generator("alike", seed))
        (tmp_path / table.name).write_bytes(table.content)
        options = said(table.options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen[compare(table.name, options, f"seed {seed}")] += 1
        (tmp_path / table.name).unlink()
    assert min(seen["read"], seen["refused"]) > len(seeds) / 10, seen


def compare(path, options, where):
    """Compare what each makes of a file; say what became of it."""
    case, why = outcome(by_rectify, path, options)
    rectified = None if case is None else sets(case.sets.matrix, case.classes)
    loaded, why_not = outcome(by_load, path, options)
    compared, _ = outcome(by_compare, path, options)
    checked, refusal = outcome(by_check, path, options)
    assert (loaded is None) == (compared is None), where
    if checked is None:
        assert rectified is None, (where, refusal)
        assert loaded is None, (where, refusal)
        assert plain(refusal) == plain(why) == plain(why_not), where
        return "refused"
    facts = checked["facts"]
    if loaded is not None:
        assert compared == [len(each) for each in loaded], where
        assert facts["rows"] == len(loaded), where
        assert facts["mean_size"] == pytest.approx(np.mean([len(each) for each in loaded])), where
        python, _ = outcome(by_python, path, options)
        assert python == loaded, where
    if rectified is None:
        assert loaded is None or checked["problems"] or "column" in why, (where, why)
        return "doubtful"
    assert not checked["problems"], (where, checked["problems"])
    assert rectified == loaded, where
    assert facts["classes"] == len(frozenset.union(*rectified)), where
    predicts(case, path, options, where)
    return "read"


def predicts(case, path, options, where):
    """Predict reads the same numbers and words from the columns that were learned from."""
    known = {name: each.to_dict() for name, each in case.features.readings.items()}
    kinds = [
        {"name": n, "kind": kind, **known.get(n, {})} for n, kind in case.features.kinds.items()
    ]
    settings = {"roles": case.roles.to_dict(), "features": kinds, "n_embeddings": 0}
    reading = {name: options[name] for name in ("encoding",) if name in options}
    frame, _ = new_features(settings, read_table(path, **reading), {})
    assert list(frame.columns) == list(case.features.X.columns), where
    for name in frame.columns:
        one, two = frame[name].to_numpy(), case.features.X[name].to_numpy()
        assert [*map(str, one)] == [*map(str, two)], (where, name)

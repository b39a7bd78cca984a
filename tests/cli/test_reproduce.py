"""`appellate reproduce` and `appellate compare`: files, resuming, and bad use."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import numpy as np
import pytest
import scipy.io
from sklearn.datasets import load_digits

from appellate.cli.app import run
from appellate.deep.registry import NETWORKS
from appellate.experiments import methods, problems, store
from appellate.experiments.writing import file_names
from appellate.methods import available_bases
from appellate.paper import curves, reproduction
from appellate.paper.layouts import TABLES
from appellate.tables import write_table
from tests.experiments.small import make_problem

load_problem = problems.load_problem
QUICK = ["--splits", "2", "--n-jobs", "1"]


@pytest.fixture(scope="module", autouse=True)
def little_data():
    """Let two of the paper's data sets be small, and the others be missing."""

    def load(name):
        if name not in ("lost", "fgnet"):
            raise problems.UnavailableError(f"{name} is not in the data home")
        small = _small_only(name)
        return replace(small, title=problems.DATASETS[name].title)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "load_problem", load)
        # The jury without its network, which takes a third of all: tests/deep has it.
        patch.setattr("appellate.methods.jury.classifier.find_spec", lambda name: None)
        yield


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All tables, once."""
    folder = tmp_path_factory.mktemp("all") / "deep" / "out"
    assert run(["reproduce", "all", "--bases", "knn,sure", "--out", str(folder), *QUICK]) == 0
    return folder


def test_every_file_is_there_and_whole(everything):
    names = {path.name for path in everything.iterdir()}
    assert set(file_names(TABLES)) | {"runs.sqlite"} == names
    assert all((everything / name).stat().st_size > 0 for name in names)


def test_the_page_needs_nothing_else(everything):
    page = (everything / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(TABLES)
    assert "<script" not in page
    assert "http://" not in page
    assert "mirflickr is not in the data home" in page


def test_paper_and_ours_stand_side_by_side(everything):
    with (everything / "test-accuracy.csv").open(encoding="utf-8") as file:
        rows = {(row["method"], row["column"]): row for row in csv.DictReader(file)}
    cell = rows["SURE-PLCP", "Lost"]
    assert (cell["paper_mean"], cell["paper_mark"]) == ("0.719", "win")
    gap = float(cell["our_mean"]) - float(rows["SURE", "Lost"]["our_mean"])
    assert float(cell["our_gain"]) == pytest.approx(gap)
    assert float(cell["difference"]) == pytest.approx(float(cell["our_mean"]) - 0.719)
    assert ("SURE", "FG-NET(MAE5)") in rows
    assert not any(column == "Mirflickr" for _, column in rows)
    latex = (everything / "test-accuracy.tex").read_text(encoding="utf-8")
    assert r"0.719 $\pm$ 0.021 $\bullet$" in latex
    assert r"\toprule" in latex
    text = (everything / "test-accuracy.md").read_text(encoding="utf-8")
    assert "| SURE-PLCP | paper | 0.077 ± 0.009 • | 0.719 ± 0.021 • |" in text


def test_again_computes_nothing(everything, tmp_path, capsys):
    arguments = ["--bases", "knn,sure", "--out", str(tmp_path / "again"), *QUICK, "--json"]
    kept = ["--store", str(everything / "runs.sqlite")]
    assert run(["reproduce", "correction-ratio", *arguments, *kept]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["runs"] == {"total": 8, "stored": 8, "computed": 0, "failures": {}}
    assert set(said["tables"]) == {"correction-ratio"}
    assert set(said["missing"]) == {"msrcv2", "mirflickr", "soccer_player", "yahoo_news"}


def test_progress_is_told_in_lines(tmp_path, capsys):
    arguments = ["correction-ratio", "--bases", "KNN"]
    assert run(["reproduce", *arguments, "--out", str(tmp_path / "o"), *QUICK]) == 0
    said = capsys.readouterr()
    assert "left out: msrcv2 is not in the data home" in said.err
    assert "4 of 4 runs · " in said.err
    assert "4 runs: 0 stored earlier, 4 computed now." in said.out
    assert "a page with correction-ratio: " in said.out
    assert "does not show" not in said.out
    (tmp_path / "o" / "ablation.md").touch()
    assert run(["reproduce", *arguments, "--out", str(tmp_path / "o"), *QUICK]) == 0
    assert "The page does not show the earlier ablation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["test-acuracy"], "unknown table 'test-acuracy'. Did you mean 'test-accuracy'?"),
        (["ablation,curves"], "unknown table 'ablation,curves'. "),
        (["all", "--datasets", ""], "unknown data set ''"),
        (["all", "--datasets", "lots"], "unknown data set 'lots'. Did you mean 'lost'?"),
        (["all", "--bases", "agd"], "unknown base classifier 'agd'. Did you mean 'aggd'?"),
        (["all", "--datasets", "msrcv2"], "needs are missing.\nmsrcv2 is not in the data home"),
        (["sensitivity", "--datasets", "fgnet"], "needs Lost. Choose it too: --datasets fgnet,lo"),
        (["all", "--splits", "0"], "0 is not in the range"),
        (["all", "--backend", "ray"], "'ray' is not one of"),
        (["all", "--scheduler", "tcp://x:1"], "Add --backend dask"),
    ],
)
def test_mistakes(arguments, message, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["reproduce", *arguments, "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert not out.exists()


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_missing_extras_are_named_before_the_work(backend, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = tmp_path / "out"
    assert run(["reproduce", "all", "--out", str(out), "--backend", backend]) == 2
    said = capsys.readouterr().err
    extras = "plot,report,dask" if backend == "dask" else "plot,report"
    assert f"pip install 'appellate[{extras}]'" in said
    assert not out.exists()


def test_a_dead_worker_ends_the_run(tmp_path, capsys, monkeypatch):
    def die(*_):
        raise BrokenProcessPool

    monkeypatch.setattr("joblib.Parallel.__call__", die)
    arguments = ["correction-ratio", "--bases", "knn", "--splits", "2", "--n-jobs", "2"]
    assert run(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert "a worker process died" in capsys.readouterr().err
    assert (tmp_path / "out" / "runs.sqlite").exists()


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("a file")
    assert run(["reproduce", "all", "--out", str(taken / "out")]) == 2
    assert "a file is where a folder would have to be" in capsys.readouterr().err


def test_a_store_in_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").touch()
    where = ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "file" / "s.sqlite")]
    assert run(["reproduce", "all", *where]) == 2
    assert "cannot use the store" in capsys.readouterr().err


def test_a_store_of_another_version(everything, tmp_path, capsys):
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {store._APPLICATION}")
    connection.execute("PRAGMA user_version = 99")
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    where = ["--out", str(tmp_path / "out"), "--store", str(path)]
    assert run(["reproduce", "all", *where]) == 2
    assert "is a store of version 99" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_full_disk_ends_the_run_and_keeps_the_rows(tmp_path, capsys, monkeypatch):
    path = tmp_path / "s.sqlite"
    arguments = ["reproduce", "correction-ratio", "--bases", "knn", "--store", str(path), *QUICK]
    add, calls = store.Store.add, []

    def add_until_full(self, key, *rest, **more):
        calls.append(key)
        if len(calls) == 3:
            self._connection.execute("PRAGMA max_page_count = 1")
            run_ = rest[0]
            large = {f"score {i}": 0.5 for i in range(5000)}
            return add(self, key, run_, replace(rest[1], scores=large), **more)
        return add(self, key, *rest, **more)

    monkeypatch.setattr(store.Store, "add", add_until_full)
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "cannot use the store" in said
    assert "full" in said
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    monkeypatch.setattr(problems, "load_problem", _small_only)
    assert run([*arguments, "--out", str(tmp_path / "out"), "--datasets", "lost,fgnet"]) == 0
    assert "2 stored earlier, 2 computed now" in capsys.readouterr().out


def _small_only(name):
    tolerances = problems.DATASETS[name].tolerances
    return make_problem(name, n=60, n_labels=5, seed=1, tolerances=tolerances)


def test_a_full_disk_while_writing_tables(tmp_path, capsys, monkeypatch):
    from appellate.experiments import writing

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "write_files", full)
    out, path = tmp_path / "out", tmp_path / "s.sqlite"
    arguments = ["correction-ratio", "--bases", "knn", "--store", str(path), *QUICK]
    assert run(["reproduce", *arguments, "--out", str(out)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert not out.exists()
    assert path.exists()


# -- compare ----------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A CSV file with two features, candidates and the truth."""
    rng = np.random.RandomState(0)
    truth = rng.randint(3, size=40)
    names = np.array(["ant", "bee", "cow"])
    lines = ["a,b,candidates,label"]
    for label in truth:
        other = rng.randint(3)
        sets = "|".join(dict.fromkeys([names[label], names[other]]))
        a, b = rng.normal(label, 0.4), rng.normal(-label, 0.4)
        lines.append(f"{a:.3f},{b:.3f},{sets},{names[label]}")
    path = tmp_path / "own.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_compare_on_own_data(table, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--truth", "label", "--methods", "knn:n_neighbors=3", "--methods", "sure"]
    assert run(["compare", str(table), *arguments, "--out", str(out), *QUICK]) == 0
    said = capsys.readouterr().out
    assert "PL-KNN (n_neighbors=3)-PLCP" in said
    assert "partner alone" in said
    assert (out / "comparison.png").stat().st_size > 0
    with (out / "comparison.csv").open(encoding="utf-8") as file:
        scores = [float(row["our_mean"]) for row in csv.DictReader(file)]
    assert len(scores) == 8
    assert min(scores) > 0.5
    with (out / "training-rows.csv").open(encoding="utf-8") as file:
        found = {row["score"] for row in csv.DictReader(file)}
    assert {"transductive", "broken"} <= found
    assert "correct first labels broken" in (out / "index.html").read_text()


@pytest.mark.parametrize("words", [["compare", "TABLE"], ["reproduce", "test-accuracy"]])
def test_a_page_of_others_is_not_replaced(words, table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("appellate.experiments.runner.run_all", None)  # before the work
    (tmp_path / "index.html").write_text("<p>mine</p>")
    given = [str(table) if word == "TABLE" else word for word in words]
    assert run([*given, "--out", str(tmp_path), *QUICK]) == 2
    assert "was not written by Appellate" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "<p>mine</p>"


def test_a_file_name_is_neither_mathematics_nor_markup(table, tmp_path, capsys):
    """0.1 failed in matplotlib after all the work."""
    strange = table.rename(table.with_name("a$b^$[red].csv"))
    arguments = ["--truth", "label", "--methods", "knn", "--splits", "1", "--n-jobs", "1"]
    assert run(["compare", str(strange), *arguments, "--out", str(tmp_path / "out")]) == 0
    assert "Comparison on a$b^$[red]" in capsys.readouterr().out


def test_compare_over_one_split(table, tmp_path, capsys):
    """Base and coupled may score the same there."""
    arguments = ["--truth", "label", "--methods", "sure", "--splits", "1", "--n-jobs", "1"]
    assert run(["compare", str(table), *arguments, "--out", str(tmp_path / "out")]) == 0
    assert "SURE-PLCP" in capsys.readouterr().out


def test_compare_without_truth(table, tmp_path, capsys):
    arguments = ["--methods", "sure", "--out", str(tmp_path / "out"), "--json", *QUICK]
    text = table.read_text().replace("|", "; ")
    table.write_text("\n".join(line.rpartition(",")[0] for line in text.splitlines()) + "\n")
    assert run(["compare", str(table), "--separator", ";", *arguments]) == 0
    rows = json.loads(capsys.readouterr().out)["table"]
    assert {row["score"] for row in rows} == {"covering"}
    assert not (tmp_path / "out" / "training-rows.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "sur"], "unknown method 'sur'. Did you mean 'sure'?"),
        (["--methods", "nope"], "Known are jury, testimony, "),
        (["--methods", "nope"], ", knn, "),
        (["--methods", "nope"], ", records."),
        (["--methods", "sure:rounds=3"], "rounds"),
        (["--methods", "sure:3"], "parameter=value"),
        (["--methods", ""], "unknown method ''. Known are jury, "),
        (["--methods", "knn:n_neighbors=few"], "'n_neighbors' parameter of PLKNNClassifier must"),
        (["--methods", "jury:n_folds=0"], "'n_folds' parameter of JuryClassifier must be"),
        (["--methods", "knn,testimony"], "testimony needs annotators' answers, but 'own' has"),
        (["--truth", "lable"], "label"),
        (["--truth", "label", "--ignore", "a,b"], "has no column to learn from"),
        (["--candidates", "a", "--truth", "a"], "A column has one role"),
        (["--no-scaling", "--features", "label"], "only if all are numbers"),
    ],
)
def test_mistakes_of_compare(arguments, message, table, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["compare", str(table), *arguments, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_truth_of_numbers_is_no_feature(table):
    """0.1 learned from it, or refused the table, unless it was named."""
    text = table.read_text().replace("label", "kind")
    for number, name in enumerate(("ant", "bee", "cow")):
        text = text.replace(name, str(number))
    table.write_text(text)
    assert list(problems.load_own(str(table)).X.columns) == ["a", "b"]


def test_compare_reads_any_table(tmp_path, capsys):
    """Categories and gaps were refused in 0.1, as were answers of people."""
    rows = [
        {
            "size": None if i % 9 == 0 else i % 3 + i / 100,
            "site": "nse"[i % 3],
            "w1": "abc"[i % 3],
            "w2": "abc"[(i + (i % 4 == 0)) % 3],
            "w3": None if i % 2 else "abc"[i % 3],
            "gold": "" if i % 5 == 0 else "abc"[i % 3],
        }
        for i in range(40)
    ]
    write_table(rows, tmp_path / "crowd.parquet")
    command = ["compare", str(tmp_path / "crowd.parquet"), "--annotators", "w*", "--truth", "gold"]
    out = tmp_path / "out"
    assert run([*command, "--methods", "jury,sure", "--out", str(out), *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    scores = {row["method"]: row["our_mean"] for row in found["table"]}
    assert scores["jury"] > 0.8
    assert scores["SURE-PLCP"] > 0.8
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "40 samples, 2 features, 3 classes" in page
    rivals = [row["method"] for row in found["training_rows"] if "baseline" in row["method"]]
    assert rivals == [
        "baseline: random candidate",
        "baseline: majority vote",
        "baseline: testimony",
    ]
    assert run([*command, "--methods", "testimony", "--out", str(out), *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for rows in found.values():  # chosen and as a rival it stood there twice, once with no scores
        named = [row["method"] for row in rows if "testimony" in row["method"]]
        assert named == ["testimony"]
    command += ["--no-scaling", "--out", str(out)]
    assert run(command) == 2
    assert "only if all are numbers and none is missing" in capsys.readouterr().err


def test_equal_problems_have_equal_fingerprints(table):
    """The store must not take one table for another, or forget a run for nothing."""
    first, again = (problems.load_own(str(table), truth="label") for _ in range(2))
    assert first.fingerprint() == again.fingerprint()
    table.write_text(table.read_text().replace("0.", "0.0", 1))
    assert problems.load_own(str(table), truth="label").fingerprint() != first.fingerprint()


def test_compare_takes_the_variables_of_a_mat_file(tmp_path, capsys):
    """Names ended in a traceback; a file without truth, or with truth outside, was refused."""
    rng = np.random.RandomState(0)
    truth = np.eye(3)[rng.randint(3, size=40)]
    sets = np.maximum(truth, rng.rand(40, 3) < 0.3)
    sets[0] = 1 - truth[0]
    content = {"x": truth + rng.normal(size=(40, 3)) / 3, "sets": sets.T}
    scipy.io.savemat(tmp_path / "mine.mat", content)
    command = ["compare", str(tmp_path / "mine.mat"), "--features", "x", "--candidates", "sets"]
    command += ["--methods", "knn", "--json", *QUICK, "--out", str(tmp_path / "out")]
    assert run(command) == 0, capsys.readouterr().err
    assert {row["score"] for row in json.loads(capsys.readouterr().out)["table"]} == {"covering"}
    scipy.io.savemat(tmp_path / "mine.mat", content | {"gold": truth.T})
    assert run([*command, "--truth", "gold"]) == 0, capsys.readouterr().err
    assert {row["score"] for row in json.loads(capsys.readouterr().out)["table"]} == {"test"}
    assert run([*command, "--truth", "target"]) == 2
    assert "no variable 'target'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["separator", "id", "ignore"])
def test_options_of_tables_are_refused_for_others(option, tmp_path, capsys):
    assert run(["compare", "own.mat", f"--{option}", ";", "--out", str(tmp_path / "out")]) == 2
    assert f"{option} is for tables" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "cannot find the file 'nowhere.csv'"),
        (["iris.parquet"], "cannot find the file 'iris.parquet'"),
        (["data/lost"], "cannot find the file 'data/lost'"),
        (["labelme"], "'labelme' cannot be compared by its name"),
        (["bird song"], "'bird song' cannot be compared by its name"),
        (["lots"], "Did you mean 'lost'?"),
        (["Lost", "--candidates", "a", "--ignore", "b"], "so candidates and ignore cannot be"),
    ],
)
def test_compare_needs_data(arguments, message, tmp_path, capsys):
    assert run(["compare", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_missing_data_are_told_in_words_of_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("APPELLATE_DATA_HOME", str(tmp_path))
    with pytest.raises(problems.UnavailableError, match="has it with APPELLATE_DATA_HOME"):
        load_problem("mirflickr")


def test_curves_end_with_a_figure_of_every_panel(tmp_path, capsys, monkeypatch):
    few = {name: (text, values[1:3]) for name, (text, values) in curves.CURVES.items()}
    images, truth = load_digits(return_X_y=True)
    monkeypatch.setattr(curves, "CURVES", few)
    monkeypatch.setattr(curves, "load_digits", lambda **_: (images[:120], truth[:120]))
    drawn = []
    report = curves.Report
    monkeypatch.setattr(curves, "Report", lambda *all_: drawn.append(all_[-1]) or report(*all_))
    words = ["reproduce", "curves", "--out", str(tmp_path / "out"), *QUICK]
    assert run(words) == 0, capsys.readouterr().err
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {*file_names(["curves"]), "runs.sqlite"}
    lines = [[len(line.get_xdata()) for line in panel.get_lines()] for panel in drawn[0].axes]
    assert lines == [[2] * len(curves.CURVE_METHODS)] * len(few)
    table = (tmp_path / "out" / "curves.md").read_text(encoding="utf-8")
    assert table.count("\n## ") == 2 * len(few)
    assert "| - |" not in table


def test_rivals_have_networks_beside_the_rest(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(methods.NETWORK, "n_epochs", 2)
    folder = tmp_path / "out"
    words = ["reproduce", "rivals", "--datasets", "lost", "--bases", "knn", "--out", str(folder)]
    assert run([*words, *QUICK]) == 0, capsys.readouterr().err
    with (folder / "rivals.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file) if row["score"] == "test"}
    assert rows.keys() >= {m.title for m in methods.deep_rivals()} | {"jury", "PL-KNN"}
    assert all(float(row["seconds"]) > 0 for row in rows.values())
    assert "the first 5 splits at most" in (folder / "rivals.md").read_text(encoding="utf-8")


def test_help_names_all_that_can_be_chosen(capsys):
    for command in ("compare", "reproduce"):
        run([command, "--help"])
        words = {*re.findall(r"[\w-]+", capsys.readouterr().out)}
        assert {name for name, at in available_bases().items() if "appellate" in at} <= words
        if command == "compare":
            assert words >= {*NETWORKS, "jury", "testimony"}
        else:
            assert words >= {*problems.DATASETS, *problems.FURTHER, *reproduction.EXPERIMENTS}

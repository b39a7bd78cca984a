"""The page of a run shows the run: labels, confidences, outcomes and exports agree."""

from __future__ import annotations

import contextlib
import csv
import json
import threading
from dataclasses import replace

import numpy as np
import pytest

import appellate
from appellate.rectification import explanation
from appellate.review.page import read_page, unpack_page
from appellate.review.server import DocketServer
from tests.cli.tables import read_rows
from tests.review.dockets import shown
from tests.review.test_server import ask
from tests.test_rectification import NAMES, make_crowd, make_table

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")


def make_sets(**more):
    table, truth = make_table()
    return table.assign(truth=NAMES[truth], **more)


def make_answers(empty=(), **more):
    table, truth = make_crowd()
    people = [c for c in table if c.startswith("w")]
    table.loc[list(empty), people] = None
    names = [f"p{i}" for i in range(len(table))]
    return table.assign(name=names, truth=NAMES[truth], **more)


def make_long():
    wide = make_answers().drop(columns="truth")
    people = [c for c in wide if c.startswith("w")]
    return wide.melt(["name", "x", "y"], people, "who", "answer").dropna()


CROWD = {"annotators": "w*", "id": "name", "truth": "truth"}
SETS = {"candidates": "maybe", "id": "name", "truth": "truth"}
RUNS = {
    "jury": (make_sets, SETS, {}),
    "jury by cost": (make_sets, SETS | {"cost": "absolute", "order": "cat,cow,dog"}, {}),
    "jury of answers": (make_answers, CROWD | {"method": "jury"}, {}),
    "plcp": (make_sets, SETS | {"method": "plcp"}, {}),
    "plcp knn": (make_sets, SETS | {"base": "knn", "settings": {"max_rounds": 2}}, {}),
    "testimony": (make_answers, CROWD, {}),
    "testimony by cost": (make_answers, CROWD | {"cost": "absolute", "order": "cat,cow,dog"}, {}),
    "testimony within the answers": (
        make_answers, CROWD | {"settings": {"within_answers": True}}, {},
    ),
    "testimony of answers alone": (
        lambda: make_answers().drop(columns=["x", "y"]), CROWD, {},
    ),
    "testimony with unanswered rows": (lambda: make_answers(empty=[3, 7, 9]), CROWD, {}),
    "testimony of a long table": (make_long, {"long": "name,answer,who"}, {}),
    "reviewed jury": (make_sets, SETS, {"i1": "outside", "i2": "owl", "i3": "inside", "i4": ""}),
    "reviewed plcp": (
        make_sets, SETS | {"base": "sure"}, {"i1": "outside", "i2": "owl", "i3": "inside"},
    ),
    "reviewed testimony": (
        make_answers, CROWD, {"p1": "outside", "p2": "owl", "p3": "inside", "p4": ""},
    ),
}  # fmt: skip


def decide_some(run, wanted):
    """Decide rows: on a candidate, on a class outside of them, on a new label, on none."""
    frame = run.docket.set_index("id")
    records = []
    for name, what in wanted.items():
        inside = frame["candidates"][name].split("|")
        kind, label = "none", what
        if what == "inside":
            kind, label = "other", inside[0]
        elif what == "outside":
            others = [c for c in NAMES if c not in inside]
            kind, label = ("none", others[0]) if others else ("other", inside[0])
        records.append({"id": name, "decision": kind, "label": label})
    return run.decide(pd.DataFrame(records))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Make a run once, and return its folder."""
    made = {}

    def make(name):
        if name not in made:
            table, options, wanted = RUNS[name]
            run = appellate.rectify(table(), **options)
            run = decide_some(run, wanted) if wanted else run
            made[name] = run, run.save(tmp_path_factory.mktemp("run") / "o")
        return made[name]

    return make


@pytest.mark.parametrize("name", RUNS)
def test_the_page_equals_the_docket(name, saved):
    _, folder = saved(name)
    page = shown(read_page(folder / "docket.html"))
    rows = read_rows(folder / "docket.csv")
    assert list(page) == [row["id"] for row in rows]
    for row in rows:
        label, confidence, outcome = page[row["id"]]
        assert (label, outcome) == (row["label"], row["outcome"])
        if row["confidence"]:
            assert confidence == pytest.approx(10_000 * float(row["confidence"]), abs=0.6)
        else:
            assert confidence is None


@pytest.mark.parametrize("name", RUNS)
def test_the_summary_equals_the_scores(name, saved):
    run, folder = saved(name)
    summary = read_page(folder / "docket.html")["summary"]
    outcomes = dict.fromkeys(["unchanged", "changed", "reviewed", "excluded"], 0)
    outcomes |= {"outside the answers": 0, "unanswered": 0} | run.scores["outcomes"]
    assert summary["upheld"] + summary["single"] == outcomes["unchanged"] + sum(
        1 for i in read_page(folder / "docket.html")["decisions"] if single(run, int(i))
    )
    assert summary["overturned"] == outcomes["changed"]
    assert summary["outside"] == outcomes["outside the answers"]
    assert summary["unanswered"] == outcomes["unanswered"]
    assert (summary["reviewed"], summary["excluded"]) == (
        outcomes["reviewed"],
        outcomes["excluded"],
    )
    accuracy = run.scores["accuracy"]
    if accuracy:
        assert summary["truth"]["n"] == accuracy["items with truth"]
        assert summary["truth"]["appeal"] == pytest.approx(100 * accuracy["rectified"], abs=0.06)


def single(run, i):
    """Whether a row has one candidate and cannot change."""
    return run.settings["method"] != "testimony" and run.docket["n_candidates"][i] == 1


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.xdist_group("browser")
def test_exported_labels_equal_the_rectified_table(name, saved, visit, tmp_path):
    _, folder = saved(name)
    page = visit((folder / "docket.html").as_uri())
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="labels.csv").click()
    download.value.save_as(tmp_path / "labels.csv")
    exported = {row["id"]: row for row in read_rows(tmp_path / "labels.csv")}
    with (folder / "rectified.csv").open(encoding="utf-8", newline="") as file:
        rectified = list(csv.DictReader(file))
    assert {row["name"] for row in rectified} == exported.keys()
    for row in rectified:
        other = exported[row["name"]]
        assert (other["label"], other["outcome"]) == (row["label"], row["outcome"])
        if row["confidence"]:
            assert float(other["confidence"]) == pytest.approx(float(row["confidence"]), abs=6e-5)
        if row.get("suspicion"):
            assert float(other["suspicion"]) == pytest.approx(float(row["suspicion"]), abs=6e-5)


@pytest.mark.xdist_group("browser")
def test_a_label_outside_the_answers_is_shown_and_accepted(saved, visit, tmp_path):
    run, folder = saved("testimony")
    rows = {row["id"]: row for row in read_rows(folder / "docket.csv")}
    odd = {name for name, row in rows.items() if row["outcome"] == "outside the answers"}
    assert odd, "the crowd must have some"
    page = visit((folder / "docket.html").as_uri())
    assert f"{len(odd)} labels are outside the answers" in page.locator("#facts").inner_text()
    page.locator("[data-show=outside]").click()
    assert page.locator("#place").inner_text() == f"1 of {len(odd)}"
    name = page.locator("#item h2").inner_text()
    assert "nobody gave it" in page.locator("#panel .says").inner_text()
    assert "nobody said so" in page.locator(".cands .final").inner_text()
    shown_labels = page.locator(".cands .name").all_inner_texts()
    assert rows[name]["label"] in shown_labels
    assert {*rows[name]["candidates"].split("|")} <= {*shown_labels}
    page.keyboard.press("a")
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="decisions.csv").click()
    download.value.save_as(tmp_path / "d.csv")
    (record,) = read_rows(tmp_path / "d.csv")
    assert (record["id"], record["decision"], record["label"]) == (
        name, "none", rows[name]["label"],
    )  # fmt: skip
    assert record["candidates"] == rows[name]["candidates"]
    decided = run.decide(tmp_path / "d.csv")
    place = decided.docket["id"].tolist().index(name)
    assert decided.docket["label"][place] == rows[name]["label"]
    assert decided.docket["outcome"][place] == "reviewed"


@pytest.mark.xdist_group("browser")
def test_the_server_takes_a_label_outside_the_answers(saved, visit):
    _, folder = saved("testimony")
    with DocketServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            page = visit(server.address(), allowed=("net::ERR",))
            page.locator("[data-show=outside]").click()
            name = page.locator("#item h2").inner_text()
            page.keyboard.press("a")
            page.get_by_text("All saved in decisions.csv.").wait_for()
            (record,) = read_rows(folder / "decisions.csv")
            assert (record["id"], record["decision"]) == (name, "none")
        finally:
            server.shutdown()
            thread.join()
            (folder / "decisions.csv").unlink(missing_ok=True)


def test_notes_name_options_as_the_reader_types_them(saved, tmp_path):
    run, _ = saved("testimony of answers alone")
    run = replace(run, scores=run.scores | {"notes": ["Give image_model= or embeddings=."]})
    told = read_page(run.save(tmp_path / "o") / "docket.html")["warnings"]
    assert told[0] == "Give image_model= or embeddings=."
    command = {"command": "appellate rectify t.csv --out o"}
    run = replace(run, settings=run.settings | command)
    told = read_page(run.save(tmp_path / "o") / "docket.html")["warnings"]
    assert told[0] == "Give --image-model or --embeddings."


def test_ties_are_not_a_majority(saved):
    _, folder = saved("testimony")
    page = read_page(folder / "docket.html")
    votes, tied = unpack_page(page["votes"]), 0
    for row, vote in zip(read_rows(folder / "docket.csv"), votes, strict=True):
        counts = sorted((int(v.rpartition(":")[2]) for v in row["votes"].split("|")), reverse=True)
        tie = len(counts) > 1 and counts[0] == counts[1]
        assert (vote < 0) == tie
        tied += tie
    assert page["summary"]["ties"] == tied > 0


@pytest.mark.xdist_group("browser")
def test_a_tie_is_called_a_tie(saved, visit):
    _, folder = saved("testimony")
    page = visit((folder / "docket.html").as_uri() + "#review&show=tied")
    votes = {row["id"]: row["votes"] for row in read_rows(folder / "docket.csv")}
    name = next(n for n, text in votes.items() if text.count(":1|") == 2 and text.endswith(":1"))
    page.evaluate("name => { location.hash = '#review&row=' + name; }", name)
    page.locator("#item h2", has_text=name).wait_for()
    panel = page.locator("#panel").inner_text()
    assert "tied 1 : 1 : 1" in panel
    assert "Majority:" not in panel


def test_suspicion_of_the_jury_is_an_order(saved):
    _, folder = saved("jury")
    page = read_page(folder / "docket.html")
    assert page["suspicion_orders"]
    assert page["summary"]["suspected"] == 0
    assert not read_page(saved("testimony")[1] / "docket.html")["suspicion_orders"]


@pytest.mark.xdist_group("browser")
def test_ranks_of_suspicion_instead_of_shares(saved, visit):
    run, folder = saved("jury")
    order = np.argsort(-run.docket["suspicion"].to_numpy(), kind="stable")
    page = visit((folder / "docket.html").as_uri() + "#review&show=all&order=suspicion")
    assert page.locator("#item h2").inner_text() == run.docket["id"][order[0]]
    assert "Number 1 of 80 rows in the order of suspicion" in page.locator("#panel").inner_text()
    page.locator("nav [data-view=labels]").click()
    assert page.locator("#show option").count() > 3
    assert page.locator("#show option[value=suspected]").count() == 0


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.xdist_group("browser")
def test_the_headline_expects_what_the_run_expects(name, saved, visit):
    run, folder = saved(name)
    page = visit((folder / "docket.html").as_uri())
    title = page.locator("#headline h1").inner_text()
    expected = run.scores.get("expected_wrong")
    if expected is None:
        assert "changed." in title
        return
    labelled = len(run.docket) - run.scores["outcomes"].get("excluded", 0)
    told = int(title.split()[1].replace(",", ""))
    assert told == pytest.approx(labelled - expected, abs=0.56)


@pytest.mark.xdist_group("browser")
def test_annotators_on_the_page_are_those_of_the_file(saved, visit):
    _, folder = saved("testimony")
    rows = sorted(read_rows(folder / "annotators.csv"), key=lambda r: float(r["accuracy"]))
    page = visit((folder / "docket.html").as_uri() + "#people", "desktop")
    assert page.locator(".who").all_inner_texts() == [row["person"] for row in rows]
    shares = page.locator("#people-rows .spread-words").all_inner_texts()
    for row, text in zip(rows, shares, strict=True):
        low, high = (int(part) for part in text.removesuffix(" %").split(" to "))
        assert low == pytest.approx(100 * float(row["low"]), abs=0.51)
        assert high == pytest.approx(100 * float(row["high"]), abs=0.51)


# -- why ------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(folder, **options):
    with DocketServer(folder, **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("name", ["jury", "testimony", "reviewed jury", "reviewed testimony"])
def test_the_server_explains_as_the_page_does(name, saved):
    _, folder = saved(name)
    page = read_page(folder / "docket.html")
    assert len(page["why"]) > 10
    with DocketServer(folder, explain=appellate.load(folder).explain) as server:
        for item, shown in page["why"].items():
            assert server.why(page["ids"][int(item)]) == shown


@pytest.mark.parametrize("name", ["jury", "testimony", "testimony of answers alone"])
@pytest.mark.xdist_group("browser")
def test_a_row_that_the_file_does_not_explain(name, saved, visit, tmp_path, monkeypatch):
    run, _ = saved(name)
    monkeypatch.setattr(explanation, "BYTES", 1500)
    folder = run.save(tmp_path / "o")
    data = read_page(folder / "docket.html")
    sure = run.docket["confidence"].to_numpy()
    row = int(np.argmax(np.where(run.docket["n_candidates"] > 1, sure, 0)))
    assert str(row) not in data["why"]
    view = f"#review&show=all&row={data['ids'][row]}"
    page = visit((folder / "docket.html").as_uri() + view)
    assert " ".join(page.locator(".why").inner_text().split()) == (
        f"Why {run.docket['label'][row]} The page explains {len(data['why'])} rows of "
        f"{len(sure)}; this row is not one of them. Open the page with appellate serve, or call "
        f'run.explain("{data["ids"][row]}") in Python.'
    )
    with serving(folder, explain=run.explain) as server:
        page = visit(server.address(), allowed=("net::ERR",))
        page.evaluate("view => { location.hash = view; }", view)
        page.locator(".why .sum").wait_for()
        why = run.explain(data["ids"][row])
        shown = why.shown()
        values = dict(
            page.locator(".why tr[data-value]").evaluate_all(
                "rows => rows.map((row) => [row.cells[0].textContent, Number(row.dataset.value)])"
            )
        )
        for part in why.parts:
            gain = part.values[shown[0]] - part.values[shown[1]]
            assert values.pop(part.name, 0.0) == pytest.approx(gain, abs=1e-6)
        gain = why.scores[shown[0]] - why.scores[shown[1]]
        assert values == {"together": pytest.approx(gain, abs=1e-6)}
        if name == "jury":
            page.locator(".why summary").click()
            cells = page.locator(".why details tbody tr").evaluate_all(
                "rows => rows.map((row) => [...row.cells].slice(2).map((cell) => +cell.title))"
            )
            said = [each.probabilities[shown[:2]] for each in why.heard()]
            np.testing.assert_allclose(cells, said, atol=1e-6)
            agree = sum(x > y for x, y in said)
            told = page.locator(".why summary").inner_text()
            assert told.startswith(f"{agree} of {len(said)} members prefer")
            near = page.locator(".near-name").all_inner_texts()
            assert near == [each.name for each in why.neighbors]


@pytest.mark.xdist_group("browser")
def test_a_reason_of_the_server_is_shown(saved, visit, tmp_path, monkeypatch):
    run, _ = saved("testimony")
    monkeypatch.setattr(explanation, "BYTES", 1500)
    folder = run.save(tmp_path / "o")

    def fail(name):
        raise ValueError(f"The model of {name} is not here. Run rectify again.")

    address = "#review&show=all&order=confidence-down"
    with serving(folder, explain=fail) as server:
        page = visit(server.address(), allowed=("net::ERR", "422"))
        page.evaluate("view => { location.hash = view; }", address)
        name = page.locator("#item h2").inner_text()
        page.get_by_text(f"The model of {name} is not here. Run rectify again.").wait_for()
    with serving(folder) as server:  # without anything that explains
        page = visit(server.address(), allowed=("net::ERR",))
        page.evaluate("view => { location.hash = view; }", address)
        words = page.locator(".why .note").inner_text()
        assert words.endswith(f'Call run.explain("{name}") in Python.')


def test_only_rows_of_the_page_are_explained(saved):
    run, folder = saved("testimony")
    asked = []

    def explain(name):
        asked.append(name)
        return run.explain(name)

    with serving(folder, token="a secret of some length", explain=explain) as server:
        bearer = {"Authorization": "Bearer a%20secret%20of%20some%20length"}
        assert ask(server, "/why?p3", **bearer)[0].status == 200
        assert json.loads(ask(server, "/why?p%33", **bearer)[1])["labels"]
        for path in ("/why", "/why?", "/why?nobody", "/why?..%2Frun.json", "/why?0"):
            assert ask(server, path, **bearer)[0].status == 404
        assert ask(server, "/why?p3", Authorization="Bearer another")[0].status == 403
    assert asked == ["p3", "p3"]


@pytest.mark.xdist_group("browser")
def test_the_page_says_why_a_label_won_by_its_cost_alone(visit, tmp_path):
    """Of three answers the middle one has the least mean distance, even if it is less likely."""
    rng = np.random.default_rng(0)
    true = [str(1 + i % 9) for i in range(120)]
    table = pd.DataFrame({"id": [f"r{i}" for i in range(120)]})
    for name, accuracy in (("w0", 0.8), ("w1", 0.6), ("w2", 0.8)):
        table[name] = [t if rng.random() < accuracy else str(rng.integers(1, 10)) for t in true]
    run = appellate.rectify(table, annotators="w*", id="id", cost="absolute")
    unlikely = (run.docket["confidence"] < run.docket["runner_up_confidence"]).tolist()
    first, last = unlikely.index(True), unlikely.index(False)
    run.save(tmp_path / "out")
    address = (tmp_path / "out" / "docket.html").as_uri()
    for row, told in ((first, True), (last, False)):
        note = visit(f"{address}#review&row=r{row}").locator("section.why p.note").inner_text()
        assert ("a setting decided, such as a cost" in note) == told


@pytest.mark.parametrize(
    "name",
    [name for name in RUNS if "cost" not in name and "within" not in name],
)
def test_only_a_setting_lets_a_label_win_against_its_parts(name, saved):
    run, folder = saved(name)
    data = read_page(folder / "docket.html")
    labels = run.docket["label"].tolist()
    for i, each in data.get("why", {}).items():
        shown = [data["classes"][j] for j in each["labels"]]
        sums = np.sum([part["values"] for part in each["parts"]], axis=0)
        assert sums[shown.index(labels[int(i)])] >= sums.max() - 1e-6

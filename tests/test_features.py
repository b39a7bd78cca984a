"""Features of every kind through the front door: what is learned from, and how well."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import appellate
from appellate import NoteWarning
from appellate.rectification import predict
from appellate.rectification.fitting import shared_excess
from appellate.tables import find_roles, read_table

WORDS = {
    "praise": ["good", "great", "happy", "love", "fine", "best", "kind"],
    "complaint": ["bad", "broken", "late", "angry", "slow", "worst", "rude"],
    "question": ["where", "when", "how", "which", "who", "why", "what"],
}
KINDS = np.array(list(WORDS))


quiet = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")  # the notes do not matter


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("APPELLATE_CACHE_HOME", str(tmp_path / "cache"))


def write_texts(r, truth, own=2):
    filling = [
        "the",
        "parcel",
        "came",
        "to",
        "our",
        "house",
        "on",
        "a",
        "day",
        "of",
        "this",
        "month",
    ]
    return [
        " ".join(r.permutation([*r.choice(filling, 6), *r.choice(WORDS[kind], own)]))
        for kind in truth
    ]


def draw_sets(r, truth, share=0.4):
    drawn = (r.random((len(truth), len(KINDS))) < share) | (truth[:, None] == KINDS)
    return ["|".join(KINDS[row]) for row in drawn]


def read_sentences(n, seed):
    """Real text: sentences of scipy's documentation, whose label is the part they are from."""
    found = {}
    for part in ("stats", "signal", "linalg", "optimize"):
        module = import_module(f"scipy.{part}")
        for name in sorted(name for name in dir(module) if not name.startswith("_")):
            for paragraph in (inspect.getdoc(getattr(module, name)) or "").split("\n\n")[:4]:
                text = " ".join(paragraph.split()).split(". ")[0][:200]
                if len(text.split()) >= 6 and not re.search(r">>>|----|:math:", text):
                    found.setdefault(text, part)
    texts, parts = np.array(list(found)), np.array(list(found.values()))
    some = np.random.default_rng(seed).permutation(len(texts))[:n]
    return texts[some], parts[some]


@quiet
@pytest.mark.parametrize("seed", [100, 101])
def test_text_beats_three_lines_of_scikit_learn(seed):
    r = np.random.default_rng(seed)
    texts, truth = read_sentences(600, seed)
    names = np.unique(truth)
    old, new = slice(0, 400), slice(400, None)
    said = np.where(r.random((3, 400)) < 0.5, truth[old], r.choice(names, (3, 400)))
    votes = (said[:, :, None] == names).sum(axis=0)
    majority = names[(votes + r.random(votes.shape) / 10).argmax(axis=1)]
    rival = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts[old], majority)
    frame = pd.DataFrame({"text": texts[old], "ann": said[0], "ben": said[1], "cleo": said[2]})
    run = appellate.rectify(frame, annotators=["ann", "ben", "cleo"], text="text")
    right = np.mean(rival.predict(texts[old]) == truth[old])
    assert np.mean(run.labels["label"] == truth[old]) >= right
    labels = run.predict(pd.DataFrame({"text": texts[new]}))["label"]
    assert np.mean(labels == truth[new]) >= np.mean(rival.predict(texts[new]) == truth[new])


@quiet
def test_numbers_and_text_together_beat_either():
    r = np.random.default_rng(100)
    texts, truth = read_sentences(400, 100)
    names = np.unique(truth)
    frame = pd.DataFrame({"text": texts})
    frame["size"] = np.isin(truth, names[:2]) * 1.5 + r.normal(size=400)
    frame["time"] = np.isin(truth, names[1:3]) * 1.5 + r.normal(size=400)
    drawn = (r.random((400, len(names))) < 0.6) | (truth[:, None] == names)
    frame["maybe"] = ["|".join(names[row]) for row in drawn]
    right = {}
    for name, columns in {"numbers": ["size", "time"], "text": ["text"], "both": None}.items():
        own = frame if columns is None else frame[[*columns, "maybe"]]
        text = "text" if "text" in own else None
        run = appellate.rectify(own, candidates="maybe", text=text)
        right[name] = np.mean(run.labels["label"] == truth)
    assert right["both"] > max(right["numbers"], right["text"])


def make_passengers(n=200):
    """A table as that of the Titanic: missing ages, cabins, names, ticket numbers."""
    r = np.random.default_rng(2)
    place = r.choice(["First", "Second", "Third"], n, p=[0.25, 0.25, 0.5])
    names = ["Braund", "Heikkinen", "Futrelle", "Allen", "Moran", "Palsson"]
    return pd.DataFrame(
        {
            "passenger_id": range(1, n + 1),
            "name": [f"{r.choice(names)}, {r.choice(['Mr', 'Mrs'])}. {i}" for i in range(n)],
            "sex": r.choice(["male", "female"], n),
            "age": np.where(r.random(n) < 0.2, np.nan, r.integers(1, 70, n)),
            "fare": np.where(place == "First", 80.0, np.where(place == "Second", 20.0, 8.0))
            * r.uniform(0.7, 1.3, n),
            "embarked": r.choice(["S", "C", "Q", None], n),
            "boarded": pd.date_range("1912-04-01", periods=n, freq="3h").astype(str),
            "row_hash": [f"{int(x):016x}" for x in r.integers(0, 2**63, n)],
            "ship": "Titanic",
            "maybe": [
                "|".join(sorted({p, r.choice(["First", "Second", "Third"])})) for p in place
            ],
            "truth": place,
        }
    )


@quiet
def test_a_table_of_passengers():
    frame = make_passengers()
    run = appellate.rectify(frame, truth="truth")
    used = {each["name"] for each in run.settings["features"]}
    assert used == {"sex", "age", "fare", "embarked", "boarded"}
    aside = run.settings["roles"]["ignore"]
    assert set(aside) | {run.settings["roles"]["id"]} >= {"passenger_id", "row_hash", "ship"}
    assert "name" not in used
    assert aside["ship"] == "constant"
    assert run.scores["accuracy"]["rectified"] > 0.9
    importance = run.importance()
    assert next(iter(importance)) == "fare"
    assert set(importance) == used
    assert importance["fare"] > 5 * max(abs(importance[name]) for name in ("sex", "embarked"))


def test_a_table_of_taxis():
    r = np.random.default_rng(3)
    n = 300
    work = r.random(n) < 0.5
    hours = np.where(work, 8, 21) + r.normal(0, 1.5, n)
    frame = pd.DataFrame(
        {
            "trip_id": [f"{int(x):016x}" for x in r.integers(0, 2**63, n)],
            "pickup": pd.Timestamp("2024-03-04")
            + pd.to_timedelta(r.integers(0, 28, n) * 24 + hours, unit="h"),
            "zone": [
                f"Zone {z}" for z in np.where(work, r.integers(0, 50, n), r.integers(38, 88, n))
            ],
            "distance": np.where(r.random(n) < 0.1, np.nan, r.gamma(2, 2, n)),
            "receipt": [f"receipts/{i}.pdf" for i in range(n)],
            "maybe": np.where(
                r.random(n) < 0.5, "work|leisure", np.where(work, "work", "leisure")
            ),
        }
    )
    frame["pickup"] = frame["pickup"].dt.strftime("%Y-%m-%d %H:%M")
    roles = find_roles(read_table(frame))
    assert set(roles.features) == {"pickup", "zone", "distance"}
    run = appellate.rectify(frame)
    truth = np.where(work, "work", "leisure")
    assert np.mean(run.labels["label"] == truth) > 0.95
    assert "receipt" not in run.importance()


def test_lists_and_patterns_of_features():
    frame = make_passengers(60)
    run = appellate.rectify(frame, truth="truth", features="a*,fare")
    assert [each["name"] for each in run.settings["features"]] == ["age", "fare"]
    run = appellate.rectify(frame, truth="truth", ignore="s*,boarded")
    assert [each["name"] for each in run.settings["features"]] == ["age", "fare", "embarked"]


@pytest.mark.parametrize("seed", range(1, 4))  # by chance, some noise looks useful
def test_features_that_say_nothing_are_not_believed(seed, tmp_path):
    r = np.random.default_rng(seed)
    truth = r.choice(KINDS, 200, p=[0.6, 0.3, 0.1])
    frame = pd.DataFrame(r.normal(size=(200, 4)), columns=list("abcd"))
    frame["maybe"] = draw_sets(r, truth)
    with pytest.warns(appellate.NoteWarning, match="^the features"):
        run = appellate.rectify(frame, candidates="maybe")
    assert run.scores["signal"] is False
    assert run.model is None
    assert run.scores["notes"][0].startswith("the features do not predict held-out candidates")
    assert run.scores["notes"][0] in run.summary()
    with pytest.warns(appellate.NoteWarning, match="^the features"):
        informed = appellate.rectify(frame, candidates="maybe", method="jury")
    assert np.mean(run.labels["label"] == truth) >= np.mean(informed.labels["label"] == truth)
    folder = run.save(tmp_path / "run")
    assert json.loads((folder / "run.json").read_text())["scores"]["signal"] is False
    assert (
        "the features do not predict held-out candidates" in (folder / "docket.html").read_text()
    )
    assert appellate.load(folder).model is None
    assert run.decide({"0": "praise"}).labels["label"][0] == "praise"


@quiet
def test_a_few_rows_are_no_reason_to_give_up():
    frame = pd.DataFrame({"a": range(20), "maybe": ["x|y", "x", "y", "y"] * 5})
    run = appellate.rectify(frame, candidates="maybe", features="a")
    assert run.model is not None


@quiet
def test_informative_features_are_believed():
    r = np.random.default_rng(4)
    truth = r.choice(KINDS, 200)
    frame = pd.DataFrame({"a": (truth == "praise") * 2 + r.normal(size=200)})
    frame["maybe"] = draw_sets(r, truth)
    run = appellate.rectify(frame, candidates="maybe")
    assert run.scores["signal"] is True
    assert run.model is not None


def test_answers_without_any_feature():
    rows = [
        {"task": i, "worker": f"w{j}", "label": "cat" if (i * j) % 3 else "dog"}
        for i in range(20)
        for j in range(3)
    ]
    with pytest.warns(appellate.NoteWarning, match="only the answers decide"):
        run = appellate.rectify(rows, long="task,label,worker")
    assert len(run.docket) == 20
    assert run.model is None
    assert run.importance() == {}


@quiet
def test_what_columns_contribute_is_in_the_run(tmp_path):
    folder = appellate.rectify(make_passengers(), truth="truth").save(tmp_path / "run")
    features = json.loads((folder / "run.json").read_text())["settings"]["features"]
    assert all(-1 <= each["importance"] <= 1 for each in features)
    loaded = appellate.load(folder).importance()
    assert max(loaded, key=loaded.get) == "fare"


def test_labels_come_as_parquet_beside_csv(tmp_path):
    frame = make_passengers(60)
    folder = appellate.rectify(frame, truth="truth").save(tmp_path / "run")
    columns = pd.read_parquet(folder / "rectified.parquet"), pd.read_csv(folder / "rectified.csv")
    assert columns[0]["label"].tolist() == columns[1]["label"].tolist()
    np.testing.assert_allclose(columns[0]["age"], columns[1]["age"])


class Letters:
    cache_key = "letters"

    def encode(self, texts):
        return [[text.count(letter) for letter in "aeiou"] for text in texts]


class Means:
    def __call__(self, pictures):
        return [np.asarray(picture).mean(axis=(0, 1)) for picture in pictures]


@quiet
def test_models_of_prose_and_pictures_beside_numbers(tmp_path):
    image = pytest.importorskip("PIL.Image")
    r = np.random.default_rng(5)
    truth = r.choice(KINDS, 90)
    for i, kind in enumerate(truth):
        colour = r.integers(0, 60, 3)
        colour[KINDS.tolist().index(kind)] += 150
        image.new("RGB", (8, 8), tuple(map(int, colour))).save(tmp_path / f"{i}.png")
    frame = pd.DataFrame({"text": write_texts(r, truth), "photo": [f"{i}.png" for i in range(90)]})
    frame["size"] = r.normal(size=90)
    frame["maybe"] = draw_sets(r, truth)
    (tmp_path / "3.png").write_bytes(b"broken")
    frame.to_csv(tmp_path / "t.csv", index=False)
    models = {"text_model": Letters(), "image_model": Means()}
    vectors = r.normal(size=(90, 3))
    run = appellate.rectify(
        tmp_path / "t.csv", candidates="maybe", text="text", image="photo", features="size",
        embeddings=vectors, **models,
    )  # fmt: skip
    assert [each["kind"] for each in run.settings["features"]] == ["number", "text", "picture"]
    assert set(run.importance()) == {"size", "text", "photo", "embeddings"}
    assert next(iter(run.importance())) == "photo"
    assert np.mean(run.labels["label"] == truth) > 0.9
    assert any("1 of 90 images are not used as features, e.g. '3.png'" in n
               for n in run.settings["notes"])  # fmt: skip
    folder = run.save(tmp_path / "run")
    with pytest.warns(NoteWarning, match="1 of 90 images are not used as features, e.g. '3.png'"):
        expected = run.predict(tmp_path / "t.csv", embeddings=vectors)["label"].tolist()
    with pytest.warns(NoteWarning, match="1 of 90 images are not used as features"):
        again = predict(folder, tmp_path / "t.csv", embeddings=vectors, **models)
    assert again["label"].tolist() == expected
    with pytest.raises(ValueError, match=r"by text_model= 'Letters'\. Give text_model= again"):
        predict(folder, tmp_path / "t.csv", embeddings=vectors)
    other = Letters()
    other.cache_key = "others"
    with pytest.raises(ValueError, match="text_model= is not the model that was used"):
        predict(folder, tmp_path / "t.csv", embeddings=vectors, image_model=Means(),
                text_model=other)  # fmt: skip


@quiet
def test_a_picture_whose_name_is_too_long_is_not_there(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(1, 30):
        image.new("RGB", (8, 8), (200 * (i % 2), 0, 50)).save(tmp_path / f"{i}.png")
    names = ["n" * 300, *(f"{i}.png" for i in range(1, 30))]
    frame = pd.DataFrame({"photo": names, "maybe": ["a", "a|b", "b"] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(appellate.NoteWarning, match="1 of 30 images are not used as features"):
        run = appellate.rectify(tmp_path / "t.csv", candidates="maybe", image="photo")
    assert "1 of 30 image files do not exist" in " ".join(run.settings["notes"])


def test_models_without_a_column():
    frame = make_passengers(40)
    with pytest.raises(ValueError, match="text_model= needs a text column"):
        appellate.rectify(frame, truth="truth", text_model=Letters())
    with pytest.raises(ValueError, match="image_model= needs an image column"):
        appellate.rectify(frame, truth="truth", image_model="histograms")


def make_tasks(n=40):
    r = np.random.default_rng(6)
    tasks = []
    for i, kind in enumerate(r.choice(KINDS, n)):
        said = [kind if r.random() < 0.8 else str(r.choice(KINDS)) for _ in range(3)]
        result = [
            {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [s]}}
            for s in map(str, said)
        ]
        annotations = [{"completed_by": j, "result": [each]} for j, each in enumerate(result)]
        data = {"text": write_texts(r, [kind])[0]}
        tasks.append({"id": 1000 + i, "data": data, "annotations": annotations})
    return tasks


@quiet
def test_from_label_studio_and_back(tmp_path):
    (tmp_path / "tasks.json").write_text(json.dumps(make_tasks()))
    with pytest.warns(appellate.NoteWarning, match="read as an export of Label Studio"):
        run = appellate.rectify(tmp_path / "tasks.json")
    assert run.settings["method"] == "testimony"
    folder = run.save(tmp_path / "run")
    made = json.loads((folder / "suggestions.json").read_text())
    assert [task["id"] for task in made] == list(range(1000, 1040))
    docket = dict(zip(run.docket["id"].astype(str), run.docket["label"], strict=True))
    for task in made:
        (foretold,) = task["predictions"]
        assert foretold["result"][0]["value"]["choices"] == [docket[str(task["id"])]]
        assert 0 < foretold["score"] <= 1
    unlabelled = [{"id": 1, "data": {"text": "why where how"}, "annotations": []}] * 2
    (tmp_path / "new.json").write_text(json.dumps(unlabelled))
    with pytest.warns(NoteWarning) as caught:
        labels = run.predict(tmp_path / "new.json")["label"].tolist()
    assert labels[0] in KINDS
    assert "read as an export of Label Studio" in str(caught[0].message)


def test_a_plain_table_goes_to_a_tool(tmp_path):
    run = appellate.rectify(make_passengers(40), truth="truth")
    lines = run.export(tmp_path / "tasks.jsonl", tool="prodigy").read_text().splitlines()
    assert json.loads(lines[0])["accept"] == [run.labels["label"][0]]
    with pytest.raises(ValueError, match="Name the labelling tool"):
        run.export(tmp_path / "tasks.jsonl")


def test_excess_is_measured_in_deviations_of_all_deals():
    r = np.random.default_rng(0)
    output, sets = r.dirichlet(np.ones(3), size=6), r.random((6, 3)) < 0.5
    deals = [(output * sets[list(deal)]).sum() for deal in permutations(range(6))]
    expected = ((output * sets).sum() - np.mean(deals)) / np.std(deals)
    assert np.isclose(shared_excess(output, sets), expected)
    assert shared_excess(output, np.ones((6, 3), dtype=bool)) == 0

"""Data that people answered for: published layouts, and generated crowds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from appellate import as_candidates
from appellate.datasets import (
    load_cifar10h,
    load_cifar10n,
    load_labelme,
    load_music_genre,
    load_plcifar10,
    load_rte,
    load_sentence_polarity,
    make_crowd,
)
from tests.datasets.layouts import garble, swap, truncate, write_cifar10, write_labelme


def test_labelme_in_three_parts(tmp_path):
    answers = write_labelme(tmp_path)
    data = load_labelme(data_home=tmp_path)
    assert np.array_equal(data.answers.table(), answers)
    assert data.X.shape == (10, 512)
    assert data.X.dtype == np.float32
    assert (data.X_valid.shape, data.y_valid.shape) == ((5, 512), (5,))
    assert (data.X_test.shape, data.y_test.shape) == ((7, 512), (7,))
    assert np.array_equal(data.votes.sum(axis=1), (answers >= 0).sum(axis=1))
    assert np.array_equal(data.candidates, data.votes > 0)
    assert data.class_names[4] == "forest"
    X, candidates, y_true = load_labelme(
        rule="share:0.5", data_home=tmp_path, return_X_candidates_y=True
    )
    assert np.array_equal(X, data.X)
    assert np.array_equal(y_true, data.y_true)
    assert (candidates <= data.candidates).all()
    assert (
        candidates.sum()
        == as_candidates(data.votes, layout="counts", rule="share:0.5").matrix.sum()
        < data.candidates.sum()
    )


def test_labelme_files_that_are_wrong(tmp_path):
    write_labelme(tmp_path)
    folder = tmp_path / "labelme"
    train, test = folder / "LabelMe_VGG_avg_train.npy", folder / "LabelMe_VGG_avg_test.npy"
    swap(train, test)
    with pytest.raises(ValueError, match=r"train.npy' has 7 rows, but .* 10 labels.*swapped"):
        load_labelme(data_home=tmp_path)
    swap(train, test)
    answers = folder / "answers.txt"
    lines = answers.read_text().splitlines()
    for text, message in (
        ("\n".join(lines[:-1]), "answers.txt' has 9 rows, but there are 10"),
        ("\n".join([*lines[:-1], "9 " * 6]), "numbers outside -1 .. 7 in row 9"),
        ("\n".join([*lines[:-1], "1 2"]), "as a table of class numbers"),
        ("cat dog", "as a table of class numbers"),
    ):
        answers.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_labelme(data_home=tmp_path)
    answers.write_text("\n".join(lines))
    truncate(train)
    with pytest.raises(ValueError, match=r"train.npy' cannot be read.*truncated or damaged"):
        load_labelme(data_home=tmp_path)
    (folder / "answers.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"labelme/answers.txt'.*VGG"):
        load_labelme(data_home=tmp_path)


def write_cifar10n(home, truth, **changes):
    rng = np.random.default_rng(0)
    arrays = {
        f"random_label{i}": np.where(rng.random(len(truth)) < 0.7, truth, (truth + i) % 10)
        for i in (1, 2, 3)
    } | {"clean_label": truth}
    (home / "cifar-10n").mkdir(exist_ok=True)
    path = home / "cifar-10n" / "CIFAR-10N_train_labels.npz"
    np.savez(path, **{k: v for k, v in (arrays | changes).items() if v is not None})
    return path, arrays


def test_cifar10n_has_the_labels_of_three_people(tmp_path):
    truth, _ = write_cifar10(tmp_path)
    path, arrays = write_cifar10n(tmp_path, truth)
    data = load_cifar10n(data_home=tmp_path)
    said = np.stack([*arrays.values()][:3], axis=1)
    assert np.array_equal(data.votes, [np.bincount(row, minlength=10) for row in said])
    assert np.array_equal(data.answers.votes(), data.votes)
    assert (data.votes.sum(axis=1) == 3).all()
    assert np.array_equal(data.candidates, data.votes > 0)
    assert data.images.shape == (20, 3, 32, 32)
    assert data.filename == str(path)
    assert "CC BY-NC 4.0" in data.description
    assert "Krizhevsky" in data.description
    X, candidates, y_true = load_cifar10n(
        rule="share:0.5", data_home=tmp_path, return_X_candidates_y=True
    )
    assert X.shape == (20, 3072)
    assert candidates.sum() < data.candidates.sum()
    assert np.array_equal(y_true, truth)


def test_cifar10n_files_that_are_wrong(tmp_path):
    truth, _ = write_cifar10(tmp_path)
    for changes, message in (
        ({"clean_label": truth[::-1]}, "are not those of the images.*official order"),
        ({"random_label2": truth + 1}, "labels outside 0 .. 9"),
        ({"random_label2": truth[:5]}, "different lengths"),
        ({"random_label2": None}, "has no random_label2, but random_label1"),
        ({"random_label2": np.array([{}] * len(truth))}, "cannot be read"),
    ):
        path, _ = write_cifar10n(tmp_path, truth, **changes)
        with pytest.raises(ValueError, match=message):
            load_cifar10n(data_home=tmp_path)
    for spoil in (truncate, garble):
        path, _ = write_cifar10n(tmp_path, truth)
        spoil(path)
        with pytest.raises(ValueError, match=r"cannot be read.*get it again"):
            load_cifar10n(data_home=tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"CIFAR-10N_train_labels.npz'.*pickle"):
        load_cifar10n(data_home=tmp_path)


def test_cifar10h_has_the_votes_of_many(tmp_path):
    _, truth = write_cifar10(tmp_path)
    votes = np.random.default_rng(0).multinomial(51, np.full(10, 0.1), size=len(truth))
    (tmp_path / "cifar-10h").mkdir()
    path = tmp_path / "cifar-10h" / "cifar10h-counts.npy"
    np.save(path, votes)
    data = load_cifar10h(data_home=tmp_path)
    assert np.array_equal(data.votes, votes)
    assert np.array_equal(data.candidates, votes > 0)
    assert np.array_equal(data.y_true, truth)
    few = load_cifar10h(rule="votes:6", data_home=tmp_path, return_X_candidates_y=True)[1]
    assert np.array_equal(few, votes >= 6)
    np.save(path, votes[:3])
    with pytest.raises(ValueError, match=r"has shape \(3, 10\), not \(4, 10\)"):
        load_cifar10h(data_home=tmp_path)
    np.save(path, np.array([{}]))
    with pytest.raises(ValueError, match="truncated or damaged"):
        load_cifar10h(data_home=tmp_path)


# -- answers of named people, from their published layouts --------------------------------------


def write_csv(path, header, rows, delimiter=","):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [delimiter.join(map(str, line)) for line in (header, *rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_music(home):
    folder = home / "music_genre_classification"
    head = ["id", *(f"f{i}" for i in range(4)), "class"]
    gold = [["rock.1.wav", 0, 1, 2, 3.5, "rock"], ["jazz.2.wav", 1, 1, 2, 3, "jazz"]]
    write_csv(folder / "music_genre_gold.csv", head, gold)
    write_csv(folder / "music_genre_test.csv", head, [["pop.1.wav", 5, 5, 5, 5, "pop"]])
    said = [
        ("rock.1.wav", "w1", "rock"),
        ("jazz.2.wav", "w1", "jazz"),
        ("rock.1.wav", "w2", "pop"),
    ]
    lines = [[i, who, 0, 0, 0, 0, label] for i, who, label in said]
    write_csv(folder / "music_genre_mturk.csv", ["id", "annotator", *head[1:]], lines)
    return folder


def test_music_genre(tmp_path):
    write_music(tmp_path)
    data = load_music_genre(data_home=tmp_path)
    assert data.X.tolist() == [[0, 1, 2, 3.5], [1, 1, 2, 3]]
    assert data.class_names.tolist() == ["jazz", "pop", "rock"]
    assert data.answers.table().tolist() == [[2, 1], [0, -1]]
    assert data.answers.person_names.tolist() == ["w1", "w2"]
    assert data.y_true.tolist() == [2, 0]
    assert (data.X_test.tolist(), data.y_test.tolist()) == ([[5, 5, 5, 5]], [1])
    assert "Rodrigues" in data.description


def test_music_files_that_are_wrong(tmp_path):
    folder = write_music(tmp_path)
    gold = folder / "music_genre_gold.csv"
    text = gold.read_text()
    for spoiled, message in (
        (text.replace("class", "genre"), "has no column 'class'"),
        (text.replace("3.5,", ""), "line 2: 5 cells, but the header has 6"),
        (text.replace("3.5", "loud"), "as a table of numbers"),
        (text.replace("3.5,rock", "3.5,folk"), "has class 'folk' that nobody answered"),
        (text.splitlines()[0], "has no rows"),
        ("", "no header"),
    ):
        gold.write_text(spoiled)
        with pytest.raises(ValueError, match=message):
            load_music_genre(data_home=tmp_path)
    gold.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="as a table of text"):
        load_music_genre(data_home=tmp_path)
    gold.unlink()
    with pytest.raises(FileNotFoundError, match=r"music_genre_gold.csv'.*tar.gz"):
        load_music_genre(data_home=tmp_path)


def test_sentence_polarity(tmp_path):
    folder = tmp_path / "sentiment_polarity"
    head = ["id", "TOPIC0", "TOPIC1", "class"]
    gold = [[7, 0.5, 1, "neg"], [9, 0, 1, "pos"]]
    write_csv(folder / "polarity_gold_lsa_topics.csv", head, gold)
    write_csv(folder / "polarity_test_lsa_topics.csv", head, [[3, 0, 0, "pos"]])
    lines = [["A", 9, "good film", "pos"], ["B", 9, "good film", "neg"]]
    head = ["WorkerId", "Input.id", "Input.original_sentence", "Answer.sent"]
    write_csv(folder / "mturk_answers.csv", head, lines)
    data = load_sentence_polarity(data_home=tmp_path)
    assert data.answers.votes().tolist() == [[0, 0], [1, 1]]  # nobody answered the first
    assert data.y_true.tolist() == [0, 1]
    assert data.y_test.tolist() == [1]


def test_rte(tmp_path):
    head = ["!amt_annotation_ids", "!amt_worker_ids", "orig_id", "response", "gold"]
    lines = [[1, "A", 25, 1, 0], [2, "B", 25, 0, 0], [3, "A", 30, 1, 1]]
    write_csv(tmp_path / "rte" / "rte.standardized.tsv", head, lines, "\t")
    data = load_rte(data_home=tmp_path)
    assert data.X is None
    assert data.answers.table().tolist() == [[1, 0], [1, -1]]
    assert data.class_names.tolist() == ["0", "1"]
    assert data.y_true.tolist() == [0, 1]


def write_plcifar10(home, content):
    path = home / "plcifar10" / "plcifar10.pkl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(content))
    return path


def test_plcifar10_keeps_the_sets_that_people_named(tmp_path):
    write_cifar10(tmp_path)
    named = {i: [[i % 10], [i % 10, (i + 1) % 10], []] for i in range(20)}
    write_plcifar10(tmp_path, named)
    data = load_plcifar10(data_home=tmp_path)
    assert data.answers.person_names is None
    assert data.answers.sizes[:3].tolist() in ([1, 2, 2], [2, 2, 1])
    assert np.array_equal(data.votes[3, 3:5], [2, 1])
    assert np.array_equal(data.candidates, data.votes > 0)
    assert data.X.shape == (20, 3072)


def test_plcifar10_has_both_published_sets(tmp_path):
    write_cifar10(tmp_path)
    named = {i: [[i % 10, 0], [1, 2, 3], [4, 5, 6]] for i in range(20)}
    write_plcifar10(tmp_path, named)
    vaguest = load_plcifar10(rule="vaguest", data_home=tmp_path).candidates
    assert np.flatnonzero(vaguest[7]).tolist() == [1, 2, 3]
    assert np.flatnonzero(
        load_plcifar10(rule="aggregate", data_home=tmp_path).candidates[7]
    ).tolist() == [*range(8)]


class Harm:
    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Harm(), "asks for builtins.print, which is not executed"),
        ({0: [[Harm()]]}, "asks for builtins.print"),
        ({0: [[11]]}, "not a dictionary of 20 image numbers"),
        ({25: [[1]]}, "not a dictionary of 20 image numbers"),
        ({0: [1]}, "not a dictionary of 20 image numbers"),
        ([[[1]]], "not a dictionary of 20 image numbers"),
        ({}, "not a dictionary of 20 image numbers"),
    ],
)
def test_a_pickle_is_read_as_plain_data_only(content, message, tmp_path, capsys):
    write_cifar10(tmp_path)
    write_plcifar10(tmp_path, content)
    with pytest.raises(ValueError, match=message):
        load_plcifar10(data_home=tmp_path)
    assert capsys.readouterr().out == ""


def test_a_damaged_pickle_is_said(tmp_path):
    write_cifar10(tmp_path)
    path = write_plcifar10(tmp_path, {i: [[1]] for i in range(20)})
    for spoil in (truncate, garble, lambda p: p.write_bytes(b"")):
        spoil(path)
        with pytest.raises(ValueError, match=r"plcifar10.pkl'"):
            load_plcifar10(data_home=tmp_path)


# -- generated crowds -------------------------------------------------------------------------


def test_a_crowd_is_as_it_was_ordered():
    truth = np.arange(3000) % 4
    crowd = make_crowd(truth, n_people=50, n_answers=5, experts=0.1, spammers=0.2, random_state=0)
    answers = crowd.answers
    assert (answers.votes().sum(axis=1) == 5).all()
    assert [int((crowd.kind == kind).sum()) for kind in ("expert", "worker", "spammer")] == [
        5,
        35,
        10,
    ]
    assert crowd.accuracy[crowd.kind == "expert"].mean() == pytest.approx(0.95, abs=0.02)
    assert crowd.accuracy[crowd.kind == "worker"].mean() == pytest.approx(0.7, abs=0.06)
    assert crowd.accuracy[crowd.kind == "spammer"].mean() == pytest.approx(0.25, abs=0.05)
    again = make_crowd(truth, n_people=50, n_answers=5, experts=0.1, spammers=0.2, random_state=0)
    assert np.array_equal(again.answers.labels, answers.labels)


def test_errors_go_to_look_alikes_or_are_shared():
    truth = np.array(["cat", "dog", "cow", "bat"] * 500)
    answers = make_crowd(truth, confusion=1.0, random_state=0).answers
    assert answers.class_names.tolist() == ["bat", "cat", "cow", "dog"]
    given = answers.class_names[answers.labels]
    for name in answers.class_names:
        there = truth[answers.rows] == name
        assert len(set(given[there & (given != name)])) == 1
    shared = make_crowd(truth, accuracy=0.5, shared_errors=1.0, random_state=0).answers
    assert (shared.votes() > 0).sum(axis=1).max() == 2
    single = make_crowd(["cat"] * 5, random_state=0).answers
    assert single.votes().tolist() == [[3]] * 5


def test_many_people_are_drawn_without_a_table_of_all():
    answers = make_crowd(np.arange(3000) % 2, n_people=4000, n_answers=4, random_state=0).answers
    assert len(answers.rows) > 11900
    pairs = np.stack([answers.rows, answers.people])
    assert np.unique(pairs, axis=1).shape == pairs.shape
    assert (np.diff(answers.rows) >= 0).all()


def test_a_generator_makes_a_crowd_too():
    """It was documented, and refused."""
    one, two = (make_crowd([0, 1] * 9, random_state=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one.answers.labels, two.answers.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy": 1.2}, "accuracy=1.2 is not a share"),
        ({"experts": 0.6, "spammers": 0.6}, "they must be at most 1"),
        ({"n_people": 2}, "n_answers=3 must be from 1 to n_people=2"),
        ({"y": ["a", None, "b"]}, "y has no label in row 1"),  # it was taken for the last class
        ({"y": [["a", "b"]]}, "give one true label per row"),
    ],
)
def test_crowds_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        make_crowd(**{"y": [0, 1]} | options)

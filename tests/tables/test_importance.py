"""What columns contribute, by output for rows that were not learned from."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from appellate.tables.encoding import column_places, contributions, make_encoder


def made(n=600, seed=0):
    r = np.random.default_rng(seed)
    truth = r.integers(3, size=n)
    rows = r.normal(size=(n, 4))
    rows[:, 0] += 3 * (truth == 1)
    rows[:, 1] += 3 * (truth == 2)
    said = np.eye(3)[truth] + (r.random((n, 3)) < 0.2)
    return rows, said, truth


def fitting(rows, said, seen):
    def fit(places):
        seen.append(places)
        model = LogisticRegression().fit(rows[places], said[places].argmax(axis=1))
        return model.predict_proba

    return fit


COLUMNS = {"useful": np.array([0, 1]), "noise": np.array([2]), "more noise": np.array([3])}


def test_useful_columns_come_first_and_noise_is_worth_nothing():
    rows, said, _ = made()
    seen = []
    found = contributions(fitting(rows, said, seen), rows, said > 0, COLUMNS)
    assert next(iter(found)) == "useful"
    assert found["useful"] > 0.2
    assert abs(found["noise"]) < 0.02 > abs(found["more noise"])


def test_it_is_honest_and_sampled():
    rows, said, _ = made(3000)
    seen = []
    contributions(fitting(rows, said, seen), rows, said > 0, COLUMNS)
    one, other = seen
    assert len(one) == len(other) == 400
    assert not {*one} & {*other}


def test_votes_weigh():
    rows, said, truth = made()
    votes = said + 3 * np.eye(3)[truth]
    found = contributions(fitting(rows, votes, []), rows, votes, COLUMNS)
    assert found["useful"] > 0.2


def test_a_model_that_memorises_gains_nothing_from_noise():
    r = np.random.default_rng(1)
    rows, said = r.normal(size=(300, 1)), np.eye(2)[r.integers(2, size=300)]

    def fit(places):
        memory = dict(zip(rows[places, 0], said[places], strict=True))
        return lambda some: np.array([memory.get(row, (0.5, 0.5)) for row in some[:, 0]])

    assert contributions(fit, rows, said, {"noise": np.array([0])}) == {"noise": 0.0}


def test_too_little_or_too_much():
    rows, said, _ = made(3)
    assert contributions(fitting(rows, said, []), rows, said, COLUMNS) == {}
    rows, said, _ = made(50)
    many = {f"{i}": np.array([0]) for i in range(301)}
    assert contributions(fitting(rows, said, []), rows, said, many) == {}
    everything = np.ones_like(said)  # nothing was said
    assert contributions(fitting(rows, said, []), rows, everything, COLUMNS) == {}


def test_shuffling_numbers_is_shuffling_the_column():
    """The encoder works column by column, so places in its output stand for columns."""
    r = np.random.default_rng(2)
    n = 80
    words = ["red bird", "blue bird", "a fish", "two fish"]
    frame = pd.DataFrame(
        {
            "x": r.normal(size=n),
            "c": r.choice(["a", "b", "c"], n),
            "day": pd.date_range("2024-01-01", periods=n, freq="31h"),
            "prose": r.choice(words, n),
            "v0": r.normal(size=n),
            "v1": r.normal(size=n),
        }
    )
    encoder = make_encoder(frame, text=["prose"], vectors={"v": ["v0", "v1"]}).fit(frame)
    rows = encoder.transform(frame)
    order = r.permutation(n)
    places = column_places(encoder)
    assert sorted(np.concatenate(list(places.values())).tolist()) == list(range(rows.shape[1]))
    for name, numbers in places.items():
        shuffled = frame.copy()
        for column in ["v0", "v1"] if name == "v" else [name]:
            shuffled[column] = frame[column].to_numpy()[order]
        expected = rows.copy()
        expected[:, numbers] = rows[order][:, numbers]
        np.testing.assert_allclose(encoder.transform(shuffled), expected, atol=1e-5)

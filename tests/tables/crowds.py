"""Tables as people bring them, made small; each with what its columns are."""

from __future__ import annotations

import numpy as np

NAMES = np.array(["First", "Second", "Third"])


def rng():
    return np.random.default_rng(0)


def make_sets(n=60):
    """Candidate sets and the truth."""
    r = rng()
    truth = r.integers(3, size=n)
    pairs = zip(truth, r.integers(3, size=n), strict=True)
    return ["|".join(dict.fromkeys([NAMES[a], NAMES[b]])) for a, b in pairs], NAMES[truth]


def make_answers(items=30, each=4, people=12, labels=4):
    """Item, person and answer of people who are right in four of five cases."""
    r = rng()
    item = np.repeat(np.arange(items), each)
    person = np.concatenate([r.choice(people, each, replace=False) for _ in range(items)])
    right = np.repeat(r.integers(labels, size=items), each)
    answer = np.where(r.random(len(item)) < 0.8, right, r.integers(labels, size=len(item)))
    return item, person, answer


def make_tweets(n):
    return [f"this is tweet {i}; it is about, well, {i * 7 % 13} things" for i in range(n)]


def titanic():
    r = rng()
    sets, truth = make_sets()
    return {
        "PassengerId": np.arange(1, 61),
        "maybe": sets,
        "class": truth,
        "age": np.where(r.random(60) < 0.2, np.nan, r.normal(30, 9, 60)),
        "sex": r.choice(["male", "female"], 60),
        "alone": r.random(60) < 0.5,
        "embarked": r.choice(["S", "C", "Q"], 60),
    }


def dog_answer():
    item, person, answer = make_answers()
    return {"question": item, "worker": person, "answer": answer}


def bottles():
    item, person, answer = make_answers()
    names = np.array(["red", "white", "pink", "none"])
    return {"bottle": np.char.add("B", item.astype(str)), "worker": person, "wine": names[answer]}


def volunteers():
    item, person, answer = make_answers()
    return {
        "photo": np.char.add("IMG_", item.astype(str)),
        "helper": np.char.add("h", person.astype(str)),
        "species": np.array(["wren", "robin", "finch", "crow"])[answer],
    }


def mechanical_turk():
    item, person, answer = make_answers()
    return {
        "HITId": np.char.add("3K", item.astype(str)),
        "AssignmentId": np.char.add("A9", np.arange(len(item)).astype(str)),
        "WorkerId": np.char.add("W", person.astype(str)),
        "Answer.category": np.array(["cat", "dog", "cow", "owl"])[answer],
    }


def kern_long():
    item, person, answer = make_answers(labels=2)
    return {
        "tweet.id": item + 10**14,
        "tweet": np.array(make_tweets(30))[item],
        "hate.speech": np.array(["no", "yes"])[answer],
        "id": person,
    }


def wide(name=str):
    item, person, answer = make_answers()
    columns = {f"w{j + 1}": [None] * 30 for j in range(12)}
    for i, p, a in zip(item, person, answer, strict=True):
        columns[f"w{p + 1}"][i] = name(a)
    return columns | {"x": rng().normal(size=30)}


def dog_wide():
    return wide(lambda a: ["afghan", "beagle", "collie", "dane"][a])


def dog_wide_numbers():
    return wide(int)


def dog_wide_marks():
    columns = wide(int)
    return {k: v if k == "x" else [-1 if c is None else c for c in v] for k, v in columns.items()}


def three_people():
    r = rng()
    truth = r.integers(3, size=40)
    columns = {
        person: [NAMES[t if r.random() < 0.7 else r.integers(3)] for t in truth]
        for person in ("ann", "ben", "cleo")
    }
    return columns | {"x": r.normal(size=40), "truth": NAMES[truth]}


def tweet_counts():
    r = rng()
    votes = np.stack([r.multinomial(k, [0.2, 0.6, 0.2]) for k in r.integers(3, 7, 50)])
    return {
        "": np.arange(50) + 7,
        "count": votes.sum(axis=1),
        "hate_speech": votes[:, 0],
        "offensive_language": votes[:, 1],
        "neither": votes[:, 2],
        "class": votes.argmax(axis=1),
        "tweet": make_tweets(50),
    }


def votes():
    r = rng()
    p = np.full((80, 4), 0.1) + 0.6 * np.eye(4)[r.integers(4, size=80)]
    counts = np.stack(
        [r.multinomial(k, q) for k, q in zip(r.integers(47, 64, 80), p, strict=True)]
    )
    columns = dict(zip(("cat", "dog", "cow", "owl"), counts.T, strict=True))
    return {"age": r.integers(0, 40, 80), **columns, "x": r.normal(size=80)}


def tweets():
    sets, truth = make_sets()
    ids = rng().choice(10**12, 60, replace=False) + 10**12
    return {"tweet_id": ids, "tweet": make_tweets(60), "votes": sets, "truth": truth}


def feature_called_y():
    return {
        "id": [f"r{i}" for i in range(6)],
        "x": [1.1, 2.2, 1.3, 2.4, 3.5, 3.6],
        "y": [0.91, 0.12, 0.33, 0.64, 0.25, 0.76],
        "cands": ["a|b", "b|c", "a", "b|a", "c", "c|a"],
    }


def prodigy():
    r = rng()
    return [
        {
            "text": f"some words are written here {i}",
            "_input_hash": int(r.integers(-(2**31), 2**31)),
            "_task_hash": int(r.integers(-(2**31), 2**31)),
            "meta": {"source": "web"},
            "accept": ["a", "b"] if i % 2 else ["b"],
            "answer": "accept",
        }
        for i in range(30)
    ]


def pictures():
    r = rng()
    return {
        "photo": [f"img/{i}.png" for i in range(60)],
        "labels": make_sets()[0],
        "source": [f"in/a{i}.txt" for i in range(60)],
        "md5": [f"{r.integers(2**60):032x}" for i in range(60)],
        "code": [f"Q{r.integers(10**6)}x" for i in range(60)],
        "serial": np.arange(100, 160)[::-1],
        "zone": [f"Zone {r.integers(20)}" for i in range(60)],
    }


def taxis():
    r = rng()
    return {
        "pickup": [f"2019-03-{i % 28 + 1:02d} 10:{i % 60:02d}:00" for i in range(300)],
        "zone": [f"Zone {r.integers(88)}" for _ in range(300)],
        "fare": r.random(300),
        "payment": ["cash|card" if i % 3 else "cash" for i in range(300)],
        "kind": ["x"] * 300,
    }


def earlier_run():
    sets, truth = make_sets()
    r = rng()
    return {
        "x": r.normal(size=60),
        "maybe": sets,
        "label": truth,
        "confidence": r.random(60),
        "outcome": r.choice(["upheld", "overturned"], 60),
    }


#: What every column is: by role, and where nothing else is said, set aside.
EXPECTED = {
    titanic: {
        "candidates": ("maybe",),
        "truth": "class",
        "id": "PassengerId",
        "features": ("age", "sex", "alone", "embarked"),
    },
    dog_answer: {"long": ("question", "answer", "worker")},
    bottles: {"long": ("bottle", "wine", "worker")},
    volunteers: {"long": ("photo", "species", "helper")},
    mechanical_turk: {
        "long": ("HITId", "Answer.category", "WorkerId"),
        "ignore": ("AssignmentId",),
    },
    kern_long: {"long": ("tweet.id", "hate.speech", "id"), "text": ("tweet",)},
    dog_wide: {"annotators": tuple(f"w{i}" for i in range(1, 13)), "features": ("x",)},
    dog_wide_numbers: {"annotators": tuple(f"w{i}" for i in range(1, 13)), "features": ("x",)},
    dog_wide_marks: {
        "annotators": tuple(f"w{i}" for i in range(1, 13)),
        "features": ("x",),
        "missing": ("-1",),
    },
    three_people: {
        "annotators": ("ann", "ben", "cleo"),
        "truth": "truth",
        "features": ("x",),
    },
    tweet_counts: {
        "counts": ("hate_speech", "offensive_language", "neither"),
        "text": ("tweet",),
        "ignore": ("", "count", "class"),
    },
    votes: {"counts": ("cat", "dog", "cow", "owl"), "features": ("age", "x")},
    tweets: {
        "candidates": ("votes",),
        "truth": "truth",
        "id": "tweet_id",
        "text": ("tweet",),
    },
    feature_called_y: {"candidates": ("cands",), "id": "id", "features": ("x", "y")},
    prodigy: {
        "candidates": ("accept",),
        "text": ("text",),
        "ignore": ("_input_hash", "_task_hash", "meta", "answer"),
    },
    pictures: {
        "candidates": ("labels",),
        "id": "source",
        "image": "photo",
        "features": ("zone",),
        "ignore": ("md5", "code", "serial"),
    },
    taxis: {
        "candidates": ("payment",),
        "features": ("pickup", "zone", "fare"),
        "ignore": ("kind",),
    },
    earlier_run: {
        "candidates": ("maybe",),
        "features": ("x",),
        "ignore": ("label", "confidence", "outcome"),
    },
}

#: Tables whose titles do not say how labels are laid out: `check` proposes, `rectify` asks.
PROPOSED = {volunteers, kern_long, dog_wide, dog_wide_numbers, dog_wide_marks, three_people, votes}

"""Files that nobody should have: a message each, or rows that come back cell by cell."""

from __future__ import annotations

import json
import random

import pytest

from appellate._text import defuse
from appellate.tables import (
    TableError,
    diagnose,
    features,
    find_roles,
    read_labels,
    read_table,
    write_table,
)

PIECES = [
    *("a", "b", "|", ",", ";", "\t", "\n", "\r\n", "\r", '"', '""', "'", "=", "-", "1", "2.0"),
    *("1,5", "0_1", "NA", "none", "é", "e\u0301", "\u202e", "\x1b[0m", "[", "]", "{", "'a'"),
    *("inf", "nan", "1e400", "2024-01-05", "05.01.2024", "#N/A", " ", "cat|dog", "cat;dog"),
    *("truth", "id", "worker", "item", "label", "\0", "x" * 300, "9" * 400, "img/1.png", "鳥"),
]
VALUES = [None, 1, 2.5, True, "a|b", "b", ["a", "b"], {"k": [1]}, 10**400, -1, "\ud800", "x y z"]


def make_csv(rnd):
    def cell():
        text = "".join(rnd.choices(PIECES, k=rnd.choice([0, 1, 1, 1, 2, 3])))
        return '"' + text.replace('"', '""') + '"' if rnd.random() < 0.6 else text

    mark, width = rnd.choice(",;\t|"), rnd.randint(1, 5)
    rows = [mark.join(cell() for _ in range(width)) for _ in range(rnd.randint(0, 15))]
    encoding = rnd.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16"])
    content = rnd.choice(["\n", "\r\n"]).join(rows).encode(encoding, errors="replace")
    return "csv", content if rnd.random() < 0.2 else content.replace(b"\0", b"")


def make_json(rnd):
    records = [
        {rnd.choice(PIECES): rnd.choice(VALUES[: rnd.choice([8, 10, 12])]) for _ in range(4)}
        for _ in range(rnd.randint(0, 12))
    ]
    lines = rnd.random() < 0.5
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    cut = rnd.randint(0, len(text)) if rnd.random() < 0.2 else len(text)
    return ("jsonl" if lines else "json"), text[:cut].encode()


def make_bytes(rnd):
    start = rnd.choice([b"", b"PAR1", b"PK\x03\x04", b"ARROW1", b"\xff\xff\xff\xff", b"[", b"{"])
    return rnd.choice(["csv", "dat", "tsv"]), start + rnd.randbytes(rnd.randint(0, 200))


@pytest.mark.parametrize(("make", "cases"), [(make_csv, 150), (make_json, 75), (make_bytes, 75)])
def test_hostile_files(tmp_path, make, cases):
    rnd = random.Random(0)
    read, said = 0, []
    for number in range(cases):
        ending, content = make(rnd)
        file = tmp_path / f"{number}.{ending}"
        file.write_bytes(content)
        try:
            table = read_table(file)
            read += 1
            try:
                roles = find_roles(table)
            except TableError:
                roles = find_roles(table, candidates=table.names[-1:])
            read_labels(table, roles).problems()
            shown = str(diagnose(table, roles))
            assert "\x1b" not in shown
            assert "\r" not in shown
            features(table, roles)
        except TableError as error:
            said.append(str(error))
            continue
        out = write_table(table, tmp_path / "out.csv", added={"label": ["z"] * len(table)})
        back = read_table(out, delimiter=table.delimiter)
        assert len(back) == len(table)
        if table.kind == "csv":
            for name in table.names:
                texts = table.data.column(name).to_pylist()
                written = [None if text is None else defuse(text) for text in texts]
                assert back.data.column(name).to_pylist() == written
    assert read or make is make_bytes
    assert [m for m in said if not m.endswith((".", "?")) or "\x1b" in m] == []

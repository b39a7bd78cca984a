"""Hostile input from a seed: tables, model folders, files of decisions, requests to a server."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
import shutil
import unicodedata
import zipfile
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tests.tables.test_hostile import PIECES, make_bytes, make_csv, make_json
from tests.test_files import make_special

MARKS = ",;\t|"
LABELS = [
    *("cat", "dog", "Doe, Jane", "a b c", "é", "e\u0301t", "żółw", "кот", "鳥", "🦉", "1", "2.0"),
    *("3e2", "0_1", "NA", "none", "nan", "-1", "=cmd()", "@SUM(A1)", "+x", "-x", "'=x", "'tis"),
    *("x;=1+1;y", "a\t=b", "x,@SUM(A1)"),
    *("\x1b]0;t\x07", "\x1b[31mred", "\u202eevil", "a\rb", "a\nb", "\rx", 'q"q', "a;b", "x\ty"),
    *("<script>alert(1)</script>", "{{ 7*7 }}", "</script>", "\u2028l", "\x85n", "true", "0"),
    *(
        "x" * 300,
        "2024-01-05",
        "None",
        "label",
        "\ufeffbom",
        "\xa0",
        "$a^$",
        "%s",
        "\\",
        "nul.txt",
    ),
]
NUMBERS = [
    *("", "NA", "nan", "inf", "-inf", "1e30", "1e160", "1e300", "1e308", "1e400", "-1e300"),
    *(
        "1e-320",
        "-0",
        "1,5",
        "1_000",
        "0x10",
        "\uff11\uff12",
        "9" * 400,
        "1.",
        ".5",
        "+2",
        " 3 ",
        "1e",
        "²",
    ),
    *("1.7976931348623157e308", "4.9e-324", "TRUE", "1 000", "12:30", "#N/A", "9007199254740993"),
]
TITLES = ["id", "x", "y", "note", "c", "names", "truth", "label", "confidence", "=t", "a b", "é"]
TITLES += ["\x1b[0m", "x,y", "x*", "[a]", "a\nb", "-x", "--out", '"', "'", "0", "None", "鳥" * 30]


@dataclass
class Table:
    """A file, how it is read, and what must come back of it."""

    name: str
    content: bytes
    titles: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)  # nothing: whatever comes back
    sets: list[set[object]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    embeddings: bytes | None = None
    mark: str = ","  # between the cells of what is written


def same(text):
    """What a label is, however it is written: composed, without spaces around it, a number."""
    text = unicodedata.normalize("NFC", text).rstrip("\0").strip()
    plain = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    return float(text) if plain else text


def words(rnd, most=3):
    return "".join(rnd.choices(PIECES, k=rnd.choice([0, 1, 1, 2, most]))).replace("\0", "")


def distinct(rnd, pool, n):
    """Choose texts that differ as labels and are not empty."""
    found = {}
    for text in rnd.sample(pool, len(pool)):
        if same(text) != "" and str(same(text)).lower() not in found:
            found[str(same(text)).lower()] = text
        if len(found) == n:
            break
    return list(found.values())


def make_table(rnd):
    """Make a table in one of many forms; in one of four its bytes are damaged."""
    kind = rnd.choices(["csv", "json", "parquet", "wild", "excel"], [58, 12, 8, 17, 5])[0]
    if kind == "wild":
        ending, content = rnd.choice([make_csv, make_csv, make_json, make_bytes])(rnd)
        return Table(f"t.{ending}", content, options=wild_options(rnd))
    table = make_grid(rnd)
    {"csv": as_csv, "json": as_json, "parquet": as_parquet, "excel": as_excel}[kind](rnd, table)
    if rnd.random() < 0.1:
        table.embeddings = make_npy(rnd, len(table.rows))
    if rnd.random() < 0.25:
        table.content, table.rows = damage(rnd, table.content), []
    return table


def wild_options(rnd):
    options = []
    for name in ("candidates", "annotators", "id", "truth", "features", "separator", "missing"):
        if rnd.random() < 0.15:
            options.append(f"--{name}={rnd.choice(PIECES[:-8])}".replace("\0", ""))
    return options


def make_grid(rnd):
    """Make cells: a name, one or two numbers, a text and a set of labels a row."""
    n = rnd.randint(4, 12)
    labels = [text for text in LABELS if "|" not in text and text[0] not in "[{("]
    labels = distinct(rnd, labels, rnd.randint(2, 4))
    plain = rnd.random() < 0.7
    titles = distinct(rnd, TITLES, 5) if rnd.random() < 0.4 else ["id", "x", "y", "note", "c"]
    names = distinct(rnd, [words(rnd) for _ in range(60)], n) if rnd.random() < 0.6 else []
    names += [f"r{i}" for i in range(len(names), n)]
    table = Table("", b"", titles)
    for i in range(n):
        inside = rnd.sample(labels, rnd.randint(1, max(1, len(labels) - 1)))
        inside = inside if i > 1 else [labels[i]]
        numbers = [f"{rnd.gauss(3 * labels.index(inside[0]), 1):.3f}" for _ in range(2)]
        if not plain and rnd.random() < 0.3:
            numbers[rnd.randint(0, 1)] = rnd.choice(NUMBERS)
        table.rows.append([names[i], *numbers, words(rnd), "|".join(inside)])
        table.sets.append({same(label) for label in inside})
    if rnd.random() < 0.3:  # rows that are alike
        for row in table.rows[1:]:
            row[1:3] = table.rows[0][1:3] if rnd.random() < 0.8 else row[1:3]
    name, *_, sets = titles
    table.options = [f"--id={name}", f"--candidates={sets}", "--separator=|"]
    if rnd.random() < 0.5:
        table.options.append(f"--features={titles[1]}")
    return table


def as_csv(rnd, table):
    """Write cells as CSV with some delimiter, quoting, line end and encoding."""
    mark, always = rnd.choice(MARKS), rnd.random() < 0.2
    table.mark = mark
    cells = [cell for row in [table.titles, *table.rows] for cell in row]
    ends = ["\n", "\r\n"] if any("\n" in cell for cell in cells) else ["\n", "\r\n", "\r"]
    end = rnd.choice(ends)

    def quoted(cell):
        needed = re.search(r'[",;\t|\r\n]', cell) or cell != cell.strip() or not cell
        if needed or always or rnd.random() < 0.1:
            return '"' + cell.replace('"', '""') + '"'
        return cell

    lines = [mark.join(map(quoted, row)) for row in [table.titles, *table.rows]]
    if rnd.random() < 0.2:
        lines.insert(rnd.randint(1, len(lines)), "")
    text = end.join(lines) + rnd.choice([end, "", end * 3])
    encoding = rnd.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-16-le"])
    try:
        table.content = text.encode(encoding)
    except UnicodeEncodeError:
        encoding, table.content = "utf-8", text.encode()
    if encoding in ("cp1252", "utf-16-le") or rnd.random() < 0.1:
        table.options.append(f"--encoding={encoding}")
    if text.startswith("\ufeff"):  # of which a reader takes one away
        table.rows = []
    table.name = rnd.choice(["t.csv", "t.txt", "t.dat", "t", "tä b.csv"])


def as_json(rnd, table):
    records = [dict(zip(table.titles, row, strict=True)) for row in table.rows]
    for record in records:
        x = record[table.titles[1]]
        record[table.titles[1]] = float(x) if isinstance(same(x), float) else x
        if rnd.random() < 0.3:
            record[table.titles[-1]] = record[table.titles[-1]].split("|")
    if rnd.random() < 0.15:
        odd = rnd.choice([10**400, "\ud800", {"a": {"b": []}}, [[1]], True, 10**20, -(10**19)])
        rnd.choice(records)[rnd.choice(table.titles)] = odd
        table.rows = []
    ascii_ = table.rows == [] or rnd.random() < 0.5
    if rnd.random() < 0.5:
        text = "\n".join(json.dumps(r, ensure_ascii=ascii_) for r in records)
        table.name = "t.jsonl"
    else:
        text, table.name = json.dumps(records, ensure_ascii=ascii_), "t.json"
    table.content = text.encode()


def as_parquet(rnd, table):
    columns = {t: list(column) for t, column in zip(table.titles, zip(*table.rows, strict=True),
                                                     strict=True)}  # fmt: skip
    x = [same(cell) for cell in columns[table.titles[1]]]
    if all(isinstance(value, float) for value in x):
        columns[table.titles[1]] = x
    data = pa.table(columns)
    if rnd.random() < 0.15:  # letters that are none
        bad = pa.array([b"\xff\xfe"] * len(data)).view(pa.string())
        data, table.rows = data.set_column(3, table.titles[3], bad), []
    stream = io.BytesIO()
    pyarrow.parquet.write_table(data, stream)
    table.name, table.content = "t.parquet", stream.getvalue()


def as_excel(rnd, table):
    openpyxl = __import__("openpyxl")
    book = openpyxl.Workbook()
    for row in [table.titles, *table.rows]:
        book.active.append([re.sub(r"[\x00-\x1f]", " ", cell)[:999] for cell in row])
    odd = rnd.choice(["", "", "=1+1", "#N/A", "far", "merged", "hidden"])
    match odd:
        case "far":
            book.active[rnd.choice(["XFD1048576", "XFD2", "A1048576", "ZZ300000"])] = "stray"
        case "merged":
            book.active.merge_cells("B2:D4")
        case "hidden":
            book.create_sheet("seen").append(["x"])
            book.active.sheet_state, book.active = "hidden", 1
        case _ if odd:
            book.active[f"{rnd.choice('ABCDE')}{rnd.randint(1, 5)}"] = odd
    stream = io.BytesIO()
    book.save(stream)
    table.name, table.content = "t.xlsx", stream.getvalue()
    table.rows = []  # a formula is no text there


ALIKE = [
    *(
        "cat",
        " cat",
        "cat ",
        "Cat",
        "CAT",
        "\xa0cat",
        "\u200bcat",
        "\u00e9t",
        "e\u0301t",
        "\ufb01sh",
    ),
    *("1", "1.0", "01", "1e0", "+1", "-0", "0", "0.50", ".5", "1,5", "1_0", "1e400", "9" * 30),
    *("nan", "NaN", "None", "NA", "null", "?", "-1", "true", "TRUE", "[a]", "['x']", "(a)", "{b}"),
    *(
        "Doe, Jane",
        "dress, long",
        "a;b",
        "a/b",
        "a or b",
        "a & b",
        "x|y",
        "[1, 2]",
        '["q"]',
        "\\n",
    ),
    *(
        "'a",
        "''=x",
        '"a"',
        'a "b"',
        "'",
        "=1",
        "'=1",
        "l" * 1001,
        "a\nb",
        "a\tb",
        "\u2028",
        "\x85n",
    ),
]


def make_cells(rnd):
    """Make a table of candidate sets whose labels are alike, and what each row's cell holds.

    A cell is a text, or the list that a file of columns has.
    """
    n = rnd.randint(4, 14)
    pool = [*ALIKE, *LABELS] if rnd.random() < 0.7 else [*ALIKE[:24], "cat", "dog"]
    costs = (
        ["--cost=absolute", "--cost=within:1", "--cost=ordinal:2"] if rnd.random() < 0.2 else []
    )
    pool = ["0", "1", "2.0", "5", "9", "20"] if costs else pool
    labels = rnd.sample(pool, rnd.randint(2, 5))
    mark = rnd.choice(["|", "|", ";", ",", "/", " "])
    form = rnd.choice(["text", "text", "text", "python", "json", "numpy", "list"])
    cells = []
    for i in range(n):
        own = rnd.sample(labels, rnd.randint(1, len(labels)))
        own = own if i > 1 else [labels[i]]
        if rnd.random() < 0.15:
            own += rnd.choices([own[0], "", " "], k=1)
        gap = rnd.choice(["", "", " "])
        match form:
            case "python":
                cells.append(str(own) if rnd.random() < 0.9 else str(tuple(own)))
            case "json":
                cells.append(json.dumps(own, ensure_ascii=rnd.random() < 0.5))
            case "numpy":
                cells.append(str(np.array(own)))
            case "list":
                cells.append(own)
            case _:
                cells.append(f"{gap}{mark}{gap}".join(own))
    names = [f"r{i}" for i in range(n)]
    match rnd.random():
        case p if p < 0.05:
            names[1] = names[0]
        case p if p < 0.1:
            names[:2] = ["1", "1.0"]
        case p if p < 0.15:
            names[1] = rnd.choice(["", " r0", "R0", "e\u0301", "=r1", "nan"])
    extra = rnd.choice(["x", "x", "label", "outcome", "confidence", "truth", "c2"])
    table = Table("", b"", ["id", extra, "g", "c"])
    table.rows = [
        [names[i], f"{rnd.gauss(i % 3, 0.3):.2f}", f"g{i // 3}", cells[i]] for i in range(n)
    ]
    table.options = ["--candidates=c", "--id=id"]
    if form == "text" and rnd.random() < 0.6:
        table.options.append(f"--separator={mark}")
    table.options += rnd.sample(costs, 1) if costs else []
    others = ["--groups=g", "--missing=?", "--missing=1.0", f"--truth={extra}"]
    table.options += [each for each in others if rnd.random() < 0.07]
    table.options += ["--features=" + extra] if rnd.random() < 0.5 else []
    if form == "list":
        _write_lists(rnd, table)
    else:
        as_csv(rnd, table)
    return table


def _write_lists(rnd, table):
    """Write a table whose sets are lists, as JSON lines or Parquet."""
    columns = dict(zip(table.titles, map(list, zip(*table.rows, strict=True)), strict=True))
    if rnd.random() < 0.5:
        records = [dict(zip(table.titles, row, strict=True)) for row in table.rows]
        table.name = "t.jsonl"
        table.content = "\n".join(map(json.dumps, records)).encode()
        return
    if rnd.random() < 0.3:  # numbers are labels too
        columns["c"] = [[float(len(label)) for label in cell] for cell in columns["c"]]
        for row, cell in zip(table.rows, columns["c"], strict=True):
            row[-1] = list(map(str, cell))
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), stream)
    table.name, table.content = "t.parquet", stream.getvalue()


def make_review(rnd, table):
    """Make a file of decisions about rows of a table of cells, and what it decides."""
    decided, lines = {}, [["id", "decision", "label"]]
    words_ = [label for row in table.rows for label in re.split(r"[|;,]", str(row[-1]))]
    for row in rnd.sample(table.rows, 2):
        kind = rnd.choice(["accept", "other", "none", "none", "clear"])
        label = rnd.choice([*words_, "", "new label"])
        lines.append([row[0], kind, label])
        decided[row[0]] = kind, label
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(lines)
    return stream.getvalue().encode(), decided


def make_npy(rnd, n):
    """Make embeddings, whole or damaged, in .npy or .npz."""
    stream = io.BytesIO()
    X = np.random.default_rng(rnd.randrange(99)).normal(size=(n, 2))
    X *= rnd.choice([1, 1, 1, 1e160, 1e300, 0, np.inf])
    rnd.choice([np.save, np.save, lambda s, X: np.savez_compressed(s, X=X)])(stream, X)
    return stream.getvalue() if rnd.random() < 0.4 else damage(rnd, stream.getvalue())


def damage(rnd, content):
    """Change, cut, drop or repeat some bytes."""
    content = bytearray(content)
    for _ in range(rnd.choice([1, 1, 2, 5])):
        at = rnd.randint(0, len(content))
        to = min(len(content), at + rnd.choice([1, 1, 4, 40]))
        match rnd.choice(["change", "change", "cut", "drop", "repeat", "insert"]):
            case "change":
                content[at:to] = rnd.randbytes(to - at)
            case "cut" if rnd.random() < 0.3:
                del content[at:]
            case "drop":
                del content[at:to]
            case "repeat":
                content[at:at] = content[at:to]
            case _:
                content[at:at] = rnd.choice([b'"', b"\r", b"\n", b"\0", b",", b"\xff", b"|", b"'"])
    return bytes(content)


def make_columns(rnd, kind):
    """Make a small file of typed columns: an Arrow stream or file, or Parquet."""
    n = 12
    columns = {
        "id": [f"r{i}" for i in range(n)],
        "x": [i / 2 for i in range(n)],
        "names": ["cat|dog", "dog", "cat"] * (n // 3),
        "site": pa.array(["u", "v", None] * (n // 3)).dictionary_encode(),
        "list": [["a"], ["b", "c"], None] * (n // 3),
        "view": pa.array(["a" * 20, "b", None] * (n // 3), pa.string_view()),
        "day": pa.array([0, 1, None] * (n // 3), pa.timestamp("us")),
        "noon": pa.array([0, 1, None] * (n // 3), pa.timestamp("s", "Europe/Paris")),
        "hours": pa.array([0, 1, None] * (n // 3), pa.duration("s")),
    }
    table, sink = pa.table(columns), io.BytesIO()
    if kind == "parquet":
        how = rnd.choice(["NONE", "NONE", "SNAPPY", "ZSTD"])
        pyarrow.parquet.write_table(
            table, sink, compression=how, row_group_size=rnd.choice([n, 7])
        )
        return sink.getvalue()
    options = pa.ipc.IpcWriteOptions(compression=rnd.choice([None, None, "lz4"]))
    writer = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with writer(sink, table.schema, options=options) as stream:
        stream.write_table(table, max_chunksize=rnd.choice([n, 7]))
    return sink.getvalue()


def make_arrow(rnd, kind):
    """Change a byte, or a few, of a small Arrow stream or file."""
    content = bytearray(make_columns(rnd, kind))
    for _ in range(rnd.choice([1, 1, 1, 3])):
        content[rnd.randrange(len(content))] = rnd.choice([0, 127, 255, rnd.randrange(256)])
    return bytes(content)


def change_byte(rnd, content):
    """Give one byte another value."""
    place, content = rnd.randrange(len(content)), bytearray(content)
    content[place] = rnd.choice([each for each in range(256) if each != content[place]])
    return bytes(content)


# -- model folders -------------------------------------------------------------------


def make_model(rnd, folder):
    """Spoil a whole model in a folder: bytes, description, or what its schema says."""
    model, meta = folder / "model.skops", folder / "meta.json"
    how = rnd.choice(
        ["bytes", "schema", "schema", "schema", "members", "meta", "meta bytes", "special"]
    )
    if how == "special":
        names = ["meta.json", "model.skops", ".appellate-commit", ".appellate-commit/.plan.json"]
        spoil_member(rnd, folder, names)
        return
    if how == "meta bytes":
        meta.write_bytes(damage(rnd, meta.read_bytes()))
        return
    document = json.loads(meta.read_bytes())
    if how == "meta":
        change_json(rnd, document)
    elif how == "bytes":
        model.write_bytes(damage(rnd, model.read_bytes()))
    else:
        change_members(rnd, model, how)
    if how != "meta" and rnd.random() < 0.95:  # a forger would do so
        document["sha256"] = hashlib.sha256(model.read_bytes()).hexdigest()
    meta.write_text(json.dumps(document))


def change_members(rnd, model, how):
    with zipfile.ZipFile(model) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    if how == "members":
        name = rnd.choice(list(members))
        members[name] = damage(rnd, members[name])
    else:
        schema = json.loads(members["schema.json"])
        for _ in range(rnd.choice([1, 1, 3])):
            change_json(rnd, schema)
        members["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(model, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def change_json(rnd, document):
    """Change one value anywhere in a document."""
    places = []

    def walk(node, depth=0):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list) and depth < 40:
                walk(node[key], depth + 1)

    walk(document)
    node, key = rnd.choice(places)
    other, found = rnd.choice(places)
    new = rnd.choice([None, 7, -1, 10**30, "x", [], {}, [[]], "os", "system", "MethodNode", True,
                      "builtins", "eval", "FunctionNode", "ObjectNode", "a.npy", "\ud800", 1.5,
                      other[found]])  # fmt: skip
    if rnd.random() < 0.2 and isinstance(node, dict):
        del node[key]
    else:
        node[key] = json.loads(json.dumps(new))


# -- members that are not files, deep runs -------------------------------------------


def spoil_member(rnd, folder, names):
    """Put a link, a FIFO, a socket, a folder or nonsense in the place of a member."""
    name = rnd.choice(names)
    place = folder / name
    place.parent.mkdir(exist_ok=True, parents=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    kind = rnd.choice(["fifo", "socket", "folder", "..", ".", "/dev/zero", "/dev/tty", "gone",
                       "/etc/passwd", place.name, "text", "deep", "bytes"])  # fmt: skip
    match kind:
        case "text":
            place.write_text(rnd.choice(["", "{", "[[1]]", "7", "null", '["..", "a"]', "{}"]))
        case "deep":
            place.write_text("[" * rnd.choice([1000, 200_000]))
        case "bytes":
            place.write_bytes(rnd.randbytes(rnd.choice([1, 100, 10_000])))
        case _:
            make_special(place, kind)


def make_run(rnd, folder):
    """Spoil a deep run: its record, its checkpoint, or what its files are."""
    record, checkpoint = folder / "run.json", folder / "checkpoint.safetensors"
    match rnd.choice(["record", "record", "record", "tree", "tree", "bytes", "member"]):
        case "record":
            document = json.loads(record.read_bytes())
            for _ in range(rnd.choice([1, 1, 3])):
                change_json(rnd, document)
            record.write_text(json.dumps(document))
        case "tree":
            change_tree(rnd, checkpoint)
        case "bytes":
            place = rnd.choice([record, checkpoint, folder / "log.jsonl"])
            place.write_bytes(damage(rnd, place.read_bytes()))
        case "member":
            names = ["run.json", "checkpoint.safetensors", "log.jsonl", "model", "docket.csv"]
            spoil_member(rnd, folder, names)


def change_tree(rnd, path):
    """Change what a checkpoint says of its tensors, or the description of the tensors."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if rnd.random() < 0.8:
        tree = json.loads(header["__metadata__"]["tree"])
        for _ in range(rnd.choice([1, 1, 3])):
            change_json(rnd, tree)
        header["__metadata__"]["tree"] = json.dumps(tree)
    else:
        change_json(rnd, header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


# -- decisions -----------------------------------------------------------------------


def make_decisions(rnd, names, candidates, classes):
    """Make a file of decisions in some spreadsheet's form, and what it decides of known rows."""
    records = []
    for _ in range(rnd.randint(1, 12)):
        row = rnd.randrange(len(names))
        kind = rnd.choice(["accept", "keep", "other", "other", "none", "clear"])
        label = rnd.choice(candidates[row])
        if kind == "none":
            label = rnd.choice(["", *(each for each in classes if each not in candidates[row])])
        records.append([names[row], kind, "" if kind == "clear" else label])
    meant = {name: (kind, label) for name, kind, label in records if kind != "clear"}
    last = {name: kind for name, kind, _ in records}
    meant = {name: found for name, found in meant.items() if last[name] != "clear"}
    if rnd.random() < 0.2:
        odd = [rnd.choice([words(rnd), *names]), rnd.choice(["accept", "ACCEPT", "", words(rnd)])]
        records.append([*odd, words(rnd)])
        meant = None
    head = ["id", "decision", "label"]
    if rnd.random() < 0.3:
        head.append(rnd.choice(["note", "time", "key", "Key", "candidates"]))
        records = [[*record, words(rnd)] for record in records]
    if rnd.random() < 0.2:
        content = "\n".join(json.dumps(dict(zip(head, r, strict=True))) for r in records).encode()
    else:
        order = rnd.sample(range(len(head)), len(head))
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, delimiter=rnd.choice(",;\t"), quoting=csv.QUOTE_ALL,
                            lineterminator=rnd.choice(["\n", "\r\n"]))  # fmt: skip
        writer.writerows([[row[i] for i in order] for row in [head, *records]])
        content = (
            stream.getvalue()
            .rstrip("\r\n" if rnd.random() < 0.3 else "")
            .encode(rnd.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))
        )
    if rnd.random() < 0.25:
        return damage(rnd, content), None
    return content, meant


# -- requests ------------------------------------------------------------------------


def make_request(rnd, host, token, names, classes, data, key):
    """Make the bytes of a request; often one that is nearly right."""
    kind = rnd.choice(["accept", "other", "none", "clear"])
    record = {"id": rnd.choice(names), "decision": kind,
              "label": rnd.choice([*classes, ""]), "data": data, "key": key}  # fmt: skip
    if rnd.random() < 0.5:
        field_ = rnd.choice([*record, "time", "candidates", "x"])
        record[field_] = rnd.choice(
            [words(rnd), "\0", "\ud800", 7, None, [], {}, True, "x" * 1001, "k" * 200_000]
        )
    body = json.dumps(record).encode()
    if rnd.random() < 0.25:
        body = rnd.choice([damage(rnd, body), b"[" * 5000, b"9" * 5000, b"", rnd.randbytes(50)])
    paths = ["/decisions", "/", "/docket.html", "/picture?a.png", "/..%2f..%2fetc%2fpasswd",
             "/%00", f"/?token={token}", "/?token=%ff", "//", "http://[", "*", ""]  # fmt: skip
    post = rnd.random() < 0.7
    path = "/decisions" if post and rnd.random() < 0.8 else rnd.choice(paths)
    length = (
        len(body)
        if rnd.random() < 0.9
        else rnd.choice([-1, "", "x", 10**9, 0, "²", len(body) + 5])
    )
    headers = {
        "Host": host if rnd.random() < 0.9 else rnd.choice(["[::1", "a]", "evil.example", ""]),
        "Authorization": f"Bearer {token}" if rnd.random() < 0.9 else words(rnd),
        "Content-Length": length,
    }
    if rnd.random() < 0.2:
        headers[rnd.choice(["Cookie", "Origin", "Transfer-Encoding", "Expect", "X"])] = words(rnd)
    verb = "POST" if post else rnd.choice(["GET", "GET", "HEAD", "PUT", "BREW", "\x16\x03"])
    lines = [f"{verb} {path} HTTP/1.{rnd.choice('10')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    start = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n"
    whole = start + (body if post else b"")
    return damage(rnd, whole) if rnd.random() < 0.1 else whole


def generator(kind, seed):
    return random.Random(f"{kind} {seed}")

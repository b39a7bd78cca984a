"""Workbooks of Excel: cells far away, and cells that would come out empty without a word."""

from __future__ import annotations

import io
import zipfile

import pytest

from appellate.cli.app import run
from appellate.tables import TableError, read_table
from appellate.tables.workbooks import look_through
from tests.tables.spreadsheets import MAKERS

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")


def write(path, change):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["id", "x", "c"])
    for i in range(8):
        sheet.append([f"r{i}", i, "a|b" if i % 2 else "a"])
    change(book, sheet)
    book.save(path)
    return path


def test_names_a_cell_that_is_far_away(tmp_path, capsys):
    """The reader once asked for 512 GB and ended the process."""

    def change(book, sheet):
        sheet["XFD1048576"] = "stray"

    path = write(tmp_path / "t.xlsx", change)
    with pytest.raises(TableError, match=r"cell XFD1048576 is far away from .*Delete"):
        read_table(path)
    assert run(["check", str(path)]) == 2
    assert "XFD1048576" in capsys.readouterr().err


def test_names_two_cells_that_stretch_a_sheet(tmp_path):
    def change(book, sheet):
        sheet["XFA2"], sheet["A900000"] = "right", "below"

    with pytest.raises(TableError, match="cells XFA2 and A900000 are far away"):
        read_table(write(tmp_path / "t.xlsx", change))


def test_reads_a_sheet_with_a_cell_far_below(tmp_path):
    def change(book, sheet):
        sheet["A1048576"] = "last"

    assert len(read_table(write(tmp_path / "t.xlsx", change))) == 9


@pytest.mark.parametrize(
    ("cell", "value", "note"),
    [
        ("B3", "=1+1", "B3: a formula without a stored result, so it is read as empty"),
        ("B3", "#N/A", r"B3 (#N/A): an error, so it is read as empty"),
        ("C4", "#REF!", r"C4 (#REF!): an error"),
    ],
)
def test_notes_a_cell_that_is_read_as_empty(cell, value, note, tmp_path):
    def change(book, sheet):
        sheet[cell] = value

    notes = read_table(write(tmp_path / "t.xlsx", change)).notes
    assert [each for each in notes if note in each], notes


def test_notes_merged_cells_and_a_hidden_sheet(tmp_path):
    def change(book, sheet):
        sheet.merge_cells("C2:C5")
        sheet.sheet_state = "hidden"
        book.create_sheet("other").append(["a"])
        book.active = 1

    notes = read_table(write(tmp_path / "t.xlsx", change)).notes
    assert [each for each in notes if each.startswith("C2:C5: merged cells: only the first")]
    assert "sheet 'Sheet' is read, although it is hidden." in notes


def test_counts_many(tmp_path):
    def change(book, sheet):
        for i in range(2, 10):
            sheet[f"B{i}"] = "=1+1"

    notes = read_table(write(tmp_path / "t.xlsx", change)).notes
    assert [each for each in notes if each.startswith("B2, B3, B4, B5, B6 and 3 more: a formula")]


def test_says_nothing_of_a_plain_sheet(tmp_path):
    def change(book, sheet):
        sheet["B3"] = None

    assert read_table(write(tmp_path / "t.xlsx", change)).notes == ()


def test_stored_results_and_prefixes_are_known():
    """As other programs write them: a result next to the formula, names with a prefix."""
    row = (
        '<x:row r="1"><x:c r="A1"><x:f>1</x:f><x:v>2</x:v></x:c><x:c r="B1" t="str"><x:f>1</x:f>'
        '<x:v></x:v></x:c><x:c r="C1"><x:f>1</x:f><x:v/></x:c><x:c r="D1" s="1"/></x:row>'
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "xl/workbook.xml",
            f'<x:workbook xmlns:x="{main}" xmlns:r="{links}"><x:sheets>'
            '<x:sheet name="S" sheetId="1" r:id="i"/></x:sheets></x:workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            '<Relationships><Relationship Id="i" Target="/xl/a.xml"/></Relationships>',
        )
        archive.writestr("xl/a.xml", f'<x:worksheet xmlns:x="{main}">{row}</x:worksheet>')
    (note,) = look_through(out.getvalue(), "S", "it")
    assert note.startswith("C1: a formula")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0" + bytes(600)])
def test_leaves_other_files_to_their_reader(content):
    assert look_through(content, "S", "it") == ()


# -- other kinds than .xlsx ------------------------------------------------------------

ROWS = [["id", "x", "c"], *([f"r{i}", float(i), "a|b" if i % 2 else "a"] for i in range(8))]
CELLS = {(i, j): value for i, row in enumerate(ROWS) for j, value in enumerate(row)}


def write_kind(path, cells):
    path.write_bytes(MAKERS[path.suffix](cells))
    return path


@pytest.mark.parametrize("ending", MAKERS)
def test_reads_other_kinds_of_workbooks(tmp_path, ending):
    table = read_table(write_kind(tmp_path / f"t{ending}", CELLS))
    assert table.names == ROWS[0]
    assert table.numbers("x").tolist() == list(range(8))
    assert table.texts("c").to_pylist() == [row[2] for row in ROWS[1:]]


@pytest.mark.parametrize(
    ("ending", "place"), [(".ods", (1048575, 16383)), (".xlsb", (1048575, 16383)),
                          (".xls", (65535, 65535))],
)  # fmt: skip
def test_a_far_cell_of_another_kind_is_an_error_message(tmp_path, capsys, ending, place):
    """The reader asked for 137 GB (.xls) and 549 GB (.xlsb), and ended the process."""
    path = write_kind(tmp_path / f"t{ending}", CELLS | {place: "stray"})
    assert run(["check", str(path)]) == 2
    said = capsys.readouterr().err
    if ending == ".ods":  # of which the reader itself says no
        assert "cannot be read as a spreadsheet" in said
        return
    assert "a cell is so far away" in said
    assert "Delete rows and columns without content" in said


@pytest.mark.parametrize("ending", MAKERS)
def test_names_a_far_cell_of_another_kind(tmp_path, ending, monkeypatch):
    """A sheet that fits into memory is looked through, if it has many cells."""
    monkeypatch.setattr("appellate.tables.workbooks._LARGE", 100_000)
    path = write_kind(tmp_path / f"t{ending}", CELLS | {(60_000, 9): "stray"})
    with pytest.raises(TableError, match=r"cell J60001 is far away from .*60001 rows and 10 col"):
        read_table(path)
    lines = [f"a{i}" for i in range(300)]
    full = {(i, j): lines[i] if i else f"c{j}" for i in range(300) for j in range(4)}
    monkeypatch.setattr("appellate.tables.workbooks._LARGE", 1000)
    if ending != ".xls":  # which does not fit into one table of sectors
        assert len(read_table(write_kind(tmp_path / f"f{ending}", full))) == 299


def test_a_cell_in_unusual_writing_is_found_too(tmp_path):
    """Its place is in single quotation marks, which no program writes but every reader takes."""
    path = write(tmp_path / "t.xlsx", lambda book, sheet: sheet.__setitem__("XFD1048576", "s"))
    out = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            changed.writestr(name, content.replace(b'"XFD1048576"', b"'XFD1048576'"))
    path.write_bytes(out.getvalue())
    with pytest.raises(TableError, match="a cell is so far away"):
        read_table(path)


def test_a_workbook_that_ends_its_reader_is_an_error_message(tmp_path, monkeypatch):
    monkeypatch.setattr("appellate.tables.workbooks._APART", tmp_path / "gone.py")
    with pytest.raises(TableError, match="cannot be opened as a spreadsheet: it is damaged"):
        read_table(write_kind(tmp_path / "t.ods", CELLS))

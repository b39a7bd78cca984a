"""Small workbooks of other kinds than ``.xlsx``, byte by byte: cells by row and column."""

from __future__ import annotations

import io
import struct
import zipfile
from itertools import groupby
from xml.sax.saxutils import escape

_ODS = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>
<table:table table:name="S">{rows}</table:table></office:spreadsheet></office:body>
</office:document-content>"""
_MANIFEST = """<?xml version="1.0" encoding="UTF-8"?>
<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">
</manifest:manifest>"""
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def by_row(cells):
    """Yield rows and their cells, by column."""
    for row, group in groupby(sorted(cells), lambda place: place[0]):
        yield row, [(column, cells[row, column]) for _, column in group]


def make_ods(cells):
    rows, next_row = [], 0
    for row, filled in by_row(cells):
        if row > next_row:
            gap = f'table:number-rows-repeated="{row - next_row}"'
            rows.append(f"<table:table-row {gap}><table:table-cell/></table:table-row>")
        parts, next_column = [], 0
        for column, value in filled:
            if column > next_column:
                gap = f'table:number-columns-repeated="{column - next_column}"'
                parts.append(f"<table:table-cell {gap}/>")
            kind = f'office:value-type="float" office:value="{value}"'
            if isinstance(value, str):
                kind = 'office:value-type="string"'
            text = f"<text:p>{escape(str(value))}</text:p>"
            parts.append(f"<table:table-cell {kind}>{text}</table:table-cell>")
            next_column = column + 1
        rows.append(f"<table:table-row>{''.join(parts)}</table:table-row>")
        next_row = row + 1
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", _MANIFEST)
        archive.writestr("content.xml", _ODS.format(rows="".join(rows)))
    return out.getvalue()


def make_xlsb(cells):
    def record(kind, data=b""):
        number = bytes([kind]) if kind < 128 else bytes([kind & 127 | 128, kind >> 7])
        return number + bytes([len(data) & 127 | 128, len(data) >> 7]) + data

    def wide(text):
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    sheet = record(148, struct.pack("<IIII", 0, 1, 0, 1)) + record(145)
    for row, filled in by_row(cells):
        sheet += record(0, struct.pack("<II", row, 0) + bytes(9))
        for column, value in filled:
            place = struct.pack("<II", column, 0)
            if isinstance(value, str):
                sheet += record(6, place + wide(value))
            else:
                sheet += record(5, place + struct.pack("<d", value))
    sheet += record(146)
    bundle = record(156, struct.pack("<II", 0, 1) + wide("rId1") + wide("S"))
    book = record(131) + record(143) + bundle + record(144) + record(132)
    link = (
        '<?xml version="1.0"?><Relationships '
        'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship '
        'Id="rId1" Target="worksheets/sheet1.bin" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/worksheet"/></Relationships>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("xl/workbook.bin", book)
        archive.writestr("xl/_rels/workbook.bin.rels", link)
        archive.writestr("xl/worksheets/sheet1.bin", sheet)
    return out.getvalue()


def make_xls(cells):
    def record(kind, data):
        return struct.pack("<HH", kind, len(data)) + data

    def begin(what):
        return record(0x809, struct.pack("<HHHHII", 0x600, what, 0x0DBB, 1996, 0, 6))

    sheet = begin(0x10)
    for (row, column), value in sorted(cells.items()):
        place = struct.pack("<HHH", row, column, 0)
        if isinstance(value, str):
            text = value.encode("latin-1")
            sheet += record(0x204, place + struct.pack("<HB", len(text), 0) + text)
        else:
            sheet += record(0x203, place + struct.pack("<d", value))
    sheet += record(0x0A, b"")
    size = len(record(0x85, struct.pack("<IHBB", 0, 0, 1, 0) + b"S"))
    start = len(begin(5)) + size + 4
    name = record(0x85, struct.pack("<IHBB", start, 0, 1, 0) + b"S")
    return _compound(begin(5) + name + record(0x0A, b"") + sheet)


def _compound(stream):
    """Put a stream called Workbook into a compound file, in sectors of 512 bytes."""
    stream += bytes(-len(stream) % 512 + (4096 if len(stream) < 4096 else 0))
    n = len(stream) // 512
    sizes = [_FAT, _END, *range(3, n + 2), _END]
    tables = -(-len(sizes) // 128)
    assert tables == 1, "the file is too large for one table"
    table = struct.pack("<128I", *sizes, *[_FREE] * (128 - len(sizes)))

    def entry(name, kind, first, length, child=_FREE):
        raw = name.encode("utf-16-le") + b"\0\0"
        return (
            raw.ljust(64, b"\0")
            + struct.pack("<HBBIII", len(raw), kind, 1, _FREE, _FREE, child)
            + bytes(36)
            + struct.pack("<IQ", first, length)
        )

    folder = entry("Root Entry", 5, _END, 0, 1) + entry("Workbook", 2, 2, len(stream)) + bytes(256)
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, _END, 0, _END, 0)
    head += struct.pack("<109I", 0, *[_FREE] * 108)
    return head + table + folder + stream


MAKERS = {".ods": make_ods, ".xlsb": make_xlsb, ".xls": make_xls}

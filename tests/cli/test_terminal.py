"""What a terminal shows: wrapped lines, whole commands, one bold line, what is left."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len

from appellate.cli import _terminal
from appellate.cli._terminal import Progress, say, show_reports, wrap_line
from appellate.cli.app import run
from appellate.experiments.reports import Report, Sheet
from appellate.tables.roles import fold_names

LINES = {
    "columns": "written     'birds': " + ", ".join(f"file{j}.csv" for j in range(30)),
    "indented": 12 * " " + "about 40 of the 898 labels are wrong, by their confidence, " * 3,
    "table": "  note7      set aside   "
    + "all of its cells are empty, so that nothing can be learned " * 3,
    "sentence": "note: " + "the features do not inform the labels more than chance does; " * 4,
    "wide characters": "labels      " + "猫の写真 と 犬の写真 " * 12,
    "plain": "'table.csv': there are several ways to read the columns of this table. " * 3,
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard output and error as terminals of some width."""

    def make(width):
        out, err = Terminal(), Terminal()
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        return out, err

    return make


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", LINES)
def test_lines_are_wrapped_at_the_width_and_lose_nothing(name, width):
    line = LINES[name]
    parts = wrap_line(line, width)
    assert len(parts) > 1
    assert max(map(cell_len, parts)) <= width
    assert " ".join(parts).split() == line.split()
    assert not any(part.endswith(" ") for part in parts)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_further_lines_begin_below_the_text(width):
    for name, hang in (("columns", 12), ("indented", 12), ("table", 25), ("sentence", 6)):
        first, *rest = wrap_line(LINES[name], width)
        assert first == LINES[name][: len(first)]
        assert {len(part) - len(part.lstrip()) for part in rest} == {hang}
    assert not any(part.startswith(" ") for part in wrap_line(LINES["plain"], width))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_commands_stay_whole(width):
    long = (
        "appellate rectify '/data/my table.csv' --candidates names --truth truth --out " + "x" * 90
    )
    assert wrap_line(f"    {long}", width) == [f"    {long}"]
    *before, last = wrap_line(f"next        open 'birds/docket.html', or: {long}", width)
    assert last.strip() == long
    assert before
    note = "note        The decisions in the folder were not used. To use them, add --decisions "
    parts = wrap_line(note + "birds/" + "d" * 30 + ".csv", width)
    assert sum(f"--decisions birds/{'d' * 30}.csv" in part for part in parts) == 1


def test_a_command_of_python_stays_whole():
    for line in (
        "    run = appellate.rectify('my birds.csv', candidates='names')",
        "    import x",
    ):
        assert wrap_line(line, 44) == [line]


def test_columns_stay_apart_if_the_terminal_is_too_narrow_for_them():
    parts = wrap_line("  worker0 ... worker11 (12)  annotator  detected from the name", 44)
    assert parts == ["  worker0 ... worker11 (12)  annotator", "    detected from the name"]
    assert wrap_line("  file                       image      image files", 44) == [
        "  file                       image",
        "    image files",
    ]


def test_a_table_of_results_stays_whole_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    row = [f"a long name of method {j}" for j in range(6)]
    sheet = Sheet("scores", tuple(f"column {j}" for j in range(6)), (tuple(row),))
    show_reports([Report("name", "Title", "A caption.", (sheet,), ())])
    out = capsys.readouterr().out
    assert "  ".join(row) in out


def test_short_lines_and_narrow_terminals_are_left_alone():
    assert wrap_line("labels      120 items by jury", 60) == ["labels      120 items by jury"]
    assert wrap_line(LINES["plain"], 10) == [LINES["plain"]]
    assert wrap_line("", 60) == [""]


def test_a_word_that_is_too_long_gets_a_line_of_its_own():
    parts = wrap_line("written     'a' " + "y" * 100 + " b", 60)
    assert parts == ["written     'a'", " " * 12 + "y" * 100, " " * 12 + "b"]


def test_without_a_terminal_lines_stay_whole_and_plain(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    say(LINES["columns"], bold=True)
    assert capsys.readouterr().out == LINES["columns"] + "\n"


def test_only_a_terminal_that_can_shows_bold_text(terminal, monkeypatch):
    out, err = terminal(60)
    say("result      97 % are correct.", bold=True)
    assert out.getvalue() == "\x1b[1mresult      97 % are correct.\x1b[0m\n"
    say("label \x1b[2J", err=True)
    assert "\x1b" not in err.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    out, _ = terminal(60)
    monkeypatch.setenv("TERM", "dumb")
    say("result      97 % are correct.", bold=True)
    assert out.getvalue() == "result      97 % are correct.\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    from tests.test_rectification import make_table

    path = tmp_path_factory.mktemp("table") / "animals.csv"
    frame, _ = make_table(60)
    for j in range(8):
        frame[f"f{j}"] = frame["x0"] * (j + 1)
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("width", [60, 80, 120])
def test_rectify_fits_the_terminal_and_has_one_bold_line(
    width, table, tmp_path, terminal, monkeypatch
):
    monkeypatch.chdir(table.parent)
    out, _ = terminal(width)
    assert run(["rectify", table.name, "--candidates", "maybe", "--out", f"o{width}"]) == 0
    text = out.getvalue()
    (bold,) = re.findall(r"\x1b\[1m(.*?)\x1b\[0m", text)
    assert re.fullmatch(r"result      About \d+ of 60 labels are correct\.", bold)
    lines = re.sub(r"\x1b\[[01]m", "", text).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert sum(f"appellate serve o{width}" in line for line in lines) == 1
    assert sum("f0 ... f7 (8)" in line for line in lines) == 1


def test_rectify_without_a_terminal_has_the_same_result_line(table, tmp_path, capsys):
    assert run(["rectify", str(table), "--candidates", "maybe", "--out", str(tmp_path / "o")]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    (result,) = [line for line in text.splitlines() if line.startswith("result")]
    assert re.fullmatch(r"result      About \d+ of 60 labels are correct\.", result)
    assert re.search(r"^next        open '.*', or: appellate serve ", text, re.MULTILINE)


def test_the_result_is_the_accuracy_if_the_truth_is_known(tmp_path, capsys):
    from tests.test_rectification import NAMES, make_table

    frame, truth = make_table(60)
    frame["truth"] = NAMES[truth]
    frame.loc[:9, "truth"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["rectify", str(tmp_path / "t.csv"), "--candidates", "maybe", "--truth", "truth"]
    assert run([*words, "--out", str(tmp_path / "o")]) == 0
    (result,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("result")]
    assert re.fullmatch(
        r"result      \d+\.\d% of 50 labels with a known truth are correct\.", result
    )


# -- progress ---------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch):
    """A clock that the test sets."""
    time = [100.0]
    monkeypatch.setattr(_terminal.time, "monotonic", lambda: time[0])
    return time


def test_progress_counts_steps_and_seconds_down(now):
    shown = Progress(3)
    assert shown.countdown() == ""
    shown.step("reading")
    assert shown.countdown() == "2 more steps"
    shown.step("judging", seconds=90.0)
    assert shown.countdown() == "1 more step · 1:30 left"
    assert shown.share() == 1
    now[0] += 45
    assert shown.countdown() == "1 more step · 0:45 left"
    assert shown.share() == 1.5
    now[0] += 60
    assert shown.countdown() == "1 more step · longer than expected"
    assert shown.share() == 1.95
    shown.step("writing")
    assert (shown.countdown(), shown.share()) == ("last step", 2)


def test_plain_lines_within_a_step_say_what_is_left(now, capsys):
    shown = Progress(2)
    shown.step("judging")
    now[0] += 30
    shown.step("round 3", within=True, seconds=60.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "[1/2] judging",
        "judging, round 3 (1 more step · 1:00 left)",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_fits_the_terminal(width, terminal, now):
    _, err = terminal(width)
    with _terminal.progress(3) as shown:
        shown.step("turning columns into numbers")
        shown.step("judging")
        shown.step("round 3 of at most 12", within=True, seconds=240.0)
        now[0] += 60
        shown._bar.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", err.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", plain) if line.strip()]
    assert max(map(cell_len, lines)) <= width
    assert "3:00 left" in plain
    assert "1 more step" in plain


# -- long lists of columns ----------------------------------------------------------------------


def test_numbered_columns_are_folded_and_others_are_not():
    names = ["age", *(f"x{j}" for j in range(12)), "size", "y1", "y2", "y3"]
    assert fold_names(names) == ["age", "x0 ... x11 (12)", "size", "y1", "y2", "y3"]
    assert fold_names([f"time{j}_of_{j}" for j in range(4)]) == ["time0_of_0 ... time3_of_3 (4)"]
    words = [chr(97 + j) * 3 for j in range(13)]
    assert fold_names(words[:12]) == words[:12]
    assert fold_names(words) == ["aaa ... mmm (13)"]

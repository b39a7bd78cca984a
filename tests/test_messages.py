"""A message names options as the reader types them: ``candidates=`` or ``--candidates``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import appellate
from appellate._table_options import TableOptions, as_typed, options_in
from appellate.tables import diagnose

HOME = Path(appellate.__file__).parent
OPTIONS = [*options_in(TableOptions), "base", "cost", "decisions", "method", "order", "tool"]
NAMED = re.compile(rf"(?<![\w-])({'|'.join(OPTIONS)})=")
VERBS = "[Gg]ive|[Ll]eave|with|[Uu]se|[Nn]ame"
BARE = re.compile(rf"\b(?:{VERBS}) ({'|'.join(OPTIONS)})\b(?! ?[='\w]| column)")
DISTINCT = re.compile(r"\b(text_model|image_model|model_probabilities|random_state)\b(?!=)")


def messages():
    """Texts of errors and notes: (file, text); a value is shown as X."""
    for folder in ("tables", "rectification", "datasets/own.py"):
        root = HOME / folder
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                call = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append"
                if isinstance(node, ast.Raise | ast.Yield) or call:
                    yield from ((path.name, text) for text in texts(node))


def texts(node):
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "X" for v in each.values)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


NAMING = sorted({(file, text) for file, text in messages() if NAMED.search(text)})


def test_messages_that_name_options_are_found():
    assert len(NAMING) > 25
    assert {"roles.py", "cells.py", "encoding.py", "preparation.py"} <= {
        file for file, _ in NAMING
    }


@pytest.mark.parametrize(("file", "text"), NAMING)
def test_options_of_messages_become_those_of_a_terminal(file, text):
    typed = as_typed(text)
    assert not NAMED.search(typed), typed
    for name in NAMED.findall(text):
        assert f"--{name.replace('_', '-')}" in typed


def test_no_message_names_an_option_as_a_bare_word():
    odd = [
        (file, text)
        for file, text in messages()
        if " " in text and (BARE.search(text) or DISTINCT.search(text))
        if file != "reading.py"  # written before this rule
    ]
    assert not odd


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("give candidates= and separator='/'.", "give --candidates and --separator '/'."),
        ("If it is part of a label, give separator=''.", None),
        ("image_model='a.pt' is not an ONNX file.", "--image-model 'a.pt' is not an ONNX file."),
        ("decimal=';' is neither", "--decimal ';' is neither"),
        ("settings={'max_rounds': 3}.", "--set max_rounds=3."),
        ("the column context=x and a--truth=", "the column context=x and a--truth="),
    ],
)
def test_values_follow_their_option(text, typed):
    assert as_typed(text) == (typed or "If it is part of a label, give --separator ''.")


def test_an_error_in_python_names_parameters_and_in_a_terminal_options(tmp_path, capsys):
    from appellate.cli.app import run

    path = tmp_path / "t.csv"
    path.write_text("x,z\n1,2\n3,4\n5,7\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"Name it with candidates=, or use annotators=, long="):
        appellate.rectify(path)
    for words in (["rectify", str(path), "--out", str(tmp_path / "o")], ["check", str(path)]):
        assert run(words) == 2
        said = capsys.readouterr().err
        assert "Name it with --candidates, or use --annotators, --long or --counts" in said
        assert "candidates=" not in said


def test_notes_in_a_terminal_name_options(tmp_path, capsys):
    from appellate.cli.app import run

    rows = "\n".join(f"{i},{'cat; dog' if i % 2 else 'dog'}" for i in range(12))
    path = tmp_path / "t.csv"
    path.write_text(f"x,pets\n{rows}\n", encoding="utf-8")
    assert run(["check", str(path), "--candidates", "pets"]) == 0
    said = capsys.readouterr().out
    assert "give --separator ''" in said
    assert "candidates='pets'" in said, "the call in Python stays Python"
    assert "give separator=''" in str(diagnose(path, candidates="pets"))

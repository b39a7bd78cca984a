"""A message names options as the reader types them: ``candidates=`` or ``--candidates``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import click

import appellate
from appellate._table_options import TableOptions, options_in, with_options
from appellate.tables import diagnose
from tests.test_words import COMMANDS

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
    assert {"roles.py", "labels.py", "encoding.py", "preparation.py"} <= {
        file for file, _ in NAMING
    }


@pytest.mark.parametrize(("file", "text"), NAMING)
def test_options_of_messages_become_those_of_a_terminal(file, text):
    typed = with_options(text)
    assert not NAMED.search(typed), typed
    for name in NAMED.findall(text):
        assert f"--{name.replace('_', '-')}" in typed


def test_no_message_names_an_option_as_a_bare_word():
    odd = [
        (file, text)
        for file, text in messages()
        if " " in text and (BARE.search(text) or DISTINCT.search(text))
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
    assert with_options(text) == (typed or "If it is part of a label, give --separator ''.")


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


# -- all commands, all options -----------------------------------------------------------------


def options(command):
    return {p.name: p.opts for p in command.params if isinstance(p, click.Option)}


TYPED = {name for command in COMMANDS.values() for name in options(command)}
TYPED |= {*options_in(TableOptions), *OPTIONS}
PYTHON = re.compile(rf"(?<![\w./-])(?:{'|'.join(TYPED)})=")
UNDERSCORED = re.compile(rf"(?<![\w./])(?:{'|'.join(n for n in TYPED if '_' in n)})\b")
DASHED = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

TABLE = "x,z,pets,w1,w2\n" + "".join(
    f"{i % 7},{i % 5},{'cat|dog' if i % 3 else 'dog'},{'ab'[i % 2]},{'ab'[i % 3 > 0]}\n"
    for i in range(24)
)
RECTIFY = ["rectify", "t.csv", "--out", "o"]
GENERATE = ["generate", "--from", "iris", "--out", "o.csv"]
WRONG = [
    ["check", "t.csv", "--candidates", "none"],
    ["check", "t.csv", "--candidates", "pets", "--annotators", "w*"],
    ["check", "t.csv", "--long", "x"],
    ["check", "t.csv", "--counts", "w*"],
    ["check", "t.csv", "--encoding", "nonsense"],
    ["check", "t.csv", "--header", "none", "--candidates", "pets"],
    ["check", "t.csv", "--question", "which"],
    ["compare", "t.csv", "--methods", "knn:n_neighbours=3"],
    ["compare", "t.csv", "--methods", "knn:n_neighbors=0", "--candidates", "pets"],
    ["compare", "t.csv", "--truth", "pets", "--candidates", "pets"],
    ["compare", "nothing"],
    ["datasets", "fetch", "birds"],
    ["deep", "train", "--config", "proden-cifar10", "--out", "o", "--set", "n_epochs=0"],
    ["deep", "train", "--config", "proden-cifar10", "--out", "o", "--data", "none.npz"],
    ["deep", "train", "--config", "none", "--out", "o"],
    [*GENERATE, "--flip", "2"],
    [*GENERATE, "--flip-probability", "2"],
    [*GENERATE, "--strategy", "fixed", "--flip", ".5"],
    [*GENERATE, "--strategy", "fixed", "--n-false", "9"],
    [*GENERATE, "--strategy", "cooccurring", "--epsilon", "-1"],
    [*GENERATE, "--strategy", "noisy", "--eta", "3"],
    [*GENERATE, "--strategy", "set_first", "--bag-size", "0"],
    [*GENERATE, "--strategy", "set_first", "--n-distractors", "8"],
    [*GENERATE, "--strategy", "hierarchical"],
    [*GENERATE, "--strategy", "hierarchical", "--super-class", "setosa"],
    [*GENERATE, "--strategy", "uniform", "--super-class", "setosa"],
    [*GENERATE, "--strategy", "other"],
    [*GENERATE, "--min-candidates", "7"],
    [*GENERATE, "--people", "5"],
    [*GENERATE, "--answers", "9", "--people", "5"],
    [*GENERATE, "--answers", "3", "--people", "0"],
    [*GENERATE, "--answers", "3", "--experts", ".6", "--spammers", ".6"],
    [*GENERATE, "--answers", "3", "--shared-errors", "2"],
    [*GENERATE, "--answers", "3", "--min-candidates", "2"],
    [*GENERATE, "--features", "none"],
    ["predict", "o", "t.csv"],
    [*RECTIFY, "--candidates", "pets", "--base", "knn", "--method", "jury"],
    [*RECTIFY, "--candidates", "pets", "--cost", "wihtin:3"],
    [*RECTIFY, "--candidates", "pets", "--cost", "absolute"],
    [*RECTIFY, "--candidates", "pets", "--cost", "absolute", "--order", "cat,cat,dog"],
    [*RECTIFY, "--candidates", "pets", "--cost", "none.csv"],
    [*RECTIFY, "--candidates", "pets", "--method", "plcp", "--base", "nothing"],
    [*RECTIFY, "--candidates", "pets", "--method", "plcp", "--set", "max_rounds=0"],
    [*RECTIFY, "--candidates", "pets", "--set", "max_round=3"],
    [*RECTIFY, "--candidates", "pets", "--model-probabilities", "p*"],
    [*RECTIFY, "--annotators", "w*", "--model-probabilities", "x"],
    [*RECTIFY, "--annotators", "w*", "--model-probabilities", "*"],
    [*RECTIFY, "--candidates", "pets", "--embeddings", "none.npy"],
    [*RECTIFY, "--candidates", "pets", "--text-model", "none"],
    [*RECTIFY, "--candidates", "pets", "--image-model", "none.onnx"],
    [*RECTIFY, "--candidates", "pets", "--decisions", "none.csv"],
    [*RECTIFY, "--candidates", "pets", "--groups", "none"],
    [*RECTIFY, "--candidates", "pets", "--id", "x"],
    [*RECTIFY, "--candidates", "pets", "--features", "pets"],
    [*RECTIFY, "--candidates", "pets", "--tool", "prodigy", "--order", "a"],
    ["reproduce", "test-accuracy", "--bases", "none"],
    ["serve", "o", "--token", "short"],
]


def command_of(words):
    """The command that words call, and the words that name it."""
    path = "appellate"
    while isinstance(COMMANDS[path], click.Group):
        path, words = f"{path} {words[0]}", words[1:]
    return COMMANDS[path]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_terminal_never_names_a_parameter_of_python(words, tmp_path, monkeypatch, capsys):
    from appellate.cli.app import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    assert run(words) == 2, "the input is wrong"
    said = capsys.readouterr().err
    assert said.startswith("appellate: ") or "\nappellate: " in said
    setting = next((w.partition("=")[0] for w in words if re.match(r"\w+=", w)), None)
    named = [w for w in PYTHON.findall(said) if w != f"{setting}="]
    assert not named, said
    assert setting or not UNDERSCORED.search(said), said  # settings are typed as in Python
    own = {word for opts in options(command_of(words)).values() for word in opts}
    assert {*DASHED.findall(said)} <= own, said


@pytest.mark.parametrize("typed", ["--flip", "--flip-probability", "--flip=2"])
def test_an_option_with_two_names_is_named_as_it_was_typed(typed, tmp_path, capsys):
    from appellate.cli.app import run

    words = [typed] if "=" in typed else [typed, "2"]
    out = str(tmp_path / "o.csv")
    assert run(["generate", "--from", "iris", "--out", out, *words]) == 2
    assert f"{typed.partition('=')[0]} 2.0 is not a probability" in capsys.readouterr().err


def test_messages_of_scikit_learn_name_options_too():
    text = "The 'flip_probability' parameter of make must be a float in [0, 1]. Got 2 instead."
    options = {"flip_probability": "--flip"}
    assert with_options(text, options) == "--flip must be a float in [0, 1]. Got 2 instead."
    assert with_options(text) == text, "no option of that name"


def test_no_message_names_a_parameter_with_an_option_as_a_bare_word():
    odd = []
    for path in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and "cli" not in path.parts:
                odd += [
                    (path.name, text)
                    for text in texts(node)
                    if " " in text and re.search(rf"{UNDERSCORED.pattern}(?!=)", text)
                ]
    assert not odd

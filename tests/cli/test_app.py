"""The command as such: help, version, mistakes, start-up."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

from appellate.cli import main
from appellate.cli.app import app, run
from appellate.methods.registry import TITLES


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["demo"]])
def test_help_has_examples(command, flag, capsys):
    assert run([*command, flag]) == 0
    said = capsys.readouterr().out
    assert "Usage: appellate" in said
    assert "Examples:\n    appellate demo" in said
    assert max(map(len, said.splitlines())) <= 80


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"appellate {importlib.metadata.version('appellate')}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dmeo"], "Did you mean 'demo'?"),
        (["demo", "--random-sate", "1"], "'--random-state'"),
        (["demo", "--random-state", "one"], "'one' is not a valid integer"),
        (["demo", "--random-state", "-1"], "-1 is not in the range"),
        (["demo", "--flip", "1"], "1.0 is not in the range 0<=x<1"),
        (["demo", "--flip", "nan"], "nan is not a probability"),
        (["demo", "extra"], "unexpected extra argument"),
    ],
)
def test_mistakes_end_with_2_and_a_hint(arguments, message, capsys):
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert not said.out


@pytest.mark.parametrize("missing", [["click"], ["rich"], ["click", "rich"]])
def test_without_the_extra_one_line_names_it(missing, capsys, monkeypatch):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert " and ".join(missing) in line
    assert "pip install 'appellate[cli]'" in line


def test_help_says_what_an_option_is_for_here(capsys):
    said = {}
    for command in ("generate", "predict", "rectify"):
        assert run([command, "--help"]) == 0
        said[command] = " ".join(capsys.readouterr().out.split())
    assert "report accuracy" not in said["generate"], "generate computes no accuracy"
    assert "turns text into features" not in said["predict"], "the model has its features"
    bases = said["rectify"].partition("Base classifier of plcp: ")[2].partition(";")[0]
    assert {*bases.split(", ")} == {*TITLES}


@pytest.mark.parametrize("arguments", ["--help", "demo --help", "--version", "demo --flip 2"])
def test_start_up_loads_nothing_heavy(arguments):
    code = (
        "import sys\n"
        f"sys.argv = ['appellate', *{arguments.split()!r}]\n"
        "from appellate.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write('loaded: ' + ' '.join(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(said.stderr.split("loaded: ")[1].split())
    heavy = {"numpy", "scipy", "sklearn", "numba", "matplotlib", "torch", "pandas", "polars"}
    assert "click" in loaded
    assert not heavy & loaded


def test_python_dash_m(tmp_path):
    command = [sys.executable, "-m", "appellate"]
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert helped.stdout.startswith("Usage: appellate [OPTIONS] COMMAND")
    (tmp_path / "file").write_text("")
    refused = subprocess.run(
        [*command, "demo", "--out", str(tmp_path / "file")], capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "a file is where a folder would have to be" in refused.stderr


def test_without_tables_one_line_names_the_extra(tmp_path):
    """A message of ours must not need what it says is missing."""
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from appellate.cli.app import run\n"
        f"sys.exit(run(['demo', '--out', {str(tmp_path / 'out')!r}]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 2
    assert "appellate[table]" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("path", "former", "option", "name"),
    [
        (["compare"], "--seed", "--random-state", "random_state"),
        (["reproduce"], "--seed", "--random-state", "random_state"),
        (["deep", "train"], "--seed", "--random-state", "random_state"),
        (["generate"], "--groups", "--super-class", "groups"),
    ],
)
def test_former_names_of_options_work_and_are_not_shown(path, former, option, name):
    import click

    command = app
    for word in path:
        command = command.commands[word]
    with click.Context(command) as context:
        given, _, _ = command.make_parser(context).parse_args([former, "7"])
        shown = command.get_help(context)
    assert given[name] in ("7", ["7"])
    assert f"{option} " in shown
    assert former not in shown

"""Texts are in plain words: they avoid the patterns listed here.

`LIMITS` has the number of matches per 1,000 words that a kind of text may have. It is 1 for all
kinds, as many as cleanlab's docstrings have (scikit-learn's have 0.4).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

click = pytest.importorskip("click")

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
SOURCES = sorted((ROOT / "src" / "appellate").rglob("*.py"))
LIMITS = {
    "README": 1.0,
    "contributing": 1.0,
    "docs": 1.0,
    "examples": 1.0,
    "help": 1.0,
    "messages": 1.0,
    "output": 1.0,
    "docstrings": 1.0,
}
COURT = "verdict, appeal, overturned, upheld"
# The page on the paper's method explains the paper's words.
ALLOWED = {"appeal.md": {COURT}}
THINGS = "row|item|sample|person|annotator|label|class|answer|column|cell|bag|epoch|split|second"
MANY = "rows?|columns?|labels|answers?|candidates|lines?|votes?|times"
PATTERNS = {
    "'is no X' for 'is not X'": r"\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b)\w+",
    "'one a row' for 'one per row'": (
        rf"\b(?:one|once|\d+|{MANY}) an? (?:{THINGS})\b(?! (?:does|may|has)\b)"
    ),
    "a sentence that begins with 'Of'": r"\bOf\b",
    "'of which', 'of whom'": r"\bof (?:which|whom|whose)\b",
    "facts that 'are said' or 'told' by nobody": r"\b(?:is|are|was|were) (?:said|told|heard)\b",
    "'where' for 'if'": r"\b[Ww]here (?:it|there|they|you|people|not|no|nothing|none|possible)\b",
    "things that stand or lie": r"\b(?:stands?|lies|lie in|lie outside)\b",
    "'is there' for 'exists'": r"\b(?:is|are) there[,.;]|\bis there already\b",
    "beside": r"\b[Bb]esides?\b",
    "anew, mend, foretell": r"\b(?:[Aa]new|[Mm]end(?:s|ed)?|foretells?|foretold)\b",
    "rightly, surely, how sure": r"\b(?:rightly|surely|how sure|surer)\b",
    "parted by, set aside": r"\b(?:parted by|parts? into|set aside)\b",
    "rival": r"\b(?:trivial )?rivals?\b",
    "honest": r"\bhonest(?:ly)?\b",
    COURT: r"\b(?:verdicts?|appeals?|overturned|upheld)\b",
    "people, person, crowd": r"\b(?:[Pp]eople|[Pp]ersons?|crowd says)\b",
    "'the truth' alone": r"\bthe truth\b",
    "prose, picture, processor": r"\b(?:prose|pictures?|processors?)\b",
    "manners, as printed": r"\b(?:manners|as printed)\b",
    "house, room, door, desk": r"\b(?:house|rooms?|doors?|desk)\b",
    "gone, to go": r"\b(?:gone|to go)\b",
    "taken as, taken for": r"\btaken (?:as|for)\b",
}


def help_of(path, **width):
    """What ``--help`` of a command prints."""
    names = COMMANDS["appellate"].context_settings
    with click.Context(COMMANDS[path], info_name=path, **names, **width) as context:
        return COMMANDS[path].get_help(context)


def commands(command=None, path="appellate"):
    """All commands and groups, with the words that call them."""
    from appellate.cli.app import app

    command = command or app
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}")


COMMANDS = dict(commands())


def strip_markdown(text):
    """The sentences of a page: no code, no formulas, no comments, no targets of links."""
    text = re.sub(r"```.*?```|<!--.*?-->|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"(?:src|srcset|media)=\"[^\"]*\"|</?picture>", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def strip_docstring(text):
    """The sentences of a docstring: no examples and no code."""
    text = re.sub(r"^ *>>> .*?(?=\n *\n|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"``[^`]*``|`[^`]*`", "CODE", text)


def read_readme():
    return strip_markdown((ROOT / "README.md").read_text(encoding="utf-8"))


def read_contributing():
    return strip_markdown((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def read_docs():
    return "\n".join(strip_markdown(page.read_text(encoding="utf-8")) for page in PAGES)


def read_examples():
    """Titles, texts and comments of the gallery."""
    texts = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        texts.append(strip_docstring(ast.get_docstring(ast.parse(source)) or ""))
        texts += re.findall(r"^# (?!%%)(.*)", source, flags=re.MULTILINE)
    return "\n".join(texts)


def read_help():
    """What ``--help`` prints, without names of options and of the tables that `reproduce` has."""
    text = "\n".join(help_of(path, terminal_width=200) for path in COMMANDS)
    text = re.sub(r"^ +appellate .*$", "", text, flags=re.MULTILINE)  # examples
    return re.sub(r"--[\w-]+|^ +rivals\b|for rivals", "", text, flags=re.MULTILINE)


#: Functions whose arguments are shown to a user.
SHOWN = {"warn", "warning", "info", "error", "debug", "note", "add_note", "echo", "print", "secho"}


def name_of(node):
    """The last part of the name of a called function."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def strings(node):
    """All texts below a node of the source, with the values that they show as one word."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
        elif isinstance(each, ast.FormattedValue):
            yield " CODE "


def read_messages():
    """Texts of errors, warnings, notes and of what commands print."""
    texts = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            shown = isinstance(node, ast.Call) and name_of(node) in SHOWN
            if isinstance(node, ast.Raise) or shown:
                texts.append(strip_docstring("".join(strings(node))))
    return "\n".join(texts)


def read_output():
    """All texts of three words or more that are not docstrings: what is printed, and parts of it.

    The words of titles are names of columns; the paper's tables explain the paper's words.
    """
    texts = []
    for path in SOURCES:
        if path.name == "titles.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        described = [node.body for node in nodes if isinstance(node, DESCRIBED) and node.body]
        apart = {id(body[0].value) for body in described if isinstance(body[0], ast.Expr)}
        apart |= {
            id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in nodes:
            if id(node) in apart or not isinstance(node, ast.JoinedStr | ast.Constant):
                continue
            text = strip_docstring("".join(strings(node)))
            if len(text.split()) > 2:
                texts.append(re.sub(r"^ +rivals\b|for rivals", "", text, flags=re.MULTILINE))
    return "\n".join(texts)


#: Parts of a module that have a docstring.
DESCRIBED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


def read_docstrings():
    """Docstrings of all modules, classes and functions."""
    texts = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, DESCRIBED):
                texts.append(strip_docstring(ast.get_docstring(node) or ""))
    return "\n".join(texts)


READERS = {
    "README": read_readme,
    "contributing": read_contributing,
    "docs": read_docs,
    "examples": read_examples,
    "help": read_help,
    "messages": read_messages,
    "output": read_output,
    "docstrings": read_docstrings,
}


def count(text, allowed=()):
    """What matches each pattern, the number of words, and the matches per 1,000 words."""
    text = " ".join(text.split())
    found = {name: re.findall(p, text) for name, p in PATTERNS.items() if name not in allowed}
    found = {name: some for name, some in found.items() if some}
    words = len(re.findall(r"[A-Za-z]+", text))
    return found, words, 1000 * sum(map(len, found.values())) / max(words, 1)


@pytest.mark.parametrize("kind", LIMITS)
def test_texts_are_in_plain_words(kind):
    found, words, rate = count(READERS[kind]())
    assert words > 300, "the reader finds the texts"
    assert rate <= LIMITS[kind], f"{rate:.1f} per 1,000 words: {found}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_page_is_in_plain_words(page):
    text = strip_markdown(page.read_text(encoding="utf-8"))
    found, words, rate = count(text, ALLOWED.get(page.name, ()))
    assert rate <= max(LIMITS["docs"], 1000 / max(words, 1)), (
        f"{rate:.1f} per 1,000 words: {found}"
    )


def test_odd_words_are_counted():
    text = (
        "Of each row's labels one is true. Counts are no numbers: mend them, one column a person."
    )
    found, words, rate = count(text)
    assert len(found) == 5  # "person" counts too
    assert words == 18
    assert rate == pytest.approx(1000 * 5 / 18)


def test_code_and_examples_are_not_counted():
    assert "beside" not in strip_markdown("Write `beside` or\n```sh\nbeside\n```\n<!-- beside -->")
    assert "beside" not in strip_docstring("Give ``beside``.\n\n    >>> beside\n    'beside'\n")


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_a_narrow_terminal(path):
    assert max(map(len, help_of(path, max_content_width=80).splitlines())) <= 80


OPTIONS = [
    pytest.param(option, id=f"{path} {option.opts[0]}")
    for path, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option) and "--version" not in option.opts
]


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_has_help_that_names_its_default(option):
    help = option.help or ""
    assert re.match(r"[A-Z]", help), "a sentence or a noun phrase"
    assert help.rstrip("]) ").endswith((".", "none", "all")) or "default" in help
    named = option.required or option.is_flag or option.show_default
    assert named or "default:" in help, help

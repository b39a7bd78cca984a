"""README.md and the help texts are in plain words: they avoid the patterns listed here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

click = pytest.importorskip("click")

README = Path(__file__).parents[1] / "README.md"
PER_1000 = 1.0
THINGS = "row|item|sample|person|annotator|label|class|answer|column|cell|bag|epoch|split|second"
MANY = "rows?|columns?|labels|answers?|candidates|lines?|votes?|times"
PATTERNS = {
    "'is no X' for 'is not X'": r"\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b)\w+",
    "'one a row' for 'one per row'": rf"\b(?:one|once|\d+|{MANY}) an? (?:{THINGS})\b",
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
    "verdict, appeal, overturned, upheld": r"\b(?:verdicts?|appeals?|overturned|upheld)\b",
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


def read_readme():
    """The sentences of the README: no code, no targets of links."""
    text = re.sub(r"```.*?```", "", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"(?:src|srcset|media)=\"[^\"]*\"|</?picture>", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def read_help():
    """What ``--help`` prints, without names of options and of the tables that `reproduce` has."""
    text = "\n".join(help_of(path, terminal_width=200) for path in COMMANDS)
    text = re.sub(r"^ +appellate .*$", "", text, flags=re.MULTILINE)  # examples
    return re.sub(r"--[\w-]+|^ +rivals\b|for rivals", "", text, flags=re.MULTILINE)


def count(text):
    """What matches each pattern, and the number of matches per 1,000 words."""
    text = " ".join(text.split())
    found = {name: re.findall(pattern, text) for name, pattern in PATTERNS.items()}
    found = {name: some for name, some in found.items() if some}
    return found, 1000 * sum(map(len, found.values())) / len(re.findall(r"[A-Za-z]+", text))


@pytest.mark.parametrize("read", [read_readme, read_help])
def test_texts_are_in_plain_words(read):
    found, rate = count(read())
    assert rate <= PER_1000, f"{rate:.1f} per 1,000 words: {found}"


def test_odd_words_are_counted():
    text = (
        "Of each row's labels one is true. Counts are no numbers: mend them, one column a person."
    )
    found, rate = count(text)
    assert len(found) == 5  # "person" counts too
    assert rate == pytest.approx(1000 * 5 / 18)


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

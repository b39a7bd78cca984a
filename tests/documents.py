"""Blocks of code in Markdown pages, and how to run them.

``python`` and ``pycon`` blocks of a page share one namespace, which has ``X``, ``y`` and ``X_new``
to begin with; the output in ``pycon`` blocks is compared as doctest does it. In ``sh`` and
``console`` blocks the lines that begin with ``appellate`` are run. If a ``console`` block shows
output, it is compared (except for ``serve``, which waits for a browser). All run in a folder with
a few small tables.

A comment ``<!-- skip: next (reason) -->`` before a block leaves it out.
"""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass

from markdown_it import MarkdownIt

from appellate.cli.app import run
from appellate.testing import make_clusters

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SKIP = "<!-- skip: next"


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    skipped: bool


def read_blocks(page):
    """All blocks of code of a page, in order."""
    blocks, skipped = [], False
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            language = token.info.split()[0] if token.info.strip() else ""
            blocks.append(Block(language, token.content, token.map[0] + 1, skipped))
        if token.nesting >= 0 and not token.type.startswith("inline"):
            skipped = token.type == "html_block" and token.content.startswith(SKIP)
    return blocks


class Reader:
    """Runs the blocks of a page in order."""

    def __init__(self, page):
        self.page = page
        X, candidates, _ = make_clusters()
        self.names = {"__name__": "__page__", "X": X, "y": candidates, "X_new": X[:5]}

    def run(self, block, capture):
        runner = {
            "python": self._run_python,
            "pycon": self._run_session,
            "sh": self._run_shell,
            "console": self._run_shell,
        }.get(block.language)
        if runner is not None and not block.skipped:
            runner(block, capture)

    def _run_python(self, block, capture):
        padding = "\n" * block.line  # so that a traceback names the line of the page
        exec(compile(padding + block.text, str(self.page), "exec"), self.names)

    def _run_session(self, block, capture):
        test = doctest.DocTestParser().get_doctest(
            block.text, self.names, self.page.name, str(self.page), block.line
        )
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        printed = []
        runner.run(test, out=printed.append, clear_globs=False)
        self.names.update(test.globs)
        assert not runner.failures, "".join(printed)

    def _run_shell(self, block, capture):
        for command, expected in commands(block):
            capture.readouterr()
            words = shlex.split(command, comments=True)
            code = run(words[1:])
            printed = capture.readouterr().out
            assert code == 0, f"{self.page.name}:{block.line}: {command} ended with {code}"
            if expected.strip():
                same = doctest.OutputChecker().check_output(expected, printed, FLAGS)
                assert same, f"{self.page.name}:{block.line}: {command} printed\n{printed}"


def commands(block):
    """Pairs of a command of ours and the output that is shown for it."""
    prompt = "$ " if block.language == "console" else ""
    found, current = [], None
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith(prompt) and (prompt or line.strip()):
            current = None
            if re.match(r"appellate (?!serve\b)", line.removeprefix(prompt)):
                current = [line.removeprefix(prompt), ""]
                found.append(current)
        elif current is not None:
            current[1] += line + "\n"
    return [tuple(pair) for pair in found]

"""The public names are those of tests/api.txt, and every one of them is documented.

After a change on purpose: ``python tests/test_api.py`` writes that list again, and all others that
follow from a registry: the names for type checkers, and the terms of data sets.
"""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from collections import defaultdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from appellate._table_formats import FORMATS
from appellate.datasets.catalogue import known_datasets
from appellate.methods.registry import BASES

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("api.txt")
PAGE = ROOT / "docs" / "api.md"
MODULES = [
    "appellate",
    "appellate.candidates",
    "appellate.core",
    "appellate.datasets",
    "appellate.deep",
    "appellate.docket",
    "appellate.evidence",
    "appellate.io",
    "appellate.methods",
    "appellate.methods.jury",
    "appellate.methods.testimony",
    "appellate.metrics",
    "appellate.model_selection",
    "appellate.plotting",
    "appellate.review",
    "appellate.tables",
    "appellate.testing",
]
# Examples of these would say nothing.
NO_EXAMPLE = {
    "appellate.Rectification": "made by rectify, which has one",
    "appellate.core.BaseClassifier": "a protocol; docs/base_classifier.md meets it",
    "appellate.core.PartialLabelClassifier": "abstract; every classifier is one",
    "appellate.io.ModelFileError": "an error",
    "appellate.review.DecisionError": "an error",
    "appellate.model_selection.Scorer": "made by get_scorer, which has one",
    "appellate.tables.Diagnosis": "made by diagnose, which has one",
    "appellate.tables.Labels": "made by read_labels, which has one",
    "appellate.tables.Roles": "made by find_roles, which has one",
    "appellate.tables.TableError": "an error",
}


def public_names():
    """Every public name with its module; without torch, not those of `appellate.deep`."""
    for module in MODULES:
        if module != "appellate.deep" or has_deep():
            for name in sorted(import_module(module).__all__):
                yield module, name


def has_deep():
    return find_spec("appellate.deep") is not None and find_spec("torch") is not None


def describe():
    """One line a public name: with its signature or, for a class, its parameters."""
    lines = []
    for module, name in public_names():
        value = getattr(import_module(module), name)
        signature = ""
        if inspect.isclass(value) or inspect.isroutine(value):
            try:
                parameters = inspect.signature(value).parameters.values()
            except ValueError:
                parameters = ()
            shown = [_show(each) for each in parameters if not each.name.startswith("_")]
            signature = f"({', '.join(shown)})"
        lines.append(f"{module}.{name}{signature}")
    return lines


def _show(parameter):
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else "="
    return f"{star}{parameter.name}{default}"


def written(what, module_of):
    """Write a module that hands on names, for type checkers."""
    lines = [
        f'"""{what}, for type checkers. ``python tests/test_api.py`` writes this file."""',
        "",
    ]
    for name, module in sorted(module_of.items(), key=lambda item: (item[1], item[0])):
        line = f"from {module} import {name} as {name}"
        split = f"from {module} import (\n    {name} as {name},\n)"
        lines.append(line if len(line) < 100 else split)
    return "\n".join(lines) + "\n"


def notices():
    """Write THIRD_PARTY.md with the table of data sets: source and terms of each."""
    alike = defaultdict(list)
    for entry in known_datasets().values():
        alike[entry.page, entry.terms].append(entry.title)
    rows = [f"| {', '.join(t)} | <{page}> | {terms} |" for (page, terms), t in alike.items()]
    table = "\n".join(["| name | source | terms |", "|---|---|---|", *rows])
    text = NOTICES.read_text(encoding="utf-8")
    return re.sub(r"\| name \| source.*?(?=\n\n)", lambda _: table, text, count=1, flags=re.S)


def formats():
    """Write docs/formats.md with the table of formats."""
    rows = [
        f"| {', '.join(e.titles)} | {', '.join(f'`{end}`' for end in e.endings)} |"
        for e in FORMATS
    ]
    table = "\n".join(["| format | endings |", "|---|---|", *rows])
    text = PAGE_OF_FORMATS.read_text(encoding="utf-8")
    return re.sub(r"\| format \| endings.*?(?=\n\n)", lambda _: table, text, count=1, flags=re.S)


PAGE_OF_FORMATS = ROOT / "docs" / "formats.md"
PACKAGE = ROOT / "src" / "appellate"
NOTICES = ROOT / "THIRD_PARTY.md"
LOADERS = {f"load_{e.name}": f"appellate.datasets.{e.loader}" for e in known_datasets().values()}
#: Files with lists that follow from a registry, and what writes them.
WRITTEN = {
    LIST: lambda: "\n".join(describe()) + "\n",
    PACKAGE / "methods" / "typed.py": lambda: written(
        "The base classifiers", {base.class_name: base.module for base in BASES}
    ),
    PACKAGE / "datasets" / "typed.py": lambda: written("The loaders of data sets", LOADERS),
    NOTICES: notices,
    PAGE_OF_FORMATS: formats,
}


@pytest.mark.parametrize("file", [*WRITTEN][1:], ids=lambda file: file.name)
def test_lists_follow_from_their_registry(file):
    if not file.exists():
        pytest.skip("the file is not part of this installation")
    said = "run: python tests/test_api.py"
    assert file.read_text(encoding="utf-8") == WRITTEN[file](), said


def callables():
    for module, name in public_names():
        value = getattr(import_module(module), name)
        if inspect.isclass(value) or inspect.isroutine(value):
            yield pytest.param(f"{module}.{name}", value, id=f"{module}.{name}")


def test_public_names_are_frozen():
    frozen = LIST.read_text(encoding="utf-8").splitlines()
    if not has_deep():
        frozen = [line for line in frozen if not line.startswith("appellate.deep.")]
    assert describe() == frozen, "if this is meant, run: python tests/test_api.py"


def test_the_page_lists_the_public_modules():
    if not PAGE.exists():
        pytest.skip("the guide is not part of this installation")
    listed = re.findall(r"^   (appellate[.\w]*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == MODULES


@pytest.mark.parametrize(("name", "value"), list(callables()))
def test_public_names_are_documented(name, value):
    text = inspect.getdoc(value) or ""
    assert len(text) > 20, "no docstring"
    for parameter in _parameters(value):
        assert re.search(r"(Parameters|Attributes)\n-", text), "no parameters"
        assert re.search(rf"\b{re.escape(parameter)}\b", text), f"{parameter} is not explained"
    if name not in NO_EXAMPLE:
        assert doctest.DocTestParser().get_examples(text), "no example"
    if hasattr(value, "fit") and name not in NO_EXAMPLE:
        assert "Cost: " in text, "no word on cost"
        assert "Attributes\n-" in text, "no attributes"
        assert "References\n-" in text or name.endswith("CV"), "no references"


def _parameters(value):
    """What somebody who calls it has to know; an error and a protocol are not called."""
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    if is_error or getattr(value, "_is_protocol", False):
        return []
    names = inspect.signature(value).parameters
    return [name for name in names if name not in ("args", "kwargs") and name[0] != "_"]


def test_exceptions_to_the_rule_are_still_needed():
    known = {f"{module}.{name}" for module, name in public_names()}
    assert {name for name in NO_EXAMPLE if not name.startswith("appellate.deep")} <= known


if __name__ == "__main__":
    for target, write in WRITTEN.items():
        target.write_text(write(), encoding="utf-8")
    sys.stdout.write(f"{LIST}: {len(describe())} names\n")

"""The shape of the code: one value per assignment, one meaning per public name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "appellate"
MODULES = sorted(PACKAGE.rglob("*.py"))
# A command and its function share a name; so do the two ways to fit the kernels of a jury.
SHARED = {
    *("predict", "rectify", "serve", "train", "evaluate"),
    *("fit_outputs", "prepare"),
}


def trees():
    for path in MODULES:
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def is_packed(node):
    """Tell whether a statement assigns more than two values at once."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and len(node.value.elts) > 2
    )


def test_no_statement_assigns_more_than_two_values():
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if is_packed(node)
    ]
    assert not found


def complexity(function):
    """Count the paths through a function as radon does: one, and one per branch."""
    count = 1
    for node in ast.walk(function):
        match node:
            case ast.If() | ast.IfExp() | ast.Assert():
                count += 1
            case ast.For() | ast.While():
                count += 1 + bool(node.orelse)
            case ast.Try():
                count += len(node.handlers) + bool(node.orelse)
            case ast.BoolOp():
                count += len(node.values) - 1
            case ast.comprehension():
                count += 1 + len(node.ifs)
            case ast.Match():
                rest = [each for each in node.cases if ast.unparse(each.pattern) == "_"]
                count += len(node.cases) - len(rest)
    return count


def test_no_function_has_more_than_thirty_paths():
    # radon grades such a function E or F.
    found = {
        f"{name}:{node.name}": complexity(node)
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: count for name, count in found.items() if count > 30} == {}


def names_of(node):
    """Return the names that a statement at the top of a module defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [
        name.id
        for target in targets
        if target is not None
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    ]


def test_a_public_name_is_defined_in_one_module():
    homes = defaultdict(set)
    for name, tree in trees():
        for node in tree.body:
            for each in names_of(node):
                # A private type, not a private constant, has one meaning, too.
                if not each.startswith("_") or re.match("_?[A-Z].*[a-z]", each):
                    homes[each].add(name)
    twice = {name: sorted(them) for name, them in homes.items() if len(them) > 1}
    assert {name: them for name, them in twice.items() if name not in SHARED} == {}
    assert twice.keys() >= SHARED, "an exception that is not needed"

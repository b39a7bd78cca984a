"""Every documented default of a public class, method or function is that of its signature."""

from __future__ import annotations

import ast
import inspect
import math
import re
from importlib import import_module

import numpy as np
import pytest

from tests.test_api import public_names

# "tol, max_iter : float, default=0.5" within the section of the parameters.
LINE = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \w+)*) : (?P<kind>.*)$", re.MULTILINE)
DEFAULT = re.compile(r"default=(?P<value>.+)$")

# Defaults that are not written as in Python.
WORDS = {"inf": math.inf, "16 GiB": 16 * 2**30, "numpy.float64": np.float64}


def documented():
    """Public classes, their methods, and functions, each once."""
    seen = set()
    for module, name in public_names():
        value = getattr(import_module(module), name)
        owners = [(f"{module}.{name}", value)]
        if inspect.isclass(value):
            owners += [
                (f"{module}.{name}.{each}", method)
                for each, method in vars(value).items()
                if each[0] != "_" and inspect.isfunction(method)
            ]
        for title, owner in owners:
            error = inspect.isclass(owner) and issubclass(owner, Exception | Warning)
            if id(owner) not in seen and callable(owner) and not error:
                seen.add(id(owner))
                yield title, owner


def parameters_of(text):
    """Split the section of the parameters into names and documented defaults.

    Several names of a line have one default, or as many: ``n, q : int, default=60, 3``.
    """
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", text, re.S | re.M)
    for line in LINE.finditer(section[1] if section else ""):
        found = DEFAULT.search(line["kind"])
        names = line["names"].split(", ")
        values = [found["value"] if found else None] * len(names)
        if found and len(names) > 1 and found["value"][0] not in "([":
            each = found["value"].split(", ")
            values = each if len(each) == len(names) else values
        yield from zip(names, values, strict=True)


DOCUMENTED = list(documented())


@pytest.mark.parametrize("owner", [p[1] for p in DOCUMENTED], ids=[p[0] for p in DOCUMENTED])
def test_documented_defaults_are_those_of_the_signature(owner):
    signature = inspect.signature(owner).parameters
    for name, value in parameters_of(inspect.getdoc(owner) or ""):
        if value is None or name not in signature:
            continue
        actual = signature[name].default
        assert actual is not inspect.Parameter.empty, f"{name} has no default"
        message = f"{name}: documented {value}, is {actual!r}"
        if value == "no-op":
            assert callable(actual), message
        else:
            assert (WORDS[value] if value in WORDS else ast.literal_eval(value)) == actual, message


def test_the_defaults_are_found():
    found = [
        (title, name)
        for title, owner in DOCUMENTED
        for name, value in parameters_of(inspect.getdoc(owner) or "")
        if value is not None and name in inspect.signature(owner).parameters
    ]
    assert len(found) > 350
    assert ("appellate.SUREClassifier", "kernel") in found, "which a shared part documents"


def test_a_default_that_drifted_is_found():
    def drifted(n_rounds=4):
        """Do it.

        Parameters
        ----------
        n_rounds : int, default=3
            Rounds.
        """

    with pytest.raises(AssertionError, match="n_rounds: documented 3, is 4"):
        test_documented_defaults_are_those_of_the_signature(drifted)

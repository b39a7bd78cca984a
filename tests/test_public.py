"""The public face: names, laziness, version."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec

import pytest

import appellate

TABLES = {"Rectification", "load", "rectify"}  # these need the extra


def test_every_public_name_resolves():
    for name in appellate.__all__:
        if name in TABLES and find_spec("pyarrow") is None:
            with pytest.raises(ImportError, match=r"pip install 'appellate\[table\]'"):
                getattr(appellate, name)
        else:
            assert getattr(appellate, name) is not None
    assert dir(appellate) == sorted(appellate.__all__)
    assert appellate.__version__ == version("appellate")


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = appellate.Nothing


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        (
            "import appellate",
            {"sklearn", "numba", "pandas", "polars", "matplotlib", "torch", "click"},
        ),
        (
            "from appellate import PLCPClassifier, SUREClassifier",
            {
                "polars",
                "matplotlib",
                "torch",
                "click",
            },  # scikit-learn loads pandas and rich itself
        ),
    ],
)
def test_imports_stay_light(statement, absent):
    code = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not absent & set(loaded)

"""What holds where torch is not installed; these tests run there too."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["torch"] = None
import appellate, appellate.deep
assert "PRODENClassifier" in dir(appellate.deep)
try:
    appellate.deep.{name}
except ImportError as error:
    print(error)
"""

# As if it were not installed; others look it up in sys.modules, where it must not be None.
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_does_not_load_torch():
    assert run("import sys, appellate, appellate.deep; print('torch' in sys.modules)") == "False\n"


@pytest.mark.parametrize("name", ["PRODENClassifier", "Optimizer"])
def test_missing_torch_names_the_extra(name):
    message = run(WITHOUT.format(name=name))
    assert f"appellate.deep.{name} needs torch" in message
    assert "pip install 'appellate[deep]'" in message


def test_a_network_in_the_jury_names_the_extra():
    message = run(f"""{ABSENT}
from appellate import JuryClassifier
from appellate.testing import make_clusters
try:
    JuryClassifier(["network"], max_rounds=1).fit(*make_clusters()[:2])
except ImportError as error:
    print(error)
""")
    assert "pip install 'appellate[deep]'" in message


def test_unknown_name():
    from appellate import deep

    with pytest.raises(AttributeError, match="no attribute 'VALENClassifier'"):
        _ = deep.VALENClassifier

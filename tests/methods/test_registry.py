"""Short names: ours, third parties' from real entry points, and every way to get it wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import appellate
from appellate import PLCPClassifier, PLKNNClassifier
from appellate.experiments.methods import alone
from appellate.methods import available_bases, make_base, registry
from appellate.methods.registry import BASES
from appellate.methods.svm import PLSVMClassifier
from appellate.testing import make_clusters

OURS = [base.name for base in BASES]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution with entry points, and the module they name, on the path."""

    def add(distribution, entry_points, source):
        home = tmp_path / distribution
        info = home / f"{distribution}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        (info / "entry_points.txt").write_text(
            "\n".join(["[appellate.base_classifiers]", *lines, ""])
        )
        (home / f"{distribution}.py").write_text(dedent(source))
        monkeypatch.syspath_prepend(home)
        monkeypatch.delitem(sys.modules, distribution, raising=False)

    return add


MEANS = """
    import numpy as np

    class Means:
        def __init__(self, scale=1.0):
            self.scale = scale

        def get_params(self, deep=True):
            return {"scale": self.scale}

        def __sklearn_clone__(self):
            return Means(self.scale)

        def fit(self, X, candidates, supervision=None):
            weights = np.asarray(candidates if supervision is None else supervision, float)
            self.means_ = (weights.T @ X) / weights.sum(axis=0)[:, None]
            self.training_output_ = self.predict_proba(X)
            return self

        def predict_proba(self, X):
            distances = ((X[:, None] - self.means_) ** 2).sum(axis=2)
            scores = np.exp((distances.min(axis=1, keepdims=True) - distances) / 20)
            return scores / scores.sum(axis=1, keepdims=True)

    class Half:
        def fit(self, X, candidates):
            return self
"""


def test_ours_are_built_in():
    assert [name for name, home in available_bases().items() if "appellate." in home] == OURS
    assert {"knn", "sure", "aggd"} < {*OURS}
    assert isinstance(make_base("knn", n_neighbors=3), PLKNNClassifier)
    assert make_base("knn", n_neighbors=3).n_neighbors == 3
    assert isinstance(make_base("svm"), PLSVMClassifier)


@pytest.mark.parametrize("base", BASES, ids=OURS)
def test_a_row_of_the_registry_is_followed_everywhere(base):
    kind = type(make_base(base.name))
    assert f"{kind.__module__}:{kind.__name__}" == available_bases()[base.name] == base.home
    assert getattr(appellate, base.class_name) is kind
    assert f"``{base.name}``: {base.help}" in " ".join(make_base.__doc__.split())
    assert alone(base.name).title == base.title


def test_every_classifier_of_a_file_of_its_own_is_registered():
    folder = Path(registry.__file__).parent
    others = {"__init__", "partner", "plcp", "registry", "ridge", "soft_label", "typed"}
    assert {file.stem for file in folder.glob("*.py")} - others == {
        base.module.rpartition(".")[2] for base in BASES
    }


@pytest.mark.parametrize(
    ("wrong", "suggested"), [("agdd", "aggd"), ("KNN", "knn"), ("sur", "sure"), ("pl-cl", "plcl")]
)
def test_an_unknown_name_gets_a_suggestion(wrong, suggested):
    with pytest.raises(ValueError, match=rf"Did you mean '{suggested}'\? Known: .*lalo"):
        make_base(wrong)


def test_a_hopeless_name_gets_the_list_only():
    with pytest.raises(
        ValueError, match=r"Unknown base classifier 'xyzzyx'\. Known: knn, svm, sure"
    ):
        make_base("xyzzyx")


def test_unknown_parameters_are_errors():
    with pytest.raises(TypeError, match="neighbours"):
        make_base("knn", neighbours=3)


def test_a_third_party_is_found_and_works(install):
    install("means_pkg", {"means": "means_pkg:Means"}, MEANS)
    assert list(available_bases()) == [*OURS, "means"]
    assert available_bases()["means"] == "means_pkg:Means"
    base = make_base("means", scale=2.0)
    assert base.scale == 2.0
    X, candidates, truth = make_clusters()
    assert (PLCPClassifier(base).fit(X, candidates).predict(X) == truth).mean() > 0.95


def test_a_third_party_may_not_take_our_name(install):
    install("means_pkg", {"knn": "means_pkg:Means", "means": "means_pkg:Means"}, MEANS)
    for call in (available_bases, lambda: make_base("knn")):
        with pytest.raises(ValueError, match=r"'knn' is given by appellate .* and means_pkg"):
            call()
    assert isinstance(make_base("svm"), PLSVMClassifier)
    assert type(make_base("means")).__name__ == "Means"


def test_two_third_parties_may_not_share_a_name(install):
    install("one_pkg", {"means": "one_pkg:Means"}, MEANS)
    install("two_pkg", {"means": "two_pkg:Means"}, MEANS)
    for call in (available_bases, lambda: make_base("means")):
        with pytest.raises(ValueError, match=r"'means' is given by one_pkg .* and two_pkg"):
            call()
    assert isinstance(make_base("knn"), PLKNNClassifier)


@pytest.mark.parametrize(
    ("value", "source", "cause"),
    [
        ("bad_pkg:Base", "import no_such_module", "ModuleNotFoundError: .*no_such_module"),
        ("bad_pkg:Base", "raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("bad_pkg:Base", "", "AttributeError"),
        ("bad_pkg.gone:Base", "", "ModuleNotFoundError"),
    ],
)
def test_a_broken_third_party_is_named_and_harms_nobody(install, value, source, cause):
    install("bad_pkg", {"bad": value}, source)
    assert "bad" in available_bases()
    assert isinstance(make_base("knn"), PLKNNClassifier)
    with pytest.raises(ImportError, match=f"'bad' of the distribution bad_pkg .*{cause}"):
        make_base("bad")


def test_what_is_no_base_classifier_is_refused(install):
    install("half_pkg", {"half": "half_pkg:Half"}, MEANS)
    with pytest.raises(TypeError, match=r"'half' by the distribution half_pkg: .*supervision"):
        make_base("half")


def test_listing_the_names_loads_nothing():
    code = (
        "import sys; from appellate.methods import available_bases; available_bases(); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "sklearn", "numba", "appellate.core.base", "appellate.methods.knn"} & set(
        loaded
    )


def test_listing_the_names_loads_no_third_party(install):
    install("means_pkg", {"means": "means_pkg:Means"}, MEANS)
    available_bases()
    make_base("knn")
    assert "means_pkg" not in sys.modules
    make_base("means")
    assert "means_pkg" in sys.modules

"""Try a wheel as a stranger would: in empty environments, away from the source tree.

    python tools/try_wheel.py dist/appellate-*.whl            all of the below
    python tools/try_wheel.py dist/appellate-*.whl none plot  only these

none     without extras: the package imports and the core tests pass
pages    the ten-minute pages are followed to the letter, with the extras that they name
EXTRA    each by its name: installs, and what it is for works
minimum  the oldest versions that are promised (constraints-minimum.txt): the core tests and
         scikit-learn's checks without extras, then the light extras together, and hostile
         model files with them

The newest versions are those of constraints.txt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Tests of the core: they need no extra, only the tools below.
CORE = [
    "tests/methods",
    "tests/candidates",
    "tests/metrics",
    "tests/model_selection/test_scorers.py",
    "tests/numerics",
    "tests/test_base_example.py",
    "tests/test_confidence.py",
    "tests/test_docket.py",
    "tests/test_partner.py",
    "tests/test_plcp.py",
    "tests/test_public.py",
]
LIGHT = ["bench", "cli", "data", "io", "plot", "report", "table"]
# The ten-minute pages, to the letter.
PAGES = ["tests/test_documents.py", "-k", "practitioner or researcher"]
TOOLS = ["clarabel", "daqp", "hypothesis", "pytest"]
FIT = (
    "from appellate import AGGDClassifier, PLCPClassifier; "
    "from appellate.testing import make_clusters; "
    "X, y, t = make_clusters(); "
    "m = PLCPClassifier(AGGDClassifier()).fit(X, y); assert m.score(X, t) > 0.95; "
)
USES = {
    "none": FIT,
    "all": FIT + "import appellate.io, appellate.review, appellate.plotting; "
    "from appellate.cli.app import run; assert run(['demo', '--json', '--out', 'demo']) == 0",
    "bench": FIT + "import pyarrow.parquet, appellate.experiments",
    "cli": "from appellate.cli.app import run; assert run(['--version']) == 0; "
    "assert run(['datasets', 'list']) == 0; assert run(['demo', '--out', 'demo']) == 2",
    "dask": FIT + "import dask, distributed",
    "data": "import h5py, pooch; from appellate.datasets import load_partial_mat",
    "deep": "from appellate.deep import PRODENClassifier; "
    "PRODENClassifier(n_epochs=2).fit([[0.0], [1.0]], ['a|b', 'b']).predict([[0.5]])",
    "io": FIT + "from appellate.io import load_model, save_model; "
    "load_model(save_model(m, 'model')).predict(X)",
    "plot": FIT.replace("AGGDClassifier())", "AGGDClassifier(), keep_confidences=True)")
    + "from appellate.plotting import plot_trajectories; "
    "plot_trajectories(m, [0, 1])[0].figure.savefig('a.png')",
    "report": FIT + "m.docket(output='docket').to_html('docket.html')",
}


def main(wheel: str, wanted: list[str]) -> None:
    """Try every environment that is wanted; the first failure ends it."""
    path = Path(wheel).resolve()
    names = wanted or ["none", "pages", *sorted(extras_of(path)), "minimum"]
    for name in names:
        began = time.monotonic()
        if name == "minimum":
            oldest = ROOT / "constraints-minimum.txt"
            attempt(path, [], oldest, USES["none"], [*CORE, "tests/test_estimators.py"])
            attempt(path, LIGHT, oldest, USES["all"], ["tests/test_io.py"])
        elif name == "pages":
            attempt(
                path,
                ["cli", "io", "plot", "report", "table"],
                ROOT / "constraints.txt",
                FIT,
                PAGES,
            )
        else:
            chosen = [] if name == "none" else [name]
            newest = ROOT / "constraints.txt"
            attempt(path, chosen, newest, USES.get(name, FIT), CORE if name == "none" else [])
        sys.stdout.write(f"{name}: works ({time.monotonic() - began:.0f} s)\n")
        sys.stdout.flush()


def extras_of(wheel: Path) -> set[str]:
    """Return the extras that a wheel offers, without those for its developers."""
    from zipfile import ZipFile

    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    offered = {line.split()[1] for line in lines if line.startswith("Provides-Extra: ")}
    return offered - {"dev", "docs", "lint", "release", "test"}


def attempt(wheel: Path, extras: list[str], pins: Path, use: str, tests: list[str]) -> None:
    """Install into an empty environment and use the result there."""
    folder = Path(tempfile.mkdtemp(prefix="appellate-"))
    try:
        run([sys.executable, "-m", "venv", "--without-pip", "env"], folder)
        python = str(folder / "env" / "bin" / "python")
        named = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        packages = [named, *(TOOLS if tests else [])]
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
        run([*pip, "install", "-qq", "--no-compile", "--constraint", str(pins), *packages], folder)
        run([*pip, "check"], folder)
        run([python, "-W", "error::DeprecationWarning:appellate", "-c", use], folder)
        if tests:
            copy_tests(folder)
            options = [
                "-q",
                "-p",
                "no:cacheprovider",
                "-c",
                "pytest.ini",
                "--import-mode=importlib",
            ]
            run([python, "-m", "pytest", *options, *tests], folder)
    finally:
        shutil.rmtree(folder)


def copy_tests(folder: Path) -> None:
    """Copy the tests without the source, so that only the wheel can be imported."""
    shutil.copytree(ROOT / "tests", folder / "tests")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_*", "auto*"))
    shutil.copy(ROOT / "README.md", folder)
    markers = "".join(f"  {name}\n" for name in ("slow", "realdata", "timeout"))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = .\nmarkers =\n{markers}")


def run(command: list[str], folder: Path) -> None:
    """Run a command quietly; show what it said if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:300]}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

"""Models in files: skops for the estimator, JSON for what a person wants to know of it.

A model is a folder with two files. ``model.skops`` holds the estimator, often a scikit-learn
pipeline that ends in a classifier of this library; its arrays are plain ``.npy`` members of a
zip archive. ``meta.json`` holds versions, classes and a check sum. Pickle is never read: a
file can name no type beyond scikit-learn's own and `TRUSTED_TYPES`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from appellate._votes import scalars

__all__ = ["TRUSTED_TYPES", "ModelFileError", "load_model", "read_meta", "save_model"]

FORMAT = "appellate-model"
FORMAT_VERSION = 1
MODEL_FILE = "model.skops"
META_FILE = "meta.json"

#: Types that a model file may name beside those that skops knows from scikit-learn.
TRUSTED_TYPES = (
    "appellate.aggd.AGGDClassifier",
    "appellate.jurors.Decision",
    "appellate.jurors.KnownLabels",
    "appellate.jurors.Layers",
    "appellate.jurors.LogShares",
    "appellate.jurors.Trees",
    "appellate.jury.JuryClassifier",
    "appellate.jury.Seat",
    "appellate.lalo.LALOClassifier",
    "appellate.model_selection.search.PLCPClassifierCV",
    "appellate.model_selection.splits.CandidateKFold",
    "appellate.model_selection.splits.CandidateStratifiedKFold",
    "appellate.neighbors.PLKNNClassifier",
    "appellate.numerics.kernels.GaussianKernel",
    "appellate.numerics.kernels.LinearKernel",
    "appellate.numerics.ridge.Regressor",
    "appellate.numerics.search.FaissNeighbors",
    "appellate.numerics.search.NeighborSearch",
    "appellate.partner.PartnerClassifier",
    "appellate.plcl.PLCLClassifier",
    "appellate.plcp.PLCPClassifier",
    "appellate.plcp.Round",
    "appellate.sure.SUREClassifier",
    "appellate.svm.PLSVMClassifier",
    "numpy.dtype",
    "pathlib.PosixPath",
    "scipy.sparse._csr.csr_array",
)


class ModelFileError(ValueError):
    """A model folder that cannot be read, or that must not be."""


def save_model(
    model: Any, path: str | os.PathLike[str], *, meta: Mapping[str, Any] | None = None
) -> Path:
    """Write a fitted model as a folder; it appears whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted classifier of this library, or a scikit-learn pipeline that ends in one.
    path : str or path
        The folder to write. One that holds a model is replaced, any other is left alone.
    meta : mapping, default=None
        More for ``meta.json``, in JSON's types.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ModelFileError
        If the model has parts of types that `load_model` would refuse.
    FileExistsError
        If the path is there and holds no model.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import SUREClassifier
    >>> model = SUREClassifier().fit([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = load_model(save_model(model, f"{folder}/model"))
    >>> same.predict([[0.1]])
    array(['a'], dtype='<U1')
    """
    skops = _skops()
    target = Path(path)
    if target.exists() and not _is_model(target):
        raise FileExistsError(f"'{target}' is there and holds no model; name another folder.")
    if type(model).__module__.startswith("appellate.deep."):
        raise ModelFileError(
            "a deep classifier is one safetensors file; write it with appellate.deep.save_model."
        )
    content = skops.dumps(model)
    strange = _untrusted(skops, content)
    if strange:
        raise ModelFileError(
            f"the model has parts of {_types(strange)}, which load_model would refuse. If they "
            "are your own, write the model with skops.io.dump and name them when you read it."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=".appellate-model-", dir=target.parent))
    try:
        (stage / MODEL_FILE).write_bytes(content)
        document = {**_describe(model, content), **(meta or {})}
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        (stage / META_FILE).write_text(text + "\n", encoding="utf-8")
        stage.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        os.replace(stage, target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return target


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save_model` wrote.

    Parameters
    ----------
    path : str or path
        The folder.
    trusted : sequence of str, default=()
        Names of further types to admit, such as a base classifier of your own. Naming a type
        lets the file make objects of it: look at its code first.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ModelFileError
        If it holds no model of ours, was damaged, was written by another major version, or
        names a type that is not trusted; pickle files are refused unread.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import SUREClassifier
    >>> model = SUREClassifier().fit([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, f"{folder}/model")
    ...     print(load_model(path).predict([[0.1]]))
    ['a']
    """
    folder = Path(path)
    document = read_meta(folder)
    content = (folder / MODEL_FILE).read_bytes()
    if hashlib.sha256(content).hexdigest() != document.get("sha256"):
        raise ModelFileError(
            f"'{folder / MODEL_FILE}' is not the file that {META_FILE} describes: it is damaged "
            "or was replaced. Write the model again."
        )
    skops = _skops()
    try:
        strange = _untrusted(skops, content, trusted)
        if strange:
            raise ModelFileError(
                f"'{folder}' names {_types(strange)}, which is not trusted, so nothing of it was "
                "loaded. If you know where the file comes from, pass trusted=[...]."
            )
        return skops.loads(content, trusted=_found(skops, content))
    except (zipfile.BadZipFile, KeyError, TypeError, AttributeError, ImportError) as error:
        raise ModelFileError(f"'{folder / MODEL_FILE}' cannot be read: {error}") from error


def read_meta(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check ``meta.json`` of a model folder, without the model.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    dict
        Versions, classes, features and whatever `save_model` was given as `meta`.

    Raises
    ------
    FileNotFoundError, ModelFileError
        As `load_model` does.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import SUREClassifier
    >>> model = SUREClassifier().fit([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, f"{folder}/model", meta={"source": "somewhere"})
    ...     read_meta(path)["classes"], read_meta(path)["source"]
    (['a', 'b'], 'somewhere')
    """
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"there is no model '{folder}'.")
    if folder.is_file():
        raise ModelFileError(_refuse_file(folder))
    missing = [name for name in (META_FILE, MODEL_FILE) if not (folder / name).is_file()]
    if missing:
        raise ModelFileError(
            f"'{folder}' holds no model: there is no {' and no '.join(missing)} in it."
        )
    try:
        document = json.loads((folder / META_FILE).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"'{folder / META_FILE}' cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"'{folder / META_FILE}' does not describe a model of appellate.")
    _check_versions(folder, document)
    return document


def _check_versions(folder: Path, document: dict[str, Any]) -> None:
    theirs, ours = str(document.get("appellate", "")), _version("appellate")
    if document.get("format_version") != FORMAT_VERSION or _major(theirs) != _major(ours):
        raise ModelFileError(
            f"'{folder}' was written by appellate {theirs or '(unknown)'} (model format "
            f"{document.get('format_version')}); this is {ours}, which reads format "
            f"{FORMAT_VERSION} of its own major version. Install appellate {theirs}, or fit the "
            "model again."
        )
    written, here = str(document.get("scikit-learn", "")), _version("scikit-learn")
    if written.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"'{folder}' was written with scikit-learn {written or '(unknown)'}; this is {here}. "
            "Predictions may differ; compare a few, or fit the model again.",
            UserWarning,
            stacklevel=4,
        )


def _describe(model: Any, content: bytes) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    classes = np.asarray(getattr(model, "classes_", ()))
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "appellate": _version("appellate"),
        "scikit-learn": _version("scikit-learn"),
        "numpy": _version("numpy"),
        "skops": _version("skops"),
        "model": repr(model),
        "classes": [_json_safe(name) for name in scalars(classes)],
        "feature_names": None if names is None else [str(name) for name in names],
        "n_features": getattr(model, "n_features_in_", None),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _json_safe(value: Any) -> Any:
    return value if isinstance(value, (str, int, bool)) or value is None else str(value)


def _is_model(folder: Path) -> bool:
    try:
        document = json.loads((folder / META_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def _refuse_file(file: Path) -> str:
    with file.open("rb") as stream:
        pickled = stream.read(1) == b"\x80"
    if pickled or file.suffix in (".pkl", ".pickle", ".joblib"):
        return (
            f"'{file}' is a pickle, which can run any code when it is read; appellate never "
            "reads one. Write the model with appellate.io.save_model."
        )
    return f"'{file}' is a file; a model is the folder that appellate.io.save_model writes."


def _found(skops: Any, content: bytes) -> list[str]:
    found: list[str] = skops.get_untrusted_types(data=content)
    return found


def _untrusted(skops: Any, content: bytes, trusted: Sequence[str] = ()) -> list[str]:
    """Types named by a file that are neither skops's, ours nor the caller's."""
    return sorted(set(_found(skops, content)) - {*TRUSTED_TYPES, *trusted})


def _types(names: Sequence[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _skops() -> Any:
    if find_spec("skops") is None:
        raise ImportError("Model files need skops: pip install 'appellate[io]'")
    import skops.io

    return skops.io


def _major(number: str) -> str:
    return number.split(".", 1)[0]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"

"""Models in files: skops for the estimator, JSON with its description for readers.

A model, shallow or deep, is a folder with two files. ``model.skops`` holds the estimator, often
a scikit-learn pipeline that ends in a classifier of this library; its arrays are plain ``.npy``
members of a zip archive. ``meta.json`` holds versions, classes, and name and check sum of the
other. Pickle is never read, and a file can name no type beyond scikit-learn's own, the classes
of this library and what the caller trusts.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from inspect import isabstract, isclass
from io import BytesIO
from math import prod
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from appellate._files import MemberError, finish_folder, read_json, read_member, whole_folder
from appellate._text import import_extra
from appellate.candidates.names import scalars
from appellate.methods import available_bases

__all__ = ["ModelFileError", "load_model", "read_meta", "save_model"]

MODEL_FORMAT = "appellate-model"
MODEL_VERSION = 2
MODEL_FILE = "model.skops"
META_FILE = "meta.json"

_LARGEST_META = 64 << 20
_LARGEST = 16 << 30
# Alone compressed: those of skrub's encoders repeat themselves. A table of 300 columns has 8 MB.
_SMALL, _RATIO = 64 << 20, 100  # bytes that a sparse matrix unpacks to; or so many times its size
_SCHEMA, _LARGEST_SCHEMA = "schema.json", 256 << 20
_LARGEST_TREE = 1 << 30  # bytes that the objects of a schema may take in memory
_WEIGHTS = {b"{": 256, b"[": 64, b",": 64}  # bytes that each of them takes there, at most
# Rooms of this library whose classes are parts of no model.
_NO_MODELS = {"__main__", "cli", "datasets", "experiments", "review", "testing"}
# Parts of skrub's encoders of tables, and functions that tell kinds of columns apart.
_SKRUB_TYPES = """
    _apply_to_each_col.ApplyToEachCol _check_input.CheckInputDataFrame
    _clean_categories.CleanCategories _clean_null_strings.CleanNullStrings
    _datetime_encoder.DatetimeEncoder _drop_uninformative.DropUninformative
    _duration_to_float.DurationToFloat _string_encoder.StringEncoder
    _table_vectorizer.PassThrough _table_vectorizer.ShortReprDict _table_vectorizer.TableVectorizer
    _to_categorical.ToCategorical _to_datetime.ToDatetime _to_float.ToFloat _to_str.ToStr
    selectors._base.All selectors._base.And selectors._base.Cols
    selectors._base.Filter selectors._base.Or selectors._base.Sub
"""
_SKRUB_FUNCTIONS = """
    _dataframe._common.is_any_date _dataframe._common.is_categorical _dataframe._common.is_numeric
    _table_vectorizer._created_by_predicate selectors._selectors._cardinality_below
"""
# What else a model is made of, and how a file may make it.
_PLAIN_TYPES = {
    "numpy.dtype": ("DTypeNode",),
    "pathlib.Path": ("ConstructorFromReduceNode",),
    "scipy.sparse._csr.csr_array": ("SparseMatrixNode", "ObjectNode"),
    "sklearn.compose._column_transformer._RemainderColsList": ("ObjectNode",),  # 1.6 has it
    **{f"skrub.{name}": ("ObjectNode",) for name in _SKRUB_TYPES.split()},
    **{f"skrub.{name}": ("FunctionNode",) for name in _SKRUB_FUNCTIONS.split()},
}
# They call what a file names; no model needs them.
_CALLS = {"MethodNode", "OperatorFuncNode"}
# Ways to make an object of ours, which then gets its attributes; nothing of it is called.
_MADE = {"ObjectNode", "TupleNode"}


# Parts of scikit-learn that hold no estimator.
_NO_ESTIMATORS = {
    "conftest", "datasets", "estimator_checks", "experimental", "externals", "inspection",
    "metrics", "tests", "utils",
}  # fmt: skip


class ModelFileError(ValueError):
    """A model folder that cannot be read, or that is not safe to read."""


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    meta: Mapping[str, Any] | None = None,
    trusted: Iterable[str | type] = (),
) -> Path:
    """Write a fitted model as a folder; it appears whole or not at all.

    Over an earlier model too: whenever that is interrupted, either of them is there whole.

    Parameters
    ----------
    model : estimator
        A fitted classifier of this library, or a scikit-learn pipeline that ends in one.
    path : str or path
        The folder to write. A model in it is replaced; a folder of anything else is left alone.
    meta : mapping, default=None
        More for ``meta.json``, in JSON's types.
    trusted : iterable of str or type, default=()
        Types of parts that are neither scikit-learn's nor this library's, such as a base
        classifier of your own. `load_model` must be given them as well.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    TypeError
        If it is not a model.
    ModelFileError
        If the model has parts that `load_model` would refuse, or that cannot be written.
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
    if isclass(model) or not hasattr(model, "predict"):
        raise TypeError(
            "model must be a fitted classifier, or a pipeline that ends in one; got "
            f"{type(model).__name__}."
        )
    target = Path(path)
    if target.exists() and not _is_ours(target):
        raise FileExistsError(f"'{target}' exists and holds no model. Name another folder.")
    skops = _import_skops()
    try:
        content = _pack(skops, model)
        _, strange = _look_through(skops, content, _LARGEST, trusted)
    except Exception as error:  # whatever the model is made of
        raise ModelFileError(f"the model cannot be written: {error}") from error
    if strange:
        raise ModelFileError(
            f"the model has parts of {_types(strange)}, which load_model would refuse. If you "
            f"trust their code, name them here and when you read it: trusted={strange}."
        )
    names = getattr(model, "feature_names_in_", None)
    classes = np.asarray(getattr(model, "classes_", ()))
    document = {
        "format": MODEL_FORMAT,
        "format_version": MODEL_VERSION,
        **{name: version(name) for name in ("appellate", "scikit-learn", "numpy", "skops")},
        "model": _describe(model),
        "classes": [c if isinstance(c, str | int) else str(c) for c in scalars(classes)],
        "feature_names": None if names is None else [str(name) for name in names],
        "n_features": getattr(model, "n_features_in_", None),
        "file": MODEL_FILE,
        "sha256": hashlib.sha256(content).hexdigest(),
        **(meta or {}),
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    with whole_folder(target, owned=(MODEL_FILE, META_FILE)) as stage:
        (stage / MODEL_FILE).write_bytes(content)
        (stage / META_FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return target


def _describe(model: Any) -> str:
    """Return the repr of a model; of a pipeline only the types of the steps before the last.

    These may have thousands of columns, and scikit-learn writes all of them before it cuts.
    """
    steps = getattr(model, "steps", None)
    if not steps:
        return repr(model)
    named = [type(step).__name__ for _, step in steps[:-1]]
    return f"{type(model).__name__}({', '.join([*named, repr(steps[-1][1])])})"


def load_model(
    path: str | os.PathLike[str], *, trusted: Iterable[str | type] = (), max_bytes: int = _LARGEST
) -> Any:
    """Read a model that `save_model` wrote.

    Nothing that the file names is called or imported before all of it was looked through.

    Parameters
    ----------
    path : str or path
        The folder.
    trusted : iterable of str or type, default=()
        Further types to admit, such as a base classifier of your own. Naming a type lets the
        file make objects of it: look at its code first.
    max_bytes : int, default=16 GiB
        Files that are larger, or become so when they are unpacked, are refused before that. The
        description of the model's parts (``schema.json``) counts too.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    ModelFileError
        If it holds no model of ours, is damaged or too large, was written by another version,
        or names a type that is not trusted; pickle files are refused unread.

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
    file = folder / MODEL_FILE
    with _refusing(file):
        content = read_member(folder, MODEL_FILE, max_bytes)
    if hashlib.sha256(content).hexdigest() != document.get("sha256"):
        raise ModelFileError(
            f"'{file}' is not the file that {META_FILE} describes: it is damaged or was replaced. "
            "Write the model again."
        )
    skops = _import_skops()
    with _refusing(file):
        named, strange = _look_through(skops, content, max_bytes, trusted)
        if strange:
            raise ModelFileError(
                f"'{folder}' names {_types(strange)}, not trusted, so nothing was loaded. If you "
                f"know its source: load_model(..., trusted={strange})."
            )
        return skops.loads(content, trusted=named)


def read_meta(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check ``meta.json`` of a model folder, without the model.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    dict
        Versions, classes, features and whatever `save_model` was given as `meta`; the sizes
        and types of what it was given are for its reader to check.

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
    with _refusing(folder):
        finish_folder(folder)
    if not folder.exists():
        raise FileNotFoundError(f"cannot find the model '{folder}'.")
    if folder.is_file():
        with folder.open("rb") as stream:
            pickled = stream.read(1) == b"\x80"
        if pickled or folder.suffix in (".pkl", ".pickle", ".joblib"):
            raise ModelFileError(
                f"'{folder}' is a pickle, which can run any code when it is read; appellate never "
                "reads one. Write the model with appellate.io.save_model."
            )
        raise ModelFileError(
            f"'{folder}' is a file; a model is the folder that appellate.io.save_model writes."
        )
    if not os.path.lexists(folder / META_FILE):
        raise ModelFileError(f"'{folder}' holds no model: {META_FILE} is missing.")
    with _refusing(folder / META_FILE):
        document = read_json(folder, META_FILE, _LARGEST_META)
    if not isinstance(document, dict) or document.get("format") != MODEL_FORMAT:
        raise ModelFileError(f"'{folder / META_FILE}' does not describe a model of appellate.")
    theirs, ours = str(document.get("appellate", "")), version("appellate")
    same = theirs.partition(".")[0] == ours.partition(".")[0]
    if document.get("format_version") != MODEL_VERSION or not same:
        raise ModelFileError(
            f"'{folder}' was written by appellate {theirs or '(unknown)'} (model format "
            f"{document.get('format_version')}); this is {ours}, which reads format "
            f"{MODEL_VERSION} of its own major version. Install appellate {theirs}, or fit the "
            "model again."
        )
    written, here = str(document.get("scikit-learn", "")), version("scikit-learn")
    if written.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"'{folder}' was written with scikit-learn {written or '(unknown)'}; this is {here}. "
            "Predictions may differ; compare a few, or fit the model again.",
            UserWarning,
            stacklevel=3,
        )
    file = document.get("file")
    if file != MODEL_FILE or not os.path.lexists(folder / MODEL_FILE):
        raise ModelFileError(f"'{folder}' holds no model: {file or MODEL_FILE} is missing.")
    if not isinstance(document.get("classes"), list):
        raise ModelFileError(f"'{folder / META_FILE}' does not name the classes of the model.")
    return document


_importing = Lock()


def _import_skops() -> Any:
    """Import skops without torch, dask and scikit-learn's data sets and tests.

    skops lists scikit-learn's estimators. scikit-learn's own search for them imports every
    package that it has, and some of these import other libraries: 1.4 CPU seconds and 185 MiB.
    """
    import sklearn.utils

    with _importing:
        search = sklearn.utils.all_estimators
        sklearn.utils.all_estimators = _list_estimators
        try:
            return import_extra("skops.io._persist", "A model file", "io")
        finally:
            sklearn.utils.all_estimators = search


def _list_estimators() -> list[tuple[str, type]]:
    """List what `sklearn.utils.all_estimators` does, from the packages that hold estimators."""
    import sklearn
    from sklearn.base import BaseEstimator

    found = set[type]()
    homes = [("sklearn", sklearn.__path__)]
    for package, path in homes:
        for _, name, is_package in iter_modules(path):
            if name.startswith("_") or name in _NO_ESTIMATORS:
                continue
            module = import_module(f"{package}.{name}")
            kinds = {each for each in vars(module).values() if isclass(each)}
            found |= {kind for kind in kinds if issubclass(kind, BaseEstimator)}
            if is_package:
                homes.append((module.__name__, module.__path__))
    public = {kind.__name__: kind for kind in found - {BaseEstimator} if not isabstract(kind)}
    return sorted(each for each in public.items() if not each[0].startswith("_"))


# -- what a file may name --------------------------------------------------------------------


def _look_through(
    skops: Any, content: bytes, max_bytes: int, trusted: Iterable[str | type]
) -> tuple[list[str], list[str]]:
    """Name the types in a file that skops does not know, and those of them that nobody trusts.

    In addition to the caller's, base classifiers that installed distributions register are
    trusted. Raises where the file is hostile or too large.
    """
    given = [trusted] if isinstance(trusted, str | type) else trusted
    known = {t if isinstance(t, str) else f"{t.__module__}.{t.__name__}" for t in given}
    known |= {home.replace(":", ".") for home in available_bases().values()}
    own = set[str]()
    others = set[str]()
    unpacked = dict[Any, int]()
    with ZipFile(BytesIO(content)) as archive:
        members = archive.infolist()
        foreign = any(
            each.filename != _SCHEMA for each in members if each.compress_type != ZIP_STORED
        )
        if foreign or sum(each.compress_size for each in members) > len(content):
            raise ValueError("its parts are compressed or overlap, as in no model of ours.")
        text = _read_schema(archive, max_bytes)
        unpacked[_SCHEMA] = len(text)
        schema = json.loads(text)
        if schema["protocol"] not in range(skops.SaveContext.protocol + 1):
            raise ValueError(f"this skops does not know its protocol {schema['protocol']!r}.")
        for node in _nodes(schema):
            name, loader = f"{node['__module__']}.{node['__class__']}", node["__loader__"]
            if loader in _CALLS:
                raise ValueError(f"it holds a method of {name}, which no model needs.")
            vouched = loader in _PLAIN_TYPES.get(name, _MADE if _is_own(name) else ())
            (own if vouched else others).add(name)
            if "file" in node:
                key = node["file"], node.get("__id__") or len(unpacked)
                unpacked[key] = _unpacked_size(archive, node["file"], max_bytes)
    _check_size(sum(unpacked.values()), max_bytes)
    named = skops.get_untrusted_types(data=content)
    return named, sorted({*named} - (own - others) - known)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that a schema describes, in their order, without recursion."""
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                yield part
            left.extend(reversed(part.values()))
        elif isinstance(part, list | tuple):
            left.extend(reversed(part))


def _is_own(name: str) -> bool:
    """Whether a name is that of a class of this library that can be part of a model."""
    module, _, kind = name.rpartition(".")
    rooms = module.split(".")
    if rooms[0] != "appellate" or _NO_MODELS.intersection(rooms):
        return False
    try:
        found = getattr(import_module(module), kind, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module and not hasattr(found, "__del__")


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ValueError(f"it unpacks to more than max_bytes={max_bytes}.")


def _read_schema(archive: ZipFile, max_bytes: int) -> bytes:
    """Unpack the schema, bit by bit, as long as it can be a schema of ours.

    A list takes 64 bytes in memory and 3 in a file, of which deflating leaves nearly nothing.
    """
    parts = list[bytes]()
    size = 0
    weight = 0
    with archive.open(_SCHEMA) as stream:
        while part := stream.read(1 << 20):
            parts.append(part)
            size += len(part)
            weight += sum(part.count(mark) * each for mark, each in _WEIGHTS.items())
            _check_size(size, max_bytes)
            if size > _LARGEST_SCHEMA or weight > _LARGEST_TREE:
                raise ValueError(f"its {_SCHEMA} is larger than that of any model of ours.")
    return b"".join(parts)


def _unpacked_size(archive: ZipFile, name: str, max_bytes: int, *, inner: bool = False) -> int:
    """Bytes that an array takes; raises if it says more than the file holds, or is a bomb."""
    size = archive.getinfo(name).file_size
    _check_size(size, max_bytes)  # before anything of it is unpacked
    if name.endswith(".npz") and not inner:
        with ZipFile(BytesIO(archive.read(name))) as within:
            names = within.namelist()
            inside = sum(_unpacked_size(within, each, max_bytes, inner=True) for each in names)
        if inside > max(_SMALL, _RATIO * size):
            raise ValueError(f"its {name} unpacks to {_RATIO} times its size and more.")
        return size + inside
    if not name.endswith(".npy"):
        return size
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        header = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, _, dtype = getattr(np.lib.format, header)(stream)
    if prod(shape) * dtype.itemsize > size:
        raise ValueError(f"its {name} says that it is larger than it is.")
    return size


# -- what is written -------------------------------------------------------------------------


class _Members(dict[str, bytes]):
    """What skops takes for a zip archive: it asks for every array whether it is there."""

    writestr = dict.__setitem__

    def namelist(self) -> _Members:
        return self


def _pack(skops: Any, model: Any) -> bytes:
    """Write a model as `skops.io.dumps` does, but every object once.

    There each is spelled out wherever another refers to it, in lines of one word: skrub's encoders
    refer to each other so often that 56 columns came to 130 MB. A reader of skops knows an object
    again by its number. Paths can be read on any system: a file names ``Path``, not the kind of
    path that this one has. Objects are numbered in order, not by their address, and nothing has a
    date, so that equal models are equal files.
    """
    out = BytesIO()
    written = set[int]()
    numbers = dict[int, int]()
    members = _Members()
    schema = skops.get_state(model, context := skops.SaveContext(members))
    schema |= {"protocol": context.protocol, "_skops_version": version("skops")}
    with ZipFile(out, "w") as archive:
        for node in _nodes(schema):
            number = numbers.setdefault(node["__id__"], len(numbers) + 1)
            if node["__class__"] in ("PosixPath", "WindowsPath"):
                node["__module__"], node["__class__"] = "pathlib", "Path"
            if node["__loader__"] == "ObjectNode" and "content" in node:
                if node["__id__"] in written:
                    node["content"] = {}  # never looked at
                written.add(node["__id__"])
            node["__id__"] = number
            if "file" in node:
                content = members.pop(node["file"], None)
                node["file"] = f"{number}{Path(node['file']).suffix}"
                if content is not None and node["file"] not in archive.NameToInfo:
                    archive.writestr(_member(node["file"]), content)
        archive.writestr(_member(_SCHEMA), json.dumps(schema), ZIP_DEFLATED)
    return out.getvalue()


def _member(name: str) -> ZipInfo:
    """Describe a member of a zip archive without a date."""
    member = ZipInfo(name)
    member.external_attr = 0o600 << 16
    return member


def _is_ours(folder: Path) -> bool:
    """Whether a folder may be written to: it holds a model, or nothing."""
    finish_folder(folder)
    if folder.is_dir() and not any(folder.iterdir()):
        return True
    try:
        document = read_json(folder, META_FILE, _LARGEST_META)
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == MODEL_FORMAT


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    """Turn whatever a bad file leads to into one error that names it."""
    try:
        yield
    except ModelFileError:
        raise
    except MemberError as error:
        raise ModelFileError(str(error)) from error
    except Exception as error:
        said = str(error) or type(error).__name__
        raise ModelFileError(f"'{file}' cannot be read: {said}") from error


def _types(names: list[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {', '.join(names)}"

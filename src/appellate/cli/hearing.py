"""Fit base and partner to a table: the pipeline that is saved, and the docket it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.errors import UserError, in_options
from appellate.cli.roles import Case

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.docket import Docket
    from appellate.review import Decisions

LARGE = 12_000  # samples above which features are float32, and compared by few components
N_SHOWN_NEIGHBORS = 5
_CHUNK_ROWS = 20_000
_SEARCH_COMPONENTS = 32
_OPTIONS = {"cache_dir": "--cache-dir", "n_landmarks": "--landmarks"}


@dataclass(frozen=True)
class Setting:
    """How to fit.

    Attributes
    ----------
    base : str
        Short name of the base classifier.
    kernel : {"exact", "nystroem"}
        Whether the kernel matrix is formed or approximated.
    seed : int
        Of everything random.
    why : str
        Why these were chosen, and what they cost, for the user.
    n_landmarks : int
        Of the approximation.
    params : dict or None
        Parameters of PLCP, where they were selected.
    cost : object
        What a wrong label costs, as `PLCPClassifier` takes it.
    cache_dir : Path or None
        Folder for the features of the approximation.
    scheduler : str or None
        Address of a Dask scheduler whose workers keep them.
    """

    base: str
    kernel: str
    seed: int
    why: str
    n_landmarks: int = 0
    params: dict[str, Any] | None = None
    cost: Any = None
    cache_dir: Path | None = None
    scheduler: str | None = None


def choose(case: Case, given: dict[str, Any], cost: Any = None) -> Setting:
    """Settle base and kernel for a case; what the user names is kept."""
    from appellate.bases import make_base
    from appellate.numerics.kernels import GaussianKernel
    from appellate.numerics.memory import represent

    n, l = case.sets.shape
    q = len(case.features) if case.embeddings is None else case.embeddings.shape[1]
    cluster, named = given["scheduler"] is not None, make_base(given["base"] or "aggd")
    if cluster and given["kernel"] == "exact":
        raise UserError("--scheduler needs --kernel nystroem: the exact kernel is not divided.")
    try:
        kernels: list[Any] = getattr(named, "_kernels", list)()
        plan = represent(
            GaussianKernel(approximation=given["kernel"], **_approximation(given)),
            (n, q),
            l,
            _dtype(case),
            local=not cluster,
            n_matrices=1 + 2 * max(1, len(kernels)),
        )
    except MemoryError as error:
        raise UserError(in_options(str(error), _OPTIONS)) from error
    exact, base, why = plan.kind == "exact", given["base"], plan.message.rstrip(".")
    unused = [o for o in ("landmarks", "cache_dir") if exact and given[o] is not None]
    if unused:
        names = " and ".join(f"--{option.replace('_', '-')}" for option in unused)
        why += f"; {names} not used, because they are for --kernel nystroem"
    if base is None and not exact:
        why += "; SURE as base, "
        slow = "because PL-AGGD's neighbour graph is slow at this size"
        why += slow if n > LARGE else "the default with this kernel"
    return Setting(
        base or ("aggd" if exact else "sure"),
        plan.kind,
        given["seed"],
        why,
        plan.n_landmarks,
        cost=cost,
        cache_dir=given["cache_dir"],
        scheduler=given["scheduler"],
    )


def _approximation(given: dict[str, Any]) -> dict[str, Any]:
    """Landmarks and folder, which an exact kernel has no use for."""
    if given["kernel"] == "exact":
        return {}
    folder = given["cache_dir"]
    return {
        "n_landmarks": given["landmarks"],
        "cache_dir": None if folder is None else str(folder),
    }


def make_frame(case: Case) -> Any:
    """Return the features as a data frame with their names, embeddings as an array."""
    kind = _dtype(case)
    if case.embeddings is not None:
        return case.embeddings.astype(kind, copy=False)
    return frame_of(
        {k: v if v.dtype == object else v.astype(kind) for k, v in case.features.items()}
    )


def frame_of(columns: dict[str, NDArray[Any]]) -> Any:
    """Make a data frame with pandas, or polars if that is all there is."""
    from importlib.util import find_spec

    import narwhals as nw

    backend = next(filter(find_spec, ("pandas", "polars")), None)
    if backend is None:
        raise UserError("rectify and predict need pandas or polars: pip install 'appellate[io]'")
    data = {k: v.tolist() if v.dtype == object else v for k, v in columns.items()}
    chosen: Any = backend
    return nw.from_dict(data, backend=chosen).to_native()


def build(case: Case, setting: Setting) -> Any:
    """Build the pipeline: imputation, scaling, one-hot columns, PLCP."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from appellate.bases import make_base
    from appellate.numerics.kernels import GaussianKernel
    from appellate.plcp import PLCPClassifier

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    if case.embeddings is not None:
        prepare: Any = numbers
    else:
        categories = OneHotEncoder(
            handle_unknown="ignore", sparse_output=False, dtype=_dtype(case)
        )
        texts = [name for name, values in case.features.items() if values.dtype == object]
        plain = [name for name in case.features if name not in texts]
        parts = [("numbers", numbers, plain), ("categories", categories, texts)]
        prepare = ColumnTransformer([part for part in parts if part[2]])
    steps = [("prepare", prepare)]
    options: dict[str, Any] = {
        "keep_confidences": True,
        "random_state": setting.seed,
        "cost": setting.cost,
    }
    params = dict(setting.params or {})
    kernel = GaussianKernel(params.pop("bandwidth", 1.0), approximation=setting.kernel)
    if setting.kernel == "nystroem":
        folder = None if setting.cache_dir is None else str(setting.cache_dir)
        kernel.set_params(n_landmarks=setting.n_landmarks, cache_dir=folder)
    options |= {"kernel": kernel, **params}
    try:
        base = make_base(setting.base)
        known = base.get_params() if hasattr(base, "get_params") else {}
        if isinstance(known.get("kernel"), str):
            tied = {name: v for name, v in params.items() if name == "regularization"}
            base.set_params(kernel=kernel, **tied)
        steps.append(("plcp", PLCPClassifier(base, **options)))
    except (ValueError, ImportError, TypeError) as error:
        raise UserError(f"--base {setting.base}: {error}") from error
    return Pipeline(steps)


def _dtype(case: Case) -> Any:
    """Half the memory and twice the speed where there are many samples."""
    import numpy as np

    return np.float32 if len(case) > LARGE else np.float64


@dataclass
class Hearing:
    """A fitted pipeline and what it says of its training samples.

    Attributes
    ----------
    pipeline : Pipeline
        To be saved.
    docket : Docket
        All samples, also those that a review excluded from training.
    """

    pipeline: Any
    docket: Docket


def hear(
    case: Case, frame: Any, setting: Setting, truth: Any = None, decisions: Decisions | None = None
) -> Hearing:
    """Fit and tabulate; reviewed rows are certain, those of which no label is true left out."""
    import numpy as np

    pipeline = build(case, setting)
    sets, kept = case.sets, np.ones(len(case), dtype=bool)
    if decisions is not None:
        sets, kept = decisions.apply(sets)
    rows = np.flatnonzero(kept)
    if rows.size < 2:
        raise UserError(
            f"the decisions exclude {len(kept) - rows.size} of {len(kept)} samples, and nothing "
            "can be learned from what is left. Take some of them back (decision 'clear'), or run "
            "without --decisions."
        )
    try:
        _fit(pipeline, take(frame, rows), sets[rows], setting.scheduler)
    except np.linalg.LinAlgError as error:
        raise UserError(f"{error} Try another --base.") from error
    model = pipeline[-1]
    docket = model.docket(ids=[case.ids[i] for i in rows.tolist()], output="docket")
    full = _restore(docket, case, frame, pipeline, kept) if decisions is not None else docket
    model.history_ = [
        replace(each, base_confidence=None, partner_confidence=None) for each in model.history_
    ]
    model.ids_ = None
    model.kernel.cache_dir = None  # a folder of this machine says nothing to whoever loads it
    return Hearing(pipeline, replace(full, truth=truth))


def _fit(pipeline: Any, frame: Any, sets: Any, scheduler: str | None) -> None:
    """Fit the pipeline; its last step on a cluster, if one is named."""
    if scheduler is None:
        pipeline.fit(frame, sets)
        return
    from appellate.experiments.cluster import ClusterError, connect

    try:
        with connect(1, scheduler, "leave --scheduler out to fit in this process"):
            import dask.array as da

            rows = pipeline[:-1].fit_transform(frame)
            pipeline[-1].fit(da.from_array(rows, chunks=(_CHUNK_ROWS, -1)), sets)  # type: ignore[no-untyped-call]
    except ClusterError as error:
        raise UserError(str(error)) from error


def take(frame: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a data frame or an array."""
    import narwhals as nw
    import numpy as np

    if isinstance(frame, np.ndarray):
        return frame[rows]
    return nw.from_native(frame, eager_only=True)[rows.tolist()].to_native()


def _restore(
    docket: Docket, case: Case, frame: Any, pipeline: Any, kept: NDArray[np.bool_]
) -> Docket:
    """Put excluded rows back into the docket, with what the model says of them."""
    import numpy as np

    from appellate.costs import expected_costs

    out = np.flatnonzero(~kept)
    shares = np.zeros((len(case), case.sets.shape[1]), dtype=docket.appeal_confidence.dtype)
    if out.size:
        guess = np.where(case.sets.matrix[out], pipeline.predict_proba(take(frame, out)), 0)
        guess += 1e-12 * case.sets.matrix[out]
        shares[out] = guess / guess.sum(axis=1, keepdims=True)

    def fill(part: NDArray[Any]) -> NDArray[Any]:
        whole = shares.copy()
        whole[kept] = part
        return whole

    labels = np.zeros((len(docket.label_history), len(case)), dtype=np.intp)
    if out.size:
        value = shares[out] if docket.cost is None else -expected_costs(shares[out], docket.cost)
        labels[:, out] = np.where(case.sets.matrix[out], value, -np.inf).argmax(axis=1)
    labels[:, kept] = docket.label_history
    return replace(
        docket,
        candidates=case.sets.matrix | (fill(docket.appeal_confidence) > 0),
        verdict_confidence=fill(docket.verdict_confidence),
        appeal_confidence=fill(docket.appeal_confidence),
        label_history=labels,
        ids=case.ids,
        rounds=None if docket.rounds is None else tuple(fill(r) for r in docket.rounds),
    )


def find_neighbors(pipeline: Any, frame: Any, k: int = N_SHOWN_NEIGHBORS) -> NDArray[Any]:
    """Nearest other samples of every sample, (n, k), in the scaled features.

    Many samples with many features are compared by their first principal components.
    """
    from sklearn.decomposition import PCA
    from sklearn.neighbors import NearestNeighbors

    rows = pipeline[0].transform(frame)
    if len(rows) > LARGE and rows.shape[1] > _SEARCH_COMPONENTS:
        rows = PCA(_SEARCH_COMPONENTS, random_state=0).fit_transform(rows)
    search = NearestNeighbors(n_neighbors=min(k, len(rows) - 1)).fit(rows)
    found: NDArray[Any] = search.kneighbors(return_distance=False)
    return found


def suggest(docket: Docket, neighbors: NDArray[Any], most: int, reviewed: Any) -> NDArray[np.intp]:
    """Order the rows whose review would help most, the best first.

    A row counts for its own doubt (one minus its margin) and for the doubt of the rows that
    have it among their nearest neighbours, which its certain label would inform. Neighbours of
    a chosen row count half from then on, so that the list does not dwell in one place.
    """
    import numpy as np

    doubt = np.where(docket.candidates.sum(axis=1) > 1, 1 - docket.margin, 0.0)
    doubt[reviewed] = 0.0
    influence = np.zeros(len(doubt))
    np.add.at(influence, neighbors, np.broadcast_to(doubt[:, None], neighbors.shape))
    score = doubt * (1 + influence / max(neighbors.shape[1], 1))
    chosen: list[int] = []
    while len(chosen) < most and score.max(initial=0.0) > 0:
        best = int(score.argmax())
        chosen.append(best)
        score[best] = 0.0
        score[neighbors[best]] *= 0.5
    return np.array(chosen, dtype=np.intp)

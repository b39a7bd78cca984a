"""Sensitivity on Lost, and samples whose confidence went astray: not tables of data sets."""

from __future__ import annotations

from dataclasses import dataclass

from appellate.experiments.methods import Method, alone, coupled

DATASET = "lost"
BASE = "aggd"


@dataclass(frozen=True)
class Curve:
    """One parameter of PLCP and the values it is given.

    Attributes
    ----------
    parameter, symbol, meaning : str
        Name here, in the paper, and in words.
    values : tuple of float
        From small to large, the default among them.
    default : float
        The paper's choice.
    log : bool
        Whether to draw the values on a logarithmic scale.
    """

    parameter: str
    symbol: str
    meaning: str
    values: tuple[float, ...]
    default: float
    log: bool = False

    def method(self, value: float) -> Method:
        """PL-AGGD-PLCP with the parameter at a value."""
        if value == self.default:
            return coupled(BASE)
        title = f"PL-AGGD-PLCP {self.parameter}={value:g}"
        return coupled(BASE, title=title, settings={self.parameter: value})


CURVES = (
    Curve(
        "regularization",
        "lambda",
        "ridge of the partner",
        (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0),
        0.05,
        log=True,
    ),
    Curve(
        "smoothing", "alpha", "share of the old confidence", (0.0, 0.1, 0.3, 0.5, 0.7, 0.9), 0.5
    ),
    Curve(
        "collaboration",
        "gamma",
        "weight of the link",
        (0.1, 0.5, 1.0, 2.0, 4.0, 8.0),
        2.0,
        log=True,
    ),
    Curve(
        "blur",
        "k",
        "temperature of the blur",
        (-6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0),
        -1.0,
    ),
)


def sensitivity_methods() -> list[Method]:
    """All methods of the four curves, and the base alone."""
    found = [curve.method(value) for curve in CURVES for value in curve.values]
    return list(dict.fromkeys([alone(BASE), *found]))


def trace_methods() -> dict[str, Method]:
    """Traced methods by the name of their line: three bases, two also with a graph start."""
    own = {
        title: Method(f"{title}-PLCP, traced", "plcp", base, trace=True)
        for base, title in (("aggd", "PL-AGGD"), ("sure", "SURE"), ("lalo", "LALO"))
    }
    graph = {
        f"{title}, graph start": Method(
            f"{title}-PLCP, graph start, traced", "plcp", base, start="graph", trace=True
        )
        for base, title in (("sure", "SURE"), ("lalo", "LALO"))
    }
    return own | graph

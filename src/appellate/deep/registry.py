"""Names of the networks' methods, for tables and the command line; torch is not needed here.

`appellate.deep.rivals` has the class of every loss, `appellate.deep.estimator` those of PRODEN and
PiCO.
"""

from __future__ import annotations

#: Title in tables of results, by the name for ``--methods``. Help and lists follow from here.
TITLES = {
    "proden": "PRODEN",
    "pico": "PiCO",
    "rc": "RC",
    "cc": "CC",
    "lws": "LWS",
    "cavl": "CAVL",
    "mse": "MSE",
    "exp": "EXP",
    "abs-mae": "ABS-MAE",
    "abs-gce": "ABS-GCE",
    "pop": "POP",
    "cr-dpll": "CR-DPLL",
    "solar": "SoLar",
    "records": "RECORDS",
}

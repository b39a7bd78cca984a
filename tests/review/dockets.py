"""Dockets of any size, made of random numbers instead of a fit."""

from __future__ import annotations

import numpy as np

from appellate.docket import Docket


def make_docket(n=1000, l=20, seed=0, rounds=5, share=0.25, kept=0.9, **options):
    rng = np.random.default_rng(seed)
    candidates = rng.random((n, l)) < share
    candidates[np.arange(n), rng.integers(l, size=n)] = True
    before, after = (_shares(rng, candidates) for _ in range(2))
    same = rng.random(n) < kept
    after[same] = before[same]
    labels = np.stack([before.argmax(axis=1), *[after.argmax(axis=1)] * (rounds or 5)])
    fields = {
        "candidates": candidates,
        "class_names": np.array([f"class {j}" for j in range(l)]),
        "verdict_confidence": before,
        "appeal_confidence": after,
        "label_history": labels,
        "rounds": [after] * rounds if rounds else None,
        "ids": [f"item {i}" for i in range(n)],
    }
    return Docket(**{**fields, **options})


def _shares(rng, candidates):
    values = np.where(candidates, rng.random(candidates.shape) ** 3, 0)
    return values / values.sum(axis=1, keepdims=True)

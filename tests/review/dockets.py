"""Dockets of any size, made of random numbers instead of a fit."""

from __future__ import annotations

import numpy as np

from appellate.docket import Docket
from appellate.review.page import unpack_page


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


def shown(page):
    """What a page says of its rows, by name: label, confidence in 1/10000, outcome."""
    parts = ("starts", "labels", "after", "history", "outcome")
    starts, labels, after, history, outcome = (unpack_page(page[part]) for part in parts)
    blocks = [(starts, labels, after)]
    if "outside" in page:
        blocks.append(
            tuple(unpack_page(page["outside"][p]) for p in ("starts", "labels", "after"))
        )
    found = {}
    for i, name in enumerate(page["ids"] or map(str, range(page["n"]))):
        if str(i) in page["decisions"]:
            _, label = page["decisions"][str(i)]
            found[name] = (label, 10_000, "reviewed") if label else ("", None, "excluded")
            continue
        label = history[-1][i]
        shares = {
            int(block[1][e]): int(block[2][e])
            for block in blocks
            for e in range(block[0][i], block[0][i + 1])
        }
        found[name] = (page["classes"][label], shares[label], page["outcomes"][outcome[i]])
    return found

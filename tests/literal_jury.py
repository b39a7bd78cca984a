"""The light jury, its order, its resemblance and its coupling with a base, typed from the text.

Plain numpy and one refitted regression for every row, replica and member: nothing is shared with
the library but the folds, the list of members and the search for a temperature.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

TAUS = (0.0, 0.5, 1.0)


# -- members --------------------------------------------------------------------------------


def distances(A, B, kind, root):
    if root:
        A, B = (np.sign(each) * np.sqrt(np.abs(each)) for each in (A, B))
    gaps = A[:, None] - B[None]
    if kind == "laplacian":
        return np.abs(gaps).sum(axis=2)
    return np.sqrt((gaps**2).sum(axis=2))


def kernel(A, B, kind, root, width):
    D = distances(A, B, kind, root)
    return np.exp(-D / width) if kind == "laplacian" else np.exp(-(D**2) / (2 * width**2))


def regress(X, Q, new, kind, root, width, ridge):
    """Kernel ridge regression with a free bias, from its normal equations."""
    n = len(X)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = kernel(X, X, kind, root, width) + ridge * np.eye(n)
    system[:n, n] = system[n, :n] = 1
    solution = np.linalg.solve(system, np.vstack([Q, np.zeros((1, Q.shape[1]))]))
    return kernel(new, X, kind, root, width) @ solution[:n] + solution[n]


class Member:
    """Output on every row by every replica, the row left out, as one matrix a replica."""

    def __init__(self, X, replicas, kind, root, width, ridge):
        n = len(X)
        D = distances(X, X, kind, root)
        width = width * D[np.triu_indices(n, 1)].mean()
        self.X, self.settings = X, (kind, root, width, ridge)
        self.maps = []
        for rows in replicas:
            W = np.zeros((n, n))
            for i in range(n):
                rest = rows[rows != i]
                W[i, rest] = regress(X[rest], np.eye(len(rest)), X[[i]], *self.settings)[0]
            self.maps.append(W)

    def outputs(self, targets):
        return [W @ Q for W, Q in zip(self.maps, targets, strict=True)]

    def predict(self, targets, new):
        return regress(self.X, targets[0], new, *self.settings)


# -- the criterion --------------------------------------------------------------------------


def softmax(F, T=1.0):
    E = np.exp((F - F.max(axis=1, keepdims=True)) / T)
    return E / E.sum(axis=1, keepdims=True)


def rownorm(Q):
    return Q / Q.sum(axis=1, keepdims=True)


def odds(P, Y, tau):
    pi = P.mean(axis=0) + 1e-4
    pi = pi / pi.sum()
    return (Y * P * pi**-tau).sum(axis=1) / (Y * pi ** (1 - tau)).sum(axis=1)


def rows_of_B(P, Y, tau):
    L, e = odds(P, Y, tau), 0.05
    for _ in range(30):
        e = min(max(np.mean(e / ((1 - e) * L + e)), 0.001), 0.5)
    return np.log((1 - e) * L + e)


def temperature(F, Y, tau):
    found = minimize_scalar(
        lambda log: -rows_of_B(softmax(F, np.exp(log)), Y, tau).mean(),
        bounds=np.log((0.01, 10.0)),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(np.exp(found.x))


def scale(F, Y, tau, shares):
    """Temperature, and half of the shift that gives labels their shares if tau = 0."""
    T, b = temperature(F, Y, tau), np.zeros(Y.shape[1])
    for _ in range(20 if tau < 1 else 0):
        step = np.log((shares + 1e-4) / (softmax(F + T * b, T).mean(axis=0) + 1e-4))
        b = b + step - step.mean()
        if step.max() - step.min() < 0.01:
            break
    return T, (1 - tau) * 0.5 * T * b


def weights(L):
    M = np.column_stack([np.ones(len(L)), L])
    w = np.full(M.shape[1], 1 / M.shape[1])
    for _ in range(200):
        w = w * (M / (M @ w)[:, None]).mean(axis=0)
    return w[1:] / w[1:].sum()


def estep(P, Y, tau):
    Q = rownorm(Y * P)
    l = Y.shape[1]
    pi = Q.mean(axis=0) + 0.01 / l
    start = Q
    for _ in range(30 if tau > 0 else 0):
        Q = rownorm(start * pi**-tau)
        pi = np.sqrt(pi * (Q.mean(axis=0) + 0.01 / l))
    return Q


def above_chance(rows, errors):
    return rows.mean() > max(errors * rows.std() / np.sqrt(len(rows)), 1e-9)


# -- resemblance and order ------------------------------------------------------------------


def resemblance(H, Y):
    Q = rownorm(Y * H)
    label, sure = Q.argmax(axis=1), Q.max(axis=1) >= 0.8
    areas, sizes = [], []
    for j in range(Y.shape[1]):
        for k in range(Y.shape[1]):
            rows = np.flatnonzero(sure & (label == j))
            has, lacks = rows[Y[rows, k]], rows[~Y[rows, k]]
            if k == j or min(len(has), len(lacks)) < 8:
                continue
            one, two = H[has, k][:, None], H[lacks, k][None]
            areas.append(np.mean((one > two) + 0.5 * (one == two)))
            sizes.append(min(len(has), len(lacks)))
    return np.average(areas, weights=sizes) if areas else None


def order_matrix(l, w):
    if w == 0:
        return np.eye(l)
    G = np.array([[np.exp(-((j - k) ** 2) / (2 * w**2)) for k in range(l)] for j in range(l)])
    G = rownorm(G)
    return G / np.median(np.diag(G))


def order_width(scores, Y):
    rows = {}
    for w in (0, 1, 2, 4, 8, 16):
        smoothed = [F @ order_matrix(Y.shape[1], w) for F in scores]
        P = [softmax(F, temperature(F, Y, 0.0)) for F in smoothed]
        mix = weights(np.column_stack([odds(each, Y, 0.0) for each in P]))
        rows[w] = rows_of_B(sum(a * each for a, each in zip(mix, P, strict=True)), Y, 0.0)
    best = max(rows, key=lambda w: rows[w].mean())
    return best if best and above_chance(rows[best] - rows[0], 2) else 0


def choose_tau(B, A, ordered):
    best = {tau: max(values) for tau, values in B.items()}
    top, plain = max(best.values()), best[0.0]
    if top <= 0:
        return 0.0
    if ordered and not (top - plain >= 0.06 or top >= 1.15 * plain):
        return 0.0
    if all(value >= 0.98 * top for value in best.values()):
        return 0.5
    if A is not None and A > 0.65:
        return 0.0
    return min(tau for tau, value in best.items() if value >= top - 1e-3)


# -- the jury -------------------------------------------------------------------------------


class Jury:
    """`kernels` are tuples (kind, root, width, ridge); `base`, if any, (held-out, new) scores."""

    def __init__(self, X, Y, fold, kernels, new, ordered=True, base=None):
        n, l = Y.shape
        self.Y, self.fold = Y, fold
        self.replicas = [np.arange(n), *(np.flatnonzero(fold != k) for k in range(1, 4))]
        self.members = [Member(X, self.replicas, *each) for each in kernels]
        start = [self._within(k, Y / Y.sum(axis=1, keepdims=True)) for k in range(4)]
        plain = [self._held_out(m.outputs(start)) for m in self.members]
        self.width = order_width(plain, Y) if ordered else 0
        self.G = order_matrix(l, self.width)
        rounds = {tau: [] for tau in TAUS}
        for _ in range(3):
            for tau in TAUS:
                self._round(rounds[tau], tau, start)
        zero = rounds[0.0]
        B = {tau: [each["rows"].mean() for each in done] for tau, done in rounds.items()}
        self.resemblance = resemblance(zero[self._choose(B[0.0])]["held"], Y)
        tau = choose_tau(B, self.resemblance, self.width > 0)
        for _ in range(5):
            last = self._round(rounds[tau], tau, start)
            moved = np.abs(last["posterior"][0] - last["targets"][0])[Y].mean()
            if moved < 1e-3:
                break
        done = rounds[tau]
        chosen = self._choose([each["rows"].mean() for each in done])
        if not above_chance(done[chosen]["rows"], 2):
            chosen = 0
        if chosen == 0:
            tau = 0.0
            done = rounds[tau]
        self.tau = tau
        self._conclude(done, chosen, new, base)

    def _choose(self, B):
        if max(B) <= 0:
            return int(np.argmax(B))
        return max(r for r, value in enumerate(B) if value >= 0.95 * max(B))

    def _within(self, k, Q):
        out = np.zeros(Q.shape)
        out[self.replicas[k]] = Q[self.replicas[k]]
        return out

    def _held_out(self, outputs):
        return np.array([outputs[k][i] for i, k in enumerate(self.fold)])

    def _smoothed(self, targets):
        return [[each @ self.G for each in m.outputs(targets)] for m in self.members]

    def _round(self, rounds, tau, start):
        targets, Y = rounds[-1]["posterior"] if rounds else start, self.Y
        outputs = self._smoothed(targets)
        held = [self._held_out(each) for each in outputs]
        shares = targets[0].mean(axis=0)
        scales = [scale(F, Y, tau, shares) for F in held]
        P = [softmax(F + b, T) for F, (T, b) in zip(held, scales, strict=True)]
        w = weights(np.column_stack([odds(each, Y, tau) for each in P]))
        mixed = sum(a * each for a, each in zip(w, P, strict=True))
        posterior = []
        for k, rows in enumerate(self.replicas):
            own = sum(
                a * softmax(F[k] + b, T) for a, F, (T, b) in zip(w, outputs, scales, strict=True)
            )
            out = np.zeros(Y.shape)
            out[rows] = estep(own[rows], Y[rows], tau)
            posterior.append(out)
        rounds.append(
            {
                "targets": targets,
                "posterior": posterior,
                "scales": scales,
                "weights": w,
                "held": mixed,
                "rows": rows_of_B(mixed, Y, tau),
            }
        )
        return rounds[-1]

    def _mix(self, done, new):
        """Probabilities of training rows, each left out, and of new rows, by every member."""
        outputs = self._smoothed(done["targets"])
        fresh = [m.predict(done["targets"], new) @ self.G for m in self.members]
        own = [softmax(F[0] + b, T) for F, (T, b) in zip(outputs, done["scales"], strict=True)]
        later = [softmax(F + b, T) for F, (T, b) in zip(fresh, done["scales"], strict=True)]
        return own, later

    def _conclude(self, rounds, chosen, new, base):
        Y, tau, last = self.Y, self.tau, rounds[chosen]
        w = last["weights"]
        own, later = self._mix(last, new)
        if base is not None:
            H, fresh = (each @ self.G for each in base)
            T = temperature(H, Y, tau)
            held = [self._held_out(each) for each in self._smoothed(last["targets"])]
            P = [softmax(F + b, t) for F, (t, b) in zip(held, last["scales"], strict=True)]
            P.append(softmax(H, T))
            w = weights(np.column_stack([odds(each, Y, tau) for each in P]))
            own.append(softmax(H, T))
            later.append(softmax(fresh, T))
        best = max(rounds[: chosen + 1], key=lambda each: each["rows"].mean())
        self.weights, self.earlier = w, above_chance(best["rows"] - last["rows"], 1)
        if self.earlier:
            w = np.concatenate([w / 2, best["weights"] / 2])
            own, later = (
                [*a, *b] for a, b in zip((own, later), self._mix(best, new), strict=True)
            )
        self.output = sum(a * P for a, P in zip(w, own, strict=True))
        counts = np.where(w < 1e-4, 0, w)  # others do not predict
        self.new = sum(a * P for a, P in zip(counts / counts.sum(), later, strict=True))
        self.posterior = estep(self.output, Y, tau)

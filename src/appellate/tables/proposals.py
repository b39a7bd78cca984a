"""Which columns may hold the labels, and in which layout: sets, annotators, answers, votes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, permutations

import numpy as np
import pyarrow.compute as pc

from appellate.tables import titles
from appellate.tables.cells import name_some
from appellate.tables.labels import coded, together
from appellate.tables.looks import SAMPLED, ColumnLook
from appellate.tables.reading import Table

FEW = 10  # rows; fewer may be numbered, or agree, by chance
MOST = 0.8
_AGREED = 0.2  # Cohen's kappa of people who look at the same thing
_ONCE = 0.75  # share of answers that are the annotator's first on an item, if titles name both
_LABELS = 60  # different answers of one annotator, at most
_VOTES = 100  # answers an item, at most, for a sum to be a number of votes
ONE_LABEL = "one label per row, detected from the column name"


@dataclass(frozen=True)
class Proposal:
    """One way to read the labels of a table: a layout, and why each column is a part of it."""

    layout: str
    reasons: Mapping[str, str]
    doubt: str = ""  # why it is not taken unasked
    truth: str | None = None
    notes: tuple[str, ...] = ()


class LabelFinder:
    """Finds the columns that may hold the labels among those that have no role yet."""

    def __init__(self, table: Table, features: Sequence[str] | None) -> None:
        self.table, self.features = table, features
        self.look = cache(lambda name: ColumnLook(table, name))
        self.reasons: dict[str, str] = {}

    def free(self) -> list[ColumnLook]:
        """Return the columns without a role."""
        return [self.look(name) for name in self.table.names if name not in self.reasons]

    def _open(self) -> list[ColumnLook]:
        """Return the columns that may have to do with labels: no features, no facts on answers."""
        return [c for c in self.free() if c.name not in (self.features or ()) and not c.meta]

    def _long(self) -> list[Proposal]:
        """Find item, label and annotator: pairs of the first and last come once, items again.

        Titles tell item from annotator, and then some pairs may come again. One of the two will do
        in a table of three columns, and an annotator's where items are texts; of three columns of
        texts no title needs to be known. Then answers to an item must agree more often than any
        two answers do. Without the title of an annotator, all of it is in doubt.
        """
        free = [c for c in self._open() if c.is_code]
        for item, person, titled in self._long_pairs(free):
            named = titles.is_person(person.name)
            if not named and item.distinct <= person.distinct:
                continue
            once = _ONCE if named and titles.is_item(item.name) else 0.95
            if self._pairs(item, person) < once * len(self.table):
                continue
            others = [c for c in free if c not in (item, person)]
            fitting = [c for c in others if self._answers(c, item, person)]
            fitting = [c for c in fitting if titled or self._agree(item, c)]
            fitting.sort(key=lambda c: not self._agree(item, c))
            fitting.sort(key=lambda c: not titles.is_label(c.name))
            if fitting:
                label = fitting[0]
                reasons = {
                    item.name: "item: repeats, once per annotator",
                    label.name: "label: differs within an item",
                    person.name: "annotator: gives one answer per item",
                }
                doubt = (
                    f"each row looks like one answer: item {name_some([item.name])}, label "
                    f"{name_some([label.name])}, annotator {name_some([person.name])}. No column "
                    "name says that these are annotators."
                )
                return [Proposal("long", reasons, "" if named else doubt)]
        return []

    def _long_pairs(self, free: Sequence[ColumnLook]) -> list[tuple[ColumnLook, ColumnLook, bool]]:
        """Return the columns that may be item and annotator, and whether titles name both."""
        people, items, others = _split_keys(free)
        texts, three = [c for c in others if c.kind == "text"], len(self.table.names) == 3
        titled = [(i, p) for p in people for i in items] if people else permutations(items, 2)
        pairs = [(i, p) for p in people for i in (others if three else texts)]
        if three:
            pairs += [(i, p) for i in items for p in others]
            pairs += list(permutations(texts, 2)) if not people and not items else []
        return [(*each, True) for each in titled] + [(*each, False) for each in pairs]

    def _answers(self, column: ColumnLook, item: ColumnLook, person: ColumnLook) -> bool:
        """Tell whether a column may hold the answers of annotators to items."""
        if not column.is_label or titles.is_id(column.name):
            return False
        if column.distinct >= max(item.distinct, 3) or column.title in titles.TRUTH_TITLES:
            return False
        if self._pairs(item, column) <= item.distinct:
            return False
        titled = titles.is_person(person.name) and titles.is_label(column.name)
        return titled or self._pairs(person, column) > person.distinct

    def _agree(self, item: ColumnLook, label: ColumnLook) -> bool:
        """Tell whether answers to one item agree more often than by chance."""
        (of_item, _), (said, names) = (coded(self.table, c.name) for c in (item, label))
        of_item, said = of_item[said >= 0], said[said >= 0]
        alike = np.unique(of_item * len(names) + said, return_counts=True)[1]
        each, shares = np.bincount(of_item), np.bincount(said) / len(said)
        chance = float(shares @ shares)
        compared, same = each @ (each - 1), alike @ (alike - 1)
        return bool(same > (chance + _AGREED * (1 - chance)) * compared)

    def _pairs(self, one: ColumnLook, other: ColumnLook) -> int:
        """Return how many different pairs two columns make."""
        texts = (self.table.texts(column.name).fill_null("") for column in (one, other))
        return len(pc.binary_join_element_wise(*texts, "\0").unique())

    def _sets(self) -> list[Proposal]:
        """Find columns of several labels per cell; report if there are several."""
        found = [c for c in self._open() if c.separator or c.kind == "list"]
        found = [c for c in found if c.title.removesuffix("s") not in titles.PEOPLE]
        found.sort(key=lambda c: (c.title in titles.TRUTH_TITLES, titles.RANK.get(c.title, 99)))
        made = []
        for column in found:
            mark = column.separator
            how = f"separated by {mark!r}" if mark and mark != "[" else "in lists"
            doubt = ""
            if column.repeats_labels:
                doubt = (
                    f"cells of {name_some([column.name])} repeat labels, so they look like the "
                    "answers of several annotators. Write each answer into a column of its own, "
                    "and name these columns with annotators=; as candidates, the number of "
                    "answers is lost."
                )
            reasons = {column.name: f"several labels per cell, {how}"}
            made.append(Proposal("candidates", reasons, doubt))
        others = [c for c in found[1:] if c.title not in titles.TRUTH_TITLES]
        if made and others:
            too = [
                f"{name_some([c.name])} could hold candidates too: name the correct column with "
                "candidates=."
                for c in others
            ]
            made[0] = replace(made[0], notes=tuple(too))
            if not titles.is_label(found[0].name):
                both = name_some([c.name for c in (found[0], *others)], 4)
                doubt = f"{both} hold several labels per cell each."
                made = [replace(each, doubt=doubt, notes=()) for each in made]
                return made[: 1 + len(others)][:3]
        return made[:1]

    def _people(self) -> list[Proposal]:
        """Find annotators: a family of titles, or columns of the same labels that agree."""
        family = max(self._families(), key=len, default=[])
        if family:
            names = [c.name for c in family]
            reasons = dict.fromkeys(names, "detected from the column name")
            doubt = (
                f"{name_some(names, 4)} are named like annotators, but agree no more often than "
                "by chance."
            )
            stem, *_, kind = titles.family(names[0]) or ("", "")
            named = kind == "*" and stem in titles.PEOPLE  # a name may be that of anything else
            agreed, compared, _ = _agreement(family) if named else (1.0, 0, 0.0)
            odd = compared >= FEW and agreed < _AGREED
            return [Proposal("annotators", reasons, doubt if odd else "")]
        return self._alike()

    def _alike(self) -> list[Proposal]:
        """Find annotators without titles: columns of the same labels that mostly agree."""
        free = [c for c in self._open() if c.is_code and not titles.JOINT_WORDS & c.words]
        free = [c for c in free if c.distinct <= _LABELS and c.title not in titles.TRUTH_TITLES]
        free = [c for c in free if not titles.is_id(c.name)]
        free = [c for c in free if not titles.is_label(c.name) or c.is_numbered]
        labelled = any(c.title in titles.LABEL_TITLES for c in self.free())
        for group in _groups(free):
            agreed, compared, holes = _agreement(group)
            numbers = group[0].is_whole
            least = 0.4 if numbers and holes < 0.05 else 0.2
            sure = compared >= 5 and least <= agreed < 1
            mixed = len({bool(c.likely_separator) for c in group}) > 1  # 'a/b' beside 'a'
            most = 2 if numbers or labelled or mixed else 1
            if len(group) > most and (sure or holes > 0.9):
                names = sorted((c.name for c in group), key=self.table.names.index)
                reasons = dict.fromkeys(names, "same labels as the others, mostly agreeing")
                titled = all(titles.is_label(name) for name in names)
                doubt = (
                    f"{name_some(names, 4)} look like annotators: they hold the same labels and "
                    "mostly agree. No column name says so."
                )
                return [Proposal("annotators", reasons, "" if titled else doubt)]
        return []

    def _families(self) -> list[list[ColumnLook]]:
        """Return the families of annotators by their titles, each whole.

        A family is two columns or more, each of few labels. If names tell its members apart,
        nearly all of them must have the same labels: a name may be that of anything else.
        """
        by_stem: dict[tuple[str, ...], list[ColumnLook]] = {}
        for column in self._open():
            stem = titles.family(column.name)
            if stem is not None:
                by_stem.setdefault(stem, []).append(column)
        return [
            group
            for (stem, *_, kind), group in by_stem.items()
            if len(group) > 1 and _are_labels(group)
            if kind == "#" or stem not in titles.PEOPLE or _share_labels(group)
        ]

    def _counts(self) -> list[Proposal]:
        """Find columns of votes: their sum is another column, or varies far less than they do."""
        free = [c for c in self._open() if c.is_whole and not titles.ID_WORDS & c.words]
        free = [c for c in free if 0 <= c.start.min() < c.start.max()]  # not where one is NaN
        if len(free) < 3 or len(self.table) < 3:
            return []
        numbers = np.stack([c.start for c in free], axis=1)
        sums = np.concatenate([np.zeros((len(numbers), 1)), numbers.cumsum(axis=1)], axis=1)
        spread = np.concatenate([[0], numbers.var(axis=0).cumsum()])
        found = []
        for i, k in combinations(range(len(free) + 1), 2):
            total = sums[:, k] - sums[:, i]
            if k - i < 2 or numbers[:, i:k].max() < 2 or total.min() < 1:
                continue
            whole = [c for c in free[:i] + free[k:] if np.array_equal(c.start, total)]
            varies = -1.0 if whole else float(total.var() / (spread[k] - spread[i]))
            if whole or (k - i > 2 and varies <= 0.05):
                named = any(c.words & titles.TOTALS for c in whole) and total.max() <= _VOTES
                how = "their sum hardly varies"
                how = f"sum up to {name_some([c.name for c in whole])}" if whole else how
                found.append((not named, varies, i - k, i, how))
        if not found:
            return []
        doubtful, _, width, i, how = min(found)
        names = [c.name for c in free[i : i - width]]
        doubt = f"{name_some(names, 4)} may be numbers of votes, one column per label: {how}."
        reasons = dict.fromkeys(names, f"votes for a label: {how}")
        return [Proposal("counts", reasons, doubt if doubtful else "")]

    def _plain(self) -> list[Proposal]:
        """Find one label per row, by its title."""
        found = [c for c in self._open() if titles.is_label(c.name) and c.is_label]
        found = [c for c in found if c.title not in titles.TRUTH_TITLES]
        found.sort(key=lambda c: (c.distinct < 2, titles.RANK.get(c.title, 99)))
        notes = [
            f"{name_some([c.name])} could hold the labels too: name the correct column with "
            "candidates=."
            for c in found[1:]
        ]
        return [Proposal("candidates", {c.name: ONE_LABEL}, notes=tuple(notes)) for c in found[:1]]


def _split_keys(
    free: Sequence[ColumnLook],
) -> tuple[list[ColumnLook], list[ColumnLook], list[ColumnLook]]:
    """Return columns that recur and are titled like annotators, like items, and all others."""
    full = [c for c in free if c.filled == len(c.data) and c.distinct > 1]
    keys = [c for c in full if c.distinct <= 0.7 * c.filled]
    people = [c for c in keys if titles.is_person(c.name)]
    items = [c for c in full if c not in people and titles.is_item(c.name)]
    items = [c for c in items if c.distinct <= (0.95 if people else 0.7) * c.filled]
    return people, items, [c for c in keys if c not in (*people, *items)]


def _are_labels(group: Sequence[ColumnLook]) -> bool:
    """Tell whether columns hold few labels that come again; some columns may be empty."""
    filled = [c for c in group if c.kind != "empty"]
    if not filled or not all(c.is_code and c.distinct <= _LABELS for c in filled):
        return False
    labels = {*chain.from_iterable(c.values or () for c in filled)}
    return len(labels) <= min(_LABELS, 0.5 * sum(c.filled for c in filled))


def _share_labels(group: Sequence[ColumnLook]) -> bool:
    """Tell whether nearly all columns hold labels that others have too."""
    group = [c for c in group if c.kind != "empty"]
    values = [{*(c.values or ())} for c in group]
    shared = {value for value, n in Counter(chain(*values)).items() if n > 1}
    linked: set[str] = set()  # how sure people were is no answer: no label links it to them
    for own in sorted(values, key=len, reverse=True):
        linked |= own if not linked or own & linked else set()
    alike = sum(own <= linked and len(own & shared) >= len(own) / 2 for own in values)
    return len(group) > 1 and alike >= 0.9 * len(group)


def _groups(columns: Sequence[ColumnLook]) -> list[list[ColumnLook]]:
    """Put columns together that could be annotators, the largest group first.

    Texts whose values are for the most part those of a larger column, and numbers whose titles
    are one stem with a number.
    """
    groups: list[tuple[set[str], list[ColumnLook]]] = []
    for column in sorted(columns, key=lambda c: -c.distinct):
        values = {*(column.values or ())}
        if column.is_whole:
            values = {re.sub(r"\d+$", "", column.name)}
            if column.distinct > 20:
                continue
        for known, group in groups:
            if column.is_whole == group[0].is_whole and len(values & known) >= MOST * len(values):
                known |= values
                group.append(column)
                break
        else:
            groups.append((values, [column]))
    return sorted((group for _, group in groups if len(group) > 1), key=len, reverse=True)


def _agreement(group: Sequence[ColumnLook]) -> tuple[float, int, float]:
    """Return Cohen's kappa over pairs of columns, cells compared, and the share of empty ones."""
    table = group[0].table
    texts, codes = together([coded(table, c.name) for c in group[:: max(1, len(group) // 40)]])
    codes = np.where(codes == (texts.index("-1") if "-1" in texts else -1), -1, codes)
    same = expected = compared = 0.0
    for one, other in combinations(codes[:SAMPLED].T, 2):
        both = (one >= 0) & (other >= 0)
        if both.any():
            shares = [np.bincount(each[both], minlength=len(texts)) for each in (one, other)]
            expected += float(shares[0] @ shares[1]) / both.sum()
            same += np.count_nonzero(one[both] == other[both])
            compared += both.sum()
    agreed = (same - expected) / (compared - expected) if compared > expected else 0.0
    return agreed, int(compared), float(np.mean(codes < 0))

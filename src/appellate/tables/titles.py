"""What the title of a column says: labels, annotators, items, ids, or facts about an answer.

A title is split into lower-case words and numbers. Every list of words that `find_roles` goes by
is here.
"""

from __future__ import annotations

import re


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = {
    *_words("annotator worker rater coder judge expert labeler labeller reviewer assessor"),
    *_words("grader scorer voter volunteer radiologist pathologist moderator contributor"),
}
#: These may be annotators, but a table may also describe them.
PEOPLE_WORDS = {*PEOPLE, *_words("participant prolific user person who crowd turker")}
#: A family of columns begins with one of these: `ann1`, `rater_2`, `lf_price`.
_STEMS = {*PEOPLE, *_words("ann annot lf labelfunction labelingfunction labellingfunction")}
ITEM_WORDS = {
    *_words("item task unit question sample image document doc sentence tweet example instance"),
    *_words("object query record row case photo picture clip video audio recording post essay"),
}
LABEL_TITLES = (
    *_words("candidates candidate candidatelabels candidateset partiallabels partiallabel labels"),
    *_words("label names tags answers answer response annotation class classes category target"),
    *_words("choice vote judgment judgement verdict y"),
)
LABEL_WORDS = {*LABEL_TITLES} - {"y"}
_LABEL_TAILS = {*_words("name names text value code str string")}
#: Columns of these titles are never learned from unasked.
TARGETS = {*_words("label labels target")}
RANK = {title: i for i, title in enumerate(LABEL_TITLES)}
TRUTH_TITLES = {
    *_words("truth true ytrue truelabel trueclass groundtruth gold goldlabel goldstandard gt"),
    *_words("actual correct"),
}
JOINT_WORDS = {*_words("majority consensus final adjudicated aggregated")}
HASH_WORDS = {"hash", "md", "sha"}  # digits are words of their own
_IDS = {*_words("id ids uid uuid guid pid rowid")}
ID_WORDS = {*HASH_WORDS, *_IDS, *_words("key index idx")}
ID_TITLES = {*ID_WORDS, *_words("sampleid name file filename path url")}
_OWNERS = {
    *PEOPLE_WORDS, *ITEM_WORDS,
    *_words("patient subject session customer client account device order product student visit"),
    *_words("hit assignment batch case participant annotation classification workflow"),
}  # fmt: skip
TOTALS = {
    *_words("count counts total totals n num number votes answers sum annotators raters judges"),
    *_words("annotations judgments judgements workers ratings"),
}
_POSTCODES = {*_words("zip zipcode postcode postalcode postal plz")}
_DEMOGRAPHICS = {
    *_words("gender sex race ethnicity age country city region state nation nationality language"),
    *_words("education occupation income religion politics political location birth birthdate"),
}
_ATTRIBUTES = {
    *_words("confidence certainty sure quality difficulty accuracy agreement experience level"),
    *_words("skill trust time date order start end status type group count number comment note"),
    *_words("comments notes email remark remarks session batch"),
}
_ANSWERED = {
    *_words("accept accepted submit submitted approval approved rejection rejected annotated"),
    *_words("annotation labeled labelled judged answered reviewed lifetime autoapproval"),
}
_TIMES = {*_words("time at date timestamp datetime seconds duration")}
#: What the crowd platforms write next to every answer, by its whole title.
_PLATFORM = {
    *_words("_trust _country _region _city _channel _ip _tainted _missed _golden _canary"),
    *_words("_created_at _started_at _status _timestamp orig__golden"),
    *_words("creationtime expiration worktimeinseconds lifetimeapprovalrate requesterfeedback"),
    *_words("last30daysapprovalrate last7daysapprovalrate assignmentdurationinseconds"),
    *_words("autoapprovaldelayinseconds assignmentstatus maxassignments"),
    *_words("workflow_version workflow_name"),
}
ADDRESS = re.compile(
    r"\d{1,3}(\.\d{1,3}){3}|[\da-fA-F:]*::[\da-fA-F:]*|([\da-fA-F]{1,4}:){7}[\da-fA-F]{1,4}"
)


def split(title: str) -> tuple[str, ...]:
    """Return the words and numbers of a title, in order, in lower case.

    Examples
    --------
    >>> split("WorkerID"), split("Ann12"), split("rater_1.label")
    (('worker', 'id'), ('ann', '12'), ('rater', '1', 'label'))
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?=I[dD]$)", " ", title).lower()
    return tuple(re.findall(r"[^\W\d_]+|\d+", parted))


def _singular(word: str) -> str:
    return word.removesuffix("s") if word.removesuffix("s") in _STEMS else word


def is_label(title: str) -> bool:
    """Tell whether a title says that the column holds labels: its last word does.

    Examples
    --------
    >>> [is_label(title) for title in ("label", "Answer.category", "class_name", "label_time")]
    [True, True, True, False]
    """
    words = [word for word in split(title) if not word.isdigit() and len(word) > 1]
    if "".join(split(title)) in LABEL_TITLES:
        return True
    if len(words) > 1 and words[-1] in _LABEL_TAILS:
        words = words[:-1]
    return bool(words) and words[-1] in LABEL_WORDS


def is_person(title: str) -> bool:
    """Tell whether a title names an annotator, or somebody who could be one.

    Examples
    --------
    >>> [is_person(title) for title in ("worker", "WorkerId", "workerid", "working", "user")]
    [True, True, True, False, True]
    """
    words = split(title)
    return bool(PEOPLE_WORDS & {*words, *(word.removesuffix("id") for word in words)})


def is_item(title: str) -> bool:
    """Tell whether a title names the items that are labelled.

    Examples
    --------
    >>> [is_item(title) for title in ("image", "tweet.id", "taskid", "sand")]
    [True, True, True, False]
    """
    words = split(title)
    named = {*words, *(word.removesuffix("id") for word in words)}
    return bool((ITEM_WORDS | ID_WORDS) & named)


def family(title: str) -> tuple[str, ...] | None:
    """Return what the titles of a family of annotators have in common; None if it is none.

    A member is a stem and a number or letter (`ann1`, `rater_b`), a stem and a name
    (`worker_anna`), or a labelling function (`lf_price`). Words for labels do not count.

    Examples
    --------
    >>> family("Ann1"), family("rater_2_label"), family("worker_anna"), family("lf_too_long")
    (('ann', '#'), ('rater', 'label', '#'), ('worker', '*'), ('lf', '*'))
    >>> family("annual_2"), family("rater1_confidence"), family("rater_age"), family("user_drinks")
    (None, None, None, None)
    """
    words = [_singular(word) for word in split(title)]
    labels = [word for word in words if word in LABEL_WORDS and word not in PEOPLE]
    stem, *rest = [word for word in words if word not in labels] or [""]
    numbered = len(rest) == 1 and (rest[0].isdigit() or len(rest[0]) == 1)
    if numbered and stem in _STEMS | PEOPLE_WORDS:
        return (stem, *labels, "#")
    if stem not in _STEMS or not rest:
        return None
    function = stem.startswith(("lf", "label")) and stem not in PEOPLE
    known = meta(title) or (ID_WORDS | _ATTRIBUTES) & {*rest}
    if function or (len(rest) == 1 and not known):
        return (stem, *labels, "*")
    return None


def is_id(title: str) -> bool:
    """Tell whether a title is that of an id, though its values may come again.

    Examples
    --------
    >>> [is_id(title) for title in ("patient_id", "id", "userid", "acid", "humid", "id_card_fee")]
    [True, True, True, False, False, False]
    """
    words = [word for word in split(title) if not word.isdigit()]
    if not words:
        return False
    joined = words[-1].endswith("id") and words[-1].removesuffix("id") in _OWNERS
    return words[-1] in _IDS or joined or "".join(words) in ("index", "idx", "key")


def meta(title: str) -> str | None:
    """Say in what way a column describes the answer or the annotator, or names a place.

    Such a column is neither a label nor a feature unless the user says so. None if the title
    tells nothing of that kind.

    Examples
    --------
    >>> meta("_trust"), meta("rater_gender"), meta("AcceptTime")
    ('written by the crowd platform', 'describes the annotator', 'a time of the answer')
    >>> meta("age"), meta("user_age"), meta("pickup_time")
    (None, None, None)
    """
    words = {*split(title)}
    if title.strip().lower() in _PLATFORM or title.lower().endswith("_gold_reason"):
        return "written by the crowd platform"
    if words & _POSTCODES or {"post", "code"} <= words:
        return "a postcode"
    if "ip" in words and words <= {"ip", "address", "addr", *PEOPLE_WORDS}:
        return "an IP address"
    if words & (PEOPLE | {"annotators"}) and words & _DEMOGRAPHICS:
        return "describes the annotator"
    if "trust" in words and (words == {"trust"} or words & PEOPLE_WORDS):
        return "how far the platform trusts the annotator"
    if words & _ANSWERED and words & (_TIMES | {"rate"}):
        return "a time of the answer"
    return None

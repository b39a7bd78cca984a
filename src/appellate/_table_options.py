"""The options of a table: the only list of them, for Python and for the terminal.

A row here is a parameter of `appellate.rectify` and an option of ``appellate rectify``: its type,
its help and its docstring. Functions that take these options name a group of them,
``**options: Unpack[ColumnOptions]``, and `takes_options` writes their signature and docstring.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile
from textwrap import fill, indent
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

from appellate._text import did_you_mean

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Columns = str | int | Sequence[str | int]
ColumnName = str | int | bool


@dataclass(frozen=True)
class Option:
    """Describe an option.

    Attributes
    ----------
    metavar, help : str
        What the option takes in a terminal, and its help there.
    type, doc : str
        Its type in a docstring, and the text below it.
    several : bool
        Whether it can be repeated in a terminal.
    choices : tuple of str
        All values in a terminal; empty if there are more.
    default : str or None
        The value if the option is not given.
    """

    metavar: str
    help: str
    type: str
    doc: str
    several: bool = False
    choices: tuple[str, ...] = ()
    default: str | None = None


_COLUMNS = "str or sequence of str, default=None"


class ColumnOptions(TypedDict, total=False):
    """What the columns of a table are; see `appellate.tables.find_roles`."""

    candidates: Annotated[
        Columns | None,
        Option(
            "COL",
            "Column with candidate sets such as 'cat|dog', or 0/1 columns, one per label "
            "(default: detected).",
            _COLUMNS,
            'Column with candidate sets such as ``"cat|dog"``, or 0/1 columns, one per label. '
            'Give names, a pattern such as ``"w*"`` or a list such as ``"ann,ben"``. At most one '
            "of `candidates`, `annotators`, `long` and `counts`; detected by default.",
            several=True,
        ),
    ]
    annotators: Annotated[
        Columns | None,
        Option(
            "COL",
            "Annotator columns, one per annotator; repeat the option or use a pattern such as "
            "'w*' (default: detected).",
            _COLUMNS,
            "Columns with answers, one column per annotator.",
            several=True,
        ),
    ]
    long: Annotated[
        Columns | None,
        Option(
            "ITEM,LABEL[,WHO]",
            "Item, label and annotator columns of a table with one answer per row "
            "(default: detected).",
            _COLUMNS,
            "Columns with the item, the label and, optionally, the annotator of a table with one "
            "answer per row.",
            several=True,
        ),
    ]
    counts: Annotated[
        Columns | None,
        Option(
            "COL",
            "Vote-count columns, one per label, or a pattern such as 'n_*' (default: detected).",
            _COLUMNS,
            "Columns with numbers of votes, one column per label.",
            several=True,
        ),
    ]
    id: Annotated[
        ColumnName | None,
        Option(
            "COL",
            "Column with a unique row id (default: detected).",
            "str, default=None",
            "Column with a unique row id; False if there is none. Detected by default.",
        ),
    ]
    truth: Annotated[
        ColumnName | None,
        Option(
            "COL",
            "Column with the true labels. Only used to report accuracy (default: detected).",
            "str, default=None",
            "Column with the true labels; False if there is none. It is only used to report "
            "accuracy. Detected by default.",
        ),
    ]
    text: Annotated[
        Columns | bool | None,
        Option(
            "COL",
            "Text column, used as a feature; rectify also shows it on the review page (default: "
            "detected).",
            _COLUMNS,
            "Text columns, used as features and shown on the review page; False if there is none. "
            "Detected by default.",
            several=True,
        ),
    ]
    image: Annotated[
        ColumnName | None,
        Option(
            "COL",
            "Column with image files, shown on the review page; used as a feature with "
            "--image-model (default: detected).",
            "str, default=None",
            "Column with image files, shown on the review page; False if there is none. Detected "
            "by default.",
        ),
    ]
    features: Annotated[
        Columns | None,
        Option(
            "COL",
            "Feature columns, or a pattern such as 'p*' (default: all columns that are not ids, "
            "labels or constant).",
            _COLUMNS,
            "Columns to learn from. By default all columns, except ids, postcodes, addresses and "
            "what describes an answer or an annotator.",
            several=True,
        ),
    ]
    model_probabilities: Annotated[
        str | None,
        Option(
            "PATTERN",
            "Pattern of the columns with class probabilities of a model, which count as one more "
            "answer per row: 'p_*' for p_cat and p_dog (default: none).",
            "str, default=None",
            "Pattern of the columns with class probabilities of a model, with one ``*`` for the "
            'name of the class: ``"p_*"`` for ``p_cat`` and ``p_dog``. The model is one more '
            "answer per row, next to those of annotators; see `TestimonyClassifier.fit`. Give "
            "out-of-fold probabilities if the model was trained on these rows.",
        ),
    ]
    ignore: Annotated[
        Columns | None,
        Option(
            "COL",
            "Columns to ignore, or a pattern such as 'x*' (default: none).",
            _COLUMNS,
            "Columns to ignore.",
            several=True,
        ),
    ]
    separator: Annotated[
        str | None,
        Option(
            "TEXT",
            "Character between labels within a cell, such as ';'. Use '' if each cell holds one "
            "label (default: detected).",
            "str, default=None",
            'Character between the labels within a cell, such as ``";"``; ``""`` if each cell '
            "holds one label. Detected by default.",
        ),
    ]
    missing: Annotated[
        str | Sequence[Any] | None,
        Option(
            "TEXT",
            "Value that means 'no answer', such as -1 (default: detected).",
            "str or sequence, default=None",
            'Values that mean "no answer", in addition to an empty cell.',
            several=True,
        ),
    ]


class FeatureOptions(TypedDict, total=False):
    """What is learned from in addition to columns, and which rows belong together."""

    embeddings: Annotated[
        Any,
        Option(
            "FILE.npy",
            "Precomputed features: a NumPy array with one row per item (default: none).",
            "array-like, shape (n, q), or path, default=None",
            "Precomputed features, one row per item, or a file of `numpy.save`. They replace the "
            "columns, except those that `features` and `text` name.",
        ),
    ]
    text_model: Annotated[
        Any,
        Option(
            "NAME",
            "Model that turns text into features: a sentence-transformers folder or name "
            "(default: word and letter frequencies).",
            "str, path or object, default=None",
            "Model that turns text into features: a folder or name of sentence-transformers, or "
            "an object with ``encode(texts)``; see `appellate.tables.embed_texts`. By default "
            "word and letter frequencies.",
        ),
    ]
    image_model: Annotated[
        Any,
        Option(
            "FILE",
            "Model that turns images into features: an ONNX file, or histograms (default: "
            "histograms, only without other features).",
            "str, path or callable, default=None",
            "Model that turns images into features: a function of a list of images, an ONNX file, "
            'or ``"histograms"``; see `appellate.tables.embed_pictures`. By default images are '
            "only shown, unless they are the only features: then histograms are used, which "
            "contain little information.",
        ),
    ]
    groups: Annotated[
        str | None,
        Option(
            "COL",
            "Column with the group of each row, such as the photo that a face comes from "
            "(default: none).",
            "str, default=None",
            "Column with the group of each row, such as the photo that a face comes from. A row "
            "with an empty cell is a group of its own.",
        ),
    ]


class ReadingOptions(TypedDict, total=False):
    """How a file is read; see `appellate.tables.read_table`."""

    delimiter: Annotated[
        str | None,
        Option(
            "CHAR",
            "Column delimiter of a text file; for a tab, type a backslash and t (default: "
            "detected).",
            "str, default=None",
            "What separates the cells of a text file; by default the tab, semicolon, comma or bar "
            "that splits its first rows most evenly, outside quotes.",
        ),
    ]
    encoding: Annotated[
        str | None,
        Option(
            "NAME",
            "Text file encoding, such as latin-1 (default: detected).",
            "str, default=None",
            "How the letters of a text file are stored; by default what its byte order mark says, "
            "else UTF-8, else that of Windows (cp1252), with a note.",
        ),
    ]
    decimal: Annotated[
        str | None,
        Option(
            "[.|,]",
            "Decimal mark of numbers (default: detected).",
            "str, default=None",
            'Decimal mark of numbers, ``"."`` or ``","``. By default decimal commas are read in '
            "columns of numbers that have them, if a comma does not separate the cells. Commas "
            "that are all followed by three digits group thousands, unless another column has "
            'decimal commas; with ``"."`` they do so in every file. Dots that are all followed by '
            "three digits group thousands in a file with decimal commas, or in one of semicolons "
            "if some cells have no dot, or two.",
            choices=(".", ","),
        ),
    ]
    sheet: Annotated[
        str | int | None,
        Option(
            "NAME",
            "Excel sheet to read (default: the first).",
            "str or int, default=None",
            "Excel sheet to read; by default the first.",
        ),
    ]
    question: Annotated[
        str | None,
        Option(
            "NAME",
            "Question of a labelling-tool export to use (default: the one with the most answers).",
            "str, default=None",
            "What annotators were asked, in the export of a labelling tool; by default the "
            "question with the most answers.",
        ),
    ]
    header: Annotated[
        str | None,
        Option(
            "[first|none]",
            "Header row: first, or none if the file has no column names. Columns are then called "
            "0, 1, ... (default: first).",
            '{"first", "none"} or None, default="first"',
            '``"none"`` or None if a file has no row of column names. Columns are then called '
            '``"0"``, ``"1"`` and so on.',
            choices=("first", "none"),
            default="first",
        ),
    ]


class LoadOptions(ColumnOptions, ReadingOptions, total=False):
    """How a file is read, and what its columns are."""


class TableOptions(ColumnOptions, FeatureOptions, ReadingOptions, total=False):
    """All options of a table."""


@cache
def options_in(group: type) -> dict[str, Option]:
    """Return the options of a group by name.

    Examples
    --------
    >>> list(options_in(ReadingOptions))
    ['delimiter', 'encoding', 'decimal', 'sheet', 'question', 'header']
    """
    hints = get_type_hints(group, include_extras=True)
    return {name: next(iter(get_args(hint)[1:])) for name, hint in hints.items()}


def pick(group: type, given: Mapping[str, Any]) -> Any:
    """Return those of the given options that belong to a group."""
    return {name: given[name] for name in options_in(group) if name in given}


def check_options(function: str, group: type, given: Mapping[str, Any], hint: str = "") -> None:
    """Refuse names that are not options of a group, as Python refuses unknown arguments."""
    known = options_in(group)
    for name in given:
        if name not in known:
            raise TypeError(
                f"{function}() has no parameter {name!r}.{did_you_mean(name, known)}{hint}"
            )


def takes_options(group: type) -> Callable[[Decorated], Decorated]:
    """Give a function with ``**options`` the signature and the docstring of a group of options.

    In the docstring the line ``**options`` and the indented text below it are replaced.
    """

    def describe(function: Decorated) -> Decorated:
        types, options = get_type_hints(group), options_in(group)
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[:-1]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=types[name],
            )
            for name, option in options.items()
        ]
        first = [each for each in own if each.kind is not inspect.Parameter.KEYWORD_ONLY]
        signed: Any = function
        signed.__signature__ = signature.replace(parameters=[*first, *added, *own[len(first) :]])
        before, mark, after = inspect.cleandoc(function.__doc__ or "").partition("**options\n")
        if mark:
            entries = (
                f"{name} : {each.type}\n{indent(fill(each.doc, 90), '    ')}"
                for name, each in options.items()
            )
            rest = dropwhile(lambda line: line.startswith("    "), after.split("\n"))
            signed.__doc__ = "\n".join([before + next(entries), *entries, *rest])
        return function

    return describe


#: Options of `rectify` and of other commands that are no options of a table.
_FURTHER = ("base", "cost", "decisions", "method", "order", "random_state", "tool")
_VALUE = r"'[^']*'|\"[^\"]*\"|-?[\w.]*\w|\[[^\]]*\]|\([^)]*\)"


@cache
def _named_parameters(names: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(?<![\w-])(?P<name>{words})=(?:\{{'(?P<key>\w+)': (?P<set>\w+)\}}|(?P<value>{_VALUE}))?"
        rf"|The '(?P<checked>{words})' parameter of [\w.]+ (?=must)"
    )


def with_options(message: str, options: Mapping[str, str] | None = None) -> str:
    """Return a message that names parameters as Python does with the options of a terminal.

    All messages of the library write ``name=`` for a parameter, and ``name='value'`` with a value.
    Commands pass what they print of them through this function.

    Parameters
    ----------
    message : str
        What the library says.
    options : mapping of str to str, default=None
        Options of the command that runs, by the names of their parameters, as they were typed.
        Those of a table and of `appellate.rectify` need not be named.

    Examples
    --------
    >>> with_options("Name it with candidates=, or give separator=';'.")
    "Name it with --candidates, or give --separator ';'."
    >>> with_options("Leave model_probabilities= out. Use settings={'max_rounds': 3}.")
    'Leave --model-probabilities out. Use --set max_rounds=3.'
    >>> with_options("flip_probability=2 is not a probability.", {"flip_probability": "--flip"})
    '--flip 2 is not a probability.'
    """
    known = {
        name: f"--{name.replace('_', '-')}" for name in (*options_in(TableOptions), *_FURTHER)
    }
    known |= {"settings": "--set"} | dict(options or {})

    def typed(match: re.Match[str]) -> str:
        word = known[match["checked"] or match["name"]]
        if match["checked"]:
            return f"{word} "
        if match["key"]:
            return f"{word} {match['key']}={match['set']}"
        value = match["value"]
        # A flag has no value in a terminal.
        return word if value in (None, "True") else f"{word} {value}"

    return _named_parameters(tuple(known)).sub(typed, message)

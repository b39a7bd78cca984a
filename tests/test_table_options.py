"""An option of a table is defined once; all functions and commands that take it follow."""

from __future__ import annotations

import inspect
from typing import Annotated, TypedDict, Unpack

import pytest

pytest.importorskip("pyarrow")

import appellate
from appellate import tables
from appellate._table_options import (
    ColumnOptions,
    LoadOptions,
    Option,
    ReadingOptions,
    TableOptions,
    check_options,
    options_in,
    pick,
    takes_options,
)
from appellate.datasets import load_partial_csv
from appellate.rectification.prediction import predict

TAKERS = {
    appellate.rectify: TableOptions,
    load_partial_csv: LoadOptions,
    predict: ReadingOptions,
    tables.diagnose: ColumnOptions,
    tables.find_roles: ColumnOptions,
    tables.read_table: ReadingOptions,
}


@pytest.mark.parametrize("function", TAKERS)
def test_functions_take_all_options_of_their_group(function):
    options = options_in(TAKERS[function])
    signed = inspect.signature(function).parameters
    assert {*options} <= {*signed}
    for name, option in options.items():
        assert signed[name].default == option.default, name
        assert f"\n{name} : " in inspect.getdoc(function), f"{name} is not explained"


def test_commands_take_all_options():
    from appellate.cli.app import app

    for command, group in {"rectify": TableOptions, "check": LoadOptions}.items():
        words = {option.name for option in app.commands[command].params}
        assert {*options_in(group)} <= words, command


class SmallOptions(TypedDict, total=False):
    """A group of one option."""

    skip: Annotated[int | None, Option("N", "Lines to skip.", "int", "Lines above the header.")]


def test_signature_and_docstring_come_from_the_definition():
    @takes_options(SmallOptions)
    def read(path: str, *, strict: bool = False, **options: Unpack[SmallOptions]) -> None:
        """Read.

        Parameters
        ----------
        path : str
            The file.
        **options
            These lines
            are replaced.
        strict : bool
            Whether to refuse.
        """

    assert list(inspect.signature(read).parameters) == ["path", "skip", "strict"]
    assert inspect.getdoc(read).splitlines()[4:] == [
        "path : str", "    The file.", "skip : int", "    Lines above the header.",
        "strict : bool", "    Whether to refuse.",
    ]  # fmt: skip


def test_unknown_options_are_refused_with_the_nearest_name():
    with pytest.raises(TypeError, match=r"f\(\) has no parameter 'skp'. Did you mean 'skip'\?"):
        check_options("f", SmallOptions, {"skp": 1})
    with pytest.raises(TypeError, match=r"'max_rounds'.*settings={'max_rounds': 3}"):
        appellate.rectify({"a": ["x|y", "y"]}, candidates="a", max_rounds=2)
    with pytest.raises(TypeError, match=r"rectify\(\) has no parameter 'candidate'. Did you mean"):
        appellate.rectify({"a": ["x|y", "y"]}, candidate="a")


def test_options_are_picked_by_group():
    given = {"candidates": "names", "sheet": "two", "method": "jury"}
    assert pick(ReadingOptions, given) == {"sheet": "two"}
    assert pick(LoadOptions, given) == {"candidates": "names", "sheet": "two"}

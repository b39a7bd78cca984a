"""New rows are read as the rows were that a model learned from, whatever else is in their file."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import appellate
from appellate import NoteWarning
from appellate.cli.app import run as command
from appellate.rectification import predict

# Small tables cause notes that do not matter here; tests of notes use pytest.warns.
pytestmark = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")

WINTER = [1, 2, 3, 10, 11, 12]
FAST = {"method": "plcp", "base": "knn"}


def seasons(days):
    return np.where(days.month.isin(WINTER), "winter", "summer")


def diary(form="%d/%m/%Y"):
    days = pd.date_range("2023-01-01", periods=120, freq="3D")
    names = [n if i % 3 else "summer|winter" for i, n in enumerate(seasons(days))]
    return pd.DataFrame({"date": days.strftime(form), "names": names})


EARLY = [day for day in pd.date_range("2023-01-01", "2023-12-31") if day.day <= 12]


def labels_of(run, new, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoteWarning)
        return run.predict(new, **options)["label"].tolist()


def saved(run, folder):
    return appellate.load(run.save(folder / "o"))


# -- dates -----------------------------------------------------------------------------


def test_dates_are_read_day_first_if_the_model_learned_them_so(tmp_path):
    run = appellate.rectify(diary(), candidates="names")
    new = pd.DataFrame({"date": pd.DatetimeIndex(EARLY).strftime("%d/%m/%Y")})
    more = pd.concat([new, pd.DataFrame({"date": ["31/12/2023"]})], ignore_index=True)
    found = labels_of(run, new)
    assert np.mean(found == seasons(pd.DatetimeIndex(EARLY))) > 0.98
    assert labels_of(run, more)[:-1] == found
    assert labels_of(saved(run, tmp_path), new) == found
    assert predict(tmp_path / "o", new)["label"].tolist() == found


def test_the_command_line_reads_dates_as_the_model_learned_them(tmp_path, capsys):
    diary().to_csv(tmp_path / "d.csv", index=False)
    days = pd.DatetimeIndex(EARLY)
    pd.DataFrame({"date": days.strftime("%d/%m/%Y")}).to_csv(tmp_path / "new.csv", index=False)
    made = ["rectify", "d.csv", "--candidates", "names", "--out", "o"]
    asked = ["predict", "o", "new.csv", "--out", "p.csv"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert command(made) == 0
        assert command(asked) == 0
    assert np.mean(pd.read_csv(tmp_path / "p.csv")["label"] == seasons(days)) > 0.98


def test_one_row_is_read_as_all_rows_are():
    run = appellate.rectify(diary(), candidates="names", **FAST)
    new = pd.DataFrame({"date": pd.DatetimeIndex(EARLY[:20]).strftime("%d/%m/%Y")})
    one_by_one = [labels_of(run, new.iloc[[i]])[0] for i in range(len(new))]
    assert one_by_one == labels_of(run, new)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", None])
def test_dates_without_doubt_are_read_in_any_model(form):
    run = appellate.rectify(diary(), candidates="names", **FAST)
    days = pd.DatetimeIndex(EARLY)
    plain = labels_of(run, pd.DataFrame({"date": days.strftime("%d/%m/%Y")}))
    assert labels_of(run, pd.DataFrame({"date": days.strftime(form) if form else days})) == plain


def test_a_date_that_cannot_be_read_is_missing_and_noted():
    run = appellate.rectify(diary(), candidates="names", **FAST)
    new = pd.DataFrame({"date": ["31/12/2023", "12/31/2023", "soon", None]})
    said = (
        r"column 'date': 2 of 4 rows hold no date such as 31/12/2023, e.g. '12/31/2023' in row 1"
    )
    with pytest.warns(NoteWarning, match=said) as caught:
        assert len(run.predict(new)) == 4
    assert caught[0].filename == __file__
    assert len(caught) == 1


def test_notes_dates_that_fit_both_orders():
    frame = diary()
    few = frame[pd.to_datetime(frame["date"], format="%d/%m/%Y").dt.day <= 12]
    run = appellate.rectify(few.reset_index(drop=True), candidates="names", **FAST)
    assert any("dates of 'date' fit month/day and day/month" in n for n in run.settings["notes"])
    run = appellate.rectify(frame, candidates="names", **FAST)
    assert not any("month/day" in note for note in run.settings["notes"])


def test_the_pipeline_reads_a_frame_of_texts_as_the_run_does(tmp_path):
    frame = diary().assign(
        f=[["TRUE", "FALSE"][i % 2] for i in range(120)],
        w=[f"{i % 7},{i % 9}5" for i in range(120)],
    )
    file = tmp_path / "t.csv"
    frame.to_csv(file, index=False, sep=";")
    run = appellate.rectify(file, candidates="names", **FAST)
    days = pd.DatetimeIndex(EARLY).strftime("%d/%m/%Y")
    new = pd.DataFrame({"date": days, "f": [True, False] * 72, "w": "1,234"}, index=days)
    columns = new[["date", "f", "w"]]
    wanted = labels_of(run, new)
    for model in (run.model, saved(run, tmp_path).model):
        assert model.predict(columns).tolist() == wanted
        assert model.predict(columns.iloc[:1]).tolist() == wanted[:1]
    with pytest.warns(NoteWarning, match="'date': 1 of 1 rows hold no date such as 31/12/2023"):
        run.model.predict(columns.iloc[:1].assign(date="soon"))


# -- numbers ---------------------------------------------------------------------------


def weights(tmp_path, cells, name="t.csv", delimiter=";"):
    names = ["cat|dog" if i % 3 == 0 else "cat" if i % 2 else "dog" for i in range(len(cells))]
    rows = [f"{cell}{delimiter}{label}" for cell, label in zip(cells, names, strict=True)]
    (tmp_path / name).write_text("\n".join([f"w{delimiter}names", *rows]) + "\n")
    return tmp_path / name


def written(tmp_path, cells, delimiter="\t"):
    file = tmp_path / f"new.{'csv' if delimiter == ',' else 'tsv'}"
    file.write_text(
        "\n".join([f"w{delimiter}v", *(f"{cell}{delimiter}x" for cell in cells)]) + "\n"
    )
    return file


def numbers_of(run, file, **options):
    """Return the numbers that the model gets."""
    from appellate.rectification.prediction import new_features
    from appellate.tables import read_table

    return new_features(run.settings, read_table(file, **options), {})[0]["w"].tolist()


def test_a_decimal_comma_stays_one_in_a_file_of_a_single_row(tmp_path):
    file = weights(tmp_path, [f"{1 + i % 7},{i % 9}{5}" for i in range(40)])
    run = appellate.rectify(file, candidates="names", **FAST)
    assert numbers_of(run, written(tmp_path, ["1,234"])) == [1.234]
    assert numbers_of(run, written(tmp_path, ["1,234", "x", "1,5"]))[0] == 1.234
    assert numbers_of(run, written(tmp_path, ["1.5"], ",")) == [1.5]
    assert numbers_of(run, written(tmp_path, ["1.234"], ",")) == [1.234]  # a comma separates cells


def test_grouped_thousands_stay_grouped(tmp_path):
    cells = [f"{1 + i % 7},{100 + i}" for i in range(40)]
    run = appellate.rectify(weights(tmp_path, cells), candidates="names", **FAST)
    assert run.labels["w"].tolist()[:2] == [1100, 2101]
    assert saved(run, tmp_path).labels["w"].tolist() == run.labels["w"].tolist()
    assert numbers_of(run, written(tmp_path, ["1,234", "7"])) == [1234, 7]
    assert np.isnan(numbers_of(run, written(tmp_path, ["1,5"]))).all()


def test_dots_that_group_thousands_stay_grouped(tmp_path):
    cells = [f"{1 + i % 7}.{100 + i}" if i % 3 else "999" for i in range(40)]
    run = appellate.rectify(weights(tmp_path, cells, delimiter=";"), candidates="names", **FAST)
    assert run.labels["w"].tolist()[:2] == [999, 2101]
    assert saved(run, tmp_path).labels["w"].tolist() == run.labels["w"].tolist()
    for delimiter in (";", ","):
        assert numbers_of(run, written(tmp_path, ["1.234", "7", "0.5"], delimiter)) == [
            1234,
            7,
            0.5,
        ]
    assert numbers_of(run, written(tmp_path, ["1.234,5"])) == [1234.5]
    assert numbers_of(run, written(tmp_path, ["1.234"]), decimal=",") == [1234]
    assert numbers_of(run, written(tmp_path, ["1.234"]), decimal=".") == [1.234]


def test_a_number_in_doubt_is_missing_and_the_note_says_what_to_do(tmp_path):
    run = appellate.rectify(
        weights(tmp_path, [f"{i % 7}.{i % 9}" for i in range(40)], delimiter=","),
        candidates="names", **FAST,
    )  # fmt: skip
    file = written(tmp_path, ["1,234", "1,5"])
    assert np.array_equal(numbers_of(run, file), [np.nan, 1.5], equal_nan=True)
    said = r"1 of 2 rows hold no number that can be read, e.g. '1,234' in row 0.*decimal="
    with pytest.warns(NoteWarning, match=said):
        run.predict(file)
    assert numbers_of(run, file, decimal=",") == [1.234, 1.5]
    assert numbers_of(run, file, decimal=".")[0] == 1234


# -- categories ------------------------------------------------------------------------


def flags(cells):
    n = len(cells)
    names = ["a|b" if i % 5 == 0 else "ab"[i % 2] for i in range(n)]
    return pd.DataFrame({"f": cells, "names": names})


@pytest.mark.parametrize(
    ("learned", "new"),
    [
        (["FALSE", "TRUE"], [False, True]),
        (["FALSE", "TRUE"], ["false", "true"]),
        ([False, True], ["FALSE", "TRUE"]),
        (["light red", "Blue"], [" Light  RED", "BLUE "]),
        (["1", "x"], [1.0, "X"]),
        (["1", "x"], ["1.0", "x"]),
    ],
)
def test_categories_have_the_spelling_of_the_training(learned, new, tmp_path):
    run = appellate.rectify(flags([learned[i % 2] for i in range(60)]), candidates="names", **FAST)
    wanted = run.predict(pd.DataFrame({"f": learned}))
    assert wanted["label"].tolist() == ["a", "b"]
    for each in (run, saved(run, tmp_path)):
        found = each.predict(
            pd.DataFrame({"f": pd.Series(new, dtype=object)})
        )  # without a warning
        assert found["confidence"].tolist() == wanted["confidence"].tolist()
        assert found["label"].tolist() == ["a", "b"]


def test_categories_that_differ_in_case_in_training_stay_apart():
    cells = ["Ab", "AB", "x"]
    run = appellate.rectify(flags([cells[i % 3] for i in range(60)]), candidates="names", **FAST)
    with pytest.warns(NoteWarning, match=r"column 'f': 1 of 3 rows hold a category.*e.g. 'ab'"):
        run.predict(pd.DataFrame({"f": ["Ab", "AB", "ab"]}))


def test_new_categories_are_told_in_python():
    run = appellate.rectify(flags(["u", "v"] * 30), candidates="names", **FAST)
    with pytest.warns(NoteWarning, match=r"2 of 2 rows hold a category that the model never saw"):
        run.predict(pd.DataFrame({"f": ["NEW", "OTHER"]}))


# -- files without a header ------------------------------------------------------------


def test_a_model_of_a_file_without_a_header(tmp_path):
    file = weights(tmp_path, [f"{i % 7}.{i % 9}" for i in range(40)], delimiter=",")
    file.write_text(file.read_text().partition("\n")[2])
    run = appellate.rectify(file, candidates="1", header=None, **FAST)
    assert run.settings["call"]["header"] is None
    assert run.labels.columns.tolist()[:2] == ["0", "1"]
    again = saved(run, tmp_path).decide({0: "cat"})
    assert again.labels["label"].tolist()[0] == "cat"
    assert labels_of(run, file, header="none") == labels_of(run, file, header=None)
    with pytest.raises(ValueError, match=r"lacks columns.*'0'.*header='none'"):
        run.predict(file)


# -- what was saved --------------------------------------------------------------------


def test_load_gives_back_the_types_and_the_index_of_the_table(tmp_path):
    n, r = 60, np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": r.normal(size=n),
            "flag": r.random(n) < 0.5,
            "whole": np.arange(n) % 5,
            "when": pd.date_range("2024-01-01", periods=n),
            "c": pd.Categorical(r.choice(["u", "v"], n)),
            "names": ["cat|dog" if i % 3 == 0 else ["cat", "dog"][i % 2] for i in range(n)],
        },
        index=[f"i{k}" for k in range(n)],
    )
    run = appellate.rectify(frame, candidates="names", **FAST)
    back = saved(run, tmp_path)
    for name in ("x", "flag", "whole", "when"):
        assert back.labels[name].dtype.kind == run.labels[name].dtype.kind, name
        assert back.labels[name].tolist() == frame[name].tolist()
    assert back.labels.index.tolist() == frame.index.tolist()
    assert back.labels.columns.tolist() == run.labels.columns.tolist()
    assert pd.read_parquet(tmp_path / "o/rectified.parquet").index.tolist() == frame.index.tolist()
    assert (tmp_path / "o/rectified.csv").read_text().splitlines()[0].startswith("x,flag,whole")


@pytest.mark.parametrize(
    "index", [None, [5, 7, 9] * 20, pd.Index(range(60), name="key"),
              pd.MultiIndex.from_product([["a", "b"], range(30)])]
)  # fmt: skip
def test_load_gives_back_any_index(index, tmp_path):
    frame = flags(["u", "v"] * 30)
    frame.index = frame.index if index is None else index
    run = appellate.rectify(frame, candidates="names", **FAST)
    back = saved(run, tmp_path)
    assert back.labels.index.equals(run.labels.index)
    assert back.labels.index.names == run.labels.index.names
    assert back.labels.columns.tolist() == run.labels.columns.tolist()


def test_a_cell_without_a_field_can_be_saved(tmp_path):
    rows = [
        {"x": i % 7, "names": "a|b" if i % 5 == 0 else "ab"[i % 2], "o": {}} for i in range(40)
    ]
    run = appellate.rectify(rows, candidates="names", **FAST)
    assert pa.parquet.read_table(run.save(tmp_path / "o") / "rectified.parquet").num_rows == 40

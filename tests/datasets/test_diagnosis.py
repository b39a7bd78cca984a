"""Is this my problem? What files of every kind are taken for."""

from __future__ import annotations

import numpy as np
import pytest

from appellate.datasets import diagnose_csv, make_partial_labels

ROWS = 30
RNG = np.random.default_rng(0)
LABELS = np.array(["ant", "bee", "cat"])[np.arange(ROWS) % 3]
SETS = [
    "|".join(np.array(["ant", "bee", "cat"])[row])
    for row in make_partial_labels(LABELS, flip_probability=0.5, random_state=0)
]


def table(**columns):
    """Text of a CSV file with two features and further columns."""
    x, z = RNG.normal(size=(2, ROWS)) + (np.arange(ROWS) % 3)
    columns = {"x": x, "z": z} | columns
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def diagnose(tmp_path):
    def diagnose(text, **options):
        path = tmp_path / "own.csv"
        path.write_text(text)
        return diagnose_csv(path, **options)

    return diagnose


def run(found):
    """Type what was told to type."""
    scope = {"print": lambda *_: None, "help": lambda *_: None}
    exec(found.next, scope)
    return scope


@pytest.mark.parametrize("indicators", [False, True])
def test_sets_that_hold_all_labels_are_to_be_mended(diagnose, indicators):
    columns = {"p": [1] * ROWS, "q": [1] * ROWS} if indicators else {"labels": ["a|b"] * ROWS}
    found = diagnose(table(**columns), candidates=list(columns))
    assert "every row has all 2 labels, so nothing can be learned" in found.problems[0]


def test_partial_label_with_truth(diagnose):
    found = diagnose(table(candidates=SETS, truth=LABELS))
    assert found.kind == "partial-label"
    assert "always among them" in found.reason
    assert (found.columns, found.separator, found.truth) == (["candidates"], "|", "truth")
    assert found.facts["rows"] == ROWS
    assert found.facts["classes"] == 3
    assert found.facts["singletons"] == sum("|" not in cell for cell in SETS)
    assert found.facts["full_sets"] == sum(cell.count("|") == 2 for cell in SETS)
    assert found.facts["truth_coverage"] == 1
    assert found.facts["features"] == 2
    assert not found.problems
    scope = run(found)
    assert scope["model"].transduction_.shape == (ROWS,)
    assert set(scope["model"].transduction_) <= {"ant", "bee", "cat"}


def test_partial_label_without_truth_is_a_guess_that_says_so(diagnose):
    found = diagnose(table(labels=[cell.replace("|", ";") for cell in SETS]))
    assert found.kind == "partial-label"
    assert "the file alone cannot tell" in found.reason
    assert found.separator == ";"
    assert "separator=';'" in found.next
    run(found)


def test_noisy_candidate_sets(diagnose):
    truth = LABELS.copy()
    truth[:6] = "dog"
    found = diagnose(table(candidates=SETS, truth=truth))
    assert found.kind == "partial-label"
    assert found.facts["truth_coverage"] == 0.8
    assert "noisy=True" in found.next
    run(found)


def test_multi_label(diagnose):
    found = diagnose(table(tags=SETS, truth=SETS))
    assert found.kind == "multi-label"
    assert "so has the truth" in found.reason
    run(found)
    some = ["" if i % 5 == 0 else cell for i, cell in enumerate(SETS)]
    found = diagnose(table(tags=some))
    assert found.kind == "multi-label"
    assert "never empty" in found.reason
    assert found.facts["empty"] == 6
    assert not found.problems


def test_a_few_empty_sets_are_to_be_mended(diagnose):
    found = diagnose(table(candidates=["", *SETS[1:]]))
    assert found.kind == "partial-label"
    assert found.problems == ["no label in row 0: give them one or drop them."]


def test_plain(diagnose):
    found = diagnose(table(label=LABELS))
    assert found.kind == "plain"
    assert found.facts["several"] == 0
    assert run(found)["candidates"].shape == (ROWS, 3)
    assert diagnose(table(label=LABELS, truth=LABELS)).kind == "plain"
    agreed = diagnose(table(annotator1=LABELS, annotator2=LABELS))
    assert agreed.kind == "plain"
    run(agreed)


def test_wrong_labels(diagnose):
    found = diagnose(table(label=LABELS, truth=np.roll(LABELS, 1)))
    assert found.kind == "noisy"
    assert "not the truth in 100.0%" in found.reason
    run(found)


def test_people_who_disagree(diagnose):
    other = np.where(np.arange(ROWS) % 10 == 0, "bee", LABELS)
    found = diagnose(table(annotator1=LABELS, annotator2=other, annotator3=LABELS, truth=LABELS))
    assert found.kind == "noisy"
    assert found.facts["people"] == 3
    assert found.facts["several"] == np.count_nonzero(other != LABELS)
    assert 'layout="annotators"' in found.next or "layout='annotators'" in found.next
    assert run(found)["model"].candidates_.shape == (ROWS, 3)


def test_one_answer_a_row(diagnose):
    rows = ["worker,task,answer"]
    rows += [f"w{w},t{t},{LABELS[t] if w else 'ant'}" for t in range(5) for w in range(3)]
    found = diagnose("\n".join(rows))
    assert found.kind == "noisy"
    assert found.facts["rows"] == 5
    assert found.facts["people"] == 3
    assert found.facts["answers"] == 15
    sets = run(found)["sets"]
    assert sets.ids.tolist() == [f"t{t}" for t in range(5)]
    assert sets.matrix.sum() == 5 + found.facts["several"]


def test_columns_of_0_and_1(diagnose):
    matrix = make_partial_labels(LABELS, flip_probability=0.5, random_state=0).astype(int)
    columns = dict(zip(("ant", "bee", "cat"), matrix.T, strict=True))
    found = diagnose(table(**columns, truth=LABELS), candidates=["ant", "bee", "cat"])
    assert found.kind == "partial-label"
    assert found.facts["truth_coverage"] == 1
    assert run(found)["sets"].class_names.tolist() == ["ant", "bee", "cat"]
    single = dict(zip(columns, (name == LABELS for name in columns), strict=True))
    single = {name: column.astype(int) for name, column in single.items()}
    assert diagnose(table(**single), candidates=list(single)).kind == "plain"


def test_other_columns_row_names_and_holes(diagnose):
    file = [f"{i}.png" for i in range(ROWS)]
    height = ["" if i < 2 else i for i in range(ROWS)]
    found = diagnose(
        table(id=range(ROWS), note=["n"] * ROWS, file=file, height=height, candidates=SETS)
    )
    assert found.ids == "id"
    assert found.facts["other_columns"] == ["note", "file"]
    assert found.facts["features"] == 3
    assert found.facts["missing_cells"] == 2
    assert not found.problems
    assert found.notes == ["empty cells (2) in column 'height': rectify fills them."]
    scope = run(found)
    assert scope["X"].shape == (ROWS, 3)


def test_a_truth_with_holes_is_left_out_of_python(diagnose):
    truth = ["", *LABELS[1:]]
    found = diagnose(table(candidates=SETS, truth=truth))
    assert found.truth == "truth"
    assert found.facts["truth_coverage"] == 1
    assert "no truth in row 0: rectify scores the others" in found.notes[0]
    assert not found.problems
    assert run(found)["data"].feature_names == ["x", "z"]
    blank = diagnose(table(candidates=SETS, truth=[""] * ROWS))
    assert blank.facts["truth_coverage"] is None


def test_names_with_commas_are_no_sets(diagnose):
    text = 'x,label\n1,"Doe, Jane"\n2,"Roe, Carl"\n3,"Doe, Jane"\n'
    found = diagnose(text)
    assert found.kind == "plain"
    assert found.separator is None
    assert diagnose('x,label\n1,"a,b"\n2,"b,c"\n3,c\n').kind == "partial-label"
    assert diagnose("x,label\n1,a|b\n2,b\n", separator="").kind == "plain"
    assert diagnose("x,label\n1,a+b\n2,b\n", separator="+").kind == "partial-label"


def test_the_column_is_found_by_its_contents(diagnose):
    found = diagnose(table(who=SETS))
    assert found.columns == ["who"]
    with pytest.raises(ValueError, match="no column looks like labels"):
        diagnose(table(who=LABELS))
    assert diagnose(table(who=LABELS), candidates="who").kind == "plain"


def test_files_that_are_read_in_another_way(diagnose, tmp_path):
    text = table(candidates=SETS).replace(",", "~")
    found = diagnose(text, delimiter="~")
    assert "delimiter='~'" in found.next
    run(found)
    (tmp_path / "latin.csv").write_text(table(candidates=SETS), encoding="utf-16")
    found = diagnose_csv(tmp_path / "latin.csv", encoding="utf-16")
    assert "encoding='utf-16'" in found.next
    run(found)


def test_without_features(diagnose):
    found = diagnose("candidates\na|b\nb\n")
    assert "no column of numbers is left" in found.problems[0]


def test_mistakes(diagnose, tmp_path):
    with pytest.raises(ValueError, match="no column 'lable'"):
        diagnose(table(label=LABELS), candidates="lable")
    with pytest.raises(FileNotFoundError, match="no file"):
        diagnose_csv(tmp_path / "nothing.csv")


def test_a_column_of_labels_is_no_feature(diagnose):
    found = diagnose(table(candidates=SETS, kind=LABELS))
    assert found.facts["other_columns"] == ["kind"]
    assert "column 'kind' holds labels of this table" in found.notes[0]
    digit = dict(zip(("ant", "bee", "cat"), "123", strict=True))
    sets = ["|".join(digit[name] for name in cell.split("|")) for cell in SETS]
    numbers = [float(digit[name]) for name in LABELS]
    grey = [i // 3 % 3 + 1 for i in range(ROWS)]
    found = diagnose(table(candidates=sets, kind=numbers, grey=grey))
    assert found.facts["features"] == 3, "grey values are no labels of their rows"
    assert found.facts["other_columns"] == ["kind"]
    run(found)
    rectified = {"label": numbers, "confidence": RNG.random(ROWS), "outcome": ["upheld"] * ROWS}
    found = diagnose(table(candidates=sets, **rectified), candidates="candidates")
    assert found.facts["features"] == 2
    run(found)


def test_lists_in_cells(diagnose):
    lists = [f'"{cell.split("|")}"' for cell in SETS]
    found = diagnose(table(tags=lists, truth=LABELS))
    assert (found.kind, found.separator, found.facts["classes"]) == ("partial-label", None, 3)
    assert found.facts["truth_coverage"] == 1
    assert "are read as lists of labels" in found.notes[0]
    assert run(found)["data"].class_names.tolist() == ["ant", "bee", "cat"]
    with pytest.raises(ValueError, match="row 1 cannot be read"):
        diagnose(table(tags=[lists[0], "[ant]", *lists[2:]]))


def test_one_number_in_two_spellings(diagnose):
    sets = ["1.0|2" if i % 2 else "1" for i in range(ROWS)]
    found = diagnose(table(candidates=sets, truth=["1.00"] * ROWS))
    assert found.facts["classes"] == 2
    assert found.facts["truth_coverage"] == 1
    assert "'1.0' as '1'" in found.notes[0]
    people = {"annotator1": [1, 2] * 15, "annotator2": [1.0, 2.0] * 15}
    assert diagnose(table(**people)).kind == "plain"


def test_spellings_of_letters(diagnose):
    found = diagnose(table(candidates=["e\u0301|b" if i % 2 else "\u00e9" for i in range(ROWS)]))
    assert found.facts["classes"] == 2
    found = diagnose(table(candidates=["Ant|bee", "ant"] * 15))
    assert "in upper and lower case alone: 'Ant' and 'ant'" in found.notes[0]


def test_separators_that_part_nothing_are_to_be_mended(diagnose):
    found = diagnose(table(candidates=["ant||bee", "ant|", *SETS[2:]]))
    assert found.problems == ["an empty label in rows 0, 1: take out the '|' that parts nothing."]


def test_decimal_commas(diagnose):
    text = table(candidates=SETS).replace(",", ";").replace(".", ",")
    found = diagnose(text.replace("candidates", "guesses"))
    assert found.columns == ["guesses"]
    assert found.facts["features"] == 2
    assert found.notes == ["decimal commas are read in columns 'x', 'z'."]
    assert run(found)["data"].X.shape == (ROWS, 2)
    sets = ["1,2" if i % 2 else "2" for i in range(ROWS)]
    text = "\n".join(["x;labels", *(f"{i};{each}" for i, each in enumerate(sets))])
    assert diagnose(text).facts["several"] == ROWS // 2, "labels may be parted by commas"


def test_counters_and_the_index_of_a_data_frame(diagnose):
    text = table(candidates=SETS, nr=np.roll(np.arange(ROWS), 5))
    lines = text.splitlines()
    index = [f"{i - 1 if i else ''},{line}" for i, line in enumerate(lines)]
    found = diagnose("\n".join(index))
    assert found.facts["features"] == 2
    assert any("without a title" in note for note in found.notes)
    assert "column 'nr' counts the rows, so it is no feature." in found.notes
    assert run(found)["data"].feature_names == ["x", "z"]


def test_titles_that_end_in_id_name_the_rows(diagnose):
    assert diagnose(table(candidates=SETS, image_id=range(7, 7 + ROWS))).ids == "image_id"
    assert diagnose(table(candidates=SETS, acid=RNG.random(ROWS))).ids is None

"""The table of deep runs, from records of every kind; tests/cli has it with real runs."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch")

from appellate.experiments.networks.configuration import (
    all_settings,
    make_classifier,
    read_configuration,
)
from appellate.paper.deep_reports import DeepTableError, report_deep

HEADS = {None: ("base",)}
BOTH = ("base", "partner", "mean")


def make_record(name="proden-cifar10", accuracy=0.8, seed=0, flip=0.1, **changes):
    """Return the record of a whole run, as if it had been trained."""
    found = read_configuration(name)
    settings = {**found.settings_for(flip, found.dataset), **changes}
    model = make_classifier(found.method, settings)
    heads = HEADS.get(settings.get("partner"), BOTH)
    head = heads[-1]
    scores = {each: accuracy - 0.01 * (each != head) for each in heads}
    return {
        "method": found.method,
        "settings": all_settings(model),
        "smoke": False,
        "seed": seed,
        "data": {"source": found.dataset, "flip": flip, "rows": 50_000, "test_rows": 10_000},
        "candidates": {"sha256": f"sets of seed {seed}"},
        "results": {
            "head": head,
            "selected_by": None,
            "test": {"rows": 10_000, "accuracy": scores},
        },
    }


def several(name, accuracies, **more):
    return {
        f"{name}-{seed}{more or ''}": make_record(name, accuracy, seed, **more)
        for seed, accuracy in enumerate(accuracies)
    }


def lines_of(report):
    return {r["method"]: r for r in report.records if r["against"] is None}


def pairs_of(report):
    return {(r["method"], r["against"]): r for r in report.records if r["against"]}


BASE = [0.890, 0.893, 0.891, 0.895, 0.889]
COUPLED = [0.897, 0.896, 0.897, 0.899, 0.894]
TWO = [0.896, 0.897, 0.896, 0.900, 0.892]


def test_means_and_differences_over_seeds():
    records = several("proden-cifar10", BASE) | several("proden-plcp-cifar10", COUPLED)
    records |= several("proden-independent-cifar10", TWO)
    report = report_deep(records)
    lines, pairs = lines_of(report), pairs_of(report)
    assert list(lines) == ["PRODEN", "PRODEN-PLCP", "two independent PRODENs"]
    base = lines["PRODEN"]
    assert base["mean"] == pytest.approx(100 * np.mean(BASE))
    assert base["deviation"] == pytest.approx(100 * np.std(BASE, ddof=1))
    assert base["seeds"] == [0, 1, 2, 3, 4]
    assert list(pairs) == [
        ("PRODEN-PLCP", "PRODEN"),
        ("PRODEN-PLCP", "two independent PRODENs"),
        ("two independent PRODENs", "PRODEN"),
    ]
    found = pairs["PRODEN-PLCP", "PRODEN"]
    test = stats.ttest_rel(COUPLED, BASE)
    assert found["difference"] == pytest.approx(100 * np.mean(np.subtract(COUPLED, BASE)))
    assert found["t_pvalue"] == pytest.approx(test.pvalue)
    assert found["effect_size"] == pytest.approx(test.statistic / np.sqrt(5))
    assert found["outcome"] == "win"
    assert found["wilcoxon_pvalue"] is None  # five seeds cannot reach 0.05
    assert any("left out below 6 seeds" in note for note in report.notes)
    shown = next(row for row in report.sheets[1].rows if row[3] == "PRODEN")
    assert "+0.50 •" in shown


def test_six_seeds_have_wilcoxons_test():
    base, coupled = [*BASE, 0.888], [*COUPLED, 0.895]
    records = several("proden-cifar10", base) | several("proden-plcp-cifar10", coupled)
    report = report_deep(records)
    found = pairs_of(report)["PRODEN-PLCP", "PRODEN"]
    assert found["wilcoxon_pvalue"] == pytest.approx(stats.wilcoxon(coupled, base).pvalue)
    assert "p (Wilcoxon)" in report.sheets[1].header
    assert not report.notes


@pytest.mark.parametrize(
    ("name", "flip", "figure"),
    [
        ("proden-cifar10", 0.1, (89.12, 0.12)),
        ("proden-plcp-cifar10", 0.1, (89.63, 0.15)),
        ("proden-plcp-cifar100", 0.0, (65.52, 0.32)),
        ("pico-cifar100", 0.1, (69.91, 0.24)),
        ("pico-plcp-no-blur-cifar10", 0.3, (94.20, 0.11)),
        ("pico-plcp-partner-o-cifar100", 0.05, (72.98, 0.24)),
    ],
)
def test_the_papers_figure_beside_runs_of_its_settings(name, flip, figure):
    report = report_deep({"run": make_record(name, flip=flip)})
    (line,) = report.records
    assert (line["paper_mean"], line["paper_deviation"]) == pytest.approx(figure)
    assert report.sheets[0].rows[0][-1] == f"{figure[0]:.2f} ± {figure[1]:.2f}"
    assert not any("not comparable" in note for note in report.notes)


def test_the_papers_difference():
    records = several("proden-cifar10", BASE) | several("proden-plcp-cifar10", COUPLED)
    assert pairs_of(report_deep(records))["PRODEN-PLCP", "PRODEN"]["paper_difference"] == 0.51


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_epochs": 20}, "n_epochs = 20, not 500"),
        ({"network": "mlp"}, 'network = "mlp", not "convnet"'),
        ({"width": 0.5}, "width = 0.5, not null"),
        ({"precision": "bfloat16"}, 'precision = "bfloat16", not "float32"'),
        ({"head": "base"}, 'head = "base", not "mean"'),
        ({"rows": 2000}, "2000 training rows, not 50000"),
        ({"test_rows": 100}, "100 test rows, not 10000"),
    ],
)
def test_other_settings_are_told_and_not_compared(change, said):
    data = {key: change[key] for key in change if "rows" in key}
    record = make_record("proden-plcp-cifar10", **{} if data else change)
    record["data"] |= data
    record["results"]["head"] = change.get("head", "mean")
    report = report_deep({"run": record})
    assert report.records[0]["paper_mean"] is None
    assert any(f"the paper's 89.63 ± 0.15 is not comparable: {said}." in n for n in report.notes)


def test_what_a_partner_does_not_read_makes_no_difference():
    """The base alone has no partner to read these, and checkpoints change no result."""
    records = {
        "a": make_record(seed=0, blur="none", collaboration=3.0, head="base"),
        "b": make_record(seed=1, checkpoint_every=7),
    }
    (line,) = report_deep(records).records
    assert line["seeds"] == [0, 1]
    assert line["paper_mean"] == pytest.approx(89.12)


def test_variants_have_their_names():
    changes = {
        "PRODEN": {"partner": "none"},
        "PRODEN-PLCP": {},
        "PRODEN-PLCP (collaboration = 5.0)": {"collaboration": 5.0},
        'PRODEN-PLCP (partner_output = "sigmoid")': {"partner_output": "sigmoid"},
        "PRODEN-PLCP without blur": {"blur": "none"},
        "PRODEN-PLCP with partner O": {"partner": "candidate"},
        "PRODEN-PLCP with partner O without blur": {"partner": "candidate", "blur": "none"},
        "PRODEN with a partner that it never hears": {"collaboration": 0.0},
        "two independent PRODENs": {"partner": "independent"},
    }
    records = {
        name: make_record("proden-plcp-cifar10", **change) for name, change in changes.items()
    }
    assert set(lines_of(report_deep(records))) == set(changes)


def test_only_common_seeds_are_paired():
    records = several("proden-cifar10", BASE) | several("proden-plcp-cifar10", COUPLED)
    for gone in ("proden-cifar10-1", "proden-plcp-cifar10-3", "proden-plcp-cifar10-4"):
        del records[gone]
    report = report_deep(records)
    found = pairs_of(report)["PRODEN-PLCP", "PRODEN"]
    assert found["seeds"] == [0, 2]
    assert found["difference"] == pytest.approx(0.65)
    assert found["mean"] == pytest.approx(89.7)  # over the seeds of the pair
    assert (
        "PRODEN-PLCP on cifar10, flip 0.1 against PRODEN: the 2 common seeds only; no counterpart "
        "for seed 1 of PRODEN-PLCP and seeds 3, 4 of PRODEN." in report.notes
    )


def test_other_candidate_sets_are_not_paired():
    records = several("proden-cifar10", BASE[:3]) | several("proden-plcp-cifar10", COUPLED[:3])
    records["proden-cifar10-1"]["candidates"]["sha256"] = "made otherwise"
    report = report_deep(records)
    assert pairs_of(report)["PRODEN-PLCP", "PRODEN"]["seeds"] == [0, 2]
    assert any("seed 1 not paired, the candidate sets are" in note for note in report.notes)


@pytest.mark.parametrize(("seeds", "said"), [([0], "one common seed"), ([], "no common seed")])
def test_no_test_of_less_than_two_seeds(seeds, said):
    records = {"base": make_record(seed=0)}
    records |= {f"{s}": make_record("proden-plcp-cifar10", seed=s) for s in seeds or [5]}
    report = report_deep(records)
    assert not pairs_of(report)
    assert len(report.sheets) == 1
    assert any(f"{said}, so no test" in note for note in report.notes)
    assert report.sheets[0].rows[0][4] == "80.00"  # no deviation of one seed


@pytest.mark.parametrize("other", [{"flip": 0.3}, {"n_epochs": 7}])
def test_runs_that_differ_in_more_than_the_partner_are_not_paired(other):
    records = several("proden-cifar10", BASE) | several("proden-plcp-cifar10", COUPLED, **other)
    report = report_deep(records)
    assert not pairs_of(report)
    assert any("no run of PRODEN alone on the same data" in note for note in report.notes)
    if "n_epochs" in other:
        assert set(lines_of(report)) == {"PRODEN (n_epochs = 500)", "PRODEN-PLCP (n_epochs = 7)"}


def test_mixed_settings_are_lines_of_their_own():
    records = several("proden-cifar10", BASE) | several("proden-cifar10", BASE, n_epochs=9)
    records |= several("pico-cifar10", [0.9]) | several("proden-cifar100", [0.6])
    lines = report_deep(records).records
    assert [(line["data"], line["method"], len(line["seeds"])) for line in lines] == [
        ("cifar10", "PRODEN (n_epochs = 500)", 5),
        ("cifar10", "PRODEN (n_epochs = 9)", 5),
        ("cifar10", "PiCO", 1),
        ("cifar100", "PRODEN", 1),
    ]


def test_files_are_told_apart_by_their_content_and_not_by_their_place():
    def of(source, digest, seed, rows=60):
        record = make_record(seed=seed, flip=None)
        record["data"] |= {"source": source, "rows": rows, "test_rows": 30}
        record["candidates"]["sha256"] = digest * 32
        return record

    here, there = of("/here/my.npz", "ab", 0), of("C:\\there\\my.npz", "ab", 1)
    (line,) = report_deep({"a": here, "b": there}).records
    assert (line["data"], line["seeds"]) == ("my.npz", [0, 1])
    named = {"a": here, "b": of("/here/my.npz", "cd", 1), "c": of("/here/my.npz", "ef", 1, 50)}
    assert [line["data"] for line in report_deep(named).records] == [
        "my.npz (50 + 30 rows)",
        "my.npz (candidates abababab)",
        "my.npz (candidates cdcdcdcd)",
    ]


def test_bags_of_another_size_are_other_data():
    records = {}
    for size, seed in [(3, 0), (3, 1), (5, 0), (5, 2)]:
        record = make_record(seed=seed, flip=None)
        record["data"]["bag_size"] = size
        records[f"bags of {size}, seed {seed}"] = record
    lines = report_deep(records).records
    assert [(line["data"], line["seeds"]) for line in lines] == [
        ("cifar10, bags of 3", [0, 1]),
        ("cifar10, bags of 5", [0, 2]),
    ]


def test_all_heads():
    records = several("proden-cifar10", BASE) | several("proden-plcp-cifar10", COUPLED)
    records |= several("proden-independent-cifar10", TWO)
    report = report_deep(records, all_heads=True)
    lines, pairs = lines_of(report), pairs_of(report)
    assert lines["PRODEN-PLCP, base head"]["mean"] == pytest.approx(
        lines["PRODEN-PLCP"]["mean"] - 1
    )
    assert lines["PRODEN-PLCP, base head"]["paper_mean"] is None
    assert ("PRODEN-PLCP, base head", "PRODEN") in pairs
    assert ("PRODEN-PLCP, base head", "two independent PRODENs") not in pairs


def test_all_heads_of_several_networks():
    record = make_record(n_networks=2)
    scores = {"base": 0.8, "network 1": 0.81, "network 2": 0.82, "mean": 0.83}
    record["results"] |= {"head": "mean", "test": {"rows": 10_000, "accuracy": scores}}
    lines = report_deep({"run": record}, all_heads=True).records
    assert [line["head"] for line in lines] == ["mean", "base", "network 1", "network 2"]


def test_equal_scores_and_equal_differences():
    """Neither has a t-test; JSON has no infinity either."""
    equal = several("proden-cifar10", BASE) | several("proden-plcp-cifar10", BASE)
    found = pairs_of(report_deep(equal))["PRODEN-PLCP", "PRODEN"]
    assert (found["t_pvalue"], found["effect_size"], found["outcome"]) == (None, None, "tie")
    assert any("the same difference for every seed" in note for note in report_deep(equal).notes)
    shifted = several("proden-cifar10", [0.5, 0.25]) | several("proden-plcp-cifar10", [0.75, 0.5])
    found = pairs_of(report_deep(shifted))["PRODEN-PLCP", "PRODEN"]
    assert (found["difference"], found["effect_size"]) == (25, None)
    assert any("2 common seeds, too few for a test" in n for n in report_deep(shifted).notes)


def test_epochs_selected_without_the_truth_and_trials_are_told():
    record = make_record(validation_fraction=0.1, selection="covering_rate")
    record["results"]["selected_by"] = "covering_rate"
    record["smoke"] = True
    notes = report_deep({"run": record}).notes
    assert any("the epoch was selected by covering_rate, without" in note for note in notes)
    assert any("SMOKE RUNS" in note for note in notes)


def test_the_same_run_twice():
    with pytest.raises(DeepTableError, match="'a' and 'b' are the same run, with seed 0"):
        report_deep({"a": make_record(), "b": make_record()})


def test_runs_without_test_labels_are_named():
    silent = make_record(seed=1)
    silent["results"]["test"] = None
    report = report_deep({"a": make_record(), "b": silent}, left_out=["'c' is not finished"])
    assert report.notes == (
        "Left out: 'c' is not finished.",
        "Left out: 'b' has no test rows with labels.",
    )
    with pytest.raises(DeepTableError, match=r"none of the runs has a test accuracy.*'b'"):
        report_deep({"b": silent})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r: r.pop("seed"), "has no 'seed'"),
        (lambda r: r["data"].pop("test_rows"), "has no 'test_rows'"),
        (lambda r: r.update(settings=[]), "cannot be read"),
        (lambda r: r["settings"].update(strange=1), "no parameter 'strange'"),
        (lambda r: r["results"].update(head="mean"), "is damaged"),
        (lambda r: r["results"]["test"].update(accuracy={"base": float("nan")}), "is damaged"),
        (lambda r: r["results"]["test"].update(accuracy=0.5), "cannot be read"),
        (lambda r: r.update(method="CC"), "unknown method 'CC'"),
    ],
)
def test_damaged_records(spoil, message):
    record = copy.deepcopy(make_record())
    spoil(record)
    with pytest.raises(DeepTableError, match=message) as raised:
        report_deep({"some/run": record})
    assert "'some/run'" in str(raised.value)

"""The configuration files of the paper's CIFAR tables, and files of users."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
import pytest

from appellate.experiments.networks.configuration import (
    ConfigurationError,
    all_settings,
    configuration_names,
    make_classifier,
    merge,
    read_configuration,
    shrink,
    try_out,
)

# Name of the file: table and method of the paper's figures.
ROWS = {
    "proden": ("deep_accuracy_percent", "PRODEN"),
    "proden-plcp": ("deep_accuracy_percent", "PRODEN-PLCP"),
    "pico": ("deep_accuracy_percent", "PiCO"),
    "pico-plcp": ("deep_accuracy_percent", "PiCO-PLCP"),
    "pico-plcp-no-blur": ("ablation_pico_accuracy_percent", "PiCO-PLCP partner=P blur=no"),
    "pico-plcp-partner-o": ("ablation_pico_accuracy_percent", "PiCO-PLCP partner=O blur=yes"),
}
# Controls, of which the paper has no figures.
CONTROLS = {"proden-independent": "proden", "pico-independent": "pico"}
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


def printed_figures():
    text = files("appellate.paper").joinpath("printed.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["method"], row["dataset"]): (float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
    }


def test_there_is_one_for_each_method_and_data_set():
    assert configuration_names() == sorted(
        f"{row}-{data}" for row in (*ROWS, *CONTROLS) for data in TITLES
    )


@pytest.mark.parametrize("data", TITLES)
@pytest.mark.parametrize("row", ROWS)
def test_figures_are_those_of_the_paper(row, data):
    table, method = ROWS[row]
    found = read_configuration(f"{row}-{data}")
    assert found.dataset == data
    own = {q: flip.paper for q, flip in found.flips.items()}
    expected = {}
    for (name, whose, column), figure in printed_figures().items():
        if name != table:
            continue
        if whose == method and column.startswith(f"{TITLES[data]} q="):
            expected[float(column.split("q=")[1])] = figure
        if whose == f"{method} fully supervised" and column == TITLES[data]:
            expected[0.0] = figure
    assert own == expected


@pytest.mark.parametrize("name", configuration_names())
def test_every_one_makes_a_classifier(name):
    found = read_configuration(name)
    model = make_classifier(found.method, found.settings)
    assert type(model).__name__.startswith(found.method)
    assert model.n_epochs == {"PRODEN": 500, "PiCO": 800}[found.method]
    told = all_settings(model)
    assert told["drop_last"]  # as the authors of both do
    assert told["optimizer"] == "sgd"
    assert (told["partner"] == "independent") == ("independent" in name)
    assert (told["partner"] is None) == (name.count("-") == 1)


@pytest.mark.parametrize("base", ["proden", "pico"])
@pytest.mark.parametrize("data", TITLES)
def test_coupled_differs_from_its_base_by_the_partner_alone(base, data):
    alone, coupled = (read_configuration(f"{base}{more}-{data}") for more in ("", "-plcp"))
    one = all_settings(make_classifier(alone.method, alone.settings))
    two = all_settings(make_classifier(coupled.method, coupled.settings))
    assert {key for key in one if one[key] != two[key]} == {"partner"}
    assert two["collaboration"] == 0.5
    assert two["blur"] == -1


@pytest.mark.parametrize("data", TITLES)
@pytest.mark.parametrize("control", CONTROLS)
def test_control_is_the_base_twice(control, data):
    """The same flips and settings as the base, at every flip; and no figure."""
    base, twice = (read_configuration(f"{name}-{data}") for name in (CONTROLS[control], control))
    assert list(twice.flips) == list(base.flips)
    assert all(flip.paper is None for flip in twice.flips.values())
    for flip in base.flips:
        one, two = (each.settings_for(flip, data) for each in (base, twice))
        assert two == one | {"partner": "independent", "head": "mean"}


def test_ablations():
    assert make_from("pico-plcp-no-blur-cifar10").partner.blur is None
    assert make_from("pico-plcp-partner-o-cifar10").partner.partner == "candidate"


@pytest.mark.parametrize("row", [row for row in (*ROWS, *CONTROLS) if row.startswith("pico")])
def test_prototypes_start_late_on_cifar100_with_a_tenth(row):
    found = read_configuration(f"{row}-cifar100")
    starts = {q: found.settings_for(q, "cifar100")["prototype_start"] for q in found.flips}
    assert {q: start for q, start in starts.items() if start != 1} == {0.1: 100}
    assert found.settings_for(0.1, "cifar10")["prototype_start"] == 1
    assert found.paper(0.1, "cifar10") is None
    assert found.paper(None, "cifar100") is None


def make_from(name):
    found = read_configuration(name)
    return make_classifier(found.method, found.settings)


def write(folder, text):
    path = folder / "my.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_of_a_user(tmp_path):
    text = 'extends = "proden-plcp-cifar10"\n[classifier]\nnetwork = "mlp"\n[flip."0.2"]\n'
    found = read_configuration(write(tmp_path, text))
    assert (found.title, found.method, found.dataset) == ("PRODEN-PLCP", "PRODEN", "cifar10")
    assert found.settings["network"] == "mlp"
    assert found.settings["partner"] == "non-candidate"
    assert list(found.flips) == [0.2]
    assert found.paper(0.2, "cifar10") is None
    (tmp_path / "next.toml").write_text("extends = 'my.toml'\ntitle = 'Next'")  # beside it
    assert read_configuration(str(tmp_path / "next.toml")).settings == found.settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method = 'PRODEN'\ndataset = \n", "line 2"),
        ("metod = 'PRODEN'", "unknown key 'metod'. Did you mean 'method'?"),
        ("method = 'PRODN'\ndataset = 'x'", "Did you mean 'PRODEN'?"),
        ("method = 'PRODEN'", "does not name its dataset"),
        ("title = 3", "'title' in"),
        ("classifier = 3", "must be a table"),
        ("extends = 'proden'", "unknown configuration 'proden'. Did you mean"),
        ("[flip.often]\npaper = [1, 2]", "name a probability"),
        ("[flip.'0.1']\npaper = 3", r"must be \[mean, deviation\]"),
    ],
)
def test_mistakes_in_a_file(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message):
        read_configuration(write(tmp_path, text))


def test_no_file_and_a_circle(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_configuration(str(tmp_path / "none.toml"))
    path = write(tmp_path, "extends = 'my.toml'")
    with pytest.raises(ConfigurationError, match="extends itself"):
        read_configuration(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rte": 1}, "no parameter 'learning_rte'. Did you mean 'learning_rate'?"),
        ({"prototype_start": 1}, "PRODENClassifier has no parameter"),
        ({"random_state": 1}, "the command sets it"),
        ({"n_epochs": 0}, "n_epochs"),
        ({"partner": "both"}, "partner"),
        ({"selection": "covering_rate", "validation_fraction": 0}, "validation_fraction"),
    ],
)
def test_mistakes_in_settings(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        make_classifier("PRODEN", settings)


def test_another_network_drops_the_options_of_the_first():
    below = {"network": "convnet", "width": 0.5, "n_epochs": 3}
    assert merge(below, {"network": "mlp"}) == {"network": "mlp", "n_epochs": 3}
    assert merge(below, {"network": "convnet", "n_epochs": 4}) == below | {"n_epochs": 4}


def test_a_rival_is_a_method_with_a_loss(tmp_path):
    text = 'method = "rival"\ndataset = "cifar10"\n[classifier]\nloss = "cr-dpll"\n'
    found = read_configuration(write(tmp_path, text))
    model = make_classifier(found.method, found.settings | {"network": "mlp", "hidden": [8]})
    assert (model.loss, model.network.hidden) == ("cr-dpll", (8,))
    assert all_settings(model)["augmentation"] == ("simple", "strong")
    with pytest.raises(ConfigurationError, match="RivalClassifier has no parameter 'queue_size'"):
        make_classifier("rival", {"queue_size": 1})


def test_shrinking_keeps_the_method():
    small = shrink(read_configuration("pico-plcp-cifar100").settings_for(0.1, "cifar100"))
    assert small["n_epochs"] == 3
    assert small["prototype_start"] == 1
    assert small["width"] == 0.125
    assert small["partner"] == "non-candidate"
    assert "queue_size" not in shrink({"network": "linear"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "convnett"}, "Unknown network"),
        ({"network": "convnet"}, "channels, height, width"),
        ({"network": "mlp", "width": 2}, "no option 'width'"),
        ({"network": "mlp", "augmentation": "strange"}, "strange"),
    ],
)
def test_trying_out_finds_what_does_not_fit(settings, message):
    model = make_classifier("PRODEN", settings)
    with pytest.raises(ConfigurationError, match=message):
        try_out(model, np.zeros((4, 3), dtype=np.float32), 2)


def test_trying_out_finds_no_device():
    try_out(make_classifier("PRODEN", {}, device="cpu"), np.zeros((4, 3), dtype=np.float32), 2)
    with pytest.raises(ConfigurationError, match="warp"):
        try_out(make_classifier("PRODEN", {}, device="warp"), np.zeros((4, 3)), 2)

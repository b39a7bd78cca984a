"""From the options of ``appellate deep train`` to the settings of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from appellate.cli.errors import UserError

if TYPE_CHECKING:
    from appellate.cli.deep_data import DeepData
    from appellate.deep.configuration import Configuration


def read(name: str) -> Configuration:
    """Read a configuration by name or file."""
    from appellate.deep.configuration import ConfigurationError, read_configuration

    try:
        return read_configuration(name)
    except ConfigurationError as error:
        raise UserError(str(error)) from error


def choose_flip(configuration: Configuration, source: str, flip: float | None) -> float | None:
    """Return the flip probability; None for data that have candidate sets."""
    from appellate.cli.deep_data import needs_flips

    if not needs_flips(source):
        if flip is not None:
            raise UserError(
                f"'{Path(source).name}' has candidate sets of its own: leave --flip out."
            )
        return None
    if flip is not None:
        if math.isnan(flip):
            raise UserError("--flip nan is no probability.")
        return flip
    listed = [q for q in configuration.flips if q > 0]
    if not listed:
        raise UserError(f"'{configuration.name}' lists no flip probability: give --flip.")
    return min(listed)


def settle(
    configuration: Configuration,
    source: str,
    flip: float | None,
    smoke: bool,
    options: dict[str, Any],
    changes: tuple[str, ...],
) -> dict[str, Any]:
    """Return all settings: the configuration's, then --smoke, then the options, then --set."""
    from appellate.deep.configuration import ConfigurationError, merge, parse_settings, shrink

    settings = configuration.settings_for(flip, source)
    given = {key: value for key, value in options.items() if value is not None}
    try:
        over = merge(given, parse_settings(changes))
    except ConfigurationError as error:
        raise UserError(f"--set: {error}") from error
    if smoke:  # shrink the network that will be used
        settings = shrink(merge(settings, {k: over[k] for k in ("network",) if k in over}))
    return merge(settings, over)


def check_fit(record: dict[str, Any], data: DeepData) -> None:
    """Refuse before the work what would fail in it."""
    from appellate.cli.deep_runs import make_model
    from appellate.deep.configuration import ConfigurationError, try_out

    try:
        try_out(make_model(record, record["device"]), data.X, len(data.class_names))
    except ConfigurationError as error:
        hint = ""
        if data.X.ndim == 2:
            hint = (
                " The rows are vectors: --set network=mlp, and for PiCO also "
                "--set weak_augmentation=none --set strong_augmentation=none."
            )
        raise UserError(f"{error}{hint}") from error


def show_configuration(configuration: Configuration) -> None:
    """Print all settings, and what the paper reached with them."""
    click.echo(f"{configuration.title} on {configuration.dataset}")
    for key, value in configuration.settings.items():
        click.echo(f"  {key} = {json.dumps(value)}")
    for flip, told in configuration.flips.items():
        paper = f"paper {told.paper[0]:.2f} ± {told.paper[1]:.2f} %" if told.paper else "no figure"
        more = (f"{key} = {json.dumps(value)}" for key, value in told.settings.items())
        click.echo(f"flip {flip:g}: {', '.join([paper, *more])}")

"""One page with everything in it: tables, figures, and how they were computed."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from appellate.experiments.reports import Report
from appellate.experiments.store import Row


def render_page(
    reports: Sequence[Report],
    pictures: Mapping[str, Path],
    *,
    title: str,
    lead: str,
    missing: Sequence[str] = (),
    rows: Sequence[Row] = (),
) -> str:
    """Return a page of HTML that needs no other file, script or network.

    Parameters
    ----------
    reports : sequence of Report
        In the order of the page.
    pictures : mapping of str to Path
        PNG files by the stem that the reports name.
    title, lead : str
        Heading and first sentence.
    missing : sequence of str
        Reasons for data sets that are not there.
    rows : sequence of Row
        The runs behind the numbers, for what is said of time and versions.
    """
    if find_spec("jinja2") is None:
        raise ImportError("The page needs jinja2: pip install 'appellate[report]'")
    from jinja2 import Environment, StrictUndefined

    text = files("appellate.experiments").joinpath("page.html").read_text(encoding="utf-8")
    machine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    encoded = {
        stem: base64.b64encode(pictures[stem].read_bytes()).decode() if stem in pictures else ""
        for report in reports
        for stem in report.figures
    }
    return machine.from_string(text).render(
        title=title,
        lead=lead,
        reports=reports,
        pictures=encoded,
        missing=list(missing),
        facts=_facts(rows),
    )


def _facts(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["No runs."]
    seconds = sum(row.seconds for row in rows)
    memory = max((row.memory for row in rows if row.memory is not None), default=None)
    facts = [f"{len(rows)} runs, {seconds:.0f} seconds of training and prediction in all."]
    if memory is not None:
        facts.append(f"Largest resident memory of a worker: {memory:.0f} MB.")
    for where in {repr(row.environment): row.environment for row in rows}.values():
        packages = ", ".join(f"{name} {number}" for name, number in where["packages"].items())
        facts.append(
            f"Python {where['python']} on {where['system']} {where['machine']}, {packages}; "
            f"source {where['source']}."
        )
    return facts

"""Configuration of the documentation site: ``make docs`` builds it into docs/_build/html."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import appellate

# One thread and no window, here and in the examples.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Appellate"
author = "The Appellate developers"
version = release = installed_version("appellate")
copyright = f"{author}; this is version {version}"

extensions = [
    "demo_page",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb", "auto_examples/**/*.py"]
templates_path = ["_templates"]
default_role = "py:obj"  # the backticks of a docstring
smartquotes_action = "qe"  # two hyphens are an option, not a dash

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is typed, without the prompt
copybutton_prompt_is_regexp = True

autosummary_generate = True
# What the package itself has is described there, once.
autosummary_context = {"front": appellate.__all__}
autosummary_ignore_module_all = False
autosummary_imported_members = True
toc_object_entries_show_parents = "hide"  # the list at the right has no room for them
autodoc_typehints = "none"  # types stand in the docstrings, in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "Appellate"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "header_links_before_dropdown": 6,
    "logo": {"text": "Appellate", "alt_text": "Appellate, a second hearing for ambiguous labels"},
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "show_toc_level": 2,
}
# Pages of one level have no siblings to list at the left.
html_sidebars: dict[str, list[str]] = {"index": [], "commands": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 0,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "capture_repr": (),  # what is printed is enough
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "image_scrapers": ("svg_figures",),
    "reset_modules": ("matplotlib",),
}


def show_formulas(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Show the indented formulas in the text of a docstring as they stand.

    They end at the first section, which is underlined.
    """
    end = next((i for i, line in enumerate(lines) if line.startswith("---")), len(lines))
    formula = [
        i for i in range(1, end) if lines[i].startswith("    ") and not lines[i - 1].strip()
    ]
    for i in reversed(formula):
        before = next((line for line in reversed(lines[:i]) if line.strip()), "")
        if not before.startswith((" ", "-")) and not before.endswith("::"):
            lines[i:i] = ["::", ""]


def write_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw without a script."""
    block = isinstance(node, nodes.math_block)
    formula = convert(node.astext(), display="block" if block else "inline")
    translator.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def keep_lines(app: Any, context: Any, lines: list[str]) -> None:
    """Show the examples of a command as they stand in the terminal."""
    shown: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("| ") and not before.startswith("| "):
            shown += ["::", ""]
        shown.append("   " + line[2:] if line.startswith("| ") else line)
    lines[:] = shown


def setup(app: Any) -> None:
    """Formulas of docstrings, before numpydoc at priority 500, and of the pages; commands."""
    app.connect("sphinx-click-process-description", keep_lines)
    app.connect("sphinx-click-process-epilog", keep_lines)
    app.connect("autodoc-process-docstring", show_formulas, priority=400)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))

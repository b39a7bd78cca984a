"""The docket as a page to look at and to review, and the decisions of its reviewers.

The page is a plain dict first (`page_data`), rendered by one autoescaping template second
(extra ``report``): one file without a network, whose script and style are named by their hashes
in a content security policy, so that nothing else runs. `serve` shows the same page with a
server behind it, which keeps decisions on disk at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appellate._lazy import load_on_use
from appellate.review.decisions import DecisionError, Decisions, read_decisions
from appellate.review.page import page_data, write_page

if TYPE_CHECKING:
    from appellate.review.server import serve as serve

__getattr__ = load_on_use(__name__, {"serve": "server"})
__all__ = ["DecisionError", "Decisions", "page_data", "read_decisions", "serve", "write_page"]

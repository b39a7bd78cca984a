"""Settings shared by all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("appellate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("appellate")


def pytest_collection_modifyitems(items):
    """Give slow tests an hour instead of the minutes of the others."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(3600))

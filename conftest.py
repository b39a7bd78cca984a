"""What is not collected where the package that it needs is not installed (`make check`)."""

from __future__ import annotations

from importlib.util import find_spec

NEEDS = {
    "torch": ["src/appellate/deep/*", "tests/cli/test_deep*.py", "tests/deep/*_[!w]*.py"],
}
collect_ignore_glob = [
    pattern for package, them in NEEDS.items() if find_spec(package) is None for pattern in them
]

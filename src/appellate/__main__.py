"""``python -m appellate`` is the command ``appellate``."""

from __future__ import annotations

from appellate.cli import main

if __name__ == "__main__":
    main()

"""`tools/house.py` as a module: it is a script beside the package, so it is loaded by its path."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("tools_house", ROOT / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


house = _load()


@functools.cache
def discreet() -> Any:
    """The package, parsed by the process that runs these tests and by no other."""
    return house.House(ROOT / "src" / "discreet")


def build(folder: Path, files: dict[str, str]) -> Any:
    """A made-up package: the texts of its files by their paths."""
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "discreet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return house.House(folder / "discreet")

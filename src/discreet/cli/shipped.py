"""Packages that live in `examples` and are shipped with discreet: the tour and the labs, on the public face."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(name: str) -> ModuleType:
    """`discreet_NAME`: `examples/NAME` of the checkout that discreet is run from, or the installed package."""
    package = f"discreet_{name}"
    checkout = Path(__file__).parents[3] / "examples" / name / "__init__.py"
    if package not in sys.modules and checkout.is_file():
        spec = importlib.util.spec_from_file_location(package, checkout)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
    return importlib.import_module(package)

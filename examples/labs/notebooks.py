"""Writes lab09.ipynb to lab13.ipynb from the sections of the labs: the same words, the same functions.

    python -m discreet_labs.notebooks

The notebooks have no outputs; a test executes them, and another one compares them with what this file would write.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import NUMBERS, lab
from .kit import READING, WORDS, Lab

HERE = Path(__file__).parent


def notebook(chosen: Lab) -> str:
    """The notebook of a lab, one line of text on each line of the file."""
    module = f"lab{chosen.number:02d}"
    settled = f"here = {module}.LAB.settle()  # or settle(epsilon=0.5, seed=1), ..."
    first = f"from discreet_labs import {module}\n\n{settled}\nhere"
    meanings = "\n".join(f"- **{word}**: {meaning}" for word, meaning in (*WORDS, *chosen.words))
    cells = [_words(f"# {chosen.title}\n\n{chosen.lead}\n\n{READING}\n\n{meanings}"), _code(first)]
    for section in chosen.sections:
        cells.append(_words(f"## {section.title}\n\n{section.words}"))
        if section.show is not None:
            cells.append(_code(f"{module}.{section.show.__name__}(here)"))
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    return {**_words(text), "cell_type": "code", "execution_count": None, "outputs": []}


def write(folder: Path = HERE) -> None:
    """Write all four."""
    for number in NUMBERS:
        (folder / f"lab{number:02d}.ipynb").write_text(notebook(lab(number)), encoding="utf-8")


if __name__ == "__main__":
    write()

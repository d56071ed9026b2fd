"""Notebooks, run in a kernel of their own."""

from __future__ import annotations

import copy
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The notebook after a run in this folder.

    A kernel that dies by itself gets one more try: an interpreter may die of two threads that parse at once. A cell
    that fails is no reason for another try.
    """

    def run() -> NotebookNode:
        resources = {"metadata": {"path": str(folder)}}
        client = NotebookClient(copy.deepcopy(notebook), timeout=300, kernel_name="python3", resources=resources)
        return client.execute()

    try:
        return run()
    except DeadKernelError:
        return run()

"""The page in a real browser: Chromium, driven by playwright, against a real `discreet serve` process.

Where no Chromium is installed all of these tests are skipped, and say so. The content policy of the page forbids text
that is evaluated, so nothing here waits by functions: locators and `expect` do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import page_folders
from tests.serving import Process

SILENT = "--no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking --disable-component-update"
ARGUMENTS = [*SILENT.split(), "--disable-sync", "--no-first-run"]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PATIENCE = 60_000  # milliseconds: machines may be busy


def chromium() -> str | None:
    """The browser of this machine."""
    return os.environ.get("DISCREET_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def engine() -> Iterator[object]:
    """The browser."""
    found = chromium()
    if found is None:
        pytest.skip("NOT TESTED: THE PAGE IN A BROWSER needs Chromium: apt-get install chromium, or DISCREET_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


GRID = ("--time-grid", "0.05")


@pytest.fixture(scope="session")
def people(engine, tmp_path_factory) -> Iterator[Process]:
    """A service on the bundled people."""
    with Process(page_folders.bundled(tmp_path_factory.mktemp("people") / "folder"), *GRID) as made:
        yield made


@pytest.fixture(scope="session")
def two(engine, tmp_path_factory) -> Iterator[Process]:
    """A service on two tables."""
    with Process(page_folders.plain(tmp_path_factory.mktemp("two") / "folder", "people", "visits"), *GRID) as made:
        yield made


@pytest.fixture(scope="session")
def evil(engine, tmp_path_factory) -> Iterator[Process]:
    """A service on a table with hostile names, where a question costs more than may be paid unasked."""
    with Process(page_folders.evil(tmp_path_factory.mktemp("evil") / "folder"), *GRID, "--price", "11%") as made:
        yield made


@pytest.fixture
def window(engine, tmp_path) -> Iterator[object]:
    """Opens pages; a message on the console, an error in a script or a dialog fails the test, and so does a request
    that leaves the machine."""
    trouble: list[str] = []
    opened = []

    def at(serving: Process, key: str | None = None, **look: object):
        look = {"viewport": {"width": 1200, "height": 900}, "accept_downloads": True, **look}
        context = engine.new_context(**look)
        opened.append(context)
        view = context.new_page()
        view.set_default_timeout(PATIENCE)
        view.on("pageerror", lambda error: trouble.append(str(error)))
        view.on("console", lambda message: message.type in ("error", "warning") and trouble.append(message.text))
        view.on("dialog", lambda dialog: (trouble.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        view.on(
            "request", lambda sent: sent.url.startswith(serving.url) or trouble.append(f"left the machine: {sent.url}")
        )
        view.goto(serving.url)
        if key is not None:
            view.get_by_label("Your key").fill(serving.house.keys.get(key, key))
            with view.expect_navigation(wait_until="load"):  # its scripts are there too
                view.get_by_role("button", name="Sign in").click()
        return view

    at.trouble = trouble
    yield at
    for context in opened:
        context.close()
    assert trouble == []


def picture(view: object, path: Path) -> None:
    """A picture of the whole page."""
    view.screenshot(path=path, full_page=True)  # type: ignore[attr-defined]

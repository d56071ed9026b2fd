"""Pictures of the page for the documentation: python -m tests.browser.pictures FOLDER."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.browser.conftest import ARGUMENTS, GRID, PATIENCE, chromium
from tests.page_folders import bundled
from tests.serving import Process

if __name__ == "__main__":
    expect.set_options(timeout=PATIENCE)
    into = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        serving = Process(bundled(Path(folder) / "people"), *GRID)
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for name, key, look in (
            ("page_desk", "ana", {"viewport": {"width": 1200, "height": 860}}),
            ("page_narrow", "ana", {"viewport": {"width": 400, "height": 860}, "color_scheme": "dark"}),
            ("page_owner", "olga", {"viewport": {"width": 1200, "height": 620}}),
        ):
            view = browser.new_context(**look).new_page()
            view.goto(serving.url)
            view.get_by_label("Your key").fill(serving.house.keys[key])
            view.get_by_role("button", name="Sign in").click()
            if key == "ana":
                view.locator("#sql").fill("SELECT health, COUNT(*) FROM people GROUP BY health")
                view.get_by_role("button", name="Ask", exact=True).click()
                expect(view.locator(".plot[data-drawn]")).to_be_visible()
            view.wait_for_timeout(700)
            view.screenshot(path=into / f"{name}.png")
        serving.stop()

"""A real browser for the viewer's tests: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

#: Set where a browser must be there: then a missing one is a failure and not a reason to skip.
NEEDED = "TROPEL_BROWSER_TESTS"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: WebGL without a graphics card, and nothing that calls home.
_FLAGS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def _without_browser(why: str) -> None:
    if os.environ.get(NEEDED):
        pytest.fail(f"{why}, but {NEEDED} says that browser tests must run")
    pytest.skip(f"{why}: install Debian's package chromium to run the browser tests")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without_browser("the package playwright is not installed")
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        _without_browser("there is no chromium on this machine")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def window(browser: Any) -> Iterator[Any]:
    """An empty window of the browser; one for a file of tests, because opening a page takes seconds."""
    tab = browser.new_page(viewport={"width": 800, "height": 420})
    tab.set_default_timeout(60_000)
    yield tab
    tab.close()

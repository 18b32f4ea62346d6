"""A browser for tests: Debian's Chromium, driven by Playwright, and what is wrong for somebody who cannot see well."""

import contextlib
import json
import pathlib
import re

import pytest

CHROMIUM = pathlib.Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WCAG_AA = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
SCHEMES = "light", "dark"
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 900}


@contextlib.contextmanager
def chromium():
    """Within, Chromium runs. Skips the test if it is not installed, or if Playwright is not."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make peers")
    if not CHROMIUM.exists():
        pytest.skip(f"needs {CHROMIUM}: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextlib.contextmanager
def visit(browser, url, **options):
    """Within, a page in a context of its own; `requested` of it are the addresses that it has asked for.

    The test fails if `errors` of it are left: what the page has thrown, and what its policy has stopped.
    """
    context = browser.new_context(**({"viewport": DESK} | options))
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.requested, page.errors = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.errors.append(message.text))
    page.goto(url)
    yield page
    context.close()
    assert [error for error in page.errors if not error.startswith("Failed to load resource")] == []


def data_in(html):
    """Return the data that a page holds, as a browser reads them."""
    return json.loads(re.search(r'<script type="application/json" id="page-data">(.*?)</script>', html)[1])


def violations(page):
    """Return what axe finds wrong, with the elements: https://github.com/dequelabs/axe-core."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: make peers").Axe()
    found = axe.run(page, options=WCAG_AA).response["violations"]
    return [(each["id"], node["html"], node["failureSummary"]) for each in found for node in each["nodes"]]

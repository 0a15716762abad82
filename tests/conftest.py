"""Fixtures: the built site, a server for it, Chromium, and pages that keep a record."""

import csv
import os
import shutil
import sys
import threading
from pathlib import Path

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
# a busy machine is no bug
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")
sys.path.insert(0, str(ROOT / "book" / "_ext"))

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# sphinx-thebe 0.3.1 declares this constant twice on every page; harmless
KNOWN_PAGE_ERRORS = ("Identifier 'THEBE_JS_URL' has already been declared",)


def golden_rows(name):
    """Return the values to meet of a file beside this one, by id."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in csv.DictReader(lines)}


def rows_of_others(name):
    """Return the rows of a table that belongs to others, or skip with the reason."""
    path = Path(os.environ.get("CHINCHILLA_LAB_DATA", "no folder")) / name
    if not path.exists():
        pytest.skip(f"{name} belongs to others: name its folder in CHINCHILLA_LAB_DATA")
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def brute_force(cost, low, high):
    """Least of a function of one logarithm: a grid, and grids in its best cells."""
    for _ in range(4):
        x = np.linspace(low, high, 2001)
        values = cost(x)
        i = int(np.argmin(values))
        low, high = x[max(i - 1, 0)], x[min(i + 1, 2000)]
    return x[i], values[i]


def give_up(reason):
    """Skip where that is honest; fail where every test must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def site():
    folder = ROOT / "_build" / "html"
    if not (folder / "_static" / "live.json").is_file():
        give_up("no built site in _build/html: run `make book PYODIDE=.pyodide`")
    return folder


@pytest.fixture(scope="session")
def server(site):
    from serve import server as serve

    with serve(site) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}/"
        httpd.shutdown()


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import Error, sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next((path for name in names if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except Error as problem:
            give_up(
                "no Chromium: install the package `chromium` of your system, or run "
                f"`.venv/bin/playwright install chromium` ({str(problem)[:80]})"
            )
        yield chromium
        chromium.close()


class Record:
    """What a page did that it should not."""

    def __init__(self, context, page, home):
        self.foreign, self.page_errors, self.console, self.missing = [], [], [], []
        own = (home, "data:", "blob:")
        context.on(
            "request",
            lambda r: None if r.url.startswith(own) else self.foreign.append(r.url),
        )
        context.on(
            "response",
            lambda r: self.missing.append(r.url) if r.status >= 400 else None,
        )
        page.on(
            "pageerror",
            lambda e: (
                None
                if any(known in str(e) for known in KNOWN_PAGE_ERRORS)
                else self.page_errors.append(str(e))
            ),
        )
        page.on(
            "console",
            lambda m: self.console.append(m.text) if m.type == "error" else None,
        )

    def clean(self):
        return not (self.foreign or self.page_errors or self.console or self.missing)


@pytest.fixture
def new_page(browser, server):
    """Open a page of the site in a context of its own, with a record."""
    contexts = []

    def open_page(path, **options):
        prepare = options.pop("prepare", None)
        context = browser.new_context(**options)
        context.set_default_timeout(90_000)  # a busy machine is no bug
        contexts.append(context)
        page = context.new_page()
        page.record = Record(context, page, server)
        if prepare:
            prepare(context)
        page.goto(server + path)
        return page

    yield open_page
    for context in contexts:
        context.close()


# data of others: a folder beside the checkout serves where nothing else is said
_BESIDE = ROOT.parent / "shared" / "data"
if "CHINCHILLA_LAB_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["CHINCHILLA_LAB_DATA"] = str(_BESIDE)


@pytest.fixture(scope="session")
def others():
    """Load a data set of others, or skip with the reason."""
    from chinchilla_lab import datasets

    def load(name, **options):
        folder = os.environ.get("CHINCHILLA_LAB_DATA")
        if not folder or not (Path(folder) / datasets.DATASETS[name].file).is_file():
            # a test never goes to the net by itself
            pytest.skip(f"{name}.csv is not in CHINCHILLA_LAB_DATA")
        return datasets.load(name, **options)

    return load

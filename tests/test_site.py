"""The built site: links, pictures, weight, nothing left over. Needs `make book`."""

import gzip
import json
import re
import zipfile
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.browser

WEIGHT_LIMIT = 800_000  # bytes, gzipped, without Pyodide


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.images, self.assets = set(), [], [], []
        self.prose, self._skip = [], 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[k] for k in ("id", "name") if found.get(k)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag == "img":
            self.images.append((found.get("src", ""), found.get("alt")))
            self.assets.append(found.get("src", ""))
        if tag == "script" and found.get("src"):
            self.assets.append(found["src"])
        if tag == "link" and "stylesheet" in (found.get("rel") or ""):
            self.assets.append(found["href"])
        self._skip += tag in ("script", "style", "pre", "code")

    def handle_endtag(self, tag):
        self._skip -= tag in ("script", "style", "pre", "code")

    def handle_data(self, data):
        if not self._skip:
            self.prose.append(data)


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in sorted((site / "book").rglob("*.html"))}


def test_every_page_of_the_contents_is_there(site):
    wanted = ("index", "notation", "compute/flops", "compute/compute_optimal",
              "reference/laws", "reference/glossary", "reference/bibliography")  # fmt: skip
    for name in wanted:
        assert (site / "book" / f"{name}.html").is_file(), name


def test_pictures_say_what_they_show(pages):
    for path, page in pages.items():
        for source, alt in page.images:
            assert alt is not None, f"{path.name}: {source} has no alt"
            named = re.search(r"\.(png|svg|jpe?g)$|_images/", alt)
            assert not named, f"{path.name}: alt of {source} is a file name"
            if "_images/" in source:
                assert len(alt) > 30, f"{path.name}: alt of {source} says too little"


def test_links_inside_the_site_resolve(site, pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path))
            target = target.resolve()
            assert target.exists(), f"{path.name}: {link} leads nowhere"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, (
                    f"{path.name}: {link}"
                )


def test_nothing_is_left_over(pages):
    for path, page in pages.items():
        text = " ".join(page.prose)
        for scar in (
            r"\{cite",
            r"\{glue",
            r"\{eq\}",
            "Traceback",
            r"\bnan\b",
            "undefined",
        ):
            assert not re.search(scar, text), f"{path.name} shows {scar!r}"


def test_pages_ask_no_other_host(pages):
    for path, page in pages.items():
        for asset in page.assets:
            if "thebe" in asset:
                continue  # named by the theme on every page, fetched on demand only
            assert not urlsplit(asset).netloc, f"{path.name} loads {asset}"


def test_styles_and_scripts_of_ours_ask_no_other_host(site):
    for path in sorted((site / "_static").rglob("*.css")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        # the theme's style sheets name their fonts and icons by relative paths
        found = re.search(r"(?:url\(|@import )\s*[\"']?(?:https?:)?//[^)\"']+", text)
        assert not found, f"{path.name} loads {found and found.group()}"
    for name in ("explorer.js", "explorer_worker.js"):
        text = (site / "_static" / name).read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), (
            f"{name} names a host"
        )


def test_weight_of_a_page(site, pages):
    print()
    for path, page in pages.items():
        total = len(gzip.compress(path.read_bytes()))
        for asset in set(page.assets):
            parts = urlsplit(asset)
            file = (path.parent / unquote(parts.path)).resolve()
            if not parts.netloc and file.is_file():
                total += len(gzip.compress(file.read_bytes()))
        vendored = site / "_static/vendor/mathjax/tex-mml-chtml.js"
        uses_math = "math notranslate" in path.read_text(encoding="utf-8")
        if uses_math and not any("mathjax" in a for a in page.assets):
            total += len(gzip.compress(vendored.read_bytes()))
        print(f"{path.relative_to(site)}: {total / 1000:.0f} KB gzipped")
        assert total < WEIGHT_LIMIT, f"{path.name}: {total} bytes"


def test_library_archive_is_the_library(site):
    from live_site import LEFT_OUT

    live = json.loads((site / "_static/live.json").read_text(encoding="utf-8"))
    assert live["pyodide"].endswith("/")
    archive = site / "_static" / live["library"].split("?")[0]
    with zipfile.ZipFile(archive) as file:
        names = file.namelist()
        assert "chinchilla_lab/explorers/page.py" in names
        assert "chinchilla_lab/data/models.csv" in names
        assert not [n for n in names if n.rsplit("/", 1)[-1] in LEFT_OUT]
        source = site.parent.parent / "chinchilla_lab/laws/published.py"
        assert file.read("chinchilla_lab/laws/published.py") == source.read_bytes()


# formulas drawn, fonts there; on a busy machine the network may not look idle for long
SETTLED = (
    "async () => { await window.MathJax?.startup?.promise; await document.fonts.ready }"
)


def test_weight_that_a_browser_loads(site, pages, new_page):
    for path in pages:
        name = path.relative_to(site).as_posix()
        loaded = {}
        page = new_page(
            name,
            prepare=lambda context, loaded=loaded: context.on(
                "requestfinished", lambda request: loaded.setdefault(request.url)
            ),
        )
        page.evaluate(SETTLED)
        page.wait_for_timeout(300)
        total = 0
        for url in loaded:
            parts = urlsplit(url)
            file = site / unquote(parts.path).lstrip("/")
            if parts.scheme == "http" and file.is_file():
                total += len(gzip.compress(file.read_bytes()))
        print(f"{name}: {total / 1000:.0f} KB gzipped, {len(loaded)} files")
        assert total < WEIGHT_LIMIT, f"{name}: {total} bytes"
        assert not page.record.foreign, f"{name} asked {page.record.foreign}"
        assert not page.record.missing, f"{name} missed {page.record.missing}"
        assert not page.record.page_errors, page.record.page_errors
        bare = page.locator(":is(i, span)[class*='fa-']").count()
        assert not bare, f"{name}: {bare} icons are not drawn"

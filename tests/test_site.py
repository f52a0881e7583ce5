"""The site: it builds without a warning and without the network, its links lead somewhere, and it looks right."""

import functools
import json
import os
import re
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import ranktron

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import made  # noqa: E402
import versions  # noqa: E402

pytestmark = pytest.mark.slow
# Tables and code may scroll by themselves; the page and the columns it is made of may not.
TOO_WIDE = """[...document.querySelectorAll('body, .page, .main, .content')]
    .filter(part => part.scrollWidth > part.clientWidth + 1).map(part => part.className || part.tagName)"""
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """The built site; where tests run in several processes the first one to come builds it for all."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    folder, done = shared / "site", shared / "site.done"
    try:
        os.mkdir(folder)
    except FileExistsError:
        for _ in range(1200):
            if done.exists():
                break
            time.sleep(0.25)
    else:
        options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(shared / "trees")]
        command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder)]
        built = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        done.write_text(built.stderr if built.returncode else "")
    assert done.exists(), "another process did not finish building the site"
    assert done.read_text() == ""
    return folder


class Reader(HTMLParser):
    """The references of a page, what the browser would load for it, and its fragments."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in {"link", "script", "img", "iframe", "source", "video", "audio", "object", "embed"}:
            self.loads += [given[name] for name in ("src", "href", "data") if given.get(name)]


@functools.cache
def read(page):
    return Reader(page.read_text(encoding="utf-8"))


def outside(address):
    return address.startswith(("http:", "https:", "//"))


def test_nothing_comes_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert not [address for address in read(page).loads if outside(address)], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", text), style


def test_every_link_and_fragment_of_the_site_leads_somewhere(site):
    for page in sorted(site.rglob("*.html")):
        for link in read(page).links:
            if outside(link) or link.startswith("mailto:"):
                continue
            address, fragment = urldefrag(link)
            target = (page.parent / unquote(address)).resolve() if address else page
            assert target.is_file(), f"{page.name} links to {link}"
            if fragment and target.suffix == ".html":
                assert unquote(fragment) in read(target).ids, f"{page.name} links to {link}"


def test_every_page_and_every_public_name_is_in_the_site(site):
    for pages in made.navigation().values():
        for page in pages:
            assert (site / f"{page}.html").is_file(), page
    start = read(site / "index.html").links
    assert {f"{page}.html" for pages in made.navigation().values() for page in pages} <= set(start)
    for page, names in made.modules().items():
        ids = read(site / "api" / f"{page}.html").ids
        links = {link.rpartition("#")[2] for link in read(site / "api" / f"{page}.html").links}
        for name in names:
            assert made.told_at(name) in links, f"{name} is not in the table of its page"
            assert name in ids or made.told_at(name) != name, f"{name} is not documented on its page"


def test_files_of_the_folder_above_stand_in_the_site(site):
    for page, file in {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}.items():
        last = re.findall(r"[A-Za-z]{4,}", (ROOT / file).read_text(encoding="utf-8"))[-1]
        assert last in (site / f"{page}.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(site):
    """Where a local server shows the site."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def watch(page, address):
    """What goes wrong on a page: errors on its console, requests that fail or leave this server."""
    wrong = []
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: request.url.startswith(address) or wrong.append(request.url))
    page.on("response", lambda answer: answer.status < 400 or wrong.append(answer.url))
    return wrong


def look(browser, address, names, size, scheme="light"):
    """Opens pages one after the other; each comes with what went wrong so far."""
    context = browser.new_context(viewport=size, color_scheme=scheme)
    for name in names:
        page = context.new_page()
        wrong = watch(page, address)
        page.goto(address + name)
        yield name, page, wrong
        page.close()
    context.close()


@pytest.mark.browser
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_pages_open_and_do_not_scroll_sideways(site, address, browser, size):
    names = [page.relative_to(site).as_posix() for page in sorted(site.rglob("*.html"))]
    for name, page, wrong in look(browser, address, names, size):
        assert not wrong, f"{name}: {wrong}"
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
        assert page.evaluate(TOO_WIDE) == [], name
        broken = page.evaluate("[...document.images].filter(i => !i.complete || i.naturalWidth == 0).map(i => i.src)")
        assert not broken, f"{name}: {broken}"


@pytest.mark.browser
def test_dark_pages_are_dark_and_searching_finds(address, browser):
    for _, page, wrong in look(browser, address, ["index.html", "search.html?q=propensities"], DESK, "dark"):
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, re.findall(r"\d+", colour)[:3])) < 64
        if "?q=" in page.url:
            page.wait_for_selector("ul.search li a")
            assert page.locator("ul.search li a", has_text="Feedback at the top").count() > 0
        assert not wrong


@pytest.mark.browser
def test_a_menu_leads_to_other_versions(site, browser, tmp_path):
    """Also from a version that was built before there was another, and without a server."""
    versions.publish(site, tmp_path, "0.9.1")
    assert versions.publish(site, tmp_path, "0.10.0") == ["0.10.0", "0.9.1"]
    page = browser.new_page()
    page.goto((tmp_path / "0.9.1" / "nouns" / "ranking.html").as_uri())
    menu = page.locator(".versions select")
    assert menu.locator("option").all_text_contents() == ["0.10.0", "0.9.1"]
    menu.select_option("0.10.0")
    page.wait_for_url("**/0.10.0/index.html")
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_url("**/0.10.0/index.html")
    page.close()


@pytest.mark.browser
def test_pages_say_the_version_and_there_is_no_menu_of_one(address, browser):
    for _, page, wrong in look(browser, address, ["index.html", "nouns/ranking.html"], DESK):
        assert ranktron.__version__ in page.title()
        assert page.locator(".versions select").count() == 1
        assert not page.locator(".versions").is_visible()
        assert not wrong


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("csv", "data"),
        ("parquet", "data"),
        ("pandas", "data"),
        ("elasticsearch", "data"),
        ("missing values", "data"),
        ("click", "data"),
        ("early stopping", "choosing"),
        ("early stopping", "recipes"),
        ("grid search", "recipes"),
        ("lightgbm", "recipes"),
        ("lightgbm", "from-lightgbm"),
        ("river", "from-river"),
        ("metarank", "from-metarank"),
        ("position click", "gallery/from-a-click-log"),
        ("daily update", "recipes"),
        ("pyterrier", "recipes"),
        ("sample_weight", "api/estimators"),
    ],
)
def test_a_search_finds_the_page_that_answers(site, words, page):
    stem = pytest.importorskip("sphinx.search.en").SearchEnglish({}).stem
    index = json.loads((site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    found = set(range(len(index["docnames"])))
    for word in words.split():
        listed = [index[part].get(stem(word), []) for part in ("terms", "titleterms")]
        found &= {page for pages in listed for page in ([pages] if isinstance(pages, int) else pages)}
    assert page in [index["docnames"][i] for i in found]

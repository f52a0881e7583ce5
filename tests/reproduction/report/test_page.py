"""The report in a browser: no errors, all figures, no sideways scrolling, light and dark."""

import pytest

from reproduction import slam
from reproduction.harness.experiment import Paper, Plan
from reproduction.harness.reproduce import reproduce

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WIDTHS = {"desktop": 1280, "phone": 390, "small phone": 320}


@pytest.fixture(scope="module")
def report(tmp_path_factory, generated):
    """A small report with figures of lines, figures of dots, tables, and rows that were not run."""
    from dataclasses import replace

    from reproduction import committee

    quick = [replace(s, arguments={**s.arguments, "T": 60}) for s in slam.FIGURE_1.series]
    table = committee.table_4_experiment("ohsumed-letor2")
    walks = [replace(s, arguments={**s.arguments, **({"epochs": 2} if s.arguments else {})}) for s in table.series]
    papers = [
        Paper(
            "slam",
            slam.PAPER.title,
            slam.PAPER.authors,
            [replace(slam.FIGURE_1, series=quick), slam.PAPER.experiments[-1]],
        ),
        Paper("committee", committee.PAPER.title, "", [replace(table, series=walks)]),
    ]
    return reproduce(papers, tmp_path_factory.mktemp("page"), data=generated, plan=Plan(seeds=2), workers=0)


@pytest.fixture
def opened(browser, report):
    """Opens the report in a window of some width: (page, what it complained of)."""
    pages = []

    def open_page(width=1280, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        pages.append(page)
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
        page.goto(report.report.as_uri())
        return page, complaints

    yield open_page
    for page in pages:
        page.close()


def test_all_figures_are_there_and_nothing_complains(opened, report):
    page, complaints = opened()
    assert complaints == []
    figures = page.locator("figure")
    files = sorted(path.stem for path in (report.report.parent / "figures").glob("*.svg"))
    assert sorted(figure.get_attribute("id").removeprefix("figure-") for figure in figures.all()) == files
    assert len(files) == 2
    for chart in page.locator(".panels svg").all():
        box = chart.bounding_box()
        assert box["width"] > 150
        assert box["height"] > 100
    assert page.locator(".panels svg .line, .panels svg circle").count() > 20


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_the_page_never_scrolls_sideways(opened, width):
    page, _ = opened(width)
    for details in page.locator("details").all():
        details.evaluate("element => element.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_claim_has_a_badge_and_a_way_to_its_section(opened, report):
    page, _ = opened(390)
    badges = page.locator("section .rows .badge")
    assert badges.count() == len(report.rows)
    link = page.locator("#summary ~ details a").first
    target = link.get_attribute("href")
    assert page.locator(target).count() == 1


def test_dark_is_dark_and_both_can_be_read(opened):
    for scheme in ("light", "dark"):
        page, _ = opened(scheme=scheme)
        text, back = (page.evaluate(f"getComputedStyle(document.body).{what}") for what in ("color", "backgroundColor"))
        assert contrast(text, back) > 7.0
        assert (luminance(back) < 0.1) == (scheme == "dark")
        for badge in page.locator(".counts .badge").all():
            colours = badge.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]")
            assert contrast(*colours) > 4.5


def luminance(colour):
    parts = [int(c) / 255 for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)

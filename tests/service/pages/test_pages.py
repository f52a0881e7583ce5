"""The pages as a person sees them, in headless Chromium, in front of a real server."""

import json
import re
import time

import numpy as np
import pytest

from ranktron import Client
from ranktron.data.maps import Bins
from ranktron.data.rounds import Rounds
from ranktron.service.auth import new_token
from ranktron.service.demo.search import Index
from ranktron.service.demo.standard_library import LibraryEntry
from ranktron.store.rankers.models import warm
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror='window.hacked=1'>"
SCRIPT = "<script>window.hacked=2</script>"
FEATURES = ["text", EVIL, "a_feature_with_quite_a_long_name_that_has_to_fit_somewhere_on_a_small_screen"]


@pytest.fixture
def visit(browser):
    """Opens pages; at the end none of them has complained, whether about its policy or about anything else."""
    contexts, complaints = [], []

    def visit(address, *, width=1280, complain=True, **given):
        context = browser.new_context(viewport={"width": width, "height": 900}, **given)
        contexts.append(context)
        page = context.new_page()
        if complain:
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def teach(service, rounds, name="shop", first=0, token=None):
    """Makes a ranker with nasty names and plays some rounds; gives the rankings."""
    definition = {"algorithm": "topk", "parameters": {"k": 2, "explore": 0.5}, "features": FEATURES, "labels": [0, 4]}
    service.done("PUT", f"/v1/rankers/{name}", definition, token)
    shown = []
    for number in range(first, first + rounds):
        rows = [[((number * 7 + i * 3) % 11) / 11, (i % 3) / 3, i / 5] for i in range(5)]
        documents = [{"id": f"{SCRIPT}{i}", "features": row} for i, row in enumerate(rows)]
        query = {"query": f"{EVIL} {number}", "documents": documents}
        answer = service.done("POST", f"/v1/rankers/{name}/rank", query, token)
        labels = {each["id"]: round(4 * rows[int(each["id"][-1])][0]) for each in answer["ranking"][:2]}
        service.done("POST", f"/v1/rankers/{name}/feedback", {"round": answer["round"], "labels": labels}, token)
        shown.append(answer)
    return shown


def until(page, expression, seconds=30.0):
    """Waits until something holds in a page, whose policy allows no `wait_for_function`."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"{expression} did not come true; the page says {page.inner_text('body')[:400]}"
        page.wait_for_timeout(50)


def says(page, text):
    until(page, f"document.getElementById('status').textContent.startsWith({json.dumps(text)})")


def is_live(page):
    until(page, "document.body.dataset.state === 'live'")


def too_wide(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def test_the_dashboard_shows_what_there_is(service, visit):
    shown = teach(service, 30)
    page = visit(service.address)
    is_live(page)
    explored = sum(each["explored"] for each in shown)
    assert 0 < explored < 30
    curve = page.locator("#curve > svg")
    assert curve.locator("circle.shown").count() == 30 - explored
    assert curve.locator("path.explored").count() == curve.locator("line.rug").count() == explored
    assert page.locator("#curve > svg path.mean").get_attribute("d").count("L") == 29
    assert f"{explored} of 30 rounds explored" in curve.get_attribute("aria-label")
    bars = page.locator("#weights .bar rect")
    assert bars.count() == len(FEATURES)
    assert max(float(bars.nth(i).get_attribute("width")) for i in range(3)) > 20.0
    assert page.locator("#rounds > ol > li").count() == 20
    facts = page.inner_text("#facts")
    assert "30 answered, k = 2" in facts
    assert "ready" in page.inner_text("#health")


def test_numbers_are_those_of_the_service(service, visit):
    teach(service, 12)
    page = visit(service.address)
    is_live(page)
    board = service.done("GET", "/v1/rankers/shop/dashboard")
    assert f"{board['curve'][-1]['mean']:.3f}" in page.inner_text("#facts")
    shown = {row.split("\n")[0]: row.split("\n")[1] for row in page.locator(".weights li").all_inner_texts()}
    for each in board["weights"]:
        assert float(shown[each["feature"]].replace("−", "-")) == pytest.approx(each["weight"], abs=5e-4)


def test_features_that_have_left_the_training_data_are_first(service, visit, monkeypatch):
    monkeypatch.setattr("ranktron.store.rankers.feature_window.NEEDED", 10)
    monkeypatch.setattr("ranktron.store.rankers.feature_window.OWN", 30)
    teach(service, 1)
    page = visit(service.address)
    is_live(page)
    assert "was not trained on data" in page.inner_text("#distances")
    live = service.running.live("shop")
    rng = np.random.default_rng(0)
    for turn in range(80):
        live.features.note(rng.normal(size=(8, 3)).astype(np.float32) + np.float32([0, 9, 0]) * (turn >= 40))
        live.features.count()
    until(page, "document.querySelectorAll('#distances li').length === 3")
    first = page.locator("#distances li").first
    assert EVIL in first.inner_text()
    assert "above the largest training value" in first.locator(".left").inner_text()
    assert page.locator("#distances rect.negative").count() == 1
    assert float(page.locator("#distances rect.negative").get_attribute("width")) > 50.0
    assert too_wide(page) <= 0


def test_drift_is_that_of_the_last_hundred_updates(start, visit):
    service = start(snapshot_every=4)
    teach(service, 2)
    page = visit(service.address)
    is_live(page)
    assert page.locator(".weights .drift[d='']").count() == len(FEATURES)  # there is nothing yet to drift away from
    assert not page.locator("#weights .legend").is_visible()
    before = [each["weight"] for each in service.done("GET", "/v1/rankers/shop/dashboard")["weights"]]
    teach(service, 100, first=2)
    until(page, "[...document.querySelectorAll('.weights .drift')].some((arrow) => arrow.getAttribute('d'))")
    until(page, "document.querySelector('#health').textContent.includes('version 102')")
    assert page.inner_text("#weights .legend") == "change over the last 100 updates"
    board = service.done("GET", "/v1/rankers/shop/dashboard")
    for each, old in zip(board["weights"], before, strict=True):
        row = page.locator(".weights li", has_text=each["feature"]).locator(".change")
        drift = float(row.text_content().replace("−", "-") or 0)
        assert each["drift"] == each["weight"] - old
        assert drift == pytest.approx(each["drift"], abs=5e-4)


def test_a_ranker_with_a_map_says_what_its_bars_are(service, visit):
    teach(service, 3)
    page = visit(service.address)
    is_live(page)
    assert not page.locator("#curved").is_visible()
    rounds = Rounds.from_arrays([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 2.0, 0.0]], [0, 1, 2])
    fitted, slam = Bins(3).fit(rounds), ALGORITHMS["slam"]
    model = Model("slam", slam.complete({}), slam.learner(fitted.n_outputs, {}).state(), 3, map=fitted)
    warm(model, 2)  # to compile kernels may take longer than a request
    with Client(service.address, timeout=60.0) as client:
        client.set_model("shop", model.to_bytes())
    until(page, "!document.getElementById('curved').hidden")
    assert "With the map bins:3 a feature has a curve" in page.inner_text("#curved")
    teach(service, 3, first=3)
    until(page, "document.querySelectorAll('.weights .bar rect').length === 3")


def test_names_are_text_and_never_markup(service, visit):
    teach(service, 6)
    page = visit(service.address)
    is_live(page)
    page.locator("#rounds button").first.click()
    page.wait_for_selector(".explanation li")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    for place in ("#rounds .query", "#weights .feature:nth-child(1)", ".explanation th"):
        assert any(EVIL in text for text in page.locator(place).all_text_contents()), place
    assert SCRIPT in page.locator("#rounds .document").first.text_content()
    assert SCRIPT in page.locator(".explanation b").first.text_content()


def test_a_click_explains_a_round(service, visit):
    shown = teach(service, 8)[-1]
    page = visit(service.address)
    is_live(page)
    first = page.locator("#rounds > ol > li").first
    first.locator("button").click()
    page.wait_for_selector(".explanation li")
    told = service.done("GET", f"/v1/rankers/shop/explain/{shown['round']}")
    boxes = first.locator(".explanation > li")
    assert boxes.count() == len(told["documents"]) == 5
    for place, each in enumerate(told["documents"]):
        text = boxes.nth(place).inner_text()
        assert each["id"] in text
        loudest = max(map(abs, each["contributions"].values()))
        assert f"{loudest:.3f}" in text
        assert each["lead"] is None or "Above the next" in text or "Equal" in text
    first.locator("button").click()
    assert not first.locator(".explanation").is_visible()


def test_it_is_live_and_does_not_flicker(service, visit):
    teach(service, 3)
    page = visit(service.address)
    is_live(page)
    page.locator("#rounds button").first.click()
    page.wait_for_selector(".explanation li")
    page.evaluate("document.querySelector('#rounds li').mine = document.querySelector('.weights li').mine = true")
    teach(service, 2, first=3)
    until(page, "document.querySelectorAll('#rounds > ol > li').length === 5")
    assert page.evaluate("document.querySelectorAll('#rounds > ol > li')[2].mine")
    assert page.evaluate("[...document.querySelectorAll('.weights li')].some((row) => row.mine)")
    assert page.locator("#rounds > ol > li").nth(2).locator(".explanation").is_visible()
    assert page.locator("#curve > svg circle.shown, #curve > svg path.explored").count() == 5


def test_several_rankers(service, visit):
    teach(service, 2, "one")
    teach(service, 3, "two")
    page = visit(f"{service.address}/#two")
    until(page, "document.querySelectorAll('#rounds > ol > li').length === 3")
    page.click("nav a:text('one')")
    until(page, "document.querySelectorAll('#rounds > ol > li').length === 2")
    assert page.inner_text("nav a[aria-current]") == "one"


def test_a_ranker_that_is_set_aside_is_listed_and_says_why(start, visit, tmp_path):
    service = start()
    teach(service, 2, "one")
    teach(service, 3, "two")
    service.__exit__()
    (tmp_path / "state" / "crash-2.txt").write_text("Fatal Python error: Segmentation fault")
    service = start()
    page = visit(f"{service.address}/#two", width=320)
    until(page, "document.querySelector('#connection').textContent.includes('is set aside at version 3')")
    assert too_wide(page) <= 0
    assert page.inner_text("nav a[aria-current]") == "two"
    assert page.is_hidden("#dashboard")
    assert page.is_hidden("#empty")
    page.click("nav a:text('one')")
    until(page, "document.querySelectorAll('#rounds > ol > li').length === 2")
    assert page.inner_text("#connection") == "Live"


def test_an_empty_service_says_how_to_begin_and_it_works(service, visit):
    page = visit(service.address)
    page.wait_for_selector("#empty:not([hidden])")
    session = page.inner_text("#session").replace("\\\n", "")
    commands = re.findall(r"curl -X (\w+) (\S+).*?-d '(.*?)'", session, flags=re.DOTALL)
    assert len(commands) == 3
    for method, address, body in commands:
        assert address.startswith(service.address)
        service.done(method, address.removeprefix(service.address), json.loads(body))
    page.wait_for_selector("#dashboard:not([hidden])")
    assert page.locator("#rounds > ol > li").count() == 1


def test_a_token_is_asked_for_and_kept_in_the_tab_only(start, visit):
    token, line = new_token("people", ["admin"])
    service = start(tokens=[line])
    teach(service, 3, token=token)
    page = visit(service.address, complain=False)  # the browser notes every 401
    page.wait_for_selector("form.token")
    for given in ("wrong", token):
        assert not page.locator("#dashboard").is_visible()
        page.fill("#token-value", given)
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
    page.wait_for_selector("#dashboard:not([hidden])")
    assert not page.locator("form.token").is_visible()
    assert page.evaluate("sessionStorage.getItem('ranktron-token')") == token
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    assert token not in page.content()


def test_a_lost_connection_is_shown_and_comes_back(start, visit, tmp_path):
    service = start()
    teach(service, 3)
    page = visit(service.address, complain=False)
    is_live(page)
    service.__exit__()
    until(page, "document.body.dataset.state === 'lost'")
    assert "Connection lost since" in page.inner_text("#connection")
    assert page.locator("#rounds > ol > li").count() == 3  # what was known stays
    start(folder=tmp_path / "other", port=service.port)
    until(page, "document.body.dataset.state === 'live'")


@pytest.mark.parametrize("width", [320, 390, 768])
def test_small_screens_do_not_scroll_sideways(service, visit, width):
    teach(service, 5)
    page = visit(service.address, width=width)
    is_live(page)
    page.locator("#rounds button").first.click()
    page.wait_for_selector(".explanation li")
    assert too_wide(page) <= 0
    page = visit(f"{service.address}/search?q=join", width=width)
    page.wait_for_selector("#results > li")
    page.click("#why")
    page.wait_for_selector(".reason:not(:empty)")
    assert too_wide(page) <= 0


CONTRAST = """
() => {
  const channel = (c) => (c /= 255, c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const luminance = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !node.checkVisibility() || node.closest("svg")) continue;
    const [a, b] = [luminance(getComputedStyle(node).color), luminance(ground(node))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.textContent]);
  }
  return found.sort((x, y) => x[0] - y[0])[0];
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(service, visit, scheme):
    teach(service, 20)
    grounds = set()
    for path in ("/", "/search?q=join"):
        page = visit(service.address + path, color_scheme=scheme)
        page.wait_for_selector("#results > li" if "search" in path else "#rounds > ol > li")
        contrast, text = page.evaluate(CONTRAST)
        assert contrast >= 4.5, text
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    brightness = int(re.search(r"\d+", grounds.pop())[0])
    assert (brightness > 200) == (scheme == "light")


def test_the_keyboard_is_enough(service, visit):
    teach(service, 6)
    page = visit(service.address)
    is_live(page)
    page.locator("#curve > svg").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#curve .note").startswith("Round 4: quality")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#rounds') !== null || document.activeElement.tagName") is True
    page.keyboard.press("Enter")
    page.wait_for_selector(".explanation li")


def test_every_control_has_a_name(service, visit):
    teach(service, 2)
    nameless = """[...document.querySelectorAll("button, input, a, svg[tabindex]")].filter((node) =>
      node.checkVisibility() && !(node.textContent.trim() || node.ariaLabel || node.labels?.length)).length"""
    for path in ("/", "/search?q=join"):
        page = visit(service.address + path)
        page.wait_for_selector("#results > li" if "search" in path else "#rounds > ol > li")
        assert page.evaluate(nameless) == 0


def names(page):
    return page.locator("#results > li b").all_inner_texts()


def test_a_vote_changes_the_ranking(service, visit):
    page = visit(f"{service.address}/search")
    page.fill("#query", "join")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results > li")
    before = names(page)
    assert page.locator(".votes:not([hidden])").count() == 5
    assert "nothing has been learnt yet" in page.inner_text("#weights")
    liked = before[4]
    page.click(f"button[aria-label='Good result: {liked}']")
    says(page, "Learnt from 1 vote in round 0.")
    after = names(page)
    assert after.index(liked) < before.index(liked)
    assert "▲ up" in page.locator("#results > li", has_text=liked).first.inner_text()
    assert page.get_attribute(f"button[aria-label='Good result: {liked}']", "aria-pressed") == "true"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"Good result: {liked}"
    page.wait_for_selector("#weights rect.positive")
    board = service.done("GET", "/v1/rankers/search/dashboard")
    assert (board["feedback"]["rounds"], board["open"]) == (1, 1)
    assert board["recent"][1]["labels"] == {liked: 1.0}


def test_whoever_searches_at_once_waits_for_the_ranker(service, visit):
    """The form is there before the ranker is made, and an answer of 404 would be a complaint."""
    page = visit("about:blank")
    sent = []

    def slowly(route):
        sent.append(route)
        if len(sent) > 1:  # the search has come; until then the first one waits
            for each in sent:
                each.continue_()
            sent.clear()

    page.route("**/v1/rankers/search", slowly)
    page.goto(f"{service.address}/search")
    until(page, "document.querySelectorAll('#examples button').length > 0")
    assert len(sent) == 1
    page.fill("#query", "join")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results > li")
    assert sent == []


def test_all_votes_are_one_answer(service, visit):
    page = visit(f"{service.address}/search?q=copy")
    page.wait_for_selector("#results > li")
    shown = names(page)[:5]
    for place, name in enumerate(shown):
        page.click(f"button[aria-label='{'Good' if place % 2 else 'Bad'} result: {name}']")
    says(page, "Learnt from 5 votes")
    labels = service.done("GET", "/v1/rankers/search/dashboard")["recent"][1]["labels"]
    assert labels == {name: float(place % 2) for place, name in enumerate(shown)}


def test_votes_are_sent_before_the_next_search(service, visit):
    page = visit(f"{service.address}/search?q=copy")
    page.wait_for_selector("#results > li")
    page.locator("button.up").first.click()
    page.fill("#query", "sort")
    page.keyboard.press("Enter")
    until(page, "[...document.querySelectorAll('#results b')].some((name) => name.textContent === 'list.sort')")
    assert service.done("GET", "/v1/rankers/search/dashboard")["feedback"]["rounds"] == 1
    assert page.evaluate("location.search") == "?q=sort"


def test_a_vote_can_be_taken_back(service, visit):
    page = visit(f"{service.address}/search?q=copy")
    page.wait_for_selector("#results > li")
    up = page.locator("button.up").first
    up.click()
    up.click()
    assert up.get_attribute("aria-pressed") == "false"
    page.wait_for_timeout(1200)
    assert service.done("GET", "/v1/rankers/search/dashboard")["feedback"]["rounds"] == 0


def test_the_simulated_voter_says_that_it_is_one(service, visit, eventually):
    page = visit(f"{service.address}/search")
    is_live(page)
    page.click("#voter")
    eventually(lambda: service.done("GET", "/v1/rankers/search/dashboard")["feedback"]["rounds"] >= 4)
    assert "Simulated vote" in page.inner_text("#status")
    page.click("#voter")
    says(page, "The simulated voter is done")
    board = service.done("GET", "/v1/rankers/search/dashboard")
    assert all(each["query"].endswith(" (simulated)") for each in board["recent"] if each["answered"])
    until(page, "document.querySelectorAll('#curve circle.shown').length >= 4")
    page.locator("button.up").first.click()  # the list on the screen is a round of one's own
    says(page, "Learnt from 1 vote")


def test_starting_over_forgets_everything(service, visit):
    page = visit(f"{service.address}/search?q=join")
    page.wait_for_selector("#results > li")
    before = names(page)
    page.locator("button.up").nth(3).click()
    page.wait_for_selector("#weights rect.positive")
    page.click("#over")
    says(page, "Everything is forgotten")
    assert names(page) == before
    page.wait_for_selector("#weights .nothing:not([hidden])")
    assert page.locator("button[aria-pressed=true].up").count() == 0


def test_the_dashboard_is_one_click_away(service, visit):
    page = visit(f"{service.address}/search?q=join")
    page.wait_for_selector("#results > li")
    page.click("#dashboard-link")
    page.wait_for_selector("#rounds > ol > li")
    assert "join" in page.inner_text("#rounds")
    page.click("#search")
    page.wait_for_selector("#welcome")


def test_reasons_are_shown_on_request(service, visit):
    page = visit(f"{service.address}/search?q=join")
    page.wait_for_selector("#results > li")
    page.click("#why")
    page.wait_for_selector(".reason:text('all weights are zero')")
    page.locator("button.up").nth(1).click()
    page.wait_for_selector(".reason:text('+0.')")


def test_documents_are_text_and_never_markup(start, visit):
    nasty = [LibraryEntry(f"{EVIL}.join{i}", EVIL, "function", f"({SCRIPT})", f"Join {SCRIPT}.") for i in range(7)]
    service = start(index=Index(nasty))
    page = visit(f"{service.address}/search?q=join")
    page.wait_for_selector("#results > li")
    page.locator("#results summary").first.click()
    page.locator("button.up").nth(1).click()
    says(page, "Learnt")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    assert EVIL in names(page)[0]


def test_votes_during_an_answer_are_not_lost(service, visit):
    page = visit(f"{service.address}/search?q=copy")
    page.wait_for_selector("#results > li")
    first = names(page)[0]
    # The last of five votes sends them; the first is changed while they are under way.
    page.evaluate("""new Promise((done) => {
      document.querySelectorAll(".votes:not([hidden]) .up").forEach((button) => button.click());
      setTimeout(() => done(document.querySelector(".votes .down").click()), 1);
    })""")
    until(page, "document.getElementById('status').textContent.includes('in round 1.')")
    recent = service.done("GET", "/v1/rankers/search/dashboard")["recent"]
    heard = [each["labels"] for each in reversed(recent) if each["answered"]]
    assert [labels[first] for labels in heard] == [1.0, 0.0]


def test_the_way_back(service, visit):
    page = visit(f"{service.address}/search?q=copy")
    page.wait_for_selector("#results > li")
    page.fill("#query", "sort")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results b:text-is('list.sort')")
    page.go_back()
    page.wait_for_selector("#results b:text-is('copy.copy')")
    assert page.input_value("#query") == "copy"


def test_a_ranker_that_someone_deletes_is_made_again(service, visit):
    page = visit(f"{service.address}/search?q=copy", complain=False)
    page.wait_for_selector("#results > li")
    service.done("DELETE", "/v1/rankers/search")
    until(page, "document.body.dataset.state === 'lost'")
    is_live(page)
    page.fill("#query", "sort")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results b:text-is('list.sort')")


def test_what_is_not_found_is_said(service, visit):
    page = visit(f"{service.address}/search?q=qqqzzz")
    until(page, "document.getElementById('status').textContent.includes('Nothing here has a word of')")
    assert page.locator("#results > li").count() == 0


def test_a_ranker_without_weights_is_not_said_to_have_learnt_nothing(service, visit):
    service.done("PUT", "/v1/rankers/shop", {"algorithm": "kernel", "features": ["a", "b"]})
    documents = [{"id": "x", "features": [1, 2]}, {"id": "y", "features": [2, 1]}]
    shown = service.done("POST", "/v1/rankers/shop/rank", {"documents": documents})
    service.done("POST", "/v1/rankers/shop/feedback", {"round": shown["round"], "labels": {"x": 0, "y": 1}})
    page = visit(service.address)
    is_live(page)
    assert page.inner_text("#weights") == "A ranker of this kind has no weights for its features."
    assert "Last update\n–" in page.inner_text("#facts")
    page.locator("#rounds button").first.click()
    page.wait_for_selector(".explanation li")
    assert "are not sums over features" in page.inner_text(".explanation")


def test_an_experiment_has_a_curve_and_a_verdict(service, visit):
    teach(service, 4)
    version = service.done("POST", "/v1/rankers/shop/versions")["version"]
    teach(service, 4, name="other")
    guard = {"arms": [{"ranker": "shop", "version": version}, {"ranker": "shop"}], "guard": {"tolerance": 0.1}}
    service.done("PUT", "/v1/experiments/first", {"arms": [{"ranker": "shop"}, {"ranker": "other"}], "seed": 1})
    service.done("PUT", "/v1/experiments/second", {**guard, "seed": 1})
    documents = [{"id": f"{SCRIPT}{i}", "features": [i / 5, 0, 0]} for i in range(3)]
    for user in range(30):
        body = {"documents": documents, "user": f"{EVIL}{user}"}
        shown = service.done("POST", "/v1/experiments/first/rank", body)
        clicks = [shown["ranking"][0]["id"]] if shown["arm"] == "other" else []
        service.done("POST", "/v1/experiments/first/feedback", {"round": shown["round"], "clicks": clicks})
    found = service.done("GET", "/v1/experiments/first")
    page = visit(f"{service.address}/#/first")
    is_live(page)
    until(page, "document.querySelector('.verdict').textContent.startsWith('Decided: other is better than shop')")
    assert (
        page.locator("#experiment path.mean").first.get_attribute("d").count("L") == len(found["pairs"][0]["curve"]) - 1
    )
    label = page.locator("#experiment svg").first.get_attribute("aria-label")
    assert label.startswith("Confidence sequence after 30 users: +")
    assert f"certain after {found['pairs'][0]['decided_after']} users" in page.inner_text("#experiment")
    assert not page.locator("#dashboard").is_visible()
    page.get_by_text("⚖ second").click()
    until(page, "document.querySelector('.verdict').textContent.startsWith('Running')")
    assert "✓ watching" in page.inner_text("#experiment")
    page.get_by_text("other", exact=True).first.click()
    until(page, "!document.getElementById('dashboard').hidden")
    assert not page.locator("#experiment").is_visible()


def test_an_experiment_fits_on_a_phone(service, visit):
    teach(service, 2)
    teach(service, 2, name="b" * 60)
    service.done("PUT", f"/v1/experiments/{'x' * 63}", {"arms": [{"ranker": "shop"}, {"ranker": "b" * 60}]})
    page = visit(f"{service.address}/#/{'x' * 63}", width=360)
    is_live(page)
    until(page, "document.querySelector('.verdict').textContent.startsWith('Running')")
    assert too_wide(page) <= 0


def test_the_demo_compares_what_was_taught_with_what_was_not(service, visit, eventually):
    page = visit(f"{service.address}/search")
    is_live(page)
    page.click("#voter")
    eventually(lambda: service.done("GET", "/v1/rankers/search")["version"] >= 20, 60.0)
    page.click("#voter")
    says(page, "The simulated voter is done")
    page.click("#contest")
    until(page, "document.getElementById('contest-status').textContent.startsWith('Certain after')", 90.0)
    found = service.done("GET", "/v1/experiments/taught-or-not")
    assert (found["winner"], found["shows"]) == ("search", "search")
    assert "what was taught is better" in page.inner_text("#contest-status")
    assert page.locator("#contest-curve path.band").count() >= 1
    page.click("#over")
    until(page, "document.getElementById('status').textContent.startsWith('Everything is forgotten')")
    assert service.done("GET", "/v1/experiments")["experiments"] == []
    assert too_wide(page) <= 0

"""What a person does on the page, in a real browser."""

import json
import re
import urllib.request

import pytest

import discreet as dp
from tests.browser.conftest import PATIENCE
from tests.page_folders import EVIL

sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: THE PAGE IN A BROWSER needs playwright")
expect = sync_api.expect
expect.set_options(timeout=PATIENCE)

BY_HEALTH = "SELECT health, COUNT(*) FROM people GROUP BY health"
CONTRAST = """() => {
  const parts = (colour) => {
    const found = colour.match(/[\\d.]+/g).map(Number);
    return found.length < 4 ? [...found, 1] : found;
  };
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found[3] === 1) return found;
    }
    return [255, 255, 255, 1];
  };
  const low = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (!own || box.width < 2 || style.visibility !== 'visible' || !node.checkVisibility()) continue;
    const [one, other] = [light(parts(style.color)), light(behind(node))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) low.push(`${node.className}: ${node.textContent.trim().slice(0, 30)}`);
  }
  return low;
}"""
UNNAMED = """() => [
    ...document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a[href], summary'),
  ]
  .filter((each) => !(each.labels?.length || each.getAttribute('aria-label') || each.textContent.trim()))
  .map((each) => each.outerHTML)"""


def ask(view, sql):
    """Ask a question as a person does, and wait for its answer."""
    many = view.locator("#answers > article").count()
    view.locator("#sql").fill(sql)
    view.get_by_role("button", name="Ask", exact=True).click()
    expect(view.locator("#answers > article")).to_have_count(many + 1)
    return view.locator("#answers > article").first


def left(view):
    return float(view.locator("#left-percent").inner_text().split("%")[0])


def test_a_wrong_key_is_refused_and_the_right_one_opens_the_desk(people, window):
    view = window(people)
    view.get_by_label("Your key").fill("dk_00000000_" + "x" * 43)
    view.get_by_role("button", name="Sign in").click()
    expect(view.get_by_role("alert")).to_contain_text("not known here")
    assert window.trouble.pop().startswith("Failed to load resource: the server responded with a status of 401")
    view.get_by_label("Your key").fill(people.house.keys["ana"])
    view.keyboard.press("Enter")
    expect(view.get_by_role("heading", level=1)).to_have_text("Ask about people")
    expect(view.locator("#sql")).to_be_focused()
    cookie = view.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    view.get_by_role("button", name="Sign out").click()
    expect(view.get_by_role("status")).to_have_text("You are signed out.")
    view.goto(f"{people.url}/t/people")
    expect(view.get_by_label("Your key")).to_be_visible()


def test_the_price_appears_while_typing_and_the_answer_has_a_table_and_a_plot(people, window):
    view = window(people, "ana")
    box = view.locator("#sql")
    before = left(view)
    wide = view.locator("#left rect").bounding_box()["width"]
    box.press_sequentially("SELECT health, COUNT(*) FROM people")
    expect(view.locator("#price")).to_contain_text("Not a question yet")
    box.press_sequentially(" GROUP BY health")
    expect(view.locator("#price")).to_contain_text("At most 1 % of the budget")
    promised = re.search(r"± (\d+) persons", view.locator("#price").inner_text())[1]
    assert left(view) == before
    view.keyboard.press("Control+Enter")
    answer = view.locator("#answers > article").first
    expect(answer).to_contain_text(f"4 groups, each ± {promised} persons")
    expect(answer.locator("tbody tr")).to_have_count(4)
    expect(answer.locator(".plot[data-drawn='4'] canvas")).to_be_visible()
    assert answer.locator(".plot").bounding_box()["height"] > 150
    expect(answer).to_contain_text("Paid: 1 % of the budget")
    expect(view.locator("#price")).to_contain_text("Free.")  # the price is no longer what it was
    assert left(view) == before - 1
    expect(view.locator("#left")).to_contain_text("enough for about")
    assert view.locator("#left rect").bounding_box()["width"] < wide
    box.fill(BY_HEALTH + " ")
    expect(view.locator("#price")).to_contain_text("Free.")
    answer.get_by_text("The same from Python").click()
    expect(answer.locator("pre.copy").first).to_contain_text("dp.connect(")


def test_numbers_along_an_axis_are_a_line_within_its_band(people, window):
    view = window(people, "ana")
    answer = ask(view, "SELECT age, COUNT(*) FROM people GROUP BY age")
    expect(answer.locator(".plot[data-drawn='66'] canvas")).to_be_visible()
    expect(answer.locator("figcaption")).to_contain_text("the band is the error bound")
    expect(answer.locator("tbody tr")).to_have_count(66)


def test_pressing_twice_is_paid_once(people, window):
    view = window(people, "boris")
    before = left(view)
    view.locator("#sql").fill("SELECT COUNT(*) FROM people WHERE visits >= 7")
    view.get_by_role("button", name="Ask", exact=True).dblclick()
    expect(view.locator("#answers > article").first).to_contain_text("Paid: 1 %")
    view.wait_for_timeout(500)
    expect(view.locator("#answers > article")).to_have_count(1)
    assert left(view) == before - 1


def test_a_question_is_completed_by_the_keyboard_alone(people, window):
    view = window(people, "ana")
    box, listed = view.locator("#sql"), view.locator("#suggestions")
    box.press_sequentially("sel")
    expect(listed.get_by_role("option").first).to_contain_text("SELECT")
    view.keyboard.press("Tab")
    expect(box).to_have_value("SELECT")
    expect(listed).to_be_hidden()
    box.press_sequentially(" COUNT(*) FROM p")
    expect(listed.get_by_role("option")).to_have_count(1)
    view.keyboard.press("ArrowDown")
    view.keyboard.press("Enter")
    box.press_sequentially(" WHERE hea")
    view.keyboard.press("Tab")
    box.press_sequentially(" = ")
    expect(listed.get_by_role("option")).to_have_text(["'excellent'level", "'good'level", "'fair'level", "'poor'level"])
    for _ in range(4):
        view.keyboard.press("ArrowDown")
    expect(listed.locator("[aria-selected=true]")).to_contain_text("'poor'")
    expect(box).to_have_attribute("aria-activedescendant", "suggestion-3")
    view.keyboard.press("Enter")
    expect(box).to_have_value("SELECT COUNT(*) FROM people WHERE health = 'poor'")
    box.press_sequentially(" AND site IN (1, ")
    expect(listed.get_by_role("option").first).to_contain_text("1")
    view.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    expect(box).to_be_focused()
    box.press_sequentially("2)")
    view.keyboard.press("Control+Enter")
    expect(view.locator("#answers > article").first).to_contain_text("persons")
    ask = view.get_by_role("button", name="Ask", exact=True)
    expect(ask).to_be_enabled()  # while a question is on its way nobody can move to it
    view.keyboard.press("Control+Space")
    expect(listed).to_be_visible()
    view.keyboard.press("Escape")
    view.keyboard.press("Tab")
    expect(ask).to_be_focused()


def test_examples_fill_the_box(people, window):
    view = window(people, "boris")
    view.get_by_role("button", name="SELECT MEDIAN(age) FROM people").click()
    expect(view.locator("#sql")).to_have_value("SELECT MEDIAN(age) FROM people")
    expect(view.locator("#price")).to_contain_text("of the budget")


def test_a_refusal_marks_its_place_and_costs_nothing(people, window):
    view = window(people, "boris")
    before = left(view)
    answer = ask(view, "SELECT name FROM people WHERE age > 3")
    expect(answer.locator("mark")).to_have_text("name")
    expect(answer).to_contain_text("Nothing was spent.")
    expect(answer).to_contain_text("For example SELECT COUNT(*)")
    assert left(view) == before


def test_history_shows_an_answer_again_free(people, window):
    view = window(people, "boris")
    ask(view, "SELECT COUNT(*) FROM people WHERE limited = 'yes'")
    before = left(view)
    view.get_by_role("link", name="History").click()
    row = view.locator("tbody tr").filter(has_text="limited = 'yes'")
    shown = row.locator("td").nth(2).inner_text()
    row.get_by_role("button").click()
    expect(view.locator("#answers > article")).to_contain_text("Free: it was asked before.")
    expect(view.locator("#answers .value")).to_have_text(shown)
    assert left(view) == before


def test_a_model_is_fitted_as_a_job_and_downloaded(people, window, tmp_path):
    view = window(people, "boris")
    view.get_by_role("link", name="Models").click()
    view.get_by_label("What", exact=True).select_option("logistic")
    view.get_by_label("Of which column").select_option("limited")
    expect(view.get_by_label("Which quantile")).to_be_hidden()
    view.get_by_role("checkbox", name="age").check()
    view.get_by_role("checkbox", name="diseases").check()
    view.get_by_role("button", name="Start").click()
    model = view.locator("article.model").first
    expect(model).to_contain_text("limited = yes")
    with view.expect_download() as loading:
        model.get_by_role("link", name="Download").click()
    path = tmp_path / loading.value.suggested_filename
    loading.value.save_as(path)
    assert path.name == "logistic-limited.json"
    assert set(dp.load(path).predict({"age": [30, 60], "diseases": [0, 50]})) <= {"yes", "no"}


def test_a_job_that_waits_can_be_cancelled_and_is_not_paid(people, window):
    view = window(people, "boris")
    view.get_by_role("link", name="Models").click()
    before = left(view)
    slow = {"kind": "network", "target": "health", "hidden": 48, "share": "1/100"}  # the queue is busy for a while
    headers = {
        "Authorization": f"Bearer {people.house.keys['ana']}",
        "Prefer": "wait=0",
        "Content-Type": "application/json",
    }
    asked = urllib.request.Request(f"{people.url}/v1/tables/people/fit", json.dumps(slow).encode(), headers)
    with urllib.request.urlopen(asked) as reply:
        assert reply.status == 202
    view.get_by_label("What", exact=True).select_option("mean")
    view.get_by_label("Of which column").select_option("visits")
    view.get_by_role("button", name="Start").click()
    job = view.locator("article.job").filter(has_text="target='visits'")
    job.get_by_role("button", name="Cancel").click()
    expect(job).to_contain_text("cancelled")
    expect(job).to_contain_text("nothing was charged")
    view.reload()
    assert left(view) == before


def test_made_up_rows_are_downloaded(people, window, tmp_path):
    view = window(people, "ana")
    ask(view, BY_HEALTH)
    view.get_by_role("link", name="Known").click()
    expect(view.get_by_role("main")).to_contain_text("how many rows for each health")
    view.get_by_label("How many rows").fill("50")
    with view.expect_download() as loading:
        view.get_by_role("button", name="Download").click()
    loading.value.save_as(tmp_path / "rows.csv")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 51


def test_the_owner_reads_the_ledger_and_verifies_it(people, window):
    ask(window(people, "ana"), BY_HEALTH)
    view = window(people, "olga")
    expect(view.get_by_role("heading", level=1)).to_have_text("Who spent what of people")
    row = view.locator("tbody tr").filter(has=view.get_by_role("rowheader", name="ana"))
    expect(row).to_contain_text("25 %")
    view.get_by_role("button", name="Verify").click()
    expect(view.locator("#verified")).to_contain_text("all sound")
    view.get_by_role("link", name="Entries").click()
    expect(view.locator("tbody tr").filter(has_text="how many rows for each health")).to_have_count(1)
    view.locator("tbody").get_by_role("link").first.click()
    expect(view.get_by_role("main")).to_contain_text("promises alone")
    with view.expect_download() as loading:
        view.get_by_role("link", name="Download").click()
    assert re.fullmatch(r"people-\d+\.json", loading.value.suggested_filename)
    view.goto(f"{people.url}/owner/t/people")
    view.get_by_role("link", name="Open the report").click()
    expect(view.get_by_role("heading", level=1)).to_have_text("The privacy budget of people")


def test_several_tables_are_told_apart(two, window):
    view = window(two, "ana")
    expect(view.get_by_role("heading", level=1)).to_have_text("Tables")
    view.get_by_role("link", name="visits").click()
    ask(view, "SELECT COUNT(*) FROM visits WHERE age >= 50")
    assert left(view) == 24
    refused = ask(view, "SELECT COUNT(*) FROM people WHERE age >= 50")
    expect(refused.locator("mark")).to_have_text("people")
    view.get_by_role("link", name="Tables").click()
    expect(view.locator("section", has_text="visits")).to_contain_text("24 % of the budget left for you")
    expect(view.locator("section", has_text="people")).to_contain_text("25 % of the budget left for you")
    view.get_by_role("link", name="people").click()
    expect(view.get_by_role("heading", level=1)).to_have_text("Ask about people")
    owner = window(two, "olga")
    owner.get_by_role("link", name="Keys").click()
    owner.get_by_label("Name").fill("vera")
    owner.get_by_label("people").uncheck()
    owner.get_by_role("button", name="Add").click()
    vera = window(two, owner.locator("#secret").inner_text())
    expect(vera.get_by_role("heading", level=1)).to_have_text("Ask about visits")
    vera.goto(f"{two.url}/t/people")
    expect(vera.get_by_role("heading", level=1)).to_have_text("Not found")
    assert "404" in window.trouble.pop()


def test_a_key_is_added_used_and_revoked(people, window):
    view = window(people, "olga")
    view.get_by_role("link", name="Keys").click()
    view.get_by_label("Name").fill("dora")
    view.get_by_label("Share of the budget").fill("1/10")
    view.get_by_role("button", name="Add").click()
    key = view.locator("#secret").inner_text()
    dora = window(people, key)
    expect(dora.locator("#left-percent")).to_contain_text("10 %")
    view.reload()  # which sends the form again
    expect(view.get_by_role("alert")).to_contain_text("There is a key of dora already")
    expect(view.locator("#secret")).to_have_count(0)
    row = view.locator("tbody tr").filter(has=view.get_by_role("rowheader", name="dora"))
    row.get_by_role("button", name="Revoke").click()
    expect(view.get_by_role("status")).to_contain_text("is revoked")
    dora.locator("#sql").fill(BY_HEALTH)
    expect(dora.get_by_label("Your key")).to_be_visible()


def pages_of(view, serving, key):
    """Every page of a person, one after the other."""
    paths = ("owner/t/people", "owner/t/people/entries", "owner/keys") if key == "olga" else ("t/people", *ANALYSTS)
    for path in paths:
        view.goto(f"{serving.url}/{path}")
        expect(view.get_by_role("heading", level=1)).to_be_visible()
        if path == "t/people":
            ask(view, BY_HEALTH)
            ask(view, "SELECT site, health, COUNT(*) FROM people GROUP BY site, health")
            ask(view, "SELECT nothing FROM people")
        yield path


ANALYSTS = ("t/people/history", "t/people/known", "t/people/models")


@pytest.mark.parametrize("key", ["ana", "olga"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_readable_in_both_schemes_and_at_any_width(people, window, key, scheme):
    view = window(people, key, color_scheme=scheme)
    for path in pages_of(view, people, key):
        dark = view.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
        assert (dark == "rgb(18, 22, 26)") == (scheme == "dark"), path
        assert view.evaluate(CONTRAST) == [], path
        assert view.evaluate(UNNAMED) == [], path
        for width in (1200, 700, 400, 320):
            view.set_viewport_size({"width": width, "height": 800})
            assert view.locator("html").evaluate("(page) => page.scrollWidth") <= width, (path, width)
        view.set_viewport_size({"width": 1200, "height": 900})


def test_the_focus_is_seen(people, window):
    view = window(people, "ana")
    expect(view.get_by_role("heading", level=1)).to_be_visible()
    for _ in range(12):
        view.keyboard.press("Tab")
        seen = view.evaluate("""() => { const at = document.activeElement || document.body;
          const style = getComputedStyle(at);
          return at === document.body || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2); }""")
        assert seen, view.evaluate("() => document.activeElement.outerHTML")


def test_everything_needed_works_without_scripts(people, window):
    view = window(people, "boris", java_script_enabled=False)
    expect(view.get_by_role("heading", level=1)).to_have_text("Ask about people")
    view.locator("#sql").fill("SELECT COUNT(*) FROM people WHERE family >= 5")
    view.get_by_role("button", name="Show the price").click()
    expect(view.locator("#price")).to_contain_text("At most 1 % of the budget")
    before = left(view)
    view.get_by_role("button", name="Ask", exact=True).click()
    expect(view.locator("#answers > article")).to_contain_text("persons")
    assert left(view) == before - 1
    view.locator("#sql").fill("SELECT nothing FROM people")
    view.get_by_role("button", name="Ask", exact=True).click()
    expect(view.locator("#answers mark")).to_have_text("nothing")
    view.get_by_role("link", name="History").click()
    view.get_by_role("button", name="Show again").first.click()
    expect(view.locator("#answers > article")).to_contain_text("Free")
    view.get_by_role("link", name="Models").click()
    view.get_by_label("What", exact=True).select_option("mean")
    view.get_by_label("Of which column").select_option("visits")
    view.get_by_role("button", name="Start").click()
    for _ in range(60):
        if view.get_by_text("Mean of visits").count():
            break
        view.wait_for_timeout(500)
        view.reload()
    expect(view.get_by_text("Mean of visits").first).to_be_visible()
    view.get_by_role("button", name="Sign out").click()
    expect(view.get_by_label("Your key")).to_be_visible()


# Hostile names, and the price above which confirmation is needed.


def test_hostile_names_stay_text_and_a_high_price_is_confirmed(evil, window):
    view = window(evil, "ana")
    expect(view.locator(".schema")).to_contain_text(EVIL[0])
    box = view.locator("#sql")
    box.press_sequentially("SELECT script")
    expect(view.locator("#suggestions").get_by_role("option").first).to_contain_text(EVIL[0])
    view.keyboard.press("ArrowDown")
    view.keyboard.press("Enter")
    name = f'"{EVIL[0]}"'
    expect(box).to_have_value(f"SELECT {name}")
    box.fill(f"SELECT {name}, COUNT(*) FROM people GROUP BY {name}")
    expect(view.locator("#price")).to_contain_text("you will be asked before it is paid")
    before = left(view)
    view.get_by_role("button", name="Ask", exact=True).click()
    card = view.locator("#answers > article").first
    expect(card).to_contain_text("This could cost up to 11 % of the budget")
    card.get_by_role("button", name="Do not ask").click()
    expect(view.locator("#answers > article")).to_have_count(0)
    assert left(view) == before
    view.get_by_role("button", name="Ask", exact=True).click()
    view.get_by_role("button", name="Pay up to 11 % and ask").click()
    expect(card.locator("tbody tr")).to_have_count(8)
    expect(card.locator(".plot[data-drawn='8'] canvas")).to_be_visible()
    for level in EVIL[:6]:
        expect(card.locator("tbody")).to_contain_text(level)
    assert left(view) == before - 11
    for path in ("history", "known", "models"):
        view.goto(f"{evil.url}/t/people/{path}")
        expect(view.get_by_role("heading", level=1)).to_be_visible()
        assert view.locator("html").evaluate("() => document.querySelectorAll('main script, main img').length") == 0


def test_a_service_that_is_gone_is_said(evil, window):
    view = window(evil, "boris")
    expect(view.locator("#sql")).to_be_focused()
    evil.stop()
    view.locator("#sql").fill("SELECT COUNT(*) FROM people WHERE age >= 40")
    view.get_by_role("button", name="Ask", exact=True).click()
    expect(view.locator("#trouble")).to_be_visible()
    assert any("ERR_CONNECTION_REFUSED" in each for each in window.trouble)
    window.trouble.clear()

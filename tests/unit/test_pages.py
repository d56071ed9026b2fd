"""The pages of a service: what they show, what they escape, who may see them, and which forms they take."""

import asyncio
import csv
import html
import json
import re
import time
from pathlib import Path

import httpx
import pytest

import discreet as dp
from discreet.serve import page_kit, views
from discreet.serve.app import create_app
from discreet.serve.keys import Keys
from tests import page_folders
from tests.page_folders import EVIL, plain

HOME = "http://127.0.0.1:8000"
SAME = {"Sec-Fetch-Site": "same-origin"}
HTMX = {**SAME, "HX-Request": "true"}
COUNT = "SELECT COUNT(*) FROM people WHERE age >= 40"
BY_TOWN = "SELECT town, COUNT(*) FROM people GROUP BY town"


class Browser:
    """A browser without scripts: keeps its cookie, fills in the tokens of forms."""

    def __init__(self, app):
        self.app, self.cookies, self.last = app, {}, ""

    def send(self, method, path, *, headers=None, **more):
        async def run():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=HOME, cookies=self.cookies, timeout=60
            ) as client:
                return await client.request(method, path, headers=headers or {}, **more)

        reply = asyncio.run(run())
        self.cookies = {**self.cookies, **{name: value for name, value in reply.cookies.items() if value != '""'}}
        self.last = reply.text
        return reply

    def get(self, path, **more):
        return self.send("GET", path, **more)

    def post(self, path, data=None, *, token=None, headers=SAME):
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.last)
        given = {"token": token if token is not None else (found and found[1]) or ""}
        return self.send("POST", path, data={**given, **(data or {})}, headers=headers)

    def sign_in(self, key):
        reply = self.post("/sign-in", {"key": key})
        return self.get(self.get("/").headers["location"]) if reply.status_code == 303 else reply


class Folder:
    """A service on a folder."""

    def __init__(self, made, **settings):
        self.house, self.keys = made, Keys(made.keys_file)
        self.declared = dp.Schema.read(made.schemas[0])
        self.ana, self.boris, self.limited, self.olga = (made.keys[name] for name in ("ana", "boris", "carla", "olga"))
        self.app = create_app(made.settings(**settings))

    @property
    def ledger(self):
        return self.app.state.service.desks["people"].ledger

    def browser(self, key=None):
        made = Browser(self.app)
        if key is not None:
            assert made.sign_in(key).status_code == 200
        return made


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """A service for tests that change nothing there."""
    made = Folder(plain(tmp_path_factory.mktemp("quiet") / "service"))
    yield made
    assert made.ledger.store.count("charge") == 0
    assert len(made.keys.read()) == 4
    assert made.app.state.service.close()


@pytest.fixture
def folder(tmp_path):
    made = Folder(plain(tmp_path / "service"))
    yield made
    assert made.app.state.service.close()


@pytest.fixture
def ana(folder):
    return folder.browser(folder.ana)


def models_of(browser):
    """The page of models, when no job runs any more."""
    for _ in range(200):
        page = browser.get("/t/people/models")
        if "every 2s" not in page.text:
            return page
        time.sleep(0.1)
    raise AssertionError("the job does not end")


def text(reply):
    """What a reader sees of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", reply.text)).split())


# The door.


def test_signing_in_takes_a_key_and_gives_a_cookie_that_scripts_and_other_sites_do_not_get(folder):
    browser = folder.browser()
    assert "Your key" in text(browser.get("/"))
    reply = browser.post("/sign-in", {"key": folder.ana})
    made = reply.headers["set-cookie"]
    assert reply.status_code == 303
    assert re.match(r"discreet=[0-9a-f]{8}\.\d+\.[0-9a-f]{64};", made)
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=28800"} <= {part.strip() for part in made.split(";")}
    assert "Secure" not in made
    assert "Ask about people" in text(browser.sign_in(folder.ana))


def test_behind_a_proxy_the_cookie_is_secure(tmp_path):
    folder = Folder(plain(tmp_path / "service"), behind_proxy=True)
    assert "; Secure" in folder.browser().post("/sign-in", {"key": folder.ana}).headers["set-cookie"]
    folder.app.state.service.close()


@pytest.mark.parametrize("key", ["", "x", "dk_00000000_" + "a" * 43, "<script>alert(1)</script>", "dk_" + "9" * 4000])
def test_a_wrong_key_is_refused_and_not_repeated(quiet, key):
    reply = quiet.browser().post("/sign-in", {"key": key})
    assert reply.status_code == 401
    assert "not known here" in text(reply)
    assert "set-cookie" not in reply.headers
    assert len(key) < 2 or html.escape(key) not in reply.text


def test_signing_out_ends_the_cookie(folder, ana):
    reply = ana.post("/sign-out")
    assert "signed out" in text(reply)
    assert 'discreet=""' in reply.headers["set-cookie"]
    assert "Max-Age=0" in reply.headers["set-cookie"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cookie: cookie[:-1] + ("0" if cookie[-1] != "0" else "1"),
        lambda cookie: cookie.replace(".", ".9", 1),
        lambda cookie: "00000000" + cookie[8:],
        lambda cookie: cookie.split(".")[0],
        lambda cookie: "",
        lambda cookie: "...",
        lambda cookie: cookie.rsplit(".", 1)[0] + ".",
    ],
)
def test_a_cookie_that_was_not_made_here_is_no_cookie(quiet, spoil):
    ana = quiet.browser(quiet.ana)
    ana.cookies["discreet"] = spoil(ana.cookies["discreet"])
    reply = ana.get("/t/people")
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert "Your key" in text(ana.get("/"))


def test_a_cookie_expires(folder, ana, monkeypatch):
    late = time.time() + 8 * 3600 + 1
    monkeypatch.setattr("discreet.serve.service.time.time", lambda: late)
    assert ana.get("/t/people").status_code == 303


def test_a_revoked_key_is_signed_out_at_the_next_request(folder, ana):
    folder.keys.revoke("ana")
    assert ana.get("/t/people").status_code == 303
    assert ana.post("/t/people/ask", {"sql": COUNT}, headers=HTMX).headers["hx-redirect"] == "/"


# Forms of others.


FORMS = (
    "/t/people/price",
    "/t/people/ask",
    "/t/people/models",
    "/t/people/synthetic",
    "/sign-out",
    "/t/people/jobs/x/cancel",
)
OWNERS = ("/owner/t/people/verify", "/owner/keys", "/owner/keys/00000000/revoke")
FILLED = {"sql": COUNT, "kind": "mean", "target": "age", "share": "1/10", "rows": "10", "name": "eve"}


@pytest.mark.parametrize("path", [*FORMS, *OWNERS])
@pytest.mark.parametrize("token", ["", "0" * 64, "é", None])
def test_a_form_without_the_token_of_its_cookie_is_refused(quiet, path, token):
    browser = quiet.browser(quiet.olga if path in OWNERS else quiet.ana)
    if token is None:  # that of another person
        other = quiet.browser(quiet.boris)
        token = re.search(r'name="token" value="([0-9a-f]+)"', other.last)[1]
    reply = browser.post(path, FILLED, token=token)
    assert reply.status_code == 403
    assert "form" in text(reply)


@pytest.mark.parametrize("path", [*FORMS, *OWNERS, "/sign-in"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_a_form_of_another_site_is_refused_even_with_its_token(quiet, path, headers):
    browser = quiet.browser(quiet.olga if path in OWNERS else quiet.ana)
    reply = browser.post(path, {**FILLED, "key": quiet.ana}, headers=headers)
    assert reply.status_code == 403


def test_no_page_is_shown_without_a_key(quiet):
    for path in (
        "/t/people",
        "/t/people/history",
        "/t/people/known",
        "/t/people/models",
        "/t/people/jobs/x",
        "/owner/keys",
    ):
        assert quiet.browser().get(path).status_code == 303, path
    for path in ("/owner/t/people", "/owner/t/people/entries", "/owner/t/people/certificates/3", "/t/people/models/3"):
        assert quiet.browser().get(path).status_code == 303, path


def test_an_analyst_sees_no_page_of_the_owner_and_an_owner_asks_nothing(folder, ana):
    for path in ("/owner/t/people", "/owner/t/people/entries", "/owner/t/people/certificates/1", "/owner/keys"):
        assert ana.get(path).status_code == 403, path
    olga = folder.browser(folder.olga)
    assert olga.get("/t/people").status_code == 403
    assert "asks nothing" in text(olga.get("/t/people"))
    ana.get("/t/people")
    for path in OWNERS:
        assert ana.post(path, FILLED).status_code == 403, path


def test_a_table_that_is_not_there_is_not_found(folder, ana):
    assert ana.get("/t/others").status_code == 404
    assert "no such table" in text(ana.get("/t/others"))


# Headers and files.


def test_every_page_has_its_policy_and_is_not_stored(folder, ana):
    for reply in (folder.browser().get("/"), ana.get("/t/people"), ana.get("/t/nothing"), ana.get("/t/people/models")):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son[a-z]+=|\sstyle=|<style|javascript:", reply.text)


def test_files_of_the_page_are_a_fixed_list(quiet):
    browser = quiet.browser()
    for name in ("page.js", "page.css", "htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css", "favicon.svg"):
        reply = browser.get(f"/static/{name}")
        assert reply.status_code == 200, name
        assert browser.get(f"/static/{name}", headers={"If-None-Match": reply.headers["etag"]}).status_code == 304
    for name in ("../pages.py", "..%2fpages.py", "VENDORED.md", "keys.json", "%2e%2e/%2e%2e/keys.json", "", "x"):
        assert browser.get(f"/static/{name}").status_code == 404, name


# Asking.


def test_the_desk_says_what_is_promised_and_what_there_is(ana):
    said = text(ana.get("/t/people"))
    for words in (
        "600 persons",
        "age number 0 to 99 in steps of 1",
        "town category north, south, west",
        "25 %",
        "73 : 27",
    ):
        assert words in said, words
    assert "Protected: what the rows of a person say" in said


def test_a_price_is_shown_before_and_nothing_is_spent(folder, ana):
    reply = ana.post("/t/people/price", {"sql": COUNT}, headers=HTMX)
    assert "<html" not in reply.text
    assert re.fullmatch(
        r"At most 1 % of the budget \(by itself epsilon 0\.0\d+\) for an answer within ± \d+ persons *\.", text(reply)
    )
    assert folder.ledger.store.count("charge") == 0


def test_the_bound_before_is_the_bound_after(folder, ana):
    said = text(ana.post("/t/people/price", {"sql": BY_TOWN}, headers=HTMX))
    before = re.search(r"± ([\d,]+) persons", said)[1]
    ana.get("/t/people")
    assert f"each ± {before} persons" in text(ana.post("/t/people/ask", {"sql": BY_TOWN, "request": "1"}))


def test_without_scripts_a_price_and_an_answer_are_whole_pages(ana):
    reply = ana.post("/t/people/price", {"sql": COUNT})
    assert "<html" in reply.text
    assert "At most 1 %" in text(reply)
    assert f">{html.escape(COUNT)}</textarea>" in reply.text
    reply = ana.post("/t/people/ask", {"sql": COUNT + " ;", "request": "1"})
    assert "<html" in reply.text
    assert re.search(r"\d+ ± \d+ persons", text(reply))
    assert "24 % left for you" in text(reply)
    assert "Paid: 1 % of the budget" in text(reply)


def test_with_scripts_only_the_answer_and_what_changed_come_back(ana):
    reply = ana.post("/t/people/ask", {"sql": BY_TOWN, "request": "1"}, headers=HTMX)
    assert "<html" not in reply.text
    assert re.search(r'id="left"[^>]* hx-swap-oob="true"', reply.text)
    assert re.search(r'id="request" value="[^"]+" hx-swap-oob="true"', reply.text)
    plot = json.loads(html.unescape(re.search(r'data-plot="([^"]+)"', reply.text)[1]))
    assert (plot["kind"], plot["labels"]) == ("bars", ["north", "south", "west"])
    assert all(low <= value <= high for low, value, high in zip(plot["low"], plot["values"], plot["high"], strict=True))
    for label in plot["labels"]:
        assert f'<th scope="row"><bdi>{label}</bdi></th>' in reply.text


def test_the_same_form_twice_is_paid_once_and_another_question_in_it_is_another_request(folder, ana):
    ledger = folder.ledger
    first = ana.post("/t/people/ask", {"sql": COUNT, "request": "same"})
    again = ana.post("/t/people/ask", {"sql": COUNT, "request": "same"})
    assert ledger.store.count("charge") == 1
    value = re.compile(r"[\d,]+ ± \d+ persons")
    assert value.search(text(first))[0] == value.search(text(again))[0]
    other = ana.post("/t/people/ask", {"sql": BY_TOWN, "request": "same"})
    assert "3 groups" in text(other)
    assert ledger.store.count("charge") == 2


def test_a_refusal_marks_the_place_and_says_why(folder, ana):
    reply = ana.post("/t/people/ask", {"sql": "SELECT nothing FROM people", "request": "1"}, headers=HTMX)
    assert "<mark>nothing</mark>" in reply.text
    assert "Nothing was spent." in text(reply)
    assert "For example SELECT COUNT(*)" in text(reply)
    assert folder.ledger.store.count("charge") == 0


@pytest.mark.parametrize(
    ("position", "parts"),
    [(7, ("SELECT ", "name", " FROM t")), (0, ("", "SELECT", " name FROM t")), (18, ("SELECT name FROM t", "␣", ""))],
)
def test_the_word_at_a_position_is_marked(position, parts):
    found = views.MarkedText.at("SELECT name FROM t", position)
    assert (found.before, found.mark, found.after) == parts


def test_above_the_limit_the_price_is_confirmed_first(tmp_path):
    folder = Folder(plain(tmp_path / "service"), price="15%")
    ana = folder.browser(folder.ana)
    ledger = folder.ledger
    reply = ana.post("/t/people/ask", {"sql": COUNT, "request": "1"})
    assert "This could cost up to 15 % of the budget" in text(reply)
    assert ledger.store.count("charge") == 0
    agreed = re.search(r'name="max_price" value="([^"]+)"', reply.text)[1]
    reply = ana.post("/t/people/ask", {"sql": COUNT, "request": "1", "max_price": agreed})
    assert "Paid: 15 % of the budget" in text(reply)
    assert ledger.store.count("charge") == 1
    folder.app.state.service.close()


def test_what_does_not_fit_is_refused_with_the_reason(tmp_path):
    folder = Folder(plain(tmp_path / "service"), price="9%")
    ana = folder.browser(folder.ana)
    for place in range(2):
        ana.post(
            "/t/people/ask", {"sql": f"SELECT COUNT(*) FROM people WHERE age >= {30 + place * 20}", "request": "1"}
        )
    reply = ana.post("/t/people/ask", {"sql": BY_TOWN, "request": "1"})
    assert "Does not fit" in text(reply)
    assert "7 % left for you" in text(reply)
    folder.app.state.service.close()


def test_dates_make_a_line_and_numbers_too():
    table = dp.Schema(
        "people",
        dp.Domain(
            age=dp.Number(0, 99, step=1),
            day=dp.Date("2026-01-01", "2026-12-31", step="day"),
            town=dp.Category(["a", "b"]),
        ),
    )
    rows = {"age": [place % 99 for place in range(500)], "day": ["2026-03-04"] * 500, "town": ["a", "b"] * 250}
    people = dp.Table(rows, table.domain, name="people")
    session = dp.Session(people, dp.Ledger.in_memory(dp.Budget(1, 1e-6), people))
    kinds = {}
    for question in (
        "SELECT DATE_TRUNC('month', day), COUNT(*) FROM people GROUP BY DATE_TRUNC('month', day)",
        "SELECT age, COUNT(*) FROM people GROUP BY age",
        "SELECT town, COUNT(*) FROM people GROUP BY town",
        "SELECT town, age, COUNT(*) FROM people GROUP BY town, age",
    ):
        plots = views.answer_plots(session.ask(question))
        kinds[question] = [plot.kind for plot in plots]
        for plot in plots:
            data = json.loads(plot.data)
            assert data["x"] == sorted(data["x"])
            assert plot.kind == "bars" or len(data["x"]) == len(data["values"])
    assert list(kinds.values()) == [["days"], ["line"], ["bars"], []]
    assert views.answer_plots(session.ask("SELECT COUNT(*) FROM people WHERE age >= 40")) == []


def test_the_same_question_from_elsewhere_is_quoted(ana):
    sql = "SELECT COUNT(*) FROM people WHERE town = 'north'"
    reply = html.unescape(ana.post("/t/people/ask", {"sql": sql, "request": "1"}).text)
    shell = re.search(r"curl http.*?</pre>", reply, re.DOTALL)[0]
    assert "-d '{\"sql\": \"SELECT COUNT(*) FROM people WHERE town = '\"'\"'north'\"'\"'\"}'" in shell
    assert "session.ask(\"SELECT COUNT(*) FROM people WHERE town = 'north'\")" in reply


def test_history_has_the_own_questions_and_asks_them_again_free(folder, ana):
    ana.post("/t/people/ask", {"sql": COUNT, "request": "1"})
    folder.browser(folder.boris).post("/t/people/ask", {"sql": BY_TOWN, "request": "1"})
    said = text(ana.get("/t/people/history"))
    assert COUNT in said
    assert BY_TOWN not in said
    again = re.search(r'name="sql" value="([^"]+)"><input type="hidden" name="request" value="([^"]+)"', ana.last)
    reply = ana.post("/t/people/ask", {"sql": html.unescape(again[1]), "request": again[2]})
    assert "Free: it was asked before." in text(reply)
    assert folder.ledger.store.count("charge") == 2


def test_what_is_known_is_shown_to_everybody(folder, ana):
    assert "Nothing yet" in text(ana.get("/t/people/known"))
    folder.browser(folder.boris).post("/t/people/ask", {"sql": BY_TOWN, "request": "1"})
    assert "how many rows for each town" in text(ana.get("/t/people/known"))


# Models and made-up rows.


def test_a_model_is_fitted_listed_and_downloaded(folder, ana, tmp_path):
    ana.get("/t/people/models")
    form = {"kind": "mean", "target": "age", "share": "1/10", "request": "m1"}
    assert ana.post("/t/people/models", form).status_code == 303
    said = text(models_of(ana))
    assert "Mean of age" in said
    entry = re.search(r'href="/t/people/models/(\d+)"', ana.last)[1]
    file = ana.get(f"/t/people/models/{entry}")
    assert file.headers["content-disposition"] == 'attachment; filename="mean-age.json"'
    path = tmp_path / "mean.json"
    path.write_text(file.text)
    assert 20 <= dp.load(path).value_ <= 80
    assert folder.browser(folder.boris).get(f"/t/people/models/{entry}").status_code == 404
    ana.get("/t/people/models")
    ana.post("/t/people/models", form)
    models_of(ana)
    assert folder.ledger.store.count("charge") == 1


def test_a_rule_is_learned_from_the_ticked_columns(folder, ana):
    ana.get("/t/people/models")
    form = {"kind": "rule", "target": "town", "positive": "north", "features": ["age"], "k": "1", "share": "1/10"}
    ana.post("/t/people/models", {**form, "request": "m2"})
    said = text(models_of(ana))
    assert "Rule for town" in said
    assert "as a condition of a question" in said


def test_a_model_above_a_tenth_of_the_budget_is_confirmed_first(folder, ana):
    ledger = folder.ledger
    ana.get("/t/people/models")
    form = {"kind": "mean", "target": "age", "share": "1/2", "request": "m3"}
    assert "This costs up to 12.5 % of the budget" in text(ana.post("/t/people/models", form))
    assert ledger.store.count("charge") == 0
    assert ana.post("/t/people/models", {**form, "agreed": "1/10"}).status_code == 200
    assert ledger.store.count("charge") == 0
    assert ana.post("/t/people/models", {**form, "agreed": "1/2"}).status_code == 303
    models_of(ana)
    assert ledger.store.count("charge") == 1


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"kind": "linear", "target": "town"}, "is a category"),
        ({"kind": "magic", "target": "town"}, "ind must be one of"),
        ({"kind": "mean", "target": "nothing"}, "nothing"),
        ({"kind": "mean", "target": "age", "share": "x"}, "share"),
        ({"kind": "mean", "target": "age", "share": "2"}, "This costs up to 50 %"),
        ({"kind": "rule", "target": "town", "k": "-1"}, "K must be"),
    ],
)
def test_a_wrong_model_is_refused_in_words_before_anything_is_spent(folder, ana, form, words):
    ana.get("/t/people/models")
    reply = ana.post("/t/people/models", {"share": "1/10", "request": "w", **form})
    shown = reply if reply.status_code == 200 else models_of(ana)
    assert words in text(shown)
    assert folder.ledger.store.count("charge") == 0


def test_a_key_that_may_only_ask_is_told_so(folder):
    carla = folder.browser(folder.limited)
    assert "may not fit models" in text(carla.get("/t/people/models"))
    assert "may not draw" in text(carla.get("/t/people/known"))
    reply = carla.post("/t/people/synthetic", {"rows": "10", "share": "1/10"})
    assert "may not synth" in text(reply)
    assert folder.ledger.store.count("charge") == 0


def test_made_up_rows_are_free_once_something_is_known_and_never_spend_unasked(folder, ana):
    ledger = folder.ledger
    ana.get("/t/people/known")
    assert "say which share" in text(ana.post("/t/people/synthetic", {"rows": "20", "request": "s0"}))
    assert ledger.store.count("charge") == 0
    digits = ana.post("/t/people/synthetic", {"rows": "20", "share": f"0.0{'3' * 200}", "request": "s0"})
    assert "form is not complete" in text(digits)
    ana.post("/t/people/ask", {"sql": BY_TOWN, "request": "1"})
    reply = ana.post("/t/people/synthetic", {"rows": "20", "request": "s1"})
    assert reply.headers["content-disposition"] == 'attachment; filename="people-made-up.csv"'
    lines = list(csv.reader(reply.text.splitlines()))
    assert lines[0] == ["age", "town", "day"]
    assert len(lines) == 21
    assert ledger.store.count("charge") == 1


# The owner.


def test_the_owner_sees_what_everybody_spent_and_verifies(folder, ana):
    ana.post("/t/people/ask", {"sql": COUNT, "request": "1"})
    olga = folder.browser(folder.olga)
    said = text(olga.get("/owner/t/people"))
    assert re.search(r"ana 25 % 1 % 0\.\d+ 24 %", said)
    assert re.search(r"boris 25 % 0 % 0 25 %", said) or "boris 25 % – 0 25 %" in said
    assert re.search(r"\d+ entries, all sound\.", text(olga.post("/owner/t/people/verify")))
    olga.get("/owner/t/people")
    part = olga.post("/owner/t/people/verify", headers=HTMX)
    assert "<html" not in part.text
    report = olga.get("/v1/tables/people/report")
    assert "The privacy budget of people" in report.text
    assert "script-src" not in report.headers["content-security-policy"]


def test_entries_come_a_page_at_a_time_and_each_has_a_certificate(folder, ana, monkeypatch):
    monkeypatch.setattr("discreet.serve.owner_pages._PAGE", 2)
    for place in range(5):
        ana.get("/t/people")
        ana.post("/t/people/ask", {"sql": f"SELECT COUNT(*) FROM people WHERE age >= {20 + 9 * place}", "request": "1"})
    olga, seen, at = folder.browser(folder.olga), [], "/owner/t/people/entries"
    while at:
        page = olga.get(at).text
        seen += [int(each) for each in re.findall(r'certificates/(\d+)"', page)]
        older = re.search(r'href="([^"]+)">Older', page)
        at = older and html.unescape(older[1])
    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)
    said = text(olga.get(f"/owner/t/people/certificates/{seen[0]}"))
    assert "promises alone epsilon" in said
    assert olga.get("/owner/t/people/certificates/1").status_code in (404, 422)
    assert olga.get(f"/v1/tables/people/certificates/{seen[0]}").json()["entry"] == seen[0]


def test_a_key_is_made_shown_once_and_revoked(folder):
    olga = folder.browser(folder.olga)
    olga.get("/owner/keys")
    page = olga.post("/owner/keys", {"name": "dora", "share": "5%", "may": ["ask", "fit"], "days": "30"})
    secret = re.search(r'id="secret">(dk_[0-9a-f]{8}_[\w-]{43})<', page.text)[1]
    assert secret not in olga.get("/owner/keys").text
    dora = folder.browser(secret)
    assert "5 % left for you" in text(dora.get("/t/people"))
    assert "may not synth" in text(dora.post("/t/people/synthetic", {"rows": "9", "share": "1/10"}))
    olga.get("/owner/keys")
    said = text(olga.post(f"/owner/keys/{secret[3:11]}/revoke"))
    assert "is revoked" in said
    assert dora.get("/t/people").status_code == 303
    held = folder.keys.read()[secret[3:11]]
    assert held.expires is not None
    assert held.may == ("ask", "fit")


@pytest.mark.parametrize(
    "form",
    [
        {"name": "<b>x</b>", "share": "1/4"},
        {"name": "dora", "share": "2"},
        {"name": "dora", "share": "nothing"},
        {"name": "dora", "share": "1/4", "days": "-3"},
        {"name": "dora", "share": "1/4", "may": ["everything"]},
        {"name": "dora", "share": "1/4", "tables": ["others"]},
    ],
)
def test_a_wrong_key_form_makes_no_key(quiet, form):
    olga = quiet.browser(quiet.olga)
    olga.get("/owner/keys")
    reply = olga.post("/owner/keys", form)
    assert 'class="notice bad"' in reply.text
    assert "<b>x</b>" not in reply.text
    assert len(quiet.keys.read()) == 4


# Names and levels of others.


@pytest.fixture
def evil(tmp_path):
    made = Folder(page_folders.evil(tmp_path / "evil"))
    yield made
    assert made.app.state.service.close()


def test_names_and_levels_are_text_on_every_page(evil):
    ana, olga = evil.browser(evil.ana), evil.browser(evil.olga)
    column = '"{}"'.format(EVIL[0].replace('"', '""'))
    sql = f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}"
    pages = [ana.get("/t/people").text]
    pages.append(ana.post("/t/people/price", {"sql": f"SELECT {EVIL[1]} FROM people"}).text)
    pages.append(ana.post("/t/people/ask", {"sql": f"SELECT {EVIL[1]} FROM people", "request": "r"}).text)
    pages.append(ana.post("/t/people/ask", {"sql": sql, "request": EVIL[1]}).text)
    assert "8 groups" in html.unescape(pages[-1])
    ana.get("/t/people/models")
    pages.append(
        ana.post("/t/people/models", {"kind": EVIL[0], "target": EVIL[1], "share": EVIL[1], "q": EVIL[1]}).text
    )
    ana.get("/t/people/models")
    ana.post("/t/people/models", {"kind": "logistic", "target": EVIL[1], "features": [EVIL[0]], "share": "1/10"})
    models_of(ana)
    pages += [ana.get(f"/t/people/{each}").text for each in ("history", "known", "models")]
    assert "Logistic" in pages[-1]
    pages += [olga.get(f"/owner/{each}").text for each in ("t/people", "t/people/entries", "keys")]
    entry = re.search(r"certificates/(\d+)", pages[-2])[1]
    pages.append(olga.get(f"/owner/t/people/certificates/{entry}").text)
    for page in pages:
        assert not re.search(r"<script(?![^>]*\bsrc=)|<img src=x|<b>out|<hx-partial|onerror=alert\(1\)>", page)
        assert page.count("<script") == 3
        assert page.count("</textarea>") <= 1
        assert "49" not in re.findall(r"<code><bdi>(.*?)</bdi></code>", page)


def test_completion_data_survive_their_attribute(evil):
    page = evil.browser(evil.ana).get("/t/people").text
    words = json.loads(html.unescape(re.search(r'data-words="([^"]*)"', page)[1]))
    columns = {each["name"]: each for each in words["tables"][0]["columns"]}
    assert set(columns) == {"age", *EVIL[:2]}
    assert columns[EVIL[0]]["levels"][2] == "'''; DROP TABLE people; --'"
    assert columns[EVIL[1]]["insert"] == '"""><img src=x onerror=alert(1)>"'


def test_every_example_can_be_asked(folder, evil):
    for each in (folder, evil):
        browser = each.browser(each.ana)
        for question in views.examples(each.declared.name, each.declared.domain):
            assert "At most 1 %" in text(browser.post("/t/people/price", {"sql": question})), question


def test_the_access_log_has_no_question(folder, ana):
    ana.post("/t/people/ask", {"sql": COUNT, "request": "1"})
    log = Path(folder.house.folder / "access.jsonl").read_text()
    assert "/t/{name}/ask" in log
    assert "SELECT" not in log


def test_an_entry_beyond_all_entries_is_refused(quiet):
    olga = quiet.browser(quiet.olga)
    assert olga.get("/owner/t/people/entries?before=1").status_code == 200
    assert olga.get("/owner/t/people/entries?before=1" + "0" * 30).status_code == 422


def test_only_a_refusal_that_spent_nothing_says_so():
    assert page_kit.refusal(dp.errors.ParameterError("no"))["unspent"]
    assert not page_kit.refusal(dp.errors.DiscreetError("it failed after it was charged"))["unspent"]
    assert not page_kit.refusal(dp.errors.RequestConflict("it was charged"))["unspent"]

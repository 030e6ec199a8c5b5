"""The pages, clicked through in a real browser; and what they answer to who is no browser."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import residua as rz
from cli.running import run
from residua.service.pages import content
from service.browser import PHONE, Visit, launched
from service.running import Service, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "jinja2")
browsed = pytest.mark.needs("playwright")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go."""
    return tmp_path_factory.mktemp("pages")


@browsed
def test_the_whole_path(service: Service, browser: Any, shots: Path, name: str) -> None:
    """Log in, create, try, spend, be refused, see why; then verify."""
    visit = Visit(browser, service.url)
    page = visit.page
    visit.to("/")
    visit.check(shots / "login.png")
    visit.log_in(service.tokens["admin"])

    page.get_by_role("link", name="New budget").first.click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Filter").select_option("Gaussian residue")
    page.get_by_role("textbox", name="μ (mu)").fill("1")
    visit.check(shots / "create.png")
    page.get_by_role("button", name="Create the budget").click()
    page.get_by_role("heading", name=name).wait_for()
    assert "100 % left now" in _text(page, ".left")
    assert "Details: mu² 1 of 1" in _text(page, ".left")

    page.get_by_label("Query").select_option("Laplace noise")
    page.get_by_role("textbox", name="scale", exact=True).fill("4")
    page.get_by_role("button", name="Try it").click()
    page.get_by_text("It would be admitted").wait_for()
    asked = {"mechanisms": [{"kind": "laplace", "scale": 4.0}]}
    fits = service.http("POST", f"/v1/budgets/{name}/plan", json=asked).json()
    assert f"{fits['how_many']}" in _text(page, "#what-if-result .facts")
    assert service.office.ledger.budget(name).seq == 0, "trying spends nothing"

    page.get_by_role("button", name="Spend it").click()
    page.locator("#answer.good", has_text="admitted: Laplace(scale=4.0").wait_for()
    assert page.evaluate("document.activeElement.id") == "answer"

    scale = page.get_by_role("textbox", name="scale", exact=True)
    assert scale.input_value() == "4", "the form still asks what was asked"
    scale.fill("0.5")
    page.get_by_role("button", name="Try it").click()
    page.get_by_text("It would be refused").wait_for()
    tried = _text(page, "#what-if-result .notice")
    page.get_by_role("button", name="Spend it").click()
    page.locator("#answer.bad", has_text="refused: Laplace(scale=0.5").wait_for()
    why = service.office.ledger.history(name)[-1].body["reason"]
    assert why in _text(page, "#answer"), "the library's own words"
    assert f"would be {why}" in tried, "a try says what would be"
    assert why in _text(page, "[aria-labelledby=history] tbody tr:first-child")
    visit.check(shots / "budget.png")

    page.get_by_role("button", name="Verify the ledger now").click()
    page.locator("[data-poll] .badge.good").wait_for()
    visit.check()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").wait_for()
    visit.to(f"/budgets/{name}")
    assert page.url == f"{service.url}/login?next=%2Fbudgets%2F{name}"
    visit.context.close()


@browsed
def test_curves_are_read_by_pointer_and_by_keys(
    service: Service, browser: Any, shots: Path, name: str
) -> None:
    service.budget(name)
    service.spend(name)
    visit = Visit(browser, service.url, color_scheme="dark")
    visit.log_in(service.tokens["auditor"])
    visit.to(f"/budgets/{name}")
    visit.settled()
    page, slider = visit.page, visit.page.locator(".chart input[type=range]")
    slider.focus()
    page.keyboard.press("Home")
    at_zero = slider.get_attribute("aria-valuetext")
    assert at_zero.startswith("ε 0: capacity 0.38"), at_zero  # 2Φ(1/2) - 1
    box = page.locator(".chart svg[role=img]").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert slider.get_attribute("aria-valuetext") != at_zero
    page.get_by_label("δ on a log scale").check()
    assert "10⁻" in _text(page, ".chart svg[role=img]")
    page.get_by_label("Tradeoff").check()
    assert slider.get_attribute("aria-valuetext").startswith("α ")
    visit.check(shots / "curves-dark.png")
    assert page.get_by_role("button", name="Spend it").count() == 0, "auditors do not spend"
    visit.context.close()


@browsed
def test_the_playground_breaks_the_natural_filter(
    service: Service, browser: Any, shots: Path
) -> None:
    """Without a token: the promise is broken against the natural filter, and kept by the others."""
    visit = Visit(browser, service.url, viewport=PHONE, has_touch=True)
    page = visit.page
    visit.to("/play")
    visit.check(shots / "play-phone-start.png")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip", "first, a way past the menu"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "first", "and then the first choice"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.locator("#played", has_text="You do the same whatever comes out").wait_for()
    page.get_by_role("group", name="1. Ask first").get_by_label("Steady").check()
    for step in ("2.", "3."):
        page.get_by_role("group", name=step).get_by_label("Steady").check()
    page.get_by_text("You do the same whatever comes out").wait_for()
    assert "Kept so far" in _text(page, "#played .verdict")
    page.get_by_role("group", name="2.").get_by_label("Gamble").check()
    page.locator("#played .verdict.bad").wait_for()
    assert "δ = 0.5970 at ε = 1.395, where 0.509 was promised" in _text(page, "#played .verdict")
    label = page.locator(".bars").get_attribute("aria-label")
    natural, residue, basic = map(float, re.findall(r"filter ([\d.]+)", label))
    assert natural > 0.509 >= max(residue, basic)
    assert "exceeds the budget that is left" in _text(page, ".said")
    visit.check(shots / "play-phone.png")
    assert page.url.endswith("/play?first=steady&low=gamble&high=steady")
    page.reload()
    assert "Broken" in _text(page, "#played .verdict")
    visit.context.close()


@browsed
def test_a_phone_and_an_analyst_within_scope(
    service: Service, browser: Any, shots: Path, name: str
) -> None:
    hidden = f"x{name}"
    long = "w" * 60 + name
    for each in (name, hidden, long):
        service.budget(each)
    for key in range(25):
        service.spend(name, key=f"{name}-{key}", mechanism={"kind": "gaussian", "sigma": 40.0})
    body = {"mechanism": {"kind": "gaussian", "sigma": 9.0}}
    service.http("POST", f"/v1/budgets/{name}/reserve", json=body)
    token = service.token("analyst", principal="ana", budgets=[name, long])
    visit = Visit(browser, service.url, viewport=PHONE, color_scheme="dark")
    visit.log_in(token)
    visit.check(shots / "home-phone.png")
    assert page_has(visit, name) and not page_has(visit, hidden)
    visit.page.get_by_role("link", name=name, exact=True).click()
    visit.page.get_by_role("heading", name="Open reservations").wait_for()
    visit.check(shots / "budget-phone.png")
    assert visit.page.get_by_role("button", name="Spend it").count() == 0
    visit.page.get_by_role("link", name="Older").click()
    visit.page.get_by_role("link", name="Newer").wait_for()
    assert "created" in _text(visit.page, "[aria-labelledby=history] tbody tr:last-child")
    assert visit.complaints == []
    visit.to(f"/budgets/{hidden}")
    assert "the token's scope does not include the budget" in _text(visit.page, "main")
    visit.context.close()


@browsed
def test_letting_go_is_asked_twice(service: Service, browser: Any, shots: Path, name: str) -> None:
    """An admin looks at refusals alone, cancels a reservation and retires the budget."""
    service.budget(name)
    service.spend(name)
    service.spend(name, mechanism={"kind": "laplace", "scale": 0.1})
    hold = service.http("POST", f"/v1/budgets/{name}/reserve", json={"mechanism": LAPLACE}).json()
    visit = Visit(browser, service.url, viewport=PHONE)
    page, ledger = visit.page, service.office.ledger
    visit.log_in(service.tokens["admin"])
    visit.to(f"/budgets/{name}")
    page.get_by_role("link", name="Only refusals").click()
    rows = page.locator("[aria-labelledby=history] tbody tr")
    page.locator("[aria-current]", has_text="Only refusals").wait_for()
    assert rows.count() == 1 and "refused" in rows.first.text_content()

    page.get_by_role("link", name="Cancel Laplace").click()
    page.get_by_role("heading", name="Cancel this reservation?").wait_for()
    visit.check(shots / "cancel-phone.png")
    page.get_by_role("link", name="Keep it").click()
    assert [one.id for one in ledger.holds() if name in one.budgets] == [hold["id"]]
    page.get_by_role("link", name="Cancel Laplace").click()
    page.get_by_label("Why").fill("query was withdrawn")
    page.get_by_role("button", name="Cancel the reservation").click()
    page.locator("#answer", has_text="query was withdrawn").wait_for()
    assert not [one for one in ledger.holds() if name in one.budgets]

    page.get_by_role("link", name="Retire this budget").click()
    page.get_by_label("Why").fill("study ended")
    page.get_by_role("button", name="Retire the budget").click()
    page.locator("#answer", has_text="study ended").wait_for()
    visit.check(shots / "retired-phone.png")
    assert ledger.budget(name).retired and "retired" in _text(page, ".left")
    assert page.get_by_role("link", name="Retire this budget").count() == 0
    visit.context.close()


@browsed
def test_without_scripts(service: Service, browser: Any, name: str) -> None:
    service.budget(name)
    visit = Visit(browser, service.url, java_script_enabled=False)
    visit.log_in(service.tokens["analyst"])
    visit.to(f"/budgets/{name}")
    visit.page.get_by_label("Query").select_option("Laplace noise")
    visit.page.locator("[id='laplace.scale']").fill("many")
    visit.page.get_by_role("button", name="Try it").click()
    assert "scale must be a number, got 'many'" in _text(visit.page, "#what-if-result")
    visit.page.locator("[id='laplace.scale']").fill("0.1")
    visit.page.get_by_role("button", name="Try it").click()
    assert "would fit" in _text(visit.page, "#what-if-result")
    visit.context.close()


@browsed
def test_for_development_without_a_token(browser: Any, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor", {}, dev=True) as service:
        visit = Visit(browser, service.url)
        visit.to("/new-budget")
        visit.page.get_by_label("Name").fill("a b/c")
        visit.page.get_by_role("button", name="Create the budget").click()
        assert "name" in _text(visit.page, "[role=alert]")
        visit.complaints.clear()  # The browser says that the answer was a 422.
        visit.page.get_by_label("Name").fill("ünï & <b>")
        visit.page.get_by_role("button", name="Create the budget").click()
        visit.page.get_by_role("heading", name="ünï & <b>").wait_for()
        visit.check()
        visit.context.close()


# -- not a browser ---------------------------------------------------------------------------


def test_the_session_is_a_cookie_that_scripts_and_other_sites_cannot_use(
    service: Service, name: str
) -> None:
    service.budget(name)
    with httpx.Client(base_url=service.url, timeout=60) as visitor:
        wrong = visitor.post("/login", data={"token": "rz_nothing"})
        assert wrong.status_code == 401 and "set-cookie" not in wrong.headers
        assert "invalid token" in wrong.text and "Bearer" not in wrong.text
        token = service.tokens["admin"]
        foreign = {"Origin": "https://elsewhere.example"}
        assert visitor.post("/login", data={"token": token}, headers=foreign).status_code == 403
        for away in ("https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example"):
            found = visitor.post("/login", data={"token": token, "next": away})
            assert found.status_code == 303 and found.headers["location"] == "/"
        cookie = found.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie

        page = visitor.get(f"/budgets/{name}")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "<script>" not in page.text and "style=" not in page.text
        assert token not in page.text
        code = re.search(r'name="form_code" value="(\w+)"', page.text)[1]
        form = {"kind": "laplace", "laplace.scale": "4", "laplace.sensitivity": "1"}
        spend = f"/budgets/{name}/spend"
        assert visitor.post(spend, data=form).status_code == 403, "no code"
        for header in ({"Sec-Fetch-Site": "cross-site"}, foreign, {"Origin": "http://["}):
            sent = visitor.post(spend, data={**form, "form_code": code}, headers=header)
            assert sent.status_code == 403
        assert service.office.ledger.budget(name).seq == 0
        twice = {**form, "form_code": code, "key": f"{name}-k"}
        first, again = visitor.post(spend, data=twice), visitor.post(spend, data=twice)
        assert first.status_code == again.status_code == 303
        assert again.headers["location"].endswith("?record=1&again=1")
        assert service.office.ledger.budget(name).seq == 1, "a form sent twice spends once"
        # The API looks at the header alone.
        assert visitor.get("/v1/budgets").status_code == 401


def test_roles_hold_on_pages_too(service: Service, name: str) -> None:
    service.budget(name)
    form = {"kind": "laplace", "laplace.scale": "4", "laplace.sensitivity": "1"}
    for role in ("analyst", "auditor"):
        with httpx.Client(base_url=service.url, timeout=60) as visitor:
            visitor.post("/login", data={"token": service.tokens[role]})
            page = visitor.get(f"/budgets/{name}")
            code = re.search(r'name="form_code" value="(\w+)"', page.text)[1]
            sent = {**form, "form_code": code}
            assert visitor.post(f"/budgets/{name}/spend", data=sent).status_code == 403
            assert visitor.post("/new-budget", data=sent).status_code == 403
            assert visitor.get("/new-budget").status_code == 403
    assert service.office.ledger.budget(name).seq == 0
    revoked = service.token("analyst")
    with httpx.Client(base_url=service.url, timeout=60) as visitor:
        visitor.cookies.set("residua_session", revoked[:-1] + "!")
        assert visitor.get("/").headers["location"].startswith("/login")


def test_the_list_counts_records_as_the_command_does(tmp_path: Path) -> None:
    with (
        serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service,
        httpx.Client(base_url=service.url, timeout=60) as visitor,
    ):
        service.budget("web")
        visitor.post("/login", data={"token": service.tokens["admin"]})
        assert "; 1 record<" in visitor.get("/").text
        service.spend("web")
        assert "; 2 records<" in visitor.get("/").text
        at = ("--store", service.url, "--token", service.tokens["admin"])
        heading, row = run("budget", "list", *at).splitlines()
        assert row.split()[heading.split().index("records")] == "2"


def test_another_relation_is_a_refusal_on_the_page(service: Service, name: str) -> None:
    service.budget(name)
    query = {"kind": "pure_dp", "eps": 0.01, "relation": "replace-one"}
    with httpx.Client(base_url=service.url, timeout=60) as visitor:
        visitor.post("/login", data={"token": service.tokens["admin"]})
        page = visitor.get(f"/budgets/{name}")
        code = re.search(r'name="form_code" value="(\w+)"', page.text)[1]
        sent = {"kind": "json", "json": json.dumps(query), "form_code": code}
        tried = visitor.post(f"/budgets/{name}/what-if", data=sent)
        assert tried.status_code == 200
        assert "It would be refused" in tried.text and "no amount of noise" in tried.text
        assert visitor.post(f"/budgets/{name}/spend", data=sent).status_code == 303


def test_who_may_let_go(service: Service, name: str) -> None:
    """Engines and admins cancel within their scope, admins alone retire; each with a code."""
    other = f"x{name}"
    for each in (name, other):
        service.budget(each)
    held = [
        service.http("POST", f"/v1/budgets/{each}/reserve", json={"mechanism": LAPLACE}).json()
        for each in (name, other)
    ]
    mine, hidden = (f"/holds/{hold['id']}/cancel" for hold in held)
    retire = f"/budgets/{name}/retire"
    scoped = service.token("engine", budgets=[name])
    for token, cancels in ((service.tokens["analyst"], 403), (service.tokens["auditor"], 403),
                           (scoped, 200)):  # fmt: skip
        with httpx.Client(base_url=service.url, timeout=60) as visitor:
            visitor.post("/login", data={"token": token})
            page = visitor.get(f"/budgets/{name}").text
            sent = {"form_code": re.search(r'name="form_code" value="(\w+)"', page)[1]}
            sent["reason"] = "why not"
            assert visitor.get(mine).status_code == cancels
            assert (mine in page) is (cancels == 200) and retire not in page
            assert visitor.get(retire).status_code == 403
            assert visitor.post(retire, data=sent).status_code == 403
            assert visitor.get(hidden).status_code in (403, 404)
            assert visitor.post(hidden, data=sent).status_code in (403, 404)
            assert visitor.post(mine, data={"reason": "why not"}).status_code == 403, "no code"
            if cancels == 200:
                long = {**sent, "reason": "w" * 1001}
                assert "reason" in visitor.post(mine, data=long).text
                done = visitor.post(mine, data=sent)
                assert done.headers["location"] == f"/budgets/{name}?record=2"
                assert visitor.post(mine, data=sent).status_code == 404
    assert not service.office.ledger.budget(name).retired
    assert service.office.ledger.budget(other).holds == (held[1]["id"],)


def test_refusals_of_long_ago_are_found(
    service: Service, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page after page, each refusal once, whatever lies between them."""
    from residua.service.pages import content

    monkeypatch.setattr(content, "IN_STORE", 7)
    monkeypatch.setattr(content, "MOST_SEEN", 14)
    monkeypatch.setattr(content, "AT_ONCE", 3)
    service.budget(name, filter={"kind": "pure", "eps": 1.0})
    ledger = service.office.ledger.as_principal("engine")
    for place in range(60):
        refused = place % 2 == 0 if place < 20 else place == 50
        ledger.spend(name, rz.mechanisms.PureDp(eps=9.0 if refused else 1e-3), key=f"{place}")
    expected = [one.seq for one in ledger.history(name) if one.admitted is False]
    found: list[int] = []
    before: int | None = None
    for _ in range(60):
        shown = content.refusals(ledger, name, ledger.budget(name).seq, before)
        found += [one["seq"] for one in shown["entries"]]
        if shown["older"] is None:
            break
        before = int(shown["older"].rpartition("=")[2])
    assert found == expected[::-1]


def test_a_browser_is_told_in_a_page_that_there_is_nothing(service: Service) -> None:
    with httpx.Client(base_url=service.url, headers={"Accept": "text/html"}) as visitor:
        for path in ("/nothing", "/budgets", "/static/x/y"):
            found = visitor.get(path)
            assert found.status_code == 404 and found.headers["content-type"].startswith(
                "text/html"
            )
            assert "default-src 'none'" in found.headers["content-security-policy"]
        assert visitor.get("/v1/nothing").headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff=\xff",
        b"kind=laplace&laplace.scale=nan&laplace.sensitivity=1",
        b"kind=laplace&laplace.scale=-inf&laplace.sensitivity=1",
        b"kind=gaussian&gaussian.sigma=1e999",
        b"a=1&" * 1000,
        b"kind=json&json=%5B1%5D",
        b"",
    ],
)
def test_odd_forms_are_told_what_is_wrong(service: Service, name: str, sent: bytes) -> None:
    service.budget(name)
    with httpx.Client(base_url=service.url, timeout=60) as visitor:
        visitor.post("/login", data={"token": service.tokens["admin"]})
        page = visitor.get(f"/budgets/{name}")
        code = re.search(r'name="form_code" value="(\w+)"', page.text)[1]
        body = sent + f"&form_code={code}".encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for verb in ("what-if", "spend"):
            found = visitor.post(f"/budgets/{name}/{verb}", content=body, headers=form)
            assert 400 <= found.status_code < 500 and "notice bad" in found.text


def test_a_union_is_created_from_json_and_says_what_a_query_would_stop(
    service: Service, name: str
) -> None:
    with httpx.Client(base_url=service.url, timeout=60, follow_redirects=True) as visitor:
        visitor.post("/login", data={"token": service.tokens["admin"]})
        page = visitor.get("/new-budget").text
        code = re.search(r'name="form_code" value="(\w+)"', page)[1]
        example = re.search(r'<textarea id="json".*?>(.*?)</textarea>', page, re.S)[1]
        form = {"form_code": code, "name": name, "kind": "json", "json": html.unescape(example)}
        made = visitor.post("/new-budget", data=form)
        assert made.status_code == 200 and "UnionFilter" in made.text
        sent = {"form_code": code, "kind": "gaussian", "gaussian.sigma": "40"}
        sent |= {"gaussian.sensitivity": "1", "n": "1"}
        found = visitor.post(f"/budgets/{name}/what-if", data=sent)
        assert found.status_code == 200 and "and stops pure" in found.text


LAPLACE = {"kind": "laplace", "scale": 4.0, "sensitivity": 1.0}
FILTERS: list[dict[str, Any]] = [
    {"kind": "pure", "eps": 1.0},
    {"kind": "basic", "eps": 1.0, "delta": 1e-6},
    {"kind": "renyi", "alpha": 8.0, "rho": 0.5},
    {"kind": "renyi_curve", "curve": [[2.0, 0.2], [8.0, 0.5]]},
    {"kind": "zcdp", "rho": 0.5},
    {"kind": "approximate_zcdp", "eps": 2.0, "delta": 1e-6},
    {"kind": "gdp", "mu": 1.0},
    {"kind": "gdp_residue", "mu": 1.0},
    {"kind": "approximate_gdp_residue", "mu": 1.0, "delta": 1e-6},
    {"kind": "renyi_commit", "eps": 1.0, "delta": 1e-6},
    {"kind": "plan", "eps": 1.0, "delta": 1e-6, "plan": [LAPLACE, LAPLACE]},
    {"kind": "menu", "eps": 1.0, "delta": 1e-6, "menu": [LAPLACE]},
    {"kind": "auto", "eps": 1.0, "delta": 1e-6},
    {"kind": "union", "filters": [{"kind": "pure", "eps": 1.0}, {"kind": "gdp", "mu": 0.2}]},
    {"kind": "natural", "budget": {"kind": "pure_dp", "eps": 1.0}, "rounds": None,
     "catalogue": None},
]  # fmt: skip


@pytest.mark.parametrize("filter", FILTERS, ids=lambda one: one["kind"])
def test_every_filter_has_words_and_a_gauge_that_falls(
    service: Service, name: str, filter: dict[str, Any]
) -> None:
    service.budget(name, filter=filter)
    ledger = service.office.ledger
    budget = ledger.budget(name)
    before = content.left(budget, budget.balance)
    assert service.spend(name, mechanism=LAPLACE).json()["admitted"]
    budget = ledger.budget(name)
    after = content.left(budget, budget.balance)
    assert after["details"] != before["details"] or filter["kind"] in ("menu", "natural")
    assert after["text"] != before["text"]
    assert before["share"] == 1.0 > after["share"] > 0.0
    assert after["text"].startswith(f"{after['percent_words']} left; ")


def test_every_strategy_of_the_game_is_kept_by_the_other_filters() -> None:
    """All 27, exactly; the natural filter's worst is that of `natural_cost`."""
    from residua.service.pages import playground as game

    plans = [game.Plan(*moves) for moves in itertools.product(game.MOVES, repeat=3)]
    for plan in plans:
        for filter in ("residue", "basic"):
            play_plan = game.play_plan(filter, plan)
            assert play_plan.strategy.stops or play_plan.strategy.pld() <= game.BUDGET
    best = max((game.play_plan("natural", plan) for plan in plans), key=lambda one: one.below)
    assert best.breaks and best.below == pytest.approx(game.DELTA + game.worst().violation)


def test_the_playground_says_what_asking_anything_reaches(service: Service) -> None:
    """Worked out for the page, without a token: at least so many times the promise."""
    from residua.adversary.strongest import natural_attack

    shown = re.sub(r"\s+", " ", httpx.get(f"{service.url}/play").text)
    found = re.findall(r"<strong>([\d.]+) times</strong> that δ with (\d+) questions", shown)
    assert [int(rounds) for _, rounds in found] == [2, 5, 10]
    for times, rounds in found:
        ratio = natural_attack(rz.approximate_dp(1.0, 1e-6), int(rounds)).ratio
        assert ratio - 0.1 < float(times) <= ratio


def page_has(visit: Visit, name: str) -> bool:
    return visit.page.get_by_role("link", name=name, exact=True).count() == 1


def _text(page: Any, where: str) -> str:
    return re.sub(r"\s+", " ", page.locator(where).first.text_content())

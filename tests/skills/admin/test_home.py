"""The home page: every figure and every day leads to a list that holds exactly what was counted."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import override_settings
from django.utils import timezone

from conversations.models import Session
from mirix.days import Span, start_of, today
from mirix.tenants.models import Membership
from skills.admin import figures
from skills.admin.charts import Series, chart
from skills.admin.first_steps import PLACEHOLDER
from skills.admin.scope import MAX_TOGETHER
from skills.models import DistillationAttempt, ProposerCall, SkillExperience
from skills.selectors import days as days_selector
from skills.selectors.days import Amount
from tests.factories import (
    make_attempt,
    make_client,
    make_experience,
    make_intake,
    make_key,
    make_member,
    make_organization,
    make_owner,
    make_proposal,
    make_proposer_call,
    make_run,
    make_search,
    make_session,
    make_skill,
    make_superuser,
)
from tests.mirix.admin.test_pages import as_user

pytestmark = pytest.mark.django_db
HOME = "/admin/"
HOSTILE = '"><img src=x onerror=alert(1)>'
A_FIGURE = re.compile(r'href="([^"]+)" data-figure="([^"]+)"')
A_DAY = re.compile(r'href="([^"]+)" data-day="([^"]+)">([\d,]+\+?)<')


def figures_of(text: str) -> dict[str, str]:
    """Return the addresses of a home page by the names of its figures."""
    return {key: html.unescape(url) for url, key in A_FIGURE.findall(text)}


def put_at(row: Any, moment: datetime) -> None:
    type(row).objects.filter(pk=row.pk).update(created_at=moment)


def ago(days: int) -> datetime:
    """Return noon of a day in the past, by the days that the page has."""
    return start_of(today() - timedelta(days=days)) + timedelta(hours=12)


def populate(owner) -> None:
    """Give an owner something of everything, on several days."""
    other = make_owner(owner.organization)
    session = make_session(owner, [{"role": "user", "content": "No, use the other card."}])
    for state, number in (("open", 2), ("distilled", 3), ("dead", 1)):
        for _ in range(number):
            make_session(owner, state=state)
    for days, kind, number in ((0, "worth_learning", 2), (1, "worth_avoiding", 3), (29, "worth_learning", 1)):
        for _ in range(number):
            put_at(make_experience(owner, session, experience_type=kind), ago(days))
    put_at(make_experience(owner, session), ago(30))  # a day too old
    make_experience(owner, session, experience_type="worth_avoiding", quarantined=True)
    run = make_run(owner)
    put_at(make_run(owner, state="failed"), ago(3))
    put_at(make_run(owner, state="failed"), ago(31))
    for days, prompt, answer in ((0, 1_000, 20), (2, 300, 4), (2, 0, 0)):
        put_at(make_attempt(run, session, prompt_tokens=prompt, completion_tokens=answer), ago(days))
    put_at(make_proposer_call(run, prompt_tokens=700, completion_tokens=7), ago(2))
    make_proposal(owner, risk_flags=["new_address", "credential"])
    make_proposal(other, risk_flags=["new_address"])
    make_proposal(owner)
    loved, liked, _unknown = make_skill(owner), make_skill(owner), make_skill(owner)
    make_skill(owner, status="archived")
    for days, skills, degraded in ((0, [loved, liked], ""), (5, [loved], "no endpoint"), (5, [], "")):
        put_at(make_search(owner, skills, degraded=degraded), ago(days))
    put_at(make_search(owner, [loved], source="admin"), ago(1))
    make_intake(owner, state="failed")
    make_intake(owner, state="partial")


EXPECTED = {
    "waiting": "3",
    "some": "2",
    "none": "1",
    "risk-new_address": "2",
    "risk-credential": "1",
    "dead": "1",
    "intake-failed": "1",
    "intake-partial": "1",
    "quarantined": "1",
    "runs-failed": "1",
    "sessions-open": "2",
    "sessions-sealed": "1",
    "sessions-distilled": "3",
    "sessions-dead": "1",
    "active": "3",
    "never": "1",
    "experiences-learn": "3",
    "experiences-avoid": "4",
    "tokens-learn": "1,324",
    "tokens-second": "707",
    "searches-learn": "3",
    "searches-avoid": "1",
    "most-1": "2",
    "most-2": "1",
}


def shown(answer) -> dict[str, str]:
    """Return what a home page says of each figure, in its own words."""
    context = answer.context
    waiting = context["waiting"]
    lines = [waiting.total, *waiting.pair, *waiting.risks, *context["stuck"], *context["sessions"]]
    found = {figure.key: str(figure.amount) for figure in [*lines, *context["skills"]]}
    for each in context["charts"]:
        found |= {f"{each.key}-{entry.tone}": str(entry.total) for entry in each.entries}
    return found | {f"most-{n}": str(each["times"]) for n, each in enumerate(context["most"], start=1)}


def behind(browser, url: str) -> list[Any]:
    """Return the rows of the list that a figure leads to."""
    answer = browser.get(url)
    assert answer.status_code == 200, url
    changelist = answer.context["cl"]
    assert changelist.result_count == len(changelist.result_list)
    return list(changelist.result_list)


def measure(rows: list[Any]) -> str:
    """Return what a figure says of these rows: how many, or the tokens in them."""
    if rows and isinstance(rows[0], DistillationAttempt | ProposerCall):
        return f"{sum(row.prompt_tokens + row.completion_tokens for row in rows):,}"
    return str(len(rows))


@pytest.mark.parametrize("who", ["member", "member of two", "superuser who chose"])
def test_every_figure_leads_to_what_it_counts(owner, stranger, who):
    populate(owner)
    populate(stranger)
    user = make_superuser() if "superuser" in who else make_member(owner.organization)
    if who == "member of two":
        Membership.objects.create(user=user, organization=stranger.organization, role="reviewer")
    browser = as_user(user)
    is_one = who in ("member", "superuser who chose")
    answer = browser.get(HOME + (f"?organization={owner.organization.pk}" if "chose" in who else ""))
    links, said = figures_of(answer.content.decode()), shown(answer)
    assert set(links) == set(said)
    if is_one:
        assert said == EXPECTED
    else:
        assert (said["waiting"], said["experiences-avoid"], said["tokens-second"]) == ("6", "8", "1,414")
    for key, url in links.items():
        assert measure(behind(browser, url)) == said[key], (key, url)


def test_every_day_leads_to_what_it_counts(owner, stranger):
    populate(owner)
    populate(stranger)
    browser = as_user(make_member(owner.organization))
    found = A_DAY.findall(browser.get(HOME).content.decode())
    numbers = [number for _, _, number in found]
    # Experiences today, yesterday, 29 days ago; tokens; searches today, yesterday (in the admin), 5 days ago.
    assert numbers == ["2", "1", "3", "1", "1,020", "304", "707", "1", "1", "1", "1"]
    for url, day, number in found:
        rows = behind(browser, html.unescape(url))
        assert measure(rows) == number, url
        assert {timezone.localtime(row.created_at).date() for row in rows} == {date.fromisoformat(day)}


def test_a_bar_says_in_words_what_it_counts_and_leads_there(owner):
    make_experience(owner)
    text = as_user(make_member(owner.organization)).get(HOME).content.decode()
    here = f"/admin/skills/skillexperience/?experience_type__exact=worth_learning&amp;day={today()}"
    words = f"{today():%-d %B}: 1 worth learning"
    assert f'<a href="{here}" tabindex="-1" aria-label="{words}"><title>{words}</title><rect' in text
    assert " style=" not in text[text.index('id="content-main"') :]


def test_a_chart_draws_a_day_as_high_as_it_is_beside_the_greatest():
    span = Span(first=date(2026, 5, 1), last=date(2026, 5, 3))
    days = list(span)
    series = [
        Series(label=name, tone=name, days=dict(zip(days, amounts, strict=True)), link=str)
        for name, amounts in {
            "a": [Amount(number=30), Amount(), Amount(number=60)],
            "b": [Amount(number=10), Amount(), Amount(number=40, is_least=True)],
        }.items()
    ]
    found = chart(key="k", title="T", noun="n", span=span, series=series)
    assert [(piece.x, piece.y, piece.width, piece.height) for piece in found.pieces] == [
        (14.0, 70.0, 72.0, 30.0),
        (14.0, 60.0, 72.0, 10.0),
        (214.0, 40.0, 72.0, 60.0),
        (214.0, 0.0, 72.0, 40.0),
    ]
    assert str(found.top) == "100+"
    assert [str(entry.total) for entry in found.entries] == ["90", "50+"]
    assert [row.day.day for row in found.rows] == [3, 1]
    assert found.quiet_days == 1
    assert found.rows[0].cells[1] == (Amount(number=40, is_least=True), "2026-05-03")


def test_it_counts_no_further_than_it_tells(owner, monkeypatch):
    monkeypatch.setattr(figures, "MAX_FIGURE", 1)
    for _ in range(3):
        make_session(owner, state="dead")
    browser = as_user(make_member(owner.organization))
    said = shown(browser.get(HOME))
    assert (said["sessions-dead"], said["sessions-open"]) == ("1+", "0")


def test_a_day_of_more_rows_than_are_read_says_so(owner, monkeypatch):
    for _ in range(3):
        make_experience(owner)
    few = days_selector.BY_DAY.replace("10001", "3").replace("10000", "2")
    monkeypatch.setattr(days_selector, "BY_DAY", few)
    span = Span.of(today())
    learned = days_selector.by_day(organizations=[owner.organization.pk], span=span)["learn"]
    assert str(learned[today()]) == "2+"


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_days_are_those_of_the_zone_and_lists_have_the_same(owner, zone):
    session = make_session(owner)
    browser = as_user(make_member(owner.organization))
    with override_settings(TIME_ZONE=zone):
        day = today()
        for moment in (start_of(day), start_of(day) - timedelta(seconds=1)):
            put_at(make_experience(owner, session, turn_seq=None), moment)
        text = browser.get(HOME).content.decode()
        found = [(html.unescape(url), on, number) for url, on, number in A_DAY.findall(text)]
        assert [(on, number) for _, on, number in found] == [
            (str(day), "1"),
            (str(day - timedelta(days=1)), "1"),
        ]
        assert [len(behind(browser, url)) for url, _, _ in found] == [1, 1]


def test_days_when_the_clock_is_changed_have_their_length():
    with override_settings(TIME_ZONE="Europe/Berlin"):
        spring, autumn = (Span.of(day).moments for day in (date(2026, 3, 29), date(2026, 10, 25)))
        lengths = [(end.timestamp() - start.timestamp()) / 3600 for start, end in (spring, autumn)]
    assert lengths == [23, 25]


@pytest.mark.parametrize(
    "text", ["", "today", "2026-13-01", "2026-05-02..2026-05-01", "0001-01-01..9999-12-31", "9999-12-31"]
)
def test_what_is_no_day_narrows_no_list(owner, text):
    assert Span.read(text) is None
    make_experience(owner)
    browser = as_user(make_member(owner.organization))
    assert len(behind(browser, f"/admin/skills/skillexperience/?day={text}")) == 1


# ---- Whose figures ---------------------------------------------------------------------------------------


def test_a_member_of_several_chooses_one(owner, stranger):
    make_session(owner, state="dead")
    make_session(stranger, state="dead")
    user = make_member(owner.organization)
    Membership.objects.create(user=user, organization=stranger.organization, role="reviewer")
    browser = as_user(user)
    assert shown(browser.get(HOME))["dead"] == "2"
    one = browser.get(HOME, {"organization": owner.organization.pk})
    assert shown(one)["dead"] == "1"
    assert f'value="{owner.organization.pk}" selected' in one.content.decode()
    query = parse_qs(urlsplit(figures_of(one.content.decode())["dead"]).query)
    assert query == {"state__exact": ["dead"], "organization": [owner.organization.pk]}


def test_one_who_has_but_one_organization_has_nothing_to_choose(owner):
    assert "<select" not in as_user(make_member(owner.organization)).get(HOME).content.decode()


def test_an_organization_of_others_is_as_one_that_is_not_there(owner, stranger):
    make_session(stranger, state="dead", session_id="of-a-stranger")
    browser = as_user(make_member(owner.organization))
    foreign = browser.get(HOME, {"organization": stranger.organization.pk})
    missing = browser.get(HOME, {"organization": "org-nothing"})
    for answer in (foreign, missing):
        assert shown(answer)["dead"] == "0"
        assert "no such organization among yours" in answer.content.decode()
        assert stranger.organization.name not in answer.content.decode()


def test_a_member_of_no_organization_is_told_so_and_sees_no_figure(owner):
    populate(owner)
    user = make_member(owner.organization)
    Membership.objects.all().delete()
    answer = as_user(user).get(HOME)
    assert answer.status_code == 200
    assert "You are a member of no organization." in answer.content.decode()
    assert "data-figure" not in answer.content.decode()


def test_of_very_many_organizations_days_are_told_of_the_one_that_is_chosen(owner):
    populate(owner)
    for _ in range(MAX_TOGETHER):
        make_organization()
    browser = as_user(make_superuser())
    answer = browser.get(HOME)
    assert answer.context["charts"] == []
    assert shown(answer)["waiting"] == "3"
    assert "Choose one to see its days" in answer.content.decode()
    assert shown(browser.get(HOME, {"organization": owner.organization.pk})) == EXPECTED


def test_of_very_many_organizations_the_list_of_what_nobody_gets_says_that_one_is_to_be_chosen(owner):
    skill = make_skill(owner)
    for _ in range(MAX_TOGETHER):
        make_organization()
    browser = as_user(make_superuser())
    never = {"use": "never"}
    answer = browser.get("/admin/skills/skill/", never)
    assert list(answer.context["cl"].result_list) == []
    assert "too many to tell together what no search returned" in answer.content.decode()
    chosen = browser.get("/admin/skills/skill/", never | {"organization": owner.organization.pk})
    assert list(chosen.context["cl"].result_list) == [skill]
    assert "too many to tell" not in chosen.content.decode()
    assert "too many to tell" not in browser.get("/admin/skills/skill/").content.decode()


def test_next_to_decide_is_what_weighs_most_of_all_that_waits(owner):
    rows = [make_proposal(owner) for _ in range(8)]
    for weight, row in enumerate(rows):  # the latest weighs most
        type(row).objects.filter(pk=row.pk).update(priority=weight / 10)
    queue = as_user(make_superuser()).get(HOME).context["queue"]
    assert queue == rows[:1:-1]


def test_hostile_names_are_text(owner):
    organization = make_organization(HOSTILE)
    mine = make_owner(organization, HOSTILE)
    make_search(mine, [make_skill(mine)])
    make_session(mine)
    text = as_user(make_superuser()).get(HOME).content.decode()
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text


# ---- What to do next -------------------------------------------------------------------------------------

STEP = re.compile(r'<textarea[^>]*id="step-(\w+)"[^>]*>([^<]*)</textarea>')


def steps_of(answer) -> dict[str, str]:
    return {name: html.unescape(text) for name, text in STEP.findall(answer.content.decode())}


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("administrator", 'in its place, <a href="/admin/tenants/apikey/add/">made here</a>.'),
        ("superuser", 'in its place, <a href="/admin/tenants/apikey/add/">made here</a>.'),
        ("operator", "Administrators make keys; ask <bdi>ada</bdi>."),
        ("reviewer", "Administrators make keys; ask <bdi>ada</bdi>."),
    ],
)
def test_the_key_is_a_placeholder_and_says_where_one_comes_from(owner, role, words):
    make_member(owner.organization, "administrator", username="ada")
    user = make_superuser() if role == "superuser" else make_member(owner.organization, role)
    answer = as_user(user).get(HOME)
    assert words in answer.content.decode()
    assert steps_of(answer)["send"].startswith(f"KEY='{PLACEHOLDER}'\n")


def test_without_an_administrator_it_names_who_runs_the_installation(owner):
    text = as_user(make_member(owner.organization)).get(HOME).content.decode()
    assert "Administrators make keys; ask whoever runs this installation." in text


def test_an_end_user_with_a_hostile_id_breaks_out_of_no_command(owner):
    mine = make_owner(owner.organization, "x' ; touch /tmp/owned #\"$(id)`id`")
    make_session(mine)
    steps = steps_of(as_user(make_member(owner.organization)).get(HOME))
    assert set(steps) == {"dream", "ask"}
    words = shlex.split(steps["dream"])
    assert words[:4] == [f"KEY={PLACEHOLDER}", "curl", "-sS", "-X"]
    assert parse_qs(urlsplit(words[5]).query) == {"user_id": [mine.end_user.user_id]}


@pytest.mark.django_db(transaction=True)
def test_the_commands_do_what_they_say(live_server, owner, work, monkeypatch):
    monkeypatch.setattr("skills.api.dream.MAX_WAIT_SECONDS", 0.1)  # no worker runs beside the test
    key = make_key(make_client(owner.organization))
    browser = as_user(make_superuser())
    host = urlsplit(live_server.url).netloc

    def run(name: str) -> str:
        answer = browser.get(HOME, HTTP_HOST=host)
        script = steps_of(answer)[name].replace(PLACEHOLDER, key)
        done = subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with override_settings(ALLOWED_HOSTS=["*"]):
        assert '"status":"processed"' in run("send").replace(": ", ":")
        session = Session.objects.get()
        assert (session.session_id, session.state, session.turn_count) == ("order-4711", "sealed", 4)
        assert set(steps_of(browser.get(HOME, HTTP_HOST=host))) == {"dream", "ask"}
        assert '"run_id"' in run("dream")
        work()
        assert SkillExperience.objects.count() >= 1
        assert '"results"' in run("ask")
        work()
        assert steps_of(browser.get(HOME, HTTP_HOST=host)) == {}

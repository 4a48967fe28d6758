"""Too many wrong passwords of one name from one address: that pair rests, and nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from mirix.tenants.models import AuditEvent
from tests.factories import make_member, make_organization

pytestmark = pytest.mark.django_db
LIMIT = 3
HERE, THERE = "192.0.2.1", "192.0.2.2"


@pytest.fixture(autouse=True)
def _on(settings):
    settings.AXES_ENABLED = True
    settings.AXES_FAILURE_LIMIT = LIMIT
    settings.AXES_COOLOFF_TIME = timedelta(minutes=15)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def member():
    return make_member(make_organization(), username="rita", password="right horse battery")


def token(password: str, username: str = "rita", address: str = HERE, browser: str = "<unknown>"):
    body = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address, HTTP_USER_AGENT=browser).post("/auth/token", body, "application/json")


def login(password: str, username: str = "rita", address: str = HERE):
    body = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address).post("/admin/login/", body)


def test_a_name_rests_at_the_address_that_guesses(member):
    assert [token("wrong").status_code for _ in range(LIMIT)] == [401, 401, 429]
    answer = token("right horse battery")

    assert answer.status_code == 429
    assert 890 <= int(answer["Retry-After"]) <= 900
    assert answer["Content-Type"] == "application/json"
    assert answer.content == b'{"detail":"Too many failed logins; try again later."}'


def test_the_same_name_elsewhere_and_other_names_here_go_on(member):
    other = make_member(make_organization(), username="olaf", password="right horse battery")
    for _ in range(LIMIT):
        token("wrong")

    assert token("right horse battery", address=THERE).status_code == 200
    assert token("right horse battery", username=other.username).status_code == 200


def test_one_site_of_ipv6_is_one_address(member):
    addresses = [f"2001:db8:1:1::{number}" for number in range(1, LIMIT + 1)]

    assert [token("wrong", address=address).status_code for address in addresses] == [401, 401, 429]
    assert login("right horse battery", address="2001:db8:1:1:ffff::1").status_code == 429
    assert token("right horse battery", address="2001:db8:1:2::1").status_code == 200


def test_unknown_names_are_answered_the_same(member):
    known = [token("wrong").content for _ in range(LIMIT + 1)]
    unknown = [token("wrong", username="nobody").content for _ in range(LIMIT + 1)]
    assert known == unknown


def test_the_admin_shows_a_page(member):
    pages = [login("wrong") for _ in range(LIMIT)]

    assert [page.status_code for page in pages] == [200, 200, 429]
    assert 890 <= int(pages[-1]["Retry-After"]) <= 900
    assert "Too many failed logins" in pages[-1].content.decode()
    assert login("right horse battery").status_code == 429
    assert token("right horse battery").status_code == 429, "one count for both doors"
    assert login("right horse battery", address=THERE).status_code == 302


def new_password(browser: Client, old: str):
    passwords = dict.fromkeys(("new_password1", "new_password2"), "Zebra!2993x")
    return browser.post("/admin/password_change/", {"old_password": old, **passwords})


def test_a_new_password_of_ones_own_is_set_and_leaves_a_trail(member):
    browser = Client(REMOTE_ADDR=HERE)
    browser.force_login(member, "django.contrib.auth.backends.ModelBackend")

    assert new_password(browser, "wrong").status_code == 200
    assert new_password(browser, "right horse battery").status_code == 302
    assert browser.get("/admin/").status_code == 200, "the session goes on"
    member.refresh_from_db()
    assert member.check_password("Zebra!2993x")
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_name) == ("login.password_set", "rita")
    assert event.organization == member.memberships.get().organization


def test_a_good_login_clears_the_count(member):
    for _ in range(3):
        assert [token("wrong").status_code for _ in range(LIMIT - 1)] == [401, 401]
        assert token("right horse battery").status_code == 200


def test_the_rest_ends(member, time_machine_at):
    for _ in range(LIMIT):
        token("wrong")
    time_machine_at(timedelta(minutes=16))
    assert token("right horse battery").status_code == 200


def test_trying_while_it_rests_does_not_make_it_longer(member, time_machine_at):
    for _ in range(LIMIT):
        token("wrong")
    time_machine_at(timedelta(minutes=14))
    assert token("wrong").status_code == 429
    time_machine_at(timedelta(minutes=16))
    assert token("right horse battery").status_code == 200


def test_the_answer_says_how_long_it_still_rests(member, time_machine):
    start = timezone.now()
    time_machine.move_to(start, tick=False)
    for _ in range(LIMIT):
        answer = token("wrong")
    assert answer["Retry-After"] == "900"

    time_machine.move_to(start + timedelta(minutes=14, seconds=30), tick=False)
    for try_again in (token, login):
        assert try_again("wrong")["Retry-After"] == "30"
        assert try_again("right horse battery")["Retry-After"] == "30"


def test_it_rests_until_the_failures_that_count_are_too_few(member, time_machine):
    start = timezone.now()
    for minute, browser in ((0, "one"), (5, "two"), (6, "two")):
        time_machine.move_to(start + timedelta(minutes=minute), tick=False)
        answer = token("wrong", browser=browser)
    assert (answer.status_code, answer["Retry-After"]) == (429, str(9 * 60))

    time_machine.move_to(start + timedelta(minutes=15, seconds=1), tick=False)
    assert token("right horse battery").status_code == 200


@pytest.fixture
def time_machine_at():
    """Travels to some time from now."""
    import time_machine

    began = timezone.now()
    travels = []

    def travel(delta: timedelta) -> None:
        journey = time_machine.travel(began + delta, tick=True)
        journey.start()
        travels.append(journey)

    yield travel
    for journey in reversed(travels):
        journey.stop()


def test_no_password_is_stored(member):
    from axes.models import AccessAttempt

    login("guess of a password")
    token("guess of a password")
    rows = list(AccessAttempt.objects.values())
    assert len(rows) == 1
    assert "guess of a password" not in str(rows)


class TestOnesOwnPassword:
    """Who took over a session may not guess the password that belongs to it."""

    @pytest.fixture
    def browser(self, member):
        browser = Client(REMOTE_ADDR=HERE)
        browser.force_login(member, backend="django.contrib.auth.backends.ModelBackend")
        return browser

    def change(self, browser: Client, old: str):
        new = "a new horse battery"
        body = {"old_password": old, "new_password1": new, "new_password2": new}
        return browser.post("/admin/password_change/", body)

    def test_wrong_tries_count_as_those_of_a_login(self, member, browser):
        answers = [self.change(browser, "wrong") for _ in range(LIMIT)]

        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert "Your old password was entered incorrectly" in answers[0].content.decode()
        assert "Too many failed logins" in answers[-1].content.decode()
        assert self.change(browser, "right horse battery").status_code == 429
        assert token("right horse battery").status_code == 429, "one count for all doors"
        member.refresh_from_db()
        assert member.check_password("right horse battery")

    def test_the_right_one_changes_it(self, member, browser):
        answer = self.change(browser, "right horse battery")

        assert (answer.status_code, answer["Location"]) == (302, "/admin/password_change/done/")
        assert browser.get("/admin/password_change/done/").status_code == 200
        member.refresh_from_db()
        assert member.check_password("a new horse battery")

    def test_no_password_is_stored(self, member, browser):
        from axes.models import AccessAttempt

        self.change(browser, "guess of a password")

        row = str(AccessAttempt.objects.values().get())
        assert "guess of a password" not in row
        assert "a new horse battery" not in row

"""The whole path on real sessions: sent over the API, dreamt over, decided in the browser, found again.

Every door is a real one: the client over HTTP, a command, the forms and keys of the admin, the API again.
What a reviewer of another organization gets of it is looked at in the end.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from django.contrib.admin import site
from django.core.management import call_command
from playwright.sync_api import Locator, expect

from conversations.models import Session
from mirix.client import Mirix
from mirix.tenants.models import Client, Organization
from skills.models import ReviewDecision, Skill, SkillRevision
from tests.browser.conftest import ROOT, OpenScreen, Screen, path_of
from tests.data import records
from tests.factories import make_client, make_key, make_member, make_organization
from tests.mirix.admin.test_pages import changelist

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "/admin/skills/skillrevision/"
PASSWORD = "a long pass phrase"
QUESTION = "What can I do when the gift card balance is not enough to change a flight?"
FLIGHTS = "update-reservation-flights"
MOMENT = 1_600
"""Milliseconds after which a key may decide; the clock of the pages is ours, so that nobody waits for it."""
TWICE = 500
"""Milliseconds between the two presses that something to watch asks for."""


def work_of_desks() -> dict[str, list[dict[str, Any]]]:
    """Return real sessions by end user: an airline's desk, coding agents, and the samples twice."""
    samples = records(str(ROOT / "skills" / "samples" / "sessions.jsonl"))
    return {
        "airline-desk": records("traj/tau_airline_dev.jsonl"),
        "coding-agent": records("traj/sweagent_toolcalls_raw.jsonl"),
        "morning-desk": samples,
        "evening-desk": samples,
    }


def send(url: str, client: Client) -> None:
    """Hand all of it over as an agent does, with a key, and close each session."""
    with Mirix(url, make_key(client)) as mirix:
        for user, sessions in work_of_desks().items():
            for session in sessions:
                name = re.sub(r"\W", "-", session["session_id"])[:64]
                mirix.add_sync(session["messages"], session_id=name, user_id=user)
                mirix.close_session(name, user_id=user)


def dream() -> None:
    """Run twice: what one run has no budget for, the next one proposes."""
    for user in [*work_of_desks()] * 2:
        call_command("auto_dream", organization="demo", user=user, last_n_sessions=50)


class Reviewer:
    """Somebody at the queue; every address that they come by is remembered."""

    def __init__(self, here: Screen) -> None:
        self.here, self.page, self.keys = here, here.page, here.page.keyboard
        self.been: set[str] = set()
        self.page.on("framenavigated", lambda frame: self.been.add(frame.url))
        self.page.clock.install()

    def log_in(self, name: str) -> None:
        self.here.open("/admin/")
        assert path_of(self.page.url) == "/admin/login/"
        for password in ("something else", PASSWORD):
            self.page.get_by_label("Username").fill(name)
            self.page.get_by_label("Password").fill(password)
            self.press("Log in")
            if password != PASSWORD:
                self.told("Please enter the correct")
                self.here.keep("path-login")
        assert path_of(self.page.url) == "/admin/"

    def press(self, label: str) -> None:
        """Click a button that leads on."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=label).click()

    def proposal(self) -> SkillRevision:
        """Return the one on the screen."""
        return SkillRevision.objects.get(pk=path_of(self.page.url).split("/")[4])

    def told(self, text: str) -> None:
        expect(self.page.get_by_text(text)).to_be_visible()

    def read(self) -> SkillRevision:
        """Have the page in sight until keys may decide."""
        self.page.clock.run_for(MOMENT)
        expect(self.page.locator(".mx-btn--arming")).to_have_count(0)
        return self.proposal()

    # ---- By keys alone -----------------------------------------------------------------------------

    def skip(self, key: str = "j") -> SkillRevision:
        with self.page.expect_navigation():
            self.keys.press(key)
        return self.proposal()

    def approve(self) -> SkillRevision:
        revision = self.read()
        if self.page.locator("[data-key=a][data-confirm]").count():
            self.keys.press("a")
            expect(self.page.get_by_role("status")).to_contain_text("Press a once more")
            self.page.clock.run_for(TWICE)
        with self.page.expect_navigation():
            self.keys.press("a")
        self.told(f"Published {revision.name} 0.1.0.")
        return revision

    def undo(self) -> None:
        self.page.clock.run_for(MOMENT)
        with self.page.expect_navigation():
            self.keys.press("u")
        self.told("is archived")

    def reject(self, words: str = "") -> SkillRevision:
        revision = self.read()
        self.keys.press("r")
        self.keys.press("ArrowDown")
        if words:
            self.keys.press("Tab")
            self.keys.type(words)
            self.keys.press("Tab")
        with self.page.expect_navigation():
            self.keys.press("Enter")
        self.told(f"Rejected {revision.name}.")
        return revision

    def edit_and_approve(self, addition: str) -> SkillRevision:
        revision = self.read()
        with self.page.expect_navigation():
            self.keys.press("e")
        while not self.has_focus(self.page.get_by_label("Instructions")):
            self.keys.press("Tab")
        self.keys.press("Control+End")
        self.keys.type(f"\n{addition}")
        while not self.has_focus(self.page.get_by_role("button", name="Publish")):
            self.keys.press("Tab")
        with self.page.expect_navigation():
            self.keys.press("Enter")
        self.told(f"Published {revision.name} 0.1.0.")
        return revision

    def has_focus(self, place: Locator) -> bool:
        return place.evaluate("element => element === document.activeElement")


@pytest.fixture
def demo(live_server, capsys) -> Organization:
    """The organization, whose agents have worked and whose proposals wait."""
    organization = make_organization("demo")
    send(live_server.url, make_client(organization))
    dream()
    capsys.readouterr()
    assert set(Session.objects.values_list("state", flat=True)) == {"distilled"}
    return organization


def test_from_real_sessions_over_twenty_decisions_to_what_agents_find(demo, live_server, screen: OpenScreen):
    make_member(demo, "reviewer", "rita", password=PASSWORD)
    assert SkillRevision.objects.filter(state="proposed").count() >= 20
    rita = Reviewer(screen())
    rita.log_in("rita")
    rita.here.keep_in_every_look("path-home")

    by_mouse(rita)
    edited = by_keys(rita)
    many_at_once(rita)
    beside_another(rita, screen(make_member(demo, "reviewer", "bob")))
    decided = ReviewDecision.objects.filter(revision__action="create")
    assert Counter(decided.values_list("decision", flat=True)) == {"approve": 14, "reject": 6}

    roll_back(rita, Skill.objects.get(name=edited.name, end_user=edited.end_user))
    look_around(rita)
    found_by_agents(live_server.url, demo)
    unseen_by_strangers(rita, screen(make_member(make_organization("another"), "reviewer", "sam")))


def by_mouse(rita: Reviewer) -> None:
    """Approve one for its evidence, read in the transcript; reject one with a reason; edit one."""
    page = rita.page
    page.get_by_role("link", name="All proposals").click()
    rita.here.keep_in_every_look("path-queue")
    page.get_by_role("link", name=FLIGHTS).first.click()
    expect(page.locator(".mx-prose", has_text="gift card balance is not enough").first).to_be_visible()
    rita.here.keep_in_every_look("path-proposal")

    evidence = page.locator(".mx-evidence", has=page.locator("mark", has_text="Error: ")).first
    quote = evidence.locator("mark").inner_text()
    link = evidence.get_by_role("link", name="Read it in session")
    anchor = str(link.get_attribute("href")).partition("#")[2]
    link.click()
    turn = page.locator(f"#{anchor}")
    expect(turn).to_be_in_viewport()
    assert quote in turn.locator("mark").all_inner_texts()
    expect(turn.locator("a[href*='/skillexperience/']").first).to_be_visible()
    rita.here.keep("path-turn")
    page.go_back()
    rita.press("Approve and publish 0.1.0")
    rita.told(f"Published {FLIGHTS} 0.1.0.")

    refused = rita.proposal()
    page.locator("summary", has_text="Reject").click()
    page.get_by_role("button", name="Reject").click()  # without a reason the form is not sent
    page.get_by_label("Something else").check()
    page.get_by_role("button", name="Reject").click()  # nor without words for something else
    assert rita.proposal() == refused
    page.get_by_label("In your words").fill("The desk does that in another way.")
    rita.press("Reject")
    rita.told(f"Rejected {refused.name}.")
    said = ReviewDecision.objects.get(revision=refused)
    assert (said.reason, said.decided_by_name) == ("The desk does that in another way.", "rita")

    edited = rita.proposal()
    page.get_by_role("link", name="Edit and approve").click()
    page.get_by_label("Description").fill("Use when the customer asks for exactly this.")
    rita.press("Publish")
    rita.told(f"Published {edited.name} 0.1.0.")


def by_keys(rita: Reviewer) -> SkillRevision:
    """Twelve decisions without the mouse; returns the proposal that was edited."""
    here = rita.proposal()
    after = rita.skip()
    assert rita.skip("k") == here
    assert rita.skip() == after
    rita.approve()
    rita.undo()
    rita.skip()
    rita.reject("Too thin: one desk did it once.")  # letters typed into the reason are no commands
    edited = rita.edit_and_approve("Say what was done.")
    for _ in range(3):
        rita.reject()
    for _ in range(6):
        rita.approve()
    return edited


def many_at_once(rita: Reviewer) -> None:
    """Four by one confirmation, which lists exactly them."""
    page = rita.page
    rita.here.open(QUEUE)
    rows = page.locator("#result_list input.action-select")
    for number in range(5):
        rows.nth(number).check()
    page.locator("select[name=action]").select_option("approve_selected")
    rita.press("Run")
    expect(page.get_by_role("heading", name="Approve 5 proposals")).to_be_visible()
    boxes = page.locator("input[name=ids]")
    chosen = [SkillRevision.objects.get(pk=box.get_attribute("value")) for box in boxes.all()]
    for revision in chosen:
        line = page.locator("tr", has=page.locator(f"input[value='{revision.pk}']"))
        expect(line).to_contain_text(revision.name)
        expect(line).to_contain_text("0.1.0")
    boxes.nth(4).uncheck()
    rita.here.keep_in_every_look("path-bulk")
    rita.press("Approve what is ticked")
    rita.told("4 proposals approved.")
    states = SkillRevision.objects.in_bulk([revision.pk for revision in chosen])
    assert [states[revision.pk].state for revision in chosen] == ["published"] * 4 + ["proposed"]


def beside_another(rita: Reviewer, bob: Screen) -> None:
    """The second of two is told what the first decided, and nothing is changed."""
    revision = SkillRevision.objects.filter(state="proposed").order_by("pk")[0]
    address = f"{QUEUE}{revision.pk}/change/"
    rita.here.open(address)
    bob.open(address)
    bob.page.locator("summary", has_text="Reject").click()
    bob.page.get_by_label("Another skill says it already").check()
    bob.page.get_by_role("button", name="Reject").click()
    expect(bob.page.get_by_text(f"Rejected {revision.name}.")).to_be_visible()
    rita.press("Approve")
    rita.told("Nothing was changed")
    rita.told("Another skill says it already")
    rita.here.keep("path-conflict")
    rita.here.forgive(409, f"{QUEUE}{revision.pk}/approve/")
    assert not Skill.objects.filter(current_revision=revision).exists()


def roll_back(rita: Reviewer, skill: Skill) -> None:
    """Edit a skill, find the edit wrong, and have it say again what it said."""
    page, text = rita.page, skill.instructions
    assert text.endswith("Say what was done.")
    rita.here.open(f"/admin/skills/skill/{skill.pk}/change/")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Instructions").fill("1. Ask somebody else.")
    rita.press("Publish")
    rita.told(f"Published {skill.name} 0.1.1.")
    rita.here.open(f"/admin/skills/skill/{skill.pk}/change/")
    page.get_by_role("link", name="Roll back to it").first.click()
    page.get_by_label("Why").fill("The old one was right.")
    rita.press("Roll back to 0.1.0")
    rita.told(f"{skill.name} says what 0.1.0 said.")
    skill.refresh_from_db()
    assert (skill.instructions, skill.version) == (text, "0.1.2")
    rita.here.keep_in_every_look("path-skill")


def look_around(rita: Reviewer) -> None:
    """Read what else the path has left: the run and its search page."""
    page = rita.page
    rita.here.open("/admin/skills/autodreamrun/")
    page.locator("#result_list tbody a").first.click()
    expect(page.get_by_text("Finished").first).to_be_visible()
    rita.here.keep("path-run")
    rita.here.open("/admin/skills/searchevent/try/?query=change+a+flight")
    expect(page.get_by_role("link", name=FLIGHTS).first).to_be_visible()
    rita.here.keep("path-search")


def found_by_agents(url: str, demo: Organization) -> None:
    """What was approved is found, the best first; what was rejected or taken back is not."""
    client = Client.objects.filter(organization=demo)[0]
    with Mirix(url, make_key(client, "read")) as mirix:
        found = mirix.search(QUESTION, user_id="airline-desk")["results"]
        assert (found[0]["name"], found[0]["version"]) == (FLIGHTS, "0.1.0")
        for user in work_of_desks():
            names = {row["name"] for row in mirix.search("", user_id=user, limit=100)["results"]}
            active = Skill.objects.filter(end_user__user_id=user, status="active")
            assert names == set(active.values_list("name", flat=True))
        for revision in SkillRevision.objects.filter(state="rejected"):
            found = mirix.search(revision.description, user_id=revision.end_user.user_id)["results"]
            assert revision.name not in {row["name"] for row in found}


def unseen_by_strangers(rita: Reviewer, sam: Screen) -> None:
    """Of what rita came by, a reviewer elsewhere gets lists without it, and 404 for the rest."""
    words = {*work_of_desks(), *Skill.objects.filter(name__contains="-").values_list("name", flat=True)}
    been = {address.partition("#")[0] for address in rita.been if address.startswith(sam.base)}
    lists = {sam.base + changelist(model._meta.label_lower) for model in site._registry}
    statuses: Counter[int] = Counter()
    for address in sorted(been | lists):
        answer = sam.page.request.get(address)
        statuses[answer.status] += 1
        is_one = any(sign in path_of(address) for sign in ("/rev-", "/proc-", "/session-", "/run-"))
        assert answer.status in ((404,) if is_one else (200, 403)), address
        assert not [word for word in words if word in answer.text()], address
    # Five lists are for administrators or superusers alone.
    assert (statuses[404] > 20, statuses[200] > 15, statuses[403]) == (True, True, 5), statuses

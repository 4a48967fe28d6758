"""The first run: everything made, sample sessions learned from, and what they taught on the screen."""

from __future__ import annotations

import secrets
from typing import IO, Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from rich.console import Console
from rich.markup import escape as without_markup
from rich.panel import Panel
from rich.table import Table

from mirix.commands import DataCommand, whole
from mirix.tenants.audit import Actor
from mirix.tenants.commands import create_missing
from mirix.tenants.keys import create_api_key
from mirix.tenants.logins import save_login
from mirix.tenants.models import ApiKey, Client
from mirix.tenants.owners import Owner
from mirix.text import visible
from skills import demo
from skills.management.waiting import waiting_for
from skills.models import AutoDreamRun, Skill, SkillExperience, SkillRevision
from skills.runs import OwnerBusy
from skills.search.service import search
from skills.selectors.proposals import QUEUE_ORDER, evidence_of, proposals_of
from skills.selectors.skills import skills_of

QUOTES_SHOWN = 2


def escape(text: str) -> str:
    """Return a stored text for the console: as it is, and nothing in it a command to the terminal."""
    return without_markup(visible(text))


class Command(DataCommand):
    """Migrate, make the demo organization, learn from the samples, show what was learned, and serve."""

    help = "Set everything up with a demo organization, show what its sample sessions taught, and serve."
    requires_migrations_checks = False  # it migrates

    def add_arguments(self, parser: CommandParser) -> None:
        """Take `--no-serve` and `--port`."""
        parser.add_argument("--no-serve", action="store_true", help="exit instead of serving")
        parser.add_argument(
            "--port", type=whole(low=1, high=65_535), default=settings.MIRIX_PORT, metavar="N"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do all of it; each step finds what an earlier or interrupted run has done."""
        self.console = Console(file=cast("IO[str]", self.stdout), highlight=False)
        call_command("migrate", interactive=False, verbosity=0)
        client, owner = create_missing(
            self, organization=demo.ORGANIZATION, client=demo.CLIENT, user_id=demo.USER_ID
        )
        password, key = self._credentials(client)
        new = demo.load_samples(client=client, owner=owner)
        self.say(f"{new} sample sessions loaded; learning …" if new else "No new sample sessions.")
        try:
            demo.learn(owner=owner, tell=self._wait_for)
        except OwnerBusy as busy:
            raise CommandError(f"{busy} Try again when it has ended.") from busy
        approved = demo.approve_most(owner=owner)
        answer = self._answer(owner, new=new, approved=approved)
        if self.as_json:
            self.answer(answer | {"password": password or None, "api_key": key or None}, "")
        else:
            self._show(owner, client, password=password, key=key, port=options["port"])
        if not options["no_serve"]:
            call_command("serve", port=options["port"], stdout=self.stdout, stderr=self.stderr)

    @staticmethod
    def _admin_password() -> str:
        """Make the superuser `admin` and return its password; blank when there is one already."""
        if User.objects.filter(username="admin").exists():
            return ""
        password = secrets.token_urlsafe(12)
        user = User(username="admin", is_staff=True, is_superuser=True)
        user.set_password(password)
        save_login(user=user, actor=Actor.operator())
        return password

    @transaction.atomic
    def _credentials(self, client: Client) -> tuple[str, str]:
        """Make the admin's password and the client's key where there is none; return them, else blanks.

        They are told before they are kept: whatever ends this process later, somebody has seen them.
        """
        Client.objects.select_for_update(no_key=True).get(pk=client.pk)  # two at once make them once
        password = self._admin_password()
        key = (
            ""
            if ApiKey.objects.filter(client=client).exists()
            else create_api_key(client=client, actor=Actor.operator())[1]
        )
        if password:
            self.say(f"Admin: user admin, password {password} (shown in this run only)")
        if key:
            self.say(f"API key of {client.name}: {key} (shown in this run only)")
        return password, key

    def _wait_for(self, run: AutoDreamRun) -> None:
        self.say(waiting_for(run))

    @staticmethod
    def _answer(owner: Owner, *, new: int, approved: list[Skill]) -> dict[str, Any]:
        """Return the outcome as data for `--json`."""
        return {
            "organization": owner.organization.name,
            "user_id": owner.end_user.user_id,
            "sessions_loaded": new,
            "approved": [skill.name for skill in approved],
            "skills": list(
                skills_of(organization=owner.organization).order_by("name").values("id", "name", "version")
            ),
            "proposals": list(
                proposals_of(organization=owner.organization).order_by("name").values("id", "name", "action")
            ),
        }

    def _show(self, owner: Owner, client: Client, *, password: str, key: str, port: int) -> None:
        """Print skills with evidence, what waits, one search, and the next step."""
        organization = owner.organization
        skills = skills_of(organization=organization).select_related("current_revision").order_by("name")
        self.console.rule(f"{len(skills)} skills learned")
        for skill in skills:
            assert skill.current_revision
            self.console.print(self._panel(skill, skill.current_revision, f"version {skill.version}"))
        waiting = proposals_of(organization=organization).order_by(*QUEUE_ORDER)
        self.console.rule(f"{len(waiting)} proposals wait for your review")
        for proposal in waiting:
            self.console.print(self._panel(proposal, proposal, proposal.get_action_display().lower()))
        if skills:
            self._show_search(owner)
        else:
            self.console.print(
                "Nothing is published: this organization is in use, so a person decides. Approve "
                "proposals in the admin, and search finds them."
            )
        self._show_next(owner, client, password=password, key=key, port=port)

    def _panel(self, content: Skill | SkillRevision, revision: SkillRevision, note: str) -> Panel:
        """One skill or proposal: its text and the quotes behind it."""
        distinct: dict[str, SkillExperience] = {}
        for experience in evidence_of(revision=revision):
            distinct.setdefault(experience.quote, experience)
        quotes = [self._quote(experience) for experience in list(distinct.values())[:QUOTES_SHOWN]]
        more = len(distinct) - len(quotes)
        lines = [
            escape(content.description),
            "",
            escape(content.instructions),
            "",
            *quotes,
            *([f"[dim]… and {more} more[/dim]"] if more > 0 else []),
        ]
        return Panel(
            "\n".join(lines), title=f"[bold]{escape(content.name)}[/bold] · {note}", title_align="left"
        )

    @staticmethod
    def _quote(experience: SkillExperience) -> str:
        where = f"{experience.session.session_id}, turn {experience.turn_seq}"
        return f"[italic]“{escape(experience.quote)}”[/italic] [dim]({escape(where)})[/dim]"

    def _show_search(self, owner: Owner) -> None:
        found = search(organization=owner.organization, owner=owner, query=demo.QUESTION, limit=3)
        table = Table(title=f"Search: {demo.QUESTION}", title_justify="left")
        for heading in ("score", "skill", "version", "when to use it"):
            table.add_column(heading)
        for hit in found.hits:
            table.add_row(
                f"{hit.score:.3f}", escape(hit.skill.name), hit.skill.version, escape(hit.skill.description)
            )
        self.console.print(table)

    def _show_next(self, owner: Owner, client: Client, *, password: str, key: str, port: int) -> None:
        self.console.rule("Next")
        self.console.print(f"Review what waits:  http://127.0.0.1:{port}/admin/", soft_wrap=True)
        if password:
            self.console.print(f"  user admin, password {password} (shown in this run only)", soft_wrap=True)
        else:
            self.console.print("  user admin; forgotten password: ./run changepassword admin")
        if key:
            self.console.print(
                f"API key of {escape(client.name)}: {key} (shown in this run only)", soft_wrap=True
            )
        else:
            self.console.print(
                f"A new API key: ./run create_api_key --organization {owner.organization.name}"
            )
        self.console.print(f"API: http://127.0.0.1:{port}/docs", soft_wrap=True)

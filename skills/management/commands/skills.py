"""Skills and their past on the command line: the same services as in the admin."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from mirix.commands import MAX_LISTED, whole
from mirix.tenants.models import Organization
from mirix.text import clean_text, visible_line
from skills.content import Content
from skills.management.deciding import DecidingCommand
from skills.management.review_text import changes_data, comparison_page, past_table
from skills.models import Skill, SkillRevision
from skills.review.diffs import changed_words, field_diffs
from skills.review.errors import ReviewError
from skills.review.history import MOVES, move, rollback
from skills.review.merges import propose_merge
from skills.selectors.history import NoSuchRevision, find_of, pair_of, past_of
from skills.selectors.skills import skills_of


class Command(DecidingCommand):
    """List skills, show and compare their versions, bring one back, take a skill out of use and back."""

    help = "Skills and their versions: list, history, diff, rollback, merge, archive, restore, …"

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to do, and with which skill."""
        super().add_arguments(parser)
        parser.add_argument("action", choices=["list", "history", "diff", "rollback", "merge", *MOVES])
        parser.add_argument("skill", nargs="?", metavar="SKILL", help="its id or its name")
        parser.add_argument("--user", metavar="USER_ID", help="the end user whose skill it is")
        parser.add_argument("--from", dest="old", default="", metavar="REVISION", help="diff: id or version")
        parser.add_argument("--to", default="", metavar="REVISION", help="diff, rollback: id or version")
        parser.add_argument(
            "--into", default="", metavar="SKILL", help="merge: id or name of the other skill"
        )
        parser.add_argument("--reason", default="", help="why; needed by whatever changes a skill")
        parser.add_argument("--by", metavar="USERNAME", help="the member who decides")
        parser.add_argument(
            "--limit",
            type=whole(low=1, high=MAX_LISTED),
            default=50,
            metavar="N",
            help="list at most N (default: 50)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what was asked; whatever is refused is one line."""
        organization, action = self.organization(options), options["action"]
        if action == "list":
            if options["skill"]:
                raise CommandError("`skills list` takes no skill; `skills history` shows one")
            self.list_skills(organization, options["user"], options["limit"])
            return
        skill = self.skill(organization, options["skill"], options["user"])
        try:
            match action:
                case "history":
                    self.history(skill, options["limit"])
                case "diff":
                    self.diff(skill, options["old"], options["to"])
                case "merge":
                    self.merge(organization, skill, options)
                case _:
                    self.act(organization, skill, options)
        except (ReviewError, NoSuchRevision) as error:
            raise CommandError(str(error)) from error

    def list_skills(self, organization: Organization, user: str | None, limit: int) -> None:
        """Write the skills, those that changed last first."""
        found = skills_of(organization=organization).order_by("-updated_at", "id")
        if user is not None:
            found = found.filter(end_user__user_id=clean_text(user))
        rows = [_row(skill) for skill in found[:limit]]
        lines = [
            f"{row['version']:8} {row['status']:12} {row['name']}  {row['id']}  "
            f"{visible_line(row['user_id'])}"
            for row in rows
        ]
        self.answer(rows, "\n".join(lines) or "No skill yet.")

    def history(self, skill: Skill, limit: int) -> None:
        """Write every revision, newest first."""
        revisions = list(past_of(skill=skill)[:limit])
        rows = [_revision(revision) for revision in revisions]
        table = past_table(revisions, skill.current_revision_id, colours=self.stdout.isatty())
        self.answer(_row(skill) | {"revisions": rows}, table, is_styled=True)

    def diff(self, skill: Skill, old: str, new: str) -> None:
        """Write what differs between two revisions, word by word."""
        before, after = pair_of(skill=skill, old=clean_text(old), new=clean_text(new))
        diffs = field_diffs(Content.of(before) if before else None, Content.of(after))
        changed = [diff for diff in diffs if diff.changed]
        added, removed = changed_words(changed)
        names = [revision.version or revision.pk if revision else "nothing" for revision in (before, after)]
        heading = f"{skill.name}: {names[0]} → {names[1]}  +{added} −{removed}"
        self.answer(
            {
                "skill_id": skill.pk,
                "from": _revision(before) if before else None,
                "to": _revision(after),
                "added": added,
                "removed": removed,
                "changes": changes_data(changed),
            },
            comparison_page(heading, changed, colours=self.stdout.isatty()),
            is_styled=True,
        )

    def act(self, organization: Organization, skill: Skill, options: dict[str, Any]) -> None:
        """Publish what brings a version back, or takes the skill out or in."""
        by, reason = self.member(organization, options["by"]), clean_text(options["reason"])
        if options["action"] == "rollback":
            if not options["to"]:
                raise CommandError("roll back to which version? name it: --to 0.1.0")
            target = find_of(skill=skill, name=clean_text(options["to"]))
            revision = rollback(skill=skill, to=target, decided_by=by, reason=reason)
            done = f"{skill.name} says what {target.version} said, as {revision.version} ({skill.pk})."
        else:
            revision = move(skill=skill, act=options["action"], decided_by=by, reason=reason)
            status = MOVES[options["action"]].after.value
            done = f"{skill.name} is {status}, as {revision.version} ({skill.pk})."
        row = _row(skills_of(organization=organization).get(pk=skill.pk))
        self.answer(row | {"revision_id": revision.pk}, done)

    def merge(self, organization: Organization, skill: Skill, options: dict[str, Any]) -> None:
        """Propose that another skill of the same end user takes this one in."""
        if not options["into"]:
            raise CommandError("merge into which skill? name it: --into pay-an-order")
        target = self.skill(organization, options["into"], skill.end_user.user_id)
        by, reason = self.member(organization, options["by"]), clean_text(options["reason"])
        proposal = propose_merge(source=skill, target=target, author=by, reason=reason)
        self.answer(
            _revision(proposal) | {"skill_id": target.pk, "merged_from": skill.pk},
            f"{proposal.pk} waits for a decision: {target.name} takes {skill.name} in, "
            "which is archived then.",
        )

    def skill(self, organization: Organization, name: str | None, user: str | None) -> Skill:
        """Return the skill that is meant; a name that several end users have needs `--user`."""
        if name is None:
            raise CommandError("which skill? name it, as `skills list` shows it")
        cleaned = clean_text(name)
        found = skills_of(organization=organization).filter(Q(pk=cleaned) | Q(name=cleaned))
        if user is not None:
            found = found.filter(end_user__user_id=clean_text(user))
        skills = list(found[:2])
        if not skills:
            raise CommandError(f"unknown skill {name!r} in organization {organization.name!r}")
        if len(skills) > 1:
            raise CommandError(f"several end users have a skill {name!r}; say whose with --user, or its id")
        skill: Skill = skills[0]
        return skill


def _row(skill: Skill) -> dict[str, Any]:
    return {
        "id": skill.pk,
        "name": skill.name,
        "user_id": skill.end_user.user_id,
        "version": skill.version,
        "status": skill.status,
        "updated_at": skill.updated_at,
    }


def _revision(revision: SkillRevision) -> dict[str, Any]:
    return {
        "id": revision.pk,
        "version": revision.version,
        "action": revision.action,
        "state": revision.state,
        "author_kind": revision.author_kind,
        "author": revision.author.get_username() if revision.author else None,
        "rationale": revision.rationale,
        "created_at": revision.created_at,
    }

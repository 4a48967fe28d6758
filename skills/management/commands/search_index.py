"""The indexes of search: how they stand, and how to write them anew."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import Progress

from mirix.llm.embeddings import EmbeddingFailed, get_endpoint
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import Organization
from skills.search.embedding import embed_missing, space_of
from skills.search.index import rebuild, settle, status
from skills.search.space_index import CannotBuild, SpaceStatus, build, drop_former, space_status

SHOWN = 10


@dataclass(kw_only=True)
class Rebuilt:
    """What `rebuild` did."""

    indexed: int
    embedded: int = 0
    refused: list[str] = field(default_factory=list)
    """Ids of the skills whose text the endpoint refuses."""
    former_deleted: int = 0


class Command(OrganizationCommand):
    """`search_index status`, `rebuild` and `build`; services and worker keep the indexes by themselves.

    Vectors of another model stay unless `--replace-model` says otherwise: this command may be run with other
    settings than those of the server, which searches by them. Where the endpoint refuses a skill, the rest
    goes on, and the exit code is 1.
    """

    help = (
        "Show how the search indexes stand (status), write them anew from the skills and embed what has no "
        "vector of the present model (rebuild), or build the index of vectors that large organizations "
        "need (build)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to do, and where."""
        parser.add_argument("action", choices=["status", "rebuild", "build"])
        parser.add_argument("--organization", metavar="NAME", help="name or id; omitted: all of them")
        parser.add_argument(
            "--replace-model",
            action="store_true",
            help=(
                "with rebuild: delete the vectors of other models once every skill has one of the present "
                "one; a server that still runs with another model searches by words alone from then on"
            ),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it and tell how the indexes stand afterwards."""
        organization = None if options["organization"] is None else self.organization(options)
        endpoint = get_endpoint()
        space = space_of(endpoint) if endpoint else None
        if options["replace_model"] and options["action"] != "rebuild":
            raise CommandError("--replace-model goes with rebuild")
        rebuilt = None
        if options["action"] == "rebuild":
            rebuilt = self._rebuild(organization, space, options["replace_model"])
            settle()
        elif options["action"] == "build":
            self._build(organization, space)
        state = status(organization)
        vectors = space_status(space, organization) if space else None
        text = (
            f"{state.active} active skills, {state.missing} of them not indexed; "
            f"{state.outdated} indexed that are not active; {state.postings} postings"
        )
        if vectors:
            text += f"\n{_vectors_text(vectors)}"
        if not rebuilt and (state.missing or state.outdated or (vectors and vectors.due)):
            text += "\nwrite it anew with: ./run search_index rebuild"
        if vectors and vectors.former:
            text += "\ndelete those of former models with: ./run search_index rebuild --replace-model"
        done = asdict(rebuilt) if rebuilt else {}
        self.answer({**asdict(state), "vectors": asdict(vectors) if vectors else None, **done}, text)
        if rebuilt and rebuilt.refused:
            number = len(rebuilt.refused)
            raise CommandError(f"{number} skill{'' if number == 1 else 's'} could not be embedded.")

    def _rebuild(self, organization: Organization | None, space: str | None, replace_model: bool) -> Rebuilt:
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("indexing", total=status(organization).active)
            indexed = rebuild(organization, progress=lambda seen: progress.update(task, completed=seen))
            self.say(f"{indexed} skills indexed")
            if space is None:
                return Rebuilt(indexed=indexed)
            task = progress.add_task("embedding", total=space_status(space, organization).due)
            try:
                done = embed_missing(
                    organization, progress=lambda seen: progress.update(task, completed=seen)
                )
            except EmbeddingFailed as error:
                raise CommandError(f"{error.reason}; what was embedded stays, run it again later") from error
        self.say(f"{done.stored} skills embedded")
        if done.refused:
            self.say(f"{len(done.refused)} refused by the endpoint: {', '.join(done.refused[:SHOWN])}")
        former = drop_former(space, organization) if replace_model else 0
        if former:
            self.say(f"{former} vectors of former models deleted")
        return Rebuilt(indexed=indexed, embedded=done.stored, refused=done.refused, former_deleted=former)

    def _build(self, organization: Organization | None, space: str | None) -> None:
        if organization is not None:
            raise CommandError("the index of vectors is one for all organizations; leave out --organization")
        if space is None:
            raise CommandError("no embedding endpoint is configured; set MIRIX_EMBEDDING_MODEL")
        try:
            built = build(space)
        except CannotBuild as error:
            raise CommandError(str(error)) from error
        self.say("index of vectors built" if built else "the index of vectors is there already")


def _vectors_text(vectors: SpaceStatus) -> str:
    indexed = "indexed" if vectors.is_indexed else "not indexed (./run search_index build; for over 10,000)"
    former = f"; {vectors.former} vectors of former models" if vectors.former else ""
    return f"{vectors.embedded} vectors of {vectors.space}, {vectors.due} skills without; {indexed}{former}"

"""Erasure: everything of an end user, of a client or of one skill goes, and a receipt without a word stays.

What there is to erase is known to the apps: each registers an `Eraser` when it is ready. An erasure is one
transaction. It locks what writers lock, in their order, then the row of the end user; so whoever was writing
for them has either committed, and is erased too, or is refused where the transaction ends: an end user's row
goes with everything else, and no row can point at one that is not there. Whoever calls again under the same
`user_id` is somebody new.

What lies outside of the rows, in Redis and in the statistics of the database, goes right after the commit
(`Eraser.afterwards`), and once more by a job of the same transaction, for a process that died in between.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.db.models import Model, QuerySet

from mirix import queue
from mirix.collisions import through_collisions
from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.models import Client, EndUser, ErasedKind, ErasureReceipt, Organization
from mirix.tenants.statistics import renew_statistics
from mirix.text import clean_text

FINISH = "tenants.finish_erasure"
QUEUE = "care"
BATCH = 5_000


def _batches(pks: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (pks[start : start + BATCH] for start in range(0, len(pks), BATCH))


class NothingThere(Exception):
    """What was to be erased is not there, or not any more."""


class Unfinished(Exception):
    """What is kept outside of the rows could not be dropped yet; it lapses by itself within a day."""


class Erasing:
    """One erasure under way: deletes, and keeps the account of what it deleted."""

    def __init__(self, organization: Organization) -> None:
        self.organization = organization
        self.counts: Counter[str] = Counter()
        self.digests: dict[str, str] = {}
        self.models: set[type[Model]] = set()
        """Of which something went, whole rows or words in them."""

    def delete(self, rows: Any) -> list[Any]:
        """Delete rows of one model, and what the admin's log says of them; return their keys.

        `rows` are bound to the organization. Nothing cascades: what refers to them is deleted by whoever
        knows it, and the database looks at the end whether something still does.
        """
        model = rows.model
        pks = list(rows.order_by("pk").values_list("pk", flat=True))
        self.models.add(model)
        self.count(model._meta.label_lower, pks)
        mine = model._base_manager.all()
        for some in _batches(pks):
            mine.filter(pk__in=some)._raw_delete(mine.db)
        self.forget_log(model, pks)
        return pks

    def changed(self, *models: type[Model]) -> None:
        """Remember that words went out of rows that stay."""
        self.models.update(models)

    def count(self, label: str, pks: Collection[Any]) -> None:
        """Account for rows that went; they are digested in the order of their keys."""
        if not pks:
            return
        digest = hashlib.sha256(self.digests.get(label, "").encode())
        for pk in pks:
            digest.update(f"{pk}\n".encode())
        self.counts[label] += len(pks)
        self.digests[label] = digest.hexdigest()

    def drop_jobs(self, task: str, argument: str, ids: Collection[str]) -> None:
        """Delete the jobs of a task that are about these ids alone; one that is being done finds nothing."""
        if dropped := queue.drop(task, argument, ids):
            self.counts["procrastinate.procrastinatejob"] += dropped

    def forget_log(self, model: type[Model], pks: Sequence[Any]) -> None:
        """Delete what the admin's log says of rows: it repeats what they were called at the time."""
        kind = ContentType.objects.get_for_model(model)
        for some in _batches([str(pk) for pk in pks]):
            gone, _ = LogEntry.objects.filter(content_type=kind, object_id__in=some).delete()
            if gone:
                self.counts["admin.logentry"] += gone
                self.changed(LogEntry)


@dataclass(frozen=True, kw_only=True)
class Eraser:
    """What an app holds of people, and how it goes. Every part runs in the transaction of the erasure."""

    name: str
    lock_end_user: Callable[[EndUser], object]
    """Take the locks that its writers take, in their order."""
    erase_end_user: Callable[[EndUser, Erasing], object]
    end_users_of_client: Callable[[Client], Collection[str]]
    """Of which end users it holds anything that came through a client; their ids."""
    lock_client: Callable[[Client, Collection[str]], object]
    """Take the locks, for those end users."""
    erase_client: Callable[[Client, Collection[str], Erasing], object]
    is_left: Callable[[EndUser], bool]
    """Whether it holds anything that an end user is kept for."""
    settle: Callable[[EndUser], object] = field(default=lambda end_user: None)
    """Have what is left of an end user be learned from anew."""
    afterwards: Callable[[], bool] = field(default=lambda: True)
    """After the commit: drop what it keeps elsewhere; false where that has to be tried again."""


_erasers: dict[str, Eraser] = {}


def register(eraser: Eraser) -> None:
    """Have `eraser` take part in every erasure. For `AppConfig.ready`; lower floors come first."""
    _erasers[eraser.name] = eraser


def erasers() -> list[Eraser]:
    """Return all that is registered, the upper floors first: they point at the lower ones."""
    return list(reversed(_erasers.values()))


def erase_end_user(*, end_user: EndUser, actor: Actor, dry_run: bool = False) -> ErasureReceipt:
    """Erase an end user with everything that is theirs; return the receipt, unsaved after a dry run.

    Raises `NothingThere` where somebody else has erased them meanwhile.
    """

    def act(erasing: Erasing) -> None:
        for eraser in erasers():
            eraser.lock_end_user(end_user)
        rows = EndUser.objects.with_organization_of(end_user).filter(pk=end_user.pk)
        if rows.select_for_update().first() is None:
            raise NothingThere(f"{end_user.pk} is not there any more.")
        _erase_end_user(end_user, erasing)

    return _erase(
        organization=end_user.organization,
        kind=ErasedKind.END_USER,
        subject=end_user,
        name=end_user.user_id,
        actor=actor,
        act=act,
        dry_run=dry_run,
    )


def _erase_end_user(end_user: EndUser, erasing: Erasing) -> None:
    for eraser in erasers():
        eraser.erase_end_user(end_user, erasing)
    erasing.delete(EndUser.objects.with_organization_of(end_user).filter(pk=end_user.pk))


def erase_client(*, client: Client, actor: Actor, dry_run: bool = False) -> ErasureReceipt:
    """Erase all that came through a client, and what was learned of it; the client and its keys stay.

    What was learned of others' words as well is brought back to what these say. An end user of whom nothing
    is left goes too, and loses the name that the client gave them where something is. Raises `NothingThere`
    where the client is gone.
    """

    def act(erasing: Erasing) -> None:
        early = _lock_end_users_of(client, set())
        # From here on none of its requests ends before this does: what they point at is locked.
        rows = Client.objects.with_organization_of(client).filter(pk=client.pk)
        if rows.select_for_update().first() is None:
            raise NothingThere(f"{client.pk} is not there any more.")
        ids = sorted(_lock_end_users_of(client, early))  # whoever came until then
        for eraser in erasers():
            eraser.erase_client(client, ids, erasing)
        end_users = EndUser.objects.with_organization_of(client).filter(pk__in=ids).order_by("pk")
        for end_user in end_users.select_related("organization"):
            if any(eraser.is_left(end_user) for eraser in erasers()):
                for eraser in erasers():
                    eraser.settle(end_user)
                _forget_name(end_user, client, erasing)
            else:
                _erase_end_user(end_user, erasing)

    return _erase(
        organization=client.organization,
        kind=ErasedKind.CLIENT,
        subject=client,
        name=client.pk,
        actor=actor,
        act=act,
        dry_run=dry_run,
    )


def _forget_name(end_user: EndUser, client: Client, erasing: Erasing) -> None:
    rows = EndUser.objects.with_organization_of(end_user).filter(pk=end_user.pk, made_by=client)
    if rows.update(name="", made_by=None):
        erasing.changed(EndUser)


def _lock_end_users_of(client: Client, locked: set[str]) -> set[str]:
    """Lock what is kept of a client's end users, but for those that are locked already; return all ids."""
    found = {pk for eraser in erasers() for pk in eraser.end_users_of_client(client)} | locked
    made = EndUser.objects.with_organization_of(client).filter(made_by=client)
    found.update(made.values_list("pk", flat=True))
    if more := sorted(found - locked):
        for eraser in erasers():
            eraser.lock_client(client, more)
    return found


def erase_rows(
    *,
    organization: Organization,
    kind: ErasedKind,
    subject: Model,
    actor: Actor,
    act: Callable[[Erasing], object],
    dry_run: bool = False,
) -> ErasureReceipt:
    """Erase one thing that an app upstairs knows by its id, such as a skill: `act` deletes it."""
    return _erase(
        organization=organization,
        kind=kind,
        subject=subject,
        name=str(subject.pk),
        actor=actor,
        act=act,
        dry_run=dry_run,
    )


def _erase(
    *,
    organization: Organization,
    kind: ErasedKind,
    subject: Model,
    name: str,
    actor: Actor,
    act: Callable[[Erasing], object],
    dry_run: bool,
) -> ErasureReceipt:
    """Do it in one transaction, again where another one came across."""

    def attempt() -> ErasureReceipt:
        with transaction.atomic():
            erasing = Erasing(organization)
            act(erasing)
            receipt = ErasureReceipt(
                organization=organization,
                kind=kind,
                subject_id=str(subject.pk),
                subject_hash=subject_hash(organization=organization, kind=kind, name=name),
                counts=dict(sorted(erasing.counts.items())),
                digests=dict(sorted(erasing.digests.items())),
                actor_kind=actor.kind,
                actor_id=actor.id,
                actor_name=clean_text(actor.name)[:150],
            )
            if not dry_run:
                receipt.save(force_insert=True)
                record(
                    organization=organization,
                    actor=actor,
                    action=Act.ERASED,
                    target=receipt,
                    details={"kind": kind.value, "rows": receipt.total},
                )
            # Else it would be said only where the outermost transaction ends.
            connection.check_constraints()
            if dry_run:
                transaction.set_rollback(True)
                return receipt
            tables = sorted(model._meta.db_table for model in erasing.models)
            queue.defer(FINISH, queue=QUEUE, tables=tables)
            transaction.on_commit(lambda: finish(tables=[]))
            return receipt

    return through_collisions(attempt)


def finish(*, tables: Sequence[str]) -> bool:
    """Drop what is kept outside of the rows; whether all of it could be. Does no harm twice.

    `tables` are looked through anew by the database, whose statistics quote common values of their columns.
    """
    results = [eraser.afterwards() for eraser in erasers()]
    return renew_statistics(tables) and all(results)


def subject_hash(*, organization: Organization, kind: ErasedKind, name: str) -> str:
    """Return the digest by which the receipt of a subject is found; who lacks our key cannot make it."""
    key = hmac.new(settings.SECRET_KEY.encode(), b"mirix.erasure", "sha256").digest()
    said = f"{organization.pk}\n{kind.value}\n{name}"
    return hmac.new(key, said.encode(), "sha256").hexdigest()


def receipts_of(*, organization: Organization) -> QuerySet[ErasureReceipt]:
    """Return the receipts of an organization, the latest first."""
    return ErasureReceipt.objects.for_organization(organization).order_by("-created_at", "pk")


def find_receipts(*, organization: Organization, kind: ErasedKind, name: str) -> QuerySet[ErasureReceipt]:
    """Return the receipts of who was called so: an end user's own id, a client's or skill's id."""
    wanted = subject_hash(organization=organization, kind=kind, name=name)
    return receipts_of(organization=organization).filter(subject_hash=wanted)


def find_end_users(*, organization: Organization, name: str) -> Iterator[EndUser]:
    """Yield the end users whom a name means: the caller's own id, or ours."""
    rows = EndUser.objects.for_organization(organization)
    for found in (rows.filter(user_id=clean_text(name)), rows.filter(pk=clean_text(name))):
        yield from found

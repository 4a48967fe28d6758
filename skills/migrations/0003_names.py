"""Data: a name for each skill, the slug of its summary, unique among its owner's.

Per owner, in order of creation: a summary that is a valid name already keeps it for its first holder; the
others get their slug, or one made of their id; a taken name gets `-2`, `-3` … until it is free. An interrupted
run resumes with the rows that have no name yet and ends with the same names. The functions are frozen here:
what `mirix.text.slugify` does may change, what this migration did may not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from django.db import migrations, models, transaction
from django.db.models import Func, Q, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Left

from skills.migrations._batches import BATCH, how_many, update

MAX_NAME = 64
MAX_SLUG = 60
VALID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def slug(text: str, limit: int = MAX_SLUG) -> str:
    """Return an ASCII slug of at most `limit` characters, cut at a word where possible; may be empty."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    kept = re.sub(r"[^a-z0-9\s_-]", "", ascii_text)
    made = re.sub(r"[\s_-]+", "-", kept).strip("-")
    if len(made) <= limit:
        return made
    head = made[: limit + 1]
    cut = head.rfind("-")
    return (head[:cut] if cut > limit // 2 else head[:limit]).strip("-")


def is_valid(name: object) -> bool:
    """Whether a name may stay as it is."""
    return isinstance(name, str) and len(name) <= MAX_NAME and bool(VALID.fullmatch(name))


def slug_of(summary: str | None, row_id: str) -> str:
    """Return the slug of a summary, or one made of the last characters of the row's id."""
    return slug(summary or "") or slug(f"skill-{row_id[-8:]}")


def own_name(summary: str | None, carried: str | None) -> str | None:
    """Return the name a row brings along: the one from when it was a skill before, or a valid summary."""
    return next((name for name in (carried, summary) if is_valid(name)), None)


class Names:
    """The names of one owner.

    `brought` are (row id, name) of the rows whose summary is a valid name already, in order of creation: it
    is reserved for the first of them. `given` are names that are taken, by rows named before.
    """

    def __init__(self, brought: Iterable[tuple[str, str]], given: Iterable[str]) -> None:
        self._taken = set(given)
        self._holder: dict[str, str] = {}
        for row_id, name in brought:
            self._holder.setdefault(name, row_id)
        self._reserved = self._holder.keys() - self._taken
        self._next: dict[str, int] = {}

    def name_for(self, row_id: str, brought: str | None, base: str) -> str:
        """Return the name of the next row in order of creation: its own, its base, or that with a number."""
        if brought in self._reserved and self._holder[brought] == row_id:
            self._reserved.discard(brought)
            self._taken.add(brought)
            return brought
        base = brought or base
        name, number = base, self._next.get(base, 2)
        while name in self._taken or name in self._reserved:
            suffix = f"-{number}"
            name = base[: MAX_NAME - len(suffix)].rstrip("-") + suffix
            number += 1
        self._next[base] = number
        self._taken.add(name)
        return name


def give_names(apps, schema_editor):
    model = apps.get_model("skills", "Skill")
    using = schema_editor.connection.alias
    owners = model.objects.using(using).filter(name="").order_by().values_list("organization", "end_user")
    for organization, end_user in owners.distinct():
        _name_owner(
            model, model.objects.using(using).filter(organization=organization, end_user=end_user), using
        )


def _name_owner(model, rows, using):
    rows = rows.annotate(carried=KT("last_modify__skill__name"))
    brought = (
        (row.pk, name)
        for batch in _by_creation(rows.annotate(start=Left("summary", MAX_NAME + 1)).only("created_at"))
        for row in batch
        if (name := own_name(row.start, row.carried)) is not None
    )
    names = Names(brought, rows.exclude(name="").values_list("name", flat=True))
    for batch in _by_creation(rows.filter(name="").only("created_at", "summary")):
        named = [
            (row.pk, names.name_for(row.pk, own_name(row.summary, row.carried), slug_of(row.summary, row.pk)))
            for row in batch
        ]
        with transaction.atomic(using=using):
            update(model, {"name": "text"}, named, using)


def _by_creation(rows) -> Iterator[list]:
    after = Q()
    size = Func(Coalesce("summary", Value("")), function="octet_length", output_field=models.IntegerField())
    while True:
        following = rows.filter(after).order_by("created_at", "pk")
        count = how_many(following.values_list(size, flat=True)[:BATCH])
        if not (batch := list(following[:count])):
            return
        last = batch[-1]
        after = Q(created_at__gt=last.created_at) | Q(created_at=last.created_at, pk__gt=last.pk)
        yield batch


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0002_blank_skill_columns")]
    # Going back needs nothing: the column goes with the migration before.
    operations = [migrations.RunPython(give_names, migrations.RunPython.noop)]

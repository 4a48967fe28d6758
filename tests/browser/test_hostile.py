"""What models, agents and people wrote is shown and never runs: in every field, on every page of the admin.

The fields are found in the models and the pages in the routes, so that a new one is filled or opened by
itself; a new field of JSON has to get a line below.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.db import transaction
from django.db.models import CharField, Field, JSONField, Model, TextField

from tests.access.admin_pages import PAGES
from tests.access.test_admin import ROWS, forms_of, path_of
from tests.access.world import World, make_world, tenant_models
from tests.browser.conftest import OpenScreen
from tests.factories import make_content, make_experience, make_proposal, make_session
from tests.filling import unchecked

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = '"><img src=x onerror=ran=1>'
TEXT = "\n".join(
    (
        f"'{SHORT}</textarea></title></style></pre>--></script><script>window.ran = 1</script>",
        "[a link](javascript:window.ran=1) ![a picture](https://elsewhere.example/a.png) <javascript:ran=1>",
        "[data](data:text/html;base64,PHNjcmlwdD5yYW49MTwvc2NyaXB0Pg==) [j\u0430va]( JaVa&#9;script:ran=1)",
        "<a href='javascript:ran=1' onmouseover=ran=1 autofocus onfocus=ran=1 style=position:fixed>all</a>",
        "<svg onload=ran=1><animate onbegin=ran=1 attributeName=x dur=1s><script href=data:,ran=1 /></svg>",
        "<math><mtext><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror=ran=1&gt;'>",
        "<iframe srcdoc='<script>parent.ran=1</script>'></iframe><base href=//elsewhere.example/>",
        "<meta http-equiv=refresh content='0;url=//a.example/'><link rel=stylesheet href=//a.example>",
        "<div x-data x-init='window.ran = 1' :title='ran = 1' @click='ran = 1' data-key=a data-live=/></div>",
        "{{ 7|add:42 }} {% include 'admin/index.html' %} {# gone #} ${ran = 1} #{ran = 1} <%= ran = 1 %>",
        "turned \u202eround\u202c, in\u2066side\u2069, hid\u200bden, a tag\U000e0041",
        "nothing: \ufffd \u2400 %00 &#0; \\u0000 \\x00 \x0b \x7f",
        "```\n</code></pre><script>ran = 1</script>\n```\n`<b onclick=ran=1>`\n| <i onclick=ran=1> |\n|-|",
        "'; window.ran = 1; // \\'; ran = 1; \u2028 window.ran = 1 /*",
    )
)
TAGS = {TEXT: TEXT, SHORT: [TEXT, {SHORT: SHORT}]}

NO_PAGES = {
    "jsi18n",
    "skills.distillationattempt reply",
    "skills.skill export",
    "skills.autodreamrun live",
    "skills.skillrevision state",
}
"""A script of Django's own, files that are saved, and what open pages ask for, which is in them already."""

TRY = "/admin/skills/searchevent/try/"

JSON: dict[str, Any] = {
    "conversations.intakerecord.filter_tags": TAGS,
    "conversations.intakerecord.body": {"messages": [{"role": "user", "content": TEXT}], SHORT: TEXT},
    "conversations.intakerecord.report": {"stored": 1, "skipped": [{"index": 0, "reason": TEXT}]},
    "conversations.intakerecord.answer": {"message": TEXT},
    "conversations.session.filter_tags": TAGS,
    "conversations.conversationmessage.tool_calls": [{"id": TEXT, "name": SHORT, "arguments": TAGS}],
    "skills.autodreamrun.parameters": {SHORT: TEXT, "note": TEXT},
    "skills.autodreamrun.counts": {SHORT: 1},
    "skills.autodreamrun.notes": [TEXT, SHORT],
    "skills.distillationattempt.dropped": [{"reason": TEXT, "text": TEXT}],
    "skills.distillationattempt.flags": [SHORT],
    "skills.proposercall.experience_ids": [SHORT],
    "skills.proposercall.refused": [{"reason": TEXT, "text": TEXT}],
    "skills.searchevent.filter_tags": TAGS,
    "skills.skillexperience.details": TAGS,
    "skills.skillexperience.filter_tags": TAGS,
    **{
        f"skills.{model}.{field}": value
        for model in ("skill", "skillrevision")
        for field, value in (
            ("triggers", [SHORT, TEXT[:500]]),
            ("examples", [{SHORT: TEXT}, {"input": TEXT, "output": TEXT}]),
            ("filter_tags", TAGS),
        )
    },
    "skills.skillrevision.source": {"license": TEXT, "metadata": TAGS, "path": TEXT},
    "skills.skillrevision.risk_flags": [SHORT, "new_address"],
    "skills.skillrevision.unsupported": [TEXT, SHORT],
    "tenants.auditevent.details": TAGS,
    "tenants.erasurereceipt.counts": {SHORT: 1},
    "tenants.erasurereceipt.digests": {SHORT: "0" * 64},
    "tenants.notification.counts": {SHORT: 1},
}
"""In the shapes that code reads; words stand wherever such a shape has room for them."""

EXCUSED = {
    **dict.fromkeys(
        (
            "conversations.conversationmessage.content_hash",
            "conversations.intakerecord.body_hash",
            "conversations.session.history_hash",
            "skills.distillationattempt.input_hash",
            "skills.proposercall.input_hash",
            "skills.skillembedding.text_hash",
            "skills.skillexperience.quote_hash",
            "skills.skillrevision.content_hash",
            "tenants.apikey.secret_hash",
            "tenants.erasurereceipt.subject_hash",
        ),
        "a digest that we compute",
    ),
    "conversations.session.session_id": "a constraint of the database takes names alone",
    "skills.skill.name": "a constraint of the database takes slugs alone",
    "skills.skillrevision.name": "a constraint of the database takes slugs alone",
    "skills.skill.version": "a constraint of the database takes versions alone",
    "skills.skillrevision.version": "a constraint of the database takes versions alone",
    "skills.searchevent.skill_ids": "our ids",
    "skills.searchevent.revision_ids": "our ids",
}

FOUND = """() => {
    const scheme = /^\\s*(javascript|data|vbscript):/i, leads = /^(href|src|action|formaction|xlink:href)$/;
    const alive = ({name, value}) =>
        name.startsWith("on") || leads.test(name) && scheme.test(value)
        || /^(x-|:|@)/.test(name) && value.includes("ran");
    const none = "iframe, object, embed, base, math, animate, body meta, img[src='x'], "
        + "script:not([src]):not([type='application/json'])";
    const found = [...document.querySelectorAll("*")].filter(
        one => one.matches(none) || [...one.attributes].some(alive));
    return [window.ran, found.map(one => one.outerHTML.slice(0, 200))];
}"""
"""Whether something has run, and the elements that could only have come from a text."""


def fields() -> Iterator[tuple[type[Model], Field[Any, Any], str]]:
    """Every field that holds words, with its label; what has choices holds one of ours."""
    for model in tenant_models():
        for field in model._meta.concrete_fields:
            kind = field.base_field if isinstance(field, ArrayField) else field
            holds_words = isinstance(kind, CharField | TextField | JSONField)
            if holds_words and not field.primary_key and not field.choices:
                yield model, field, f"{model._meta.label_lower}.{field.name}"


def test_no_field_with_words_is_forgotten():
    found = {label: field for _, field, label in fields()}
    plain = {label for label, field in found.items() if isinstance(field, CharField | TextField)}
    assert set(found) - plain - set(JSON) - set(EXCUSED) == set(), "give it a line in JSON or EXCUSED"
    assert (set(JSON) | set(EXCUSED)) - set(found) == set(), "it is gone"


def fill(number: Iterator[int]) -> None:
    """Write hostile words into every field of every row; numbered, since some have to differ."""
    for model in {model for model, _, _ in fields()}:
        for row in model._base_manager.all():
            values: dict[str, Any] = {}
            for owner, field, label in fields():
                if owner is not model or label in EXCUSED:
                    continue
                if label in JSON:
                    values[field.name] = JSON[label]
                else:
                    room = field.max_length or 60_000
                    words = TEXT if room >= 512 else SHORT
                    values[field.name] = f"{next(number)}{words}"[:room]
            if values:
                model._base_manager.filter(pk=row.pk).update(**values)


@pytest.fixture
def world(transactional_db, settings) -> World:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    world = make_world()
    owner = world.home.owner
    turns = [
        {"role": "assistant", "content": "-", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "-", "tool_name": "-", "is_error": True},
        {"role": "user", "content": "-"},
    ]
    experience = make_experience(owner, make_session(owner, turns, state="dead"))
    make_proposal(owner, make_content()).experiences.add(experience)
    with transaction.atomic(), unchecked():  # the audit trail takes no changes otherwise
        fill(count(1))
    User.objects.update(first_name=SHORT, last_name=SHORT, email=SHORT)
    LogEntry.objects.bulk_create(
        LogEntry(
            user=world.superuser,
            content_type=ContentType.objects.get_for_model(row),
            object_id=row.pk,
            object_repr=TEXT[:200],
            action_flag=CHANGE,
            change_message=TEXT,
        )
        for row in world.home.rows.values()
    )
    return world


def addresses(world: World) -> Iterator[str]:
    """Every page that a superuser can open, for a row at home, and what is asked for in an address."""
    forms = forms_of(world)
    skill = world.home.rows["skills.skill"]
    for row in ROWS:
        if "GET" not in row.methods or row.statuses["superuser"] != 200 or row.route in NO_PAGES:
            continue
        path, sent = path_of(world, row.route), forms.get(row.route, {})
        yield f"{path}?{urlencode({'ids': sent['ids']})}" if "ids" in sent else path
    for model in ("skills.skillrevision", "conversations.session", "skills.skillexperience"):
        path = PAGES[f"{model} change"]
        for row in type(world.home.rows[model]).objects.filter(organization=world.home.organization):
            yield "/" + path.replace("<path:object_id>", str(row.pk))
    base = f"/admin/skills/skill/{skill.pk}"
    yield f"{base}/compare/?{urlencode({'from': world.home.rows['skills.skillrevision'].pk})}"
    yield f"/admin/skills/skill/?{urlencode({'q': SHORT})}"
    yield f"/admin/conversations/session/?{urlencode({'q': SHORT})}"
    yield f"{TRY}?{urlencode({'query': TEXT[:1_000], 'organization': world.home.organization.pk})}"
    yield f"/admin/?{urlencode({'organization': SHORT})}"


def test_nothing_that_was_written_runs(world: World, screen: OpenScreen):
    here = screen(world.superuser)
    problems = []
    shown = 0
    tried = f"{TRY}?{urlencode({'query': SHORT, 'user_id': SHORT, 'limit': SHORT, 'filter_tags': TEXT})}"
    for address in dict.fromkeys([*addresses(world), tried]):
        here.open(address)
        if address == tried:
            here.forgive(400, TRY)
        ran, foreign = here.page.evaluate(FOUND)
        shown += "onerror=ran=1" in here.text()
        if ran is not None or foreign or here.faults:
            problems.append(f"{address}: ran={ran} {foreign[:3]} {here.faults[:3]}")
            here.faults.clear()
    assert not problems, "\n".join(problems)
    assert shown > 60, "the words are on the pages, as words"
    here.open(f"/admin/skills/skill/{world.home.rows['skills.skill'].pk}/change/").keep("hostile-skill")
    here.open(f"/admin/skills/skillrevision/{world.home.rows['skills.skillrevision'].pk}/change/")
    here.keep("hostile-proposal")
    # And this is how it shows where one of them is taken for more than words.
    here.page.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", TEXT)
    _, foreign = here.page.evaluate(FOUND)
    assert len(foreign) > 5
    assert [fault for fault in here.faults if "Content Security Policy" in fault]
    here.faults.clear()

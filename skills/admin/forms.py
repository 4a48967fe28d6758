"""The forms that write: a skill's text, and why something is done. What they allow is decided by services."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from mirix.admin_forms import ScopedChoice, ServiceForm
from mirix.text import MAX_DEPTH, clean_json, clean_text
from skills import quarantine
from skills.content import (
    MAX_DESCRIPTION_CHARS,
    MAX_EXAMPLES,
    MAX_INSTRUCTIONS_CHARS,
    MAX_TRIGGER_CHARS,
    MAX_TRIGGERS,
    Content,
)
from skills.models import EntryType, Skill
from skills.review.validation import json_errors

MAX_REASON_CHARS = 2_000


def _area(rows: int, **attributes: str) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows} | attributes)


class ReasonForm(ServiceForm):
    """Why, and the revision that the page showed."""

    reason = forms.CharField(max_length=MAX_REASON_CHARS, widget=_area(3), label="Why")
    seen = forms.CharField(required=False, widget=forms.HiddenInput())

    def clean_reason(self) -> str:
        """Return the reason as it can be stored."""
        return clean_text(self.cleaned_data["reason"])


class ReleaseForm(ServiceForm):
    """Why what is quarantined may be used."""

    reason = forms.CharField(
        max_length=quarantine.MAX_REASON_CHARS,
        widget=_area(3),
        label="Why",
        help_text="Kept with it, beside your name.",
    )

    def clean_reason(self) -> str:
        """Return the reason as it can be stored."""
        return clean_text(self.cleaned_data["reason"])


class SkillChoice(ScopedChoice):
    """A skill, by its name."""

    def label_from_instance(self, obj: Any) -> str:
        """Return name and version."""
        return f"{obj.name} {obj.version}"


class MergeForm(ServiceForm):
    """Which skill takes another one in, and why."""

    target = SkillChoice(queryset=Skill.objects.none(), label="Into")
    reason = forms.CharField(
        required=False,
        max_length=MAX_REASON_CHARS,
        widget=_area(2),
        label="Why",
        help_text="For those who decide about it.",
    )

    def __init__(self, data: Any = None, *, among: QuerySet, chosen: str) -> None:
        super().__init__(data)
        field = self.fields["target"]
        assert isinstance(field, SkillChoice)
        self.initial["target"] = field.scope(among, chosen)

    def clean_reason(self) -> str:
        """Return the reason as it can be stored."""
        return clean_text(self.cleaned_data["reason"])


class EditForm(ServiceForm):
    """The text of a skill; its name stays.

    A field that was not touched stays byte for byte what it was, also where a browser could not have sent
    it: a trigger of two lines, another kind of line end.
    """

    description = forms.CharField(
        strip=False,
        widget=_area(3),
        help_text=f"When an agent should use it. At most {MAX_DESCRIPTION_CHARS:,} characters.",
    )
    instructions = forms.CharField(
        strip=False,
        widget=_area(18),
        help_text="What to do, step by step; what goes wrong under a heading “## Pitfalls”. "
        f"At most {MAX_INSTRUCTIONS_CHARS:,} characters.",
    )
    triggers = forms.CharField(
        required=False,
        strip=False,
        widget=_area(4),
        help_text=f"What people say when they need it, one a line. At most {MAX_TRIGGERS} of "
        f"{MAX_TRIGGER_CHARS} characters.",
    )
    examples = forms.CharField(
        required=False,
        widget=_area(5, spellcheck="false"),
        help_text=f"A JSON list of at most {MAX_EXAMPLES} objects, such as "
        '[{"input": "Refund order 7", "output": "…"}].',
    )
    entry_type = forms.ChoiceField(choices=EntryType.choices, label="Kind")
    reason = forms.CharField(
        required=False,
        max_length=MAX_REASON_CHARS,
        widget=_area(2),
        label="Why",
        help_text="For those who read its history.",
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput())
    """The id of the revision that the author began with."""

    def __init__(self, data: Any = None, *, began: Content, seen: str) -> None:
        self.began = began
        super().__init__(data, initial=texts_of(began) | {"seen": seen})

    def clean_examples(self) -> Any:
        """Return the objects."""
        text = self.cleaned_data["examples"]
        if not text.strip():
            return []
        try:
            found = json.loads(text)
        except RecursionError as error:
            raise ValidationError(f"Nested too deep; at most {MAX_DEPTH} levels.") from error
        except ValueError as error:
            raise ValidationError(f"This is no JSON: {error}.") from error
        if errors := json_errors(found):
            raise ValidationError(errors)
        return clean_json(found)

    @property
    def content(self) -> Content:
        """Return the text that was sent; the services say what is wrong with it."""
        sent = self.cleaned_data
        shown = texts_of(self.began)
        values: dict[str, Any] = {
            "description": clean_text(_lines(sent["description"])),
            "instructions": clean_text(_lines(sent["instructions"])),
            "triggers": [line for line in clean_text(_lines(sent["triggers"])).split("\n") if line.strip()],
            "examples": sent["examples"],
            "entry_type": sent["entry_type"],
        }
        touched = {
            name: value
            for name, value in values.items()
            if _lines(self.data.get(name, "")) != _lines(shown[name])
        }
        return replace(self.began, **touched)


def texts_of(content: Content) -> dict[str, str]:
    """Return a content as the form shows it."""
    return {
        "description": content.description,
        "instructions": content.instructions,
        "triggers": "\n".join(map(str, content.triggers)),
        "examples": json.dumps(content.examples, ensure_ascii=False, indent=2) if content.examples else "",
        "entry_type": content.entry_type,
    }


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

"""The forms of organizations, clients, keys, people and settings. What they allow is decided by services."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.db.models import QuerySet

from mirix.admin_forms import ScopedChoice, ServiceForm, WholeNumberField
from mirix.tenants.keys import DEFAULT_OVERLAP, MAX_LIFE_DAYS, MAX_OVERLAP_HOURS
from mirix.tenants.models import (
    MAX_DAYS,
    MAX_SUPPORTING_SESSIONS,
    Client,
    DecidingRole,
    Organization,
    OrganizationSettings,
    Permission,
    ReviewPolicy,
    Role,
)
from mirix.tenants.selectors import Effective

HOURS = timedelta(hours=1)


class NameForm(ServiceForm):
    """The name of an organization or a client."""

    name = forms.CharField(max_length=128)


class OrganizationChoice(ScopedChoice):
    """A choice among organizations, by name."""


class ClientChoice(ScopedChoice):
    """A choice among clients; its label names the organization too."""

    def label_from_instance(self, obj: Any) -> str:
        """Return `Acme: helpdesk`."""
        return f"{obj.organization.name}: {obj.name}"


class InOrganizationForm(ServiceForm):
    """A form that makes a row in one of the organizations that the user administers."""

    organization = OrganizationChoice(queryset=Organization.objects.none())

    def __init__(self, data: Any = None, *, organizations: QuerySet, chosen: str = "") -> None:
        super().__init__(data)
        field = self.fields["organization"]
        assert isinstance(field, OrganizationChoice)
        self.initial["organization"] = field.scope(organizations, chosen)


class ClientForm(InOrganizationForm):
    """A new client."""

    name = forms.CharField(max_length=128, help_text="What the application is called, such as helpdesk.")


class KeyForm(ServiceForm):
    """A new key."""

    client = ClientChoice(queryset=Client.objects.none())
    name = forms.CharField(
        max_length=128, required=False, label="Note", help_text="A word to recognize the key by."
    )
    permission = forms.ChoiceField(choices=Permission.choices, initial=Permission.WRITE)
    days = WholeNumberField(
        label="Expires after days",
        required=False,
        min_value=1,
        max_value=MAX_LIFE_DAYS,
        help_text="Empty: it works until it is revoked.",
    )

    def __init__(self, data: Any = None, *, clients: QuerySet, chosen: str = "") -> None:
        super().__init__(data)
        field = self.fields["client"]
        assert isinstance(field, ClientChoice)
        self.initial["client"] = field.scope(clients, chosen)


class RotateForm(ServiceForm):
    """How long a key works beside the one that replaces it."""

    overlap_hours = WholeNumberField(
        label="Hours that the old key still works",
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=DEFAULT_OVERLAP // HOURS,
        help_text="Time to give the new key to every host; 0 ends the old one at once.",
    )


class EndUserForm(InOrganizationForm):
    """A new end user."""

    user_id = forms.CharField(
        max_length=256, strip=False, label="User id", help_text="The string by which your agents name them."
    )
    name = forms.CharField(max_length=256, required=False, help_text="For people to read.")


class EndUserNameForm(ServiceForm):
    """The name of an end user."""

    name = forms.CharField(max_length=256, required=False)


EXISTING, NEW = "existing", "new"


class MemberForm(InOrganizationForm):
    """A new member: somebody new, or, where superusers add, somebody who logs in here already."""

    login = forms.ChoiceField(
        choices=[
            (NEW, "Make a login for them, with a password that is shown once"),
            (EXISTING, "They log in here already"),
        ],
        initial=NEW,
        widget=forms.RadioSelect,
    )
    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="What they will log in with. They get a password, which is shown once.",
    )
    email = forms.EmailField(
        required=False,
        max_length=254,
        label="E-mail address",
        help_text="For a new login. Notifications go there.",
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.REVIEWER)

    def __init__(self, data: Any = None, *, may_join: bool, **of: Any) -> None:
        super().__init__(data, **of)
        if may_join:
            self.fields["username"].help_text = "Of somebody who logs in already, the e-mail address will do."
        else:
            del self.fields["login"]

    @property
    def is_new(self) -> bool:
        """Return whether a login is to be made."""
        return self.cleaned_data.get("login", NEW) == NEW


class RoleForm(ServiceForm):
    """The role of a member."""

    role = forms.ChoiceField(choices=Role.choices)


WORDS = {
    "review_policy": {
        ReviewPolicy.REQUIRED.value: "a person approves every change",
        ReviewPolicy.AUTOMATIC.value: "changes without risk flags are published at once",
    },
    "deciding_role": {
        DecidingRole.REVIEWER.value: "reviewers and administrators",
        DecidingRole.ADMINISTRATOR.value: "administrators alone",
    },
}
"""What the values of these settings are called."""
SWITCH = {True: "on", False: "off"}


def _days(label: str, help_text: str) -> WholeNumberField:
    return WholeNumberField(label=label, required=False, min_value=0, max_value=MAX_DAYS, help_text=help_text)


SWITCHED = ("redact_on_intake", "four_eyes")
"""What is on, off or as in the installation."""


class SettingsForm(ServiceForm):
    """What an organization chooses for itself; empty is the installation's setting, which the form names.

    The page sends along what it showed, so that saving it changes what was changed in it, and takes back
    nothing that somebody else has chosen in the meantime.
    """

    marks_optional = False
    SECTIONS = (
        ("Review", "", ("review_policy", "deciding_role", "min_supporting_sessions", "four_eyes")),
        ("Models and privacy", "", ("daily_token_budget", "redact_on_intake")),
        (
            "Days that texts are kept",
            "What was learned from them stays, with its quotes. 0: for ever.",
            (
                "conversation_retention_days",
                "undistilled_retention_days",
                "raw_retention_days",
                "search_log_retention_days",
            ),
        ),
        (
            "Notifications",
            "When proposals, given up sessions or failed requests wait, at most once a day.",
            ("email_digest", "webhook_url"),
        ),
    )

    review_policy = forms.ChoiceField(required=False, label="Before agents see a change")
    deciding_role = forms.ChoiceField(
        required=False,
        label="Who decides",
        help_text="About proposals, and about taking skills out of use and back.",
    )
    min_supporting_sessions = WholeNumberField(
        required=False,
        min_value=1,
        max_value=MAX_SUPPORTING_SESSIONS,
        label="Sessions behind a change",
        help_text="How many must have taught it before it may be published.",
    )
    four_eyes = forms.ChoiceField(
        required=False,
        label="Four eyes",
        help_text="What a person wrote or edited waits for somebody else's approval.",
    )
    daily_token_budget = WholeNumberField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        label="Tokens a day",
        help_text="What models may use for this organization. 0: no limit. Not counted by this version yet.",
    )
    redact_on_intake = forms.ChoiceField(
        required=False,
        label="Redaction on intake",
        help_text="Takes passwords, keys and card numbers out of what comes in before it is stored.",
    )
    conversation_retention_days = _days("Distilled turns", "Counted from when they were learned from.")
    undistilled_retention_days = _days(
        "Turns never distilled", "Counted from when they were stored; also the rows that tell of requests."
    )
    raw_retention_days = _days(
        "Failed requests, raw replies", "What could not be stored, and what models answered."
    )
    search_log_retention_days = _days("Log of searches", "Searches are not logged by this version yet.")
    email_digest = forms.BooleanField(
        required=False,
        label="E-mail to reviewers and administrators",
        help_text="Counts and links, no text of anybody.",
    )
    webhook_url = forms.CharField(
        required=False,
        max_length=500,
        label="Webhook",
        help_text="An address that gets a signed POST. Its secret is shown once, after the first save.",
    )

    def __init__(self, data: Any = None, *, chosen: OrganizationSettings, inherited: Effective) -> None:
        initial = {name: getattr(chosen, name) for name in self.base_fields}
        initial |= {name: _switch(getattr(chosen, name)) for name in SWITCHED}
        super().__init__(data, initial=initial)
        for name, field in self.fields.items():
            field.show_hidden_initial = data is not None and self.add_initial_prefix(name) in data
        inherit = "As the installation: "
        for name, words in WORDS.items():
            own = [(value, text.capitalize()) for value, text in words.items()]
            self._offer(name, [("", inherit + words[getattr(inherited, name)])], own)
        for name in SWITCHED:
            own = [("on", "On"), ("off", "Off")]
            self._offer(name, [("", inherit + SWITCH[getattr(inherited, name)])], own)
        for name, field in self.fields.items():
            if isinstance(field, forms.IntegerField):
                field.widget.attrs["placeholder"] = f"As the installation: {getattr(inherited, name)}"

    @property
    def changes(self) -> dict[str, Any]:
        """Return the valid values that differ from those that the page showed."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    @property
    def shown(self) -> list[str]:
        """Return hidden inputs that hold what the page shows at first."""
        return [self[name].as_hidden(only_initial=True) for name in self.fields]

    @property
    def sections(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        """Return the fields under their headings."""
        return [(heading, text, [self[name] for name in names]) for heading, text, names in self.SECTIONS]

    def _offer(self, name: str, inherited: list[tuple[str, str]], own: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [*inherited, *own]


def _switch(value: bool | None) -> str:
    return "" if value is None else SWITCH[value]

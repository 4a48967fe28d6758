"""Foreign keys that hold the border between organizations: a row points at rows of its own owner alone."""

from django.db import migrations, models

from mirix.tenants.constraints import SameOwner

KEYS = [
    ("intakerecord", "intake_owner_key", ("id", "organization", "end_user")),
    ("session", "session_owner_key", ("id", "organization", "end_user")),
]
LINKS = [
    ("conversationmessage", "session", "turn_session_same_owner"),
    ("conversationmessage", "intake", "turn_intake_same_owner"),
    ("conversationmessage", "client", "turn_client_same_organization"),
    ("intakerecord", "end_user", "intake_end_user_same_organization"),
    ("intakerecord", "client", "intake_client_same_organization"),
    ("session", "end_user", "session_end_user_same_organization"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0001_initial"),
        ("tenants", "0004_same_owner"),
    ]

    # The keys first: the links point at them.
    operations = [
        *(
            migrations.AddConstraint(model, models.UniqueConstraint(fields=fields, name=name))
            for model, name, fields in KEYS
        ),
        *(migrations.AddConstraint(model, SameOwner(field=field, name=name)) for model, field, name in LINKS),
    ]

"""Foreign keys that hold the border between organizations: a row points at rows of its own owner alone."""

from django.db import migrations, models

from mirix.tenants.constraints import SameOwner

KEYS = [
    ("autodreamrun", "run_owner_key", ("id", "organization", "end_user")),
    ("distillationattempt", "attempt_owner_key", ("id", "organization", "end_user")),
    ("skill", "skill_owner_key", ("id", "organization", "end_user")),
    ("skillrevision", "revision_owner_key", ("id", "organization", "end_user")),
    ("skillrevision", "revision_organization_key", ("id", "organization")),
]
LINKS = [
    ("autodreamrun", "end_user", "run_end_user_same_organization"),
    ("distillationattempt", "session", "attempt_session_same_owner"),
    ("distillationattempt", "run", "attempt_run_same_owner"),
    ("reviewdecision", "revision", "decision_revision_same_organization"),
    ("skill", "end_user", "skill_end_user_same_organization"),
    ("skill", "current_revision", "skill_current_revision_same_owner"),
    ("skilldocument", "skill", "document_skill_same_owner"),
    ("skillexperience", "session", "experience_session_same_owner"),
    ("skillexperience", "attempt", "experience_attempt_same_owner"),
    ("skillexperience", "client", "experience_client_same_organization"),
    ("skillrevision", "end_user", "revision_end_user_same_organization"),
    ("skillrevision", "skill", "revision_skill_same_owner"),
    ("skillrevision", "base", "revision_base_same_owner"),
    ("skillrevision", "supersedes", "revision_supersedes_same_owner"),
    ("skillrevision", "run", "revision_run_same_owner"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0002_same_owner"),
        ("skills", "0008_drop_flat_columns"),
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

"""Foreign keys that hold the border between organizations: a row points at rows of its own owner alone."""

from django.db import migrations, models

from mirix.tenants.constraints import SameOwner

KEYS = [
    ("apikey", "apikey_organization_key", ("id", "organization")),
    ("client", "client_organization_key", ("id", "organization")),
    ("enduser", "enduser_organization_key", ("id", "organization")),
]
LINKS = [
    ("apikey", "client", "apikey_client_same_organization"),
    ("apikey", "replaced_by", "apikey_replaced_by_same_organization"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_append_only_audit"),
    ]

    # The keys first: the links point at them.
    operations = [
        *(
            migrations.AddConstraint(model, models.UniqueConstraint(fields=fields, name=name))
            for model, name, fields in KEYS
        ),
        *(migrations.AddConstraint(model, SameOwner(field=field, name=name)) for model, field, name in LINKS),
    ]

"""Events of no organization: what was done to logins that are members of none."""

import django.db.models.deletion
from django.db import migrations, models

APPEND_ONLY = """
CREATE OR REPLACE FUNCTION tenants_auditevent_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The foreign key deletes events after their organization, which is then not to be seen any more.
    IF TG_OP = 'DELETE' AND {with_organization} NOT EXISTS (
        SELECT FROM tenants_organization WHERE id = OLD.organization_id
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_same_owner")]

    operations = [
        migrations.RunSQL(
            APPEND_ONLY.format(with_organization="OLD.organization_id IS NOT NULL AND"),
            APPEND_ONLY.format(with_organization=""),
        ),
        migrations.AlterField(
            model_name="auditevent",
            name="organization",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="audit_events",
                to="tenants.organization",
            ),
        ),
    ]

# By hand: the database itself keeps the audit trail append-only.

from django.db import migrations

FORWARD = """
ALTER TABLE tenants_auditevent ADD CONSTRAINT auditevent_organization_fk
    FOREIGN KEY (organization_id) REFERENCES tenants_organization (id) ON DELETE CASCADE;

CREATE FUNCTION tenants_auditevent_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The constraint above deletes events after their organization, which is then not to be seen any more.
    IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT FROM tenants_organization WHERE id = OLD.organization_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER auditevent_append_only BEFORE UPDATE OR DELETE ON tenants_auditevent
    FOR EACH ROW EXECUTE FUNCTION tenants_auditevent_append_only();
"""
BACKWARD = """
DROP TRIGGER auditevent_append_only ON tenants_auditevent;
DROP FUNCTION tenants_auditevent_append_only();
ALTER TABLE tenants_auditevent DROP CONSTRAINT auditevent_organization_fk;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_administration")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

"""Schema: what must hold of a skill from here on."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("skills", "0004_texts")]

    operations = [
        migrations.AlterField("skill", "name", models.CharField(max_length=64)),
        migrations.AlterField("skill", "description", models.CharField(max_length=1024)),
        migrations.AlterField("skill", "instructions", models.TextField()),
        migrations.AddConstraint(
            "skill",
            models.UniqueConstraint(
                fields=("organization", "end_user", "name"), name="skill_owner_name_uniq"
            ),
        ),
        migrations.AddConstraint(
            "skill",
            models.CheckConstraint(
                condition=models.Q(("name__regex", "^[a-z0-9]+(-[a-z0-9]+)*$")), name="skill_name_slug"
            ),
        ),
        migrations.AddConstraint(
            "skill",
            models.CheckConstraint(
                condition=models.Q(("entry_type__in", ["workflow", "guide", "script"])),
                name="skill_entry_type_valid",
            ),
        ),
        migrations.AddConstraint(
            "skill",
            models.CheckConstraint(
                condition=models.Q(("status__in", ["active", "archived", "quarantined"])),
                name="skill_status_valid",
            ),
        ),
        migrations.AddIndex(
            "skill",
            models.Index(fields=["organization", "-created_at", "id"], name="skill_organization_recent"),
        ),
        migrations.AddIndex(
            "skill",
            models.Index(fields=["end_user", "status", "-updated_at"], name="skill_end_user_recent"),
        ),
    ]

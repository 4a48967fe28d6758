"""Schema: the columns of a skill, still blank, beside those of the flat table."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("skills", "0001_initial")]

    operations = [
        migrations.RenameModel("ProceduralMemory", "Skill"),
        migrations.RenameField("skill", "entry_type", "flat_entry_type"),
        migrations.RenameField("skill", "filter_tags", "flat_filter_tags"),
        # Going back adds the dropped columns to rows that exist, hence the default.
        migrations.AlterField("skill", "flat_entry_type", models.TextField(default="")),
        migrations.AddField("skill", "name", models.CharField(blank=True, default="", max_length=64)),
        migrations.AddField(
            "skill",
            "entry_type",
            models.CharField(
                choices=[("workflow", "Workflow"), ("guide", "Guide"), ("script", "Script")],
                default="workflow",
                max_length=16,
            ),
        ),
        migrations.AddField(
            "skill", "description", models.CharField(blank=True, default="", max_length=1024)
        ),
        migrations.AddField("skill", "instructions", models.TextField(blank=True, default="")),
        migrations.AddField("skill", "triggers", models.JSONField(blank=True, default=list)),
        migrations.AddField("skill", "examples", models.JSONField(blank=True, default=list)),
        migrations.AddField("skill", "filter_tags", models.JSONField(blank=True, default=dict)),
        migrations.AddField("skill", "version", models.CharField(default="0.1.0", max_length=32)),
        migrations.AddField(
            "skill",
            "status",
            models.CharField(
                choices=[
                    ("active", "Active"),
                    ("archived", "Archived"),
                    ("quarantined", "Quarantined"),
                ],
                default="active",
                max_length=16,
            ),
        ),
    ]

"""Lay the lexical index out anew: short rows, all that a search reads of a posting in one index.

The tables are derived from the skills: `search_index rebuild` fills them.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("skills", "0008_drop_flat_columns"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.DeleteModel(name="SkillPosting"),
        migrations.DeleteModel(name="SkillDocument"),
        migrations.CreateModel(
            name="SkillDocument",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name_length", models.SmallIntegerField()),
                ("triggers_length", models.SmallIntegerField()),
                ("description_length", models.SmallIntegerField()),
                ("instructions_length", models.SmallIntegerField()),
                (
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
                (
                    "skill",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="document",
                        to="skills.skill",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="SkillPosting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "document", "term", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("term", models.CharField(db_collation="C", max_length=64)),
                ("name_count", models.SmallIntegerField()),
                ("triggers_count", models.SmallIntegerField()),
                ("description_count", models.SmallIntegerField()),
                ("instructions_count", models.SmallIntegerField()),
                ("name_length", models.SmallIntegerField()),
                ("triggers_length", models.SmallIntegerField()),
                ("description_length", models.SmallIntegerField()),
                ("instructions_length", models.SmallIntegerField()),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="postings",
                        to="skills.skilldocument",
                    ),
                ),
                (
                    "end_user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.enduser",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="skillposting",
            index=models.Index(
                fields=["organization", "term", "end_user"],
                include=(
                    "document",
                    "name_count",
                    "triggers_count",
                    "description_count",
                    "instructions_count",
                    "name_length",
                    "triggers_length",
                    "description_length",
                    "instructions_length",
                ),
                name="posting_organization_term",
            ),
        ),
    ]

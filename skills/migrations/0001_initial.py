"""The flat table that skills come from: a summary, steps as JSON, and a free-text kind."""

from __future__ import annotations

import functools

import django.db.models.deletion
from django.db import migrations, models

import mirix.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ProceduralMemory",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mirix.ids.new_id, "proc"),
                        editable=False,
                        max_length=128,
                        primary_key=True,
                        serialize=False,
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
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="tenants.client",
                    ),
                ),
                ("entry_type", models.TextField()),
                ("summary", models.TextField(null=True)),
                ("steps", models.JSONField(null=True)),
                ("filter_tags", models.JSONField(null=True)),
                ("last_modify", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
        ),
    ]

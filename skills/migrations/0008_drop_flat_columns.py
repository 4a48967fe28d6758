"""Schema: the columns of the flat table go; the first revision of each skill keeps what they held."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("skills", "0007_first_revisions")]

    operations = [
        migrations.RemoveField("skill", "client"),
        migrations.RemoveField("skill", "flat_entry_type"),
        migrations.RemoveField("skill", "flat_filter_tags"),
        migrations.RemoveField("skill", "last_modify"),
        migrations.RemoveField("skill", "steps"),
        migrations.RemoveField("skill", "summary"),
    ]

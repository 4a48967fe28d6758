"""Schema: the rules of 0014 hold of the rows that exist too; reading and writing go on while that is looked at."""

from __future__ import annotations

import importlib

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations

RULES = importlib.import_module("skills.migrations.0014_content_rules").RULES


class Migration(migrations.Migration):
    dependencies = [("skills", "0014_content_rules")]
    operations = [ValidateConstraint(model, name) for model, name, _ in RULES]

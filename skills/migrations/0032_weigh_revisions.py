# By hand: the weight of the revisions there are, a batch at a time; weighing one again changes nothing.

from django.db import migrations, transaction

BATCH = 1_000


def weigh(apps, schema_editor):
    """Weigh every revision."""
    connection = schema_editor.connection
    revisions = apps.get_model("skills", "SkillRevision").objects.using(connection.alias).order_by("pk")
    last = ""
    while batch := list(revisions.filter(pk__gt=last).values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute("SELECT skills_weigh(%s::text[])", [batch])
        last = batch[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("skills", "0031_weight_of_revisions")]

    operations = [migrations.RunPython(weigh, migrations.RunPython.noop, elidable=True)]

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("skills", "0032_weigh_revisions")]

    operations = [
        migrations.AddIndex(
            model_name="skillrevision",
            index=models.Index(
                fields=["organization", "-priority", "-session_count", "created_at", "id"],
                condition=Q(state="proposed"),
                name="revision_queue",
            ),
        ),
        migrations.AddIndex(
            model_name="skillrevision",
            index=models.Index(
                fields=["-priority", "-session_count", "created_at", "id", "organization"],
                condition=Q(state="proposed"),
                name="revision_queue_of_all",
            ),
        ),
    ]

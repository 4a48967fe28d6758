# By hand: the columns and what keeps them; the rows there are get theirs in the next migration.

from django.db import migrations, models

FORWARD = """
-- Locks first, in the order of the keys: the statement after it then sees what the others have committed.
CREATE FUNCTION skills_weigh(revisions text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM skills_skillrevision WHERE id = ANY (revisions) ORDER BY id FOR NO KEY UPDATE;
    UPDATE skills_skillrevision AS revision SET
        priority = weight.best, evidence_count = weight.number, session_count = weight.sessions
    FROM unnest(revisions) AS named (id), LATERAL (
        SELECT coalesce(max(importance * credibility), 0) AS best, count(*) AS number,
            count(DISTINCT coalesce(nullif(session.history_hash, ''), session.id))
                FILTER (WHERE NOT experience.quarantined) AS sessions
        FROM skills_skillrevision_experiences AS support
        JOIN skills_skillexperience AS experience ON experience.id = support.skillexperience_id
        JOIN conversations_session AS session ON session.id = experience.session_id
        WHERE support.skillrevision_id = named.id
    ) AS weight
    WHERE revision.id = named.id
        AND (revision.priority, revision.evidence_count, revision.session_count)
            IS DISTINCT FROM (weight.best, weight.number::integer, weight.sessions::integer);
END $$;

CREATE FUNCTION skills_weigh_supported() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM skills_weigh(ARRAY (SELECT DISTINCT skillrevision_id FROM changed));
    RETURN NULL;
END $$;

CREATE FUNCTION skills_weigh_experience() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM skills_weigh(ARRAY (
        SELECT skillrevision_id FROM skills_skillrevision_experiences WHERE skillexperience_id = NEW.id
    ));
    RETURN NULL;
END $$;

CREATE TRIGGER support_came AFTER INSERT ON skills_skillrevision_experiences
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION skills_weigh_supported();
CREATE TRIGGER support_went AFTER DELETE ON skills_skillrevision_experiences
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION skills_weigh_supported();
CREATE TRIGGER experience_weighs AFTER UPDATE ON skills_skillexperience FOR EACH ROW
    WHEN ((OLD.importance, OLD.credibility, OLD.quarantined)
        IS DISTINCT FROM (NEW.importance, NEW.credibility, NEW.quarantined))
    EXECUTE FUNCTION skills_weigh_experience();
"""
BACKWARD = """
DROP TRIGGER support_came ON skills_skillrevision_experiences;
DROP TRIGGER support_went ON skills_skillrevision_experiences;
DROP TRIGGER experience_weighs ON skills_skillexperience;
DROP FUNCTION skills_weigh_supported();
DROP FUNCTION skills_weigh_experience();
DROP FUNCTION skills_weigh(text[]);
"""


class Migration(migrations.Migration):
    dependencies = [("skills", "0030_days_of_home")]

    operations = [
        migrations.AddField(
            model_name="skillrevision",
            name="priority",
            field=models.FloatField(default=0.0, editable=False),
        ),
        migrations.AddField(
            model_name="skillrevision",
            name="evidence_count",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="skillrevision",
            name="session_count",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]

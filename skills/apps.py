"""The app of what was learned: experiences, skills, revisions, runs."""

from __future__ import annotations

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    """See `skills.models`."""

    name = "skills"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have runs start by themselves, people be told, evidence be kept, and all erased and measured."""
        from conversations.sealing import on_sealed
        from mirix import measures
        from mirix.tenants import erasure
        from mirix.tenants.counters import Counter, register
        from skills import retention
        from skills.distillation import checks  # noqa: F401  registers itself
        from skills.erasure.eraser import ERASER
        from skills.measures import MEASURES
        from skills.selectors.experiences import quarantined_in
        from skills.selectors.proposals import proposals_of
        from skills.triggers import trigger_if_due

        on_sealed(lambda owner: trigger_if_due(owner=owner))
        register(
            Counter(
                kind="quarantined",
                one="experience in quarantine",
                many="experiences in quarantine",
                count=lambda organization: quarantined_in(organization=organization).count(),
                page="admin:skills_skillexperience_changelist",
                query="quarantined__exact=1",
            )
        )
        register(
            Counter(
                kind="proposals",
                one="proposal to decide",
                many="proposals to decide",
                count=lambda organization: proposals_of(organization=organization).count(),
                page="admin:skills_skillrevision_changelist",
            )
        )
        retention.register()
        measures.register(*MEASURES)
        erasure.register(ERASER)

"""The routes of the skills app, a module per subject."""

from __future__ import annotations

from django.urls import path

from skills.api.compare import CompareView
from skills.api.decisions import ApproveView, RejectView
from skills.api.dream import DreamView
from skills.api.erasure import EraseSkillView
from skills.api.experiences import ExperienceViewSet, ReleaseView
from skills.api.proposals import ProposalViewSet
from skills.api.runs import RunViewSet
from skills.api.search import OrganizationSearchView, SearchView
from skills.api.skill_md import SkillMdView
from skills.api.skills import SkillRevisionsView, SkillViewSet

urlpatterns = [
    path("memory/auto_dream", DreamView.as_view(), name="auto-dream"),
    path("memory/procedural/<id:pk>", EraseSkillView.as_view(), name="memory-procedural"),
    path("memory/search", SearchView.as_view(), name="memory-search"),
    path("memory/search_all_users", OrganizationSearchView.as_view(), name="memory-search-all-users"),
    path("v1/experiences", ExperienceViewSet.as_view({"get": "list"}), name="experiences"),
    path("v1/experiences/<id:pk>", ExperienceViewSet.as_view({"get": "retrieve"}), name="experience"),
    path("v1/experiences/<id:pk>/release", ReleaseView.as_view(), name="experience-release"),
    path("v1/runs", RunViewSet.as_view({"get": "list"}), name="runs"),
    path("v1/runs/<id:pk>", RunViewSet.as_view({"get": "retrieve"}), name="run"),
    path("v1/skills", SkillViewSet.as_view({"get": "list"}), name="skills"),
    path("v1/skills/<id:pk>", SkillViewSet.as_view({"get": "retrieve"}), name="skill"),
    path("v1/skills/<id:pk>/SKILL.md", SkillMdView.as_view(), name="skill-md"),
    path("v1/skills/<id:pk>/revisions", SkillRevisionsView.as_view(), name="skill-revisions"),
    path("v1/skills/<id:pk>/revisions/compare", CompareView.as_view(), name="skill-compare"),
    path("v1/proposals", ProposalViewSet.as_view({"get": "list"}), name="proposals"),
    path("v1/proposals/<id:pk>", ProposalViewSet.as_view({"get": "retrieve"}), name="proposal"),
    path("v1/proposals/<id:pk>/approve", ApproveView.as_view(), name="proposal-approve"),
    path("v1/proposals/<id:pk>/reject", RejectView.as_view(), name="proposal-reject"),
]

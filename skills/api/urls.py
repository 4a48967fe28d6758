"""The routes of the skills app, a module per subject."""

from __future__ import annotations

from django.urls import path

from skills.api.experiences import ExperienceViewSet
from skills.api.runs import RunViewSet

urlpatterns = [
    path("v1/experiences", ExperienceViewSet.as_view({"get": "list"}), name="experiences"),
    path("v1/experiences/<str:pk>", ExperienceViewSet.as_view({"get": "retrieve"}), name="experience"),
    path("v1/runs", RunViewSet.as_view({"get": "list"}), name="runs"),
    path("v1/runs/<str:pk>", RunViewSet.as_view({"get": "retrieve"}), name="run"),
]

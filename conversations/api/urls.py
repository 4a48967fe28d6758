"""The routes of the conversations app."""

from __future__ import annotations

from django.urls import path

from conversations.api.intake import IntakeViewSet
from conversations.api.memory import AddSyncView, AddView
from conversations.api.sessions import CloseView, RetryView, SessionViewSet, TurnListView

urlpatterns = [
    path("memory/add", AddView.as_view(), name="memory-add"),
    path("memory/add_sync", AddSyncView.as_view(), name="memory-add-sync"),
    path("v1/sessions", SessionViewSet.as_view({"get": "list"}), name="sessions"),
    path("v1/sessions/<id:session_id>", SessionViewSet.as_view({"get": "retrieve"}), name="session"),
    path("v1/sessions/<id:session_id>/turns", TurnListView.as_view(), name="session-turns"),
    path("v1/sessions/<id:session_id>/close", CloseView.as_view(), name="session-close"),
    path("v1/sessions/<id:session_id>/retry", RetryView.as_view(), name="session-retry"),
    path("v1/intake", IntakeViewSet.as_view({"get": "list"}), name="intake"),
    path("v1/intake/<id:pk>", IntakeViewSet.as_view({"get": "retrieve"}), name="intake-record"),
]

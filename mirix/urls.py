"""The routes: the admin for people, the API for programs. The one place that knows all rooms."""

from __future__ import annotations

import importlib.util

from django.contrib import admin
from django.urls import include, path

import mirix.api.paths  # noqa: F401 registers <id:…> for the routes of the apps
from mirix.api.erasure import EraseClientView, EraseUserView
from mirix.api.health import HealthView, ReadyView
from mirix.api.home import HomeView
from mirix.api.metrics import MetricsView
from mirix.api.tokens import RefreshView, TokenView
from mirix.api.usage import UsageView
from mirix.api.users import EndUserView
from mirix.api.views import DocsView, SchemaView

urlpatterns = [
    path("", HomeView.as_view(), name="home"),
    path("admin", HomeView.as_view(), name="admin-without-slash"),
    path("admin/", admin.site.urls),
    path("health", HealthView.as_view(), name="health"),
    path("ready", ReadyView.as_view(), name="ready"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("schema", SchemaView.as_view(), name="schema"),
    path("docs", DocsView.as_view(url_name="schema"), name="docs"),
    path("auth/token", TokenView.as_view(), name="auth-token"),
    path("auth/token/refresh", RefreshView.as_view(), name="auth-token-refresh"),
    path("users/create_or_get", EndUserView.as_view(), name="users-create-or-get"),
    path("clients/<id:pk>/memories", EraseClientView.as_view(), name="client-memories"),
    path("users/<id:pk>/memories", EraseUserView.as_view(), name="user-memories"),
    path("v1/usage", UsageView.as_view(), name="usage"),
    *(
        path("", include(module))
        for module in ("conversations.api.urls", "skills.api.urls")
        if importlib.util.find_spec(module)
    ),
]

handler400 = "mirix.api.errors.bad_request"
handler403 = "mirix.api.errors.forbidden"
handler404 = "mirix.api.errors.not_found"
handler500 = "mirix.api.errors.server_error"

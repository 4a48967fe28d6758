"""The site that all admin pages stand in: what its addresses answer to, and one's own password.

No page hides a character of what it shows, and none answers to more methods than it has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse
from django.urls import resolve, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.common import no_append_slash
from django.views.decorators.http import require_http_methods
from unfold.forms import AdminOwnPasswordChangeForm
from unfold.sites import UnfoldAdminSite

from mirix.revealing import reveal
from mirix.tenants.audit import Actor
from mirix.tenants.logins import save_login

_pages_only = require_http_methods(["GET", "HEAD", "POST"])


def _reveal(response: HttpResponse) -> None:
    if response.get("Content-Type", "").startswith("text/html"):
        html = response.content.decode(response.charset)
        response.content = reveal(html).encode(response.charset)


def _revealing(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let no page of a view hide a character of what it shows."""

    @wraps(view)
    def revealed(*args: Any, **kwargs: Any) -> HttpResponse:
        response = view(*args, **kwargs)
        if isinstance(response, SimpleTemplateResponse):
            response.add_post_render_callback(_reveal)
        else:
            _reveal(response)
        return response

    return revealed


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """A new password for the old one, whose wrong tries count as those of a login do."""

    def __init__(self, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        """Return the old password; whoever took over a session may not guess it without end."""
        password: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self.request, username=name, password=password) is None:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return password

    def save(self, commit: bool = True) -> User:
        """Store the new password by the service, which leaves a trail."""
        user = self.user
        user.set_password(self.cleaned_data["new_password1"])
        return save_login(user=user, actor=Actor.of_user(user))


class AdminSite(UnfoldAdminSite):
    """The admin of this project."""

    index_title = "Overview"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Let a page be read and posted to; Django would take any other method for a GET."""
        return _pages_only(super().admin_view(_revealing(view), cacheable))

    @method_decorator(_pages_only)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the form, or log in."""
        return super().login(request, extra_context)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the form for one's own password, or change it."""
        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=partial(OwnPasswordForm, request),
            success_url=reverse("admin:password_change_done"),
            template_name=self.password_change_template or PasswordChangeView.template_name,
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)

    @no_append_slash
    def catch_all_view(self, request: HttpRequest, url: str) -> HttpResponse:
        """Lead to the page whose address lacks its last slash; 404 where there is none.

        Django's own does so under APPEND_SLASH alone, which would hold for the API too.
        """
        if request.method != "POST" and not url.endswith("/"):
            page = resolve(f"{request.path_info}/").func  # this very view, where nothing else fits
            if getattr(page, "should_append_slash", True):
                return HttpResponseRedirect(request.get_full_path(force_append_slash=True))
        raise Http404

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Answer 404: the theme's search keeps objects in the cache, and ours holds JSON alone."""
        raise Http404

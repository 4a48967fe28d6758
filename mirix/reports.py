"""Reports of errors without secrets: Django's debug page, and the mail to whoever runs the installation.

Django hides what is called a secret; an API key may also stand in a variable of another name, in a header, or
in the text of an exception. Here whatever looks like one of our keys or tokens is taken out of the report.
"""

from __future__ import annotations

from collections.abc import ItemsView
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from mirix.logs import HIDDEN, SECRET


class SecretFilter(SafeExceptionReporterFilter):
    """Hide what code marks as sensitive also where DEBUG is on, and variables that are called a secret."""

    def is_active(self, request: HttpRequest | None) -> bool:
        """Hide always."""
        return True

    def get_traceback_frame_variables(self, request: Any, tb_frame: Any) -> ItemsView[str, Any]:
        """Return the variables of a frame as they may be shown."""
        return {
            name: HIDDEN if isinstance(value, str) and self.hidden_settings.search(name) else value
            for name, value in super().get_traceback_frame_variables(request, tb_frame)
        }.items()


class SecretReporter(ExceptionReporter):
    """A report in which no key and no token is left, wherever it stood."""

    def get_traceback_html(self) -> SafeString:
        """Return the page."""
        return SafeString(SECRET.sub(HIDDEN, super().get_traceback_html()))

    def get_traceback_text(self) -> SafeString:
        """Return the text."""
        return SafeString(SECRET.sub(HIDDEN, super().get_traceback_text()))

"""The theme of the admin: name, colours, files and the places that fill the navigation and the home page.

Everything is served from here; no page asks another host for a font or a script.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static


def _static(path: str) -> Any:
    return lambda request: static(path)


def environment(request: HttpRequest) -> list[str] | None:
    """Mark an installation that runs with DEBUG, where error pages show what they should not."""
    return ["Debug", "warning"] if settings.DEBUG else None


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "mirix",
    "SITE_HEADER": "mirix",
    "SITE_SUBHEADER": "Skills, from work already done",
    "SITE_URL": None,
    "SITE_ICON": _static("mirix/icon.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _static("mirix/icon.svg")}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "mirix.unfold.environment",
    "DASHBOARD_CALLBACK": "skills.admin.home.dashboard",
    "STYLES": [_static("mirix/admin.css"), _static("mirix/review.css")],
    "SCRIPTS": [],
    "SIDEBAR": {"show_search": False, "navigation": "skills.admin.navigation.navigation"},
    "BORDER_RADIUS": "8px",
    "COLORS": {
        # Teal, one step darker than usual: white text on 600 keeps a contrast of 5.4 to 1.
        "primary": {
            "50": "oklch(98.4% .014 180.72)",
            "100": "oklch(95.3% .051 180.801)",
            "200": "oklch(91% .096 180.426)",
            "300": "oklch(85.5% .138 181.071)",
            "400": "oklch(77.7% .152 181.912)",
            "500": "oklch(70.4% .14 182.503)",
            "600": "oklch(51.1% .096 186.391)",
            "700": "oklch(43.7% .078 188.216)",
            "800": "oklch(38.6% .063 188.416)",
            "900": "oklch(33% .053 190)",
            "950": "oklch(27.7% .046 192.524)",
        },
    },
}

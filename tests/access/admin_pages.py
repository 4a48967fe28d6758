"""Every page of the admin, as it is registered."""

from __future__ import annotations

from django.contrib import admin

from tests.access.routes import registered


def pages() -> dict[str, str]:
    """Return the path of every page by its name in the table: `index`, `skills.skill change`."""
    prefixes = {
        f"admin/{model._meta.app_label}/{model._meta.model_name}/": model._meta.label_lower
        for model in admin.site._registry
    }
    found = {}
    for route in registered():
        if not route.name.startswith("admin:"):
            continue
        name = route.name.removeprefix("admin:")
        prefix = next((prefix for prefix in prefixes if route.path.startswith(prefix)), "")
        if prefix:
            label = prefixes[prefix]
            view = name.removeprefix(label.replace(".", "_") + "_") or "old address"
            found[f"{label} {view}"] = route.path
        else:
            found[name or "anything else"] = route.path
    return found


PAGES = pages()

"""The table of a list."""

from __future__ import annotations

from typing import Any

from django import template

from mirix.admin_table import Table

register = template.Library()


@register.inclusion_tag("admin/mirix/rows.html")
def rows_of(changes: Any) -> dict[str, Any]:
    """Show the rows of a list under the heads of their columns."""
    table = Table(changes)
    return {
        "cl": changes,
        "result_headers": table.heads,
        "num_sorted_fields": table.sorted_fields,
        "rows": table.rows(),
    }

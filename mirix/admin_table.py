"""The rows of a list in the dress of the theme, whose own tag costs twice what all else on the page does.

It makes the heads of all columns anew for each row, and renders a template for each label and checkbox. Here
what belongs to a column is made once, and so are equal labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, time
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import DateField, ForeignKey, Model, TimeField
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe
from unfold.admin import checkbox
from unfold.templatetags.unfold_list import CHECKBOX_CLASSES, LINK_CLASSES, ROW_CLASSES, result_headers
from unfold.utils import display_for_field, display_for_label, display_for_value

CHECKBOX = "action_checkbox"
LINK = " ".join(LINK_CLASSES)
KEY = "KEY-OF-THE-ROW"
Shown = tuple[str, bool]
"""What a cell shows, and whether it keeps on one line."""


class Table:
    """A page of a list: its heads, and its rows cell by cell."""

    def __init__(self, changes: Any) -> None:
        self.changes = changes
        self.heads: list[dict[str, Any]] = list(result_headers(changes))
        self._admin = changes.model_admin
        self._empty = self._admin.get_empty_value_display()
        self._labels: dict[Any, str] = {}
        self._box = str(checkbox.render(ACTION_CHECKBOX_NAME, KEY))
        carried = changes.preserved_filters
        self._carried = f"?{carried}" if carried else ""

    @property
    def sorted_fields(self) -> int:
        """By how many columns the list is sorted."""
        return sum(head["sortable"] and head["sorted"] for head in self.heads)

    def rows(self) -> list[SafeString]:
        """Return the cells of each row."""
        cells = list(self._cells())
        # Each cell escapes what it shows.
        return [mark_safe("".join(cell(row) for cell in cells)) for row in self.changes.result_list]  # noqa: S308

    def _cells(self) -> Iterator[Callable[[Any], str]]:
        """Yield for each column what makes its cell of a row."""
        links = self.changes.list_display_links or ()
        first_link = next((name for name in self.changes.list_display if name in links), None)
        for number, name in enumerate(self.changes.list_display):
            head = self.heads[number]["text"] if number or name in links else "Select record"
            tag = "th" if name == first_link else "td"
            yield self._cell(name, tag, head, is_link=name in links)

    def _cell(self, name: str, tag: str, head: str, *, is_link: bool) -> Callable[[Any], str]:
        classes = " ".join(CHECKBOX_CLASSES if name == CHECKBOX else (f"field-{name}", *ROW_CLASSES))
        plain, whole = (
            format_html('<{} class="{}" data-label="{}">', tag, f"{classes}{more}", head)
            for more in ("", " nowrap")
        )
        close = f"</{tag}>"

        def cell(row: Any) -> str:
            text, is_whole = self._shown(name, row)
            shown: str = conditional_escape(text)
            if is_link:
                address = escape(self.changes.url_for_result(row) + self._carried)
                shown = f'<a href="{address}" class="{LINK}" >{shown}</a>'
            return f"{whole if is_whole else plain}{shown}{close}"

        return cell

    def _shown(self, name: str, row: Model) -> Shown:
        if name == CHECKBOX:
            return mark_safe(self._box.replace(KEY, escape(str(row.pk)))), False  # noqa: S308  (the theme's own)
        try:
            field, attribute, value = lookup_field(name, row, self._admin)
        except ObjectDoesNotExist:
            return self._empty, False
        if field is None or field.auto_created:
            return self._of_method(attribute, value)
        if isinstance(field, ForeignKey):
            return self._empty if value is None else value, True
        return display_for_field(value, field, self._empty), isinstance(field, DateField | TimeField)

    def _of_method(self, attribute: Any, value: Any) -> Shown:
        empty = getattr(attribute, "empty_value_display", self._empty)
        if label := getattr(attribute, "label", False):
            key = (value, id(label))
            if key not in self._labels:
                self._labels[key] = display_for_label(value, empty, label)
            return self._labels[key], False
        is_boolean = getattr(attribute, "boolean", False)
        return display_for_value(value, empty, is_boolean), isinstance(value, date | time)

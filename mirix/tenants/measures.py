"""What was erased, in numbers, for `/metrics`."""

from __future__ import annotations

from django.db.models import Count

from mirix.measures import Measure, Readings
from mirix.tenants.models import ErasureReceipt


def _erasures() -> Readings:
    receipts = ErasureReceipt.objects.unscoped("numbers of the installation")
    found = receipts.order_by().values_list("kind").annotate(Count("pk")).order_by("kind")
    return [({"kind": kind}, number) for kind, number in found]


MEASURES = (Measure(name="mirix_erasures", text="Erasures that were done, by what of.", read=_erasures),)

"""What the pages of the admin cost where a lot is stored: `tests.benchmarks.admin_fill` says how much.

Every page is opened by a superuser, by the administrator of the largest organization and, as far as lists go,
by a reviewer of two small ones; each address once to warm up, then a few times. The time is that of the
server: from the request to the last byte of the page, all middleware included. Beside it stands a list of 50
rows by plain Django, without admin, sessions or middleware.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import Client
from django.test.utils import override_settings
from django.urls import path

from mirix.tenants.models import Membership
from skills.models import Skill
from tests.benchmarks import Report, Tell
from tests.benchmarks.admin_fill import Size, size_of, stock
from tests.benchmarks.admin_pages import Page, Ways, pages_for
from tests.factories import make_superuser

GOAL_MS = 300
TIMES, BARE_TIMES = 5, 50
TRIAL_BELOW = 0.02
PATIENCE_MS = 1_500
"""What takes longer is measured but twice."""
ROWS = Template(
    "<table>{% for row in rows %}<tr><td>{{ row.name }}</td><td>{{ row.description }}</td></tr>"
    "{% endfor %}</table>"
)


def bare(request: HttpRequest) -> HttpResponse:
    """Show 50 skills."""
    rows = Skill.objects.for_organizations(None).only("name", "description").order_by("pk")[:50]
    return HttpResponse(ROWS.render(Context({"rows": rows})))


urlpatterns = [path("bare/", bare)]


@dataclass
class Measured:
    """The milliseconds of one page in one way, by visitor and address."""

    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def slowest(self) -> str:
        """Which visitor and address takes longest, by the median."""
        return max(self.times, key=lambda address: median(self.times[address]))

    @property
    def p50(self) -> float:
        """The median of the slowest address."""
        return median(self.times[self.slowest])

    @property
    def p95(self) -> float:
        """What one in twenty of the slowest address takes."""
        return _p95(self.times[self.slowest])


def measure(tell: Tell, options: argparse.Namespace) -> Report:
    """Store everything and open every page; in a trial, at a small part of the sizes, each but once."""
    size = size_of(options.scale)
    began = time.monotonic()
    stock(tell, size)
    tell(f"admin: stored in {time.monotonic() - began:.0f} s")
    is_trial = options.scale < TRIAL_BELOW
    found: dict[tuple[str, str], Measured] = defaultdict(Measured)
    with override_settings(ALLOWED_HOSTS=["testserver"], AXES_ENABLED=False), _without_refusals():
        plain = _bare()
        for visitor, (user, ways) in visitors().items():
            browser = Client()
            browser.force_login(user, "django.contrib.auth.backends.ModelBackend")
            pages = pages_for(user, Ways(pages=ways.pages) if is_trial else ways)
            tell(f"admin: {len(pages)} addresses as {visitor}")
            for page in pages:
                if times := _times(browser, page, 1 if is_trial else TIMES, is_superuser=user.is_superuser):
                    found[page.name, page.way].times[f"{visitor} {page.url[:120]}"] = times
            if is_trial:
                break
    return Report(figures=_figures(size, plain, found), lines=_lines(size, plain, found))


@contextmanager
def _without_refusals() -> Iterator[None]:
    """Log no page that a visitor may not open: that is no news."""
    logger = logging.getLogger("django.request")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def visitors() -> dict[str, tuple[User, Ways]]:
    """Return those who look, by what they are, and at what each looks."""
    reviewer, administrator = (User.objects.create_user(name, is_staff=True) for name in ("two", "one"))
    for number in (1, 2):
        Membership.objects.create(user=reviewer, organization_id=f"org-{number}", role="reviewer")
    Membership.objects.create(user=administrator, organization_id="org-0", role="administrator")
    everything = Ways(choices=2, searches=3, sorts=True, pages=True)
    return {
        "superuser": (make_superuser(), everything),
        "administrator of the largest": (administrator, Ways(choices=1, searches=1, pages=True)),
        "reviewer of two": (reviewer, Ways(choices=1, searches=2)),
    }


def _bare() -> list[float]:
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):
        browser = Client()
        return [_milliseconds(browser, "/bare/")[1] for _ in range(BARE_TIMES + 1)][1:]


def _times(browser: Client, page: Page, times: int, *, is_superuser: bool) -> list[float]:
    """Return what a page takes; nothing where the user may not open it, which no superuser is told."""
    status, warm_up = _milliseconds(browser, page.url)
    if status in (403, 404) and not is_superuser:
        return []
    if status != 200:
        raise AssertionError(f"{page.url} answers {status}")
    if times == 1:
        return [warm_up]
    return [_milliseconds(browser, page.url)[1] for _ in range(2 if warm_up > PATIENCE_MS else times)]


def _milliseconds(browser: Client, url: str) -> tuple[int, float]:
    began = time.perf_counter()
    answer = browser.get(url)
    return answer.status_code, 1_000 * (time.perf_counter() - began)


def _p95(values: Sequence[float]) -> float:
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=20, method="inclusive")[-1]


def _figures(size: Size, plain: list[float], found: dict[tuple[str, str], Measured]) -> dict[str, Any]:
    return {
        "stored": {
            "skills": size.skills,
            "turns": size.turns,
            "sessions": size.sessions,
            "waiting": size.waiting,
        },
        "goal_ms": GOAL_MS,
        "bare_ms": {"p50": median(plain), "p95": _p95(plain)},
        "pages": [
            {
                "page": name,
                "way": way,
                "p50_ms": round(measured.p50, 1),
                "p95_ms": round(measured.p95, 1),
                "ratio_to_bare": round(measured.p50 / median(plain), 1),
                "is_met": measured.p50 < GOAL_MS,
                "addresses": len(measured.times),
                "slowest": measured.slowest,
            }
            for (name, way), measured in sorted(found.items())
        ],
    }


def _lines(size: Size, plain: list[float], found: dict[tuple[str, str], Measured]) -> list[str]:
    lines = [
        (
            f"{size.skills:,} skills, {size.turns:,} turns in {size.sessions:,} sessions, "
            f"{size.waiting:,} waiting proposals"
        ),
        f"a list by plain Django: {median(plain):.1f} ms, p95 {_p95(plain):.1f} ms",
        f"{'page, at its slowest address':<52}{'p50':>9}{'p95':>9}{'to plain':>10}  p50 < {GOAL_MS} ms",
    ]
    missed = 0
    for (name, way), measured in sorted(found.items()):
        is_met = measured.p50 < GOAL_MS
        missed += not is_met
        title = name if way == "page" else f"{name}, {way}"
        where = "met" if is_met else f"MISSED  {measured.slowest}"
        ratio = measured.p50 / median(plain)
        lines.append(f"{title:<52}{measured.p50:>6.0f} ms{measured.p95:>6.0f} ms{ratio:>10.1f}  {where}")
    opened = sum(len(measured.times) for measured in found.values())
    return [*lines, f"{opened} addresses; {missed} of {len(found)} lines miss the goal"]

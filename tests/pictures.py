"""`./run pictures`: take the pictures of README.md and docs/tour.md anew, so that they stay true.

A mirix of its own learns from the sample sessions and is served, as `./run` does it; a browser opens the
pages below, in light and in dark. The files in `docs/pictures/` have 128 colours at most.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from mirix.client import Mirix  # noqa: E402
from tests.browser import chromium  # noqa: E402
from tests.mirix.served import Served  # noqa: E402
from tests.mirix.states import opened  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
HOME, PAGE = ({"width": 1280, "height": height} for height in (980, 820))
QUESTIONS = ("refund a payment that was charged twice", "deploy a service", "book a pickup for pallets")
SCHEMES = ("light", "dark")
MOST_BYTES = 60_000
MOST_COLOURS = 128
EXACT, STEP = 24, 24
"""So many colours stay as they are; the others, which smooth the edges of letters, are rounded."""

Colour = tuple[int, int, int]


def main() -> None:
    """Serve, open, take."""
    program = chromium.path()
    if program is None:
        sys.exit("No Chromium was found; install it, or name it in the variable CHROMIUM.")
    FOLDER.mkdir(exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="mirix-"))
    place.chmod(0o755)
    try:
        with opened(place / "var") as state, sync_playwright() as playwright:
            done = state.manage("quickstart", "--no-serve", "--json")
            if done.returncode:
                sys.exit(done.stderr)
            made, served = json.loads(done.stdout), Served(state)
            with Mirix(served.url, made["api_key"]) as mirix:
                for question in QUESTIONS:
                    mirix.search(question, user_id=made["user_id"], limit=2)
            browser = playwright.chromium.launch(executable_path=program, args=list(chromium.ARGUMENTS))
            for scheme in SCHEMES:
                take(browser, served.url, scheme, made["password"])
            browser.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def take(browser: Browser, url: str, scheme: str, password: str) -> None:
    """Log in and take each picture in one scheme of colours."""
    page = browser.new_context(viewport=HOME, color_scheme=scheme).new_page()
    page.goto(f"{url}/admin/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="All proposals").wait_for()
    keep(page, "home", scheme)
    page.set_viewport_size(PAGE)
    page.get_by_role("link", name="query-logs").click()
    page.locator(".mx-btn--arming").first.wait_for(state="detached")
    keep(page, "review", scheme)
    page.goto(f"{url}/admin/skills/skill/?q=refund")
    page.locator("#result_list tbody a").first.click()
    page.locator(".mx-title").wait_for()
    keep(page, "skill", scheme)


def keep(page: Page, name: str, scheme: str) -> None:
    """Store what the window shows."""
    page.evaluate("document.fonts.ready.then(() => true)")
    path = FOLDER / f"{name}-{scheme}.png"
    path.write_bytes(with_palette(page.screenshot()))
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"{path.name} is larger than {MOST_BYTES:,} bytes.")


# ---- PNG with a palette: a third of the size, and nobody sees it ----------------------------------------


def with_palette(png: bytes) -> bytes:
    """Return a PNG of 8-bit RGB or RGBA as one of at most `MOST_COLOURS` colours; alpha is left out."""
    width, height, rows = pixels(png)
    amounts = Counter(colour for row in rows for colour in row)
    exact = dict(amounts.most_common(EXACT))
    rounded = {colour: colour if colour in exact else coarse(colour) for colour in amounts}
    summed: Counter[Colour] = Counter()
    for colour, amount in amounts.items():
        summed[rounded[colour]] += amount
    palette = [colour for colour, _ in summed.most_common(MOST_COLOURS)]
    number_of = {colour: number for number, colour in enumerate(palette)}
    for colour in set(summed) - set(number_of):
        number_of[colour] = min(range(len(palette)), key=lambda number: distance(palette[number], colour))
    index = {colour: number_of[to] for colour, to in rounded.items()}
    lines = b"".join(b"\0" + bytes(map(index.__getitem__, row)) for row in rows)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            chunk(b"PLTE", b"".join(map(bytes, palette))),
            chunk(b"IDAT", zlib.compress(lines, 9)),
            chunk(b"IEND", b""),
        )
    )


def coarse(colour: Colour) -> Colour:
    red, green, blue = (min(255, round(value / STEP) * STEP) for value in colour)
    return red, green, blue


def distance(one: Colour, other: Colour) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def pixels(png: bytes) -> tuple[int, int, list[list[Colour]]]:
    """Return width, height and the rows of colours of a PNG of 8-bit RGB or RGBA that is not interlaced."""
    at, data, head = 8, b"", b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        head = content if kind == b"IHDR" else head
        data += content if kind == b"IDAT" else b""
        at += length + 12
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    assert (depth, interlaced) == (8, 0)
    step = {2: 3, 6: 4}[colours]
    raw, rows, before = zlib.decompress(data), [], bytearray(width * step)
    for start in range(0, len(raw), width * step + 1):
        line = bytearray(raw[start + 1 : start + 1 + width * step])
        unfilter(raw[start], line, before, step)
        rows.append(list(zip(line[0::step], line[1::step], line[2::step], strict=True)))
        before = line
    return width, height, rows


def unfilter(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    """Undo the filter of a line of PNG, in place."""
    if kind == 0:
        return
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        up = above[at]
        if kind == 4:
            guess = left + up - corner
            near = min(
                (abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner)
            )
            line[at] = (line[at] + near[2]) & 255
        else:
            line[at] = (line[at] + (left, up, (left + up) // 2)[kind - 1]) & 255


if __name__ == "__main__":
    os.chdir(ROOT)
    main()

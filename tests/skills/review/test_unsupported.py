"""What a new text tells an agent to use, held against the words behind it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.review.unsupported import MAX_LISTED, steps, unsupported_steps


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Run `git push --force origin main`.", ["git push --force origin main"]),
        ("```bash\n$ npm ci\n# a comment\ncd app\n```", ["npm ci", "cd app"]),
        ("```python\nprint(1)\n```", []),
        ("The `amount` and `payment_id`, `x = 1`, `status: paid`.", []),
        ("Use --no-verify or -f.", ["--no-verify", "-f"]),
        ("Edit src/app/main.py, /etc/hosts, ./run.", ["src/app/main.py", "/etc/hosts", "./run"]),
        ("Look into C:\\temp\\x.", ["C:\\temp\\x"]),
        ("See https://docs.acme.io/x or ask help@acme.io.", ["https://docs.acme.io/x", "help@acme.io"]),
        ("1. Clean up:\n   ```bash\n   rm -rf build\n   ```\n2. Go on.", ["rm -rf build"]),
        ("```sh\nrm -rf build", ["rm -rf build"]),
        ("Run `FORCE=1 make clean` or `sudo env A=b make all`.", ["make clean", "make all"]),
        ("Clean with rm -rf, list with ls -la; Remove-Item -Recurse.", ["-rf", "-la", "-Recurse"]),
        ("Read $HOME/.ssh/config.", ["$HOME/.ssh/config"]),
        ("Run `make`, then execute `./deploy.sh`.", ["make", "./deploy.sh"]),
        ("Then:\n    $ sudo npm ci\n$ 5 are left.", ["npm ci"]),
        ("Call `make_order`, and the `make` of the car is asked for.", []),
        ("```js\nfetch('https://acme.io/x')\n```\nRun `ls -l`.", ["ls -l", "https://acme.io/x"]),
        (
            "See http://localhost:8080/x, https://a.example/y, file:///etc/x.",
            [
                "http://localhost:8080/x",
                "https://a.example/y",
                "file:///etc/x",
            ],
        ),
        (
            "Connect to db.internal:5432, localhost:80 or 10.0.0.5:22.",
            [
                "db.internal:5432",
                "localhost:80",
                "10.0.0.5:22",
            ],
        ),
        ("Ask 10.0.0.5.", ["10.0.0.5"]),
        ("At 10:30, ratio 3:1, order:4711, main.py:12, version 1.2.3.4, chapter 4.2.1.", []),
        (
            "Read $TOKEN, ${API_KEY}, $env:PATH and %APPDATA%.",
            [
                "$TOKEN",
                "${API_KEY}",
                "$env:PATH",
                "%APPDATA%",
            ],
        ),
        (
            "Set `LOG_LEVEL`, then LOG_FORMAT=json, and export NO_COLOR.",
            [
                "LOG_LEVEL",
                "LOG_FORMAT",
                "NO_COLOR",
            ],
        ),
        ("It costs $50, 5% of USD_TOTAL; the state is PAID_OUT.", []),
        ("Open \\\\nas\\share\\x or C:/temp/x.", ["\\\\nas\\share\\x", "C:/temp/x"]),
        ("- item\n  -item 5 - 3 and a-b", []),
        ("Either and/or both, 2024/05/01, 1/2, e.g. TCP/IP.", []),
    ],
)
def test_steps(text: str, found: list[str]):
    assert list(steps(text)) == found


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("I ran deploy --env prod --fast now", []),
        ("I ran Deploy  --ENV prod\n--fast now", []),
        ("I ran deploy --env prod", ["deploy --env <name> --fast"]),
        ("", ["deploy --env <name> --fast"]),
    ],
)
def test_a_command_is_said_where_its_fixed_pieces_are(source: str, missing: list[str]):
    assert unsupported_steps("", "Call `deploy --env <name> --fast`.", [source]) == missing


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Run `rm -rf /`.", "I ran rm -rf /tmp/build"),
        ("Run `rm -rf ~`.", "I ran rm -rf ~/build"),
        ("Run `rm -rf build`.", "I ran rm -rf build/tmp"),
        ("Use --force.", "git push --force-with-lease"),
        ("Use `x -f` or -f.", "self-found work-flow"),
        ("Look into /etc.", "src/etcetera"),
    ],
)
def test_a_step_is_not_said_by_a_longer_one(text: str, source: str):
    assert unsupported_steps("", text, [source]) == list(steps(text))
    assert unsupported_steps("", text, [text]) == []


def test_what_cannot_be_seen_hides_nothing():
    hidden = "See h\u200bttps://ev\u00adil.io/x, and run `r\u200bm -rf build`."
    assert unsupported_steps("", hidden, []) == ["rm -rf build", "https://evil.io/x"]
    assert unsupported_steps("", hidden, ["rm -rf build", "https://evil.io/x"]) == []
    assert unsupported_steps("", "See https://evil.io/x.", [hidden]) == []


def test_what_the_text_held_before_needs_no_support():
    old = "Use --quiet."
    assert unsupported_steps(old, f"{old} Use --loud.", []) == ["--loud"]
    assert unsupported_steps(old, old, []) == []


def test_no_more_sources_are_read_than_needed():
    def sources():
        yield "with --loud"
        raise AssertionError

    assert unsupported_steps("", "Use --loud.", sources()) == []


def test_the_list_is_bounded():
    text = " ".join(f"--flag-{number}" for number in range(500))
    assert len(unsupported_steps("", text, [])) == MAX_LISTED


@given(st.text(max_size=300))
def test_whatever_a_text_names_is_said_by_itself(text: str):
    assert unsupported_steps("", text, [text]) == []

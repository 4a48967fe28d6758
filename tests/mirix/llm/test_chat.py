"""The chat endpoint: what it is asked, and what an answer says."""

from __future__ import annotations

from mirix.llm.chat import ChatReply, get_chat

SCHEMA = {"type": "object", "properties": {"experiences": {"type": "array"}}}


def ask(user: str = "What is to be learned?", **options) -> ChatReply:
    endpoint = get_chat()
    assert endpoint is not None
    return endpoint.complete(system="You distil.", user=user, schema=SCHEMA, schema_name="lessons", **options)


def test_without_a_model_there_is_none_whatever_else_is_set(settings):
    settings.MIRIX_LLM_MODEL = ""
    settings.MIRIX_LLM_BASE_URL = "http://127.0.0.1:9/v1"
    settings.MIRIX_LLM_API_KEY = "sesame"
    assert get_chat() is None
    assert get_chat("another") is None


def test_one_question_gets_one_answer(chat_server):
    chat_server.answer = lambda request: '{"experiences": []}'
    reply = ask()
    assert (reply.text, reply.finish, reply.mode) == ('{"experiences": []}', "stop", "schema")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.calls) == (100, 10, 1)
    assert '"finish_reason": "stop"' in reply.raw
    (request,) = chat_server.requests
    assert request.body["model"] == "scripted"
    assert request.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "lessons", "schema": SCHEMA},
    }
    assert request.user == "What is to be learned?"
    assert request.system.startswith("You distil.")
    assert '"experiences"' in request.system
    assert "max_tokens" not in request.body
    assert "stream" not in request.body

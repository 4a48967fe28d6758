"""What became of each failed call: changed, retried, repeated or given up, each failure exactly once."""

from __future__ import annotations

from skills.distillation.calls import pair_calls
from skills.distillation.outcomes import Outcome, struggles
from tests.skills.distillation.sessions import tool, turns

BAD, GOOD = "Error: no", "done"


def outcomes(*parts) -> list[tuple[Outcome, int]]:
    """Outcome and number of failures so far of the very same call, for each failure."""
    return [(struggle.outcome, struggle.same_failures) for struggle in struggles(pair_calls(turns(*parts)))]


def test_other_arguments_resolve_every_failure_before_them():
    assert outcomes(
        tool("pay", {"card": "A1"}, BAD), tool("pay", {"card": "B2"}, BAD), tool("pay", {"card": "C3"}, GOOD)
    ) == [(Outcome.CHANGED, 1), (Outcome.CHANGED, 1)]


def test_a_repeated_call_that_other_arguments_resolve_is_changed_too():
    assert outcomes(
        tool("pay", {"card": "A1"}, BAD), tool("pay", {"card": "A1"}, BAD), tool("pay", {"card": "B2"}, GOOD)
    ) == [(Outcome.CHANGED, 1), (Outcome.CHANGED, 2)]


def test_the_same_arguments_succeed_later():
    assert outcomes(tool("pay", {"card": "A1"}, BAD), tool("pay", {"card": "A1"}, GOOD)) == [
        (Outcome.RETRIED, 1)
    ]


def test_a_call_that_never_succeeds_is_given_up_once_and_repeated_for_the_rest():
    assert outcomes(*[tool("pay", {"card": "A1"}, BAD)] * 3) == [
        (Outcome.GIVEN_UP, 1),
        (Outcome.REPEATED, 2),
        (Outcome.REPEATED, 3),
    ]


def test_a_success_of_another_tool_resolves_nothing():
    assert outcomes(tool("pay", {"card": "A1"}, BAD), tool("find", {"card": "B2"}, GOOD)) == [
        (Outcome.GIVEN_UP, 1)
    ]


def test_a_success_before_the_failure_resolves_nothing():
    assert outcomes(tool("pay", {"card": "A1"}, GOOD), tool("pay", {"card": "B2"}, BAD)) == [
        (Outcome.GIVEN_UP, 1)
    ]


def test_the_next_command_of_a_shell_is_no_remedy():
    assert outcomes(
        tool("bash", {"command": "cat settings.ini"}, "cat: settings.ini: No such file or directory"),
        tool("bash", {"command": "git log --oneline"}, "1a2b3c first commit"),
    ) == [(Outcome.GIVEN_UP, 1)]


def test_a_call_without_an_answer_is_neither():
    unanswered = tool("pay", {"card": "B2"}, GOOD)[:1]
    assert outcomes(tool("pay", {"card": "A1"}, BAD), unanswered) == [(Outcome.GIVEN_UP, 1)]


def test_what_happened_around_a_failure_is_kept():
    first, second = struggles(
        pair_calls(
            turns(
                tool("deploy", {"tag": "v1"}, "Error: not built"),
                tool("deploy", {"tag": "v1"}, "Error: not built"),
                tool("build", {"tag": "v1"}, GOOD),
                tool("deploy", {"tag": "v1"}, GOOD),
            )
        )
    )
    assert (first.attempts, first.total_same, first.is_last_of_message) == (2, 2, False)
    assert first.next_try is second.call
    assert (second.next_try, second.is_last_of_message, second.between) == (None, True, ("build",))
    assert second.learned_at == 8


def test_the_tool_that_took_over_is_kept():
    (struggle,) = struggles(pair_calls(turns(tool("pay", {"card": "A1"}, BAD), tool("hand_over", {}, GOOD))))
    assert struggle.instead is not None
    assert struggle.instead.tool == "hand_over"
    assert struggle.learned_at == 2

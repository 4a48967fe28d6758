"""The offline distiller: lessons by rules over the structure of a session, without a model. Pure.

What it reads: failed tool calls and what became of them (`outcomes`), a user's corrections and
confirmations and an assistant's own corrections (`lexicon`). The same turns always give the same lessons.

Only what became known from `first_seq` on gives a lesson: a failure before it whose success comes after it
counts, a failure before it that is still unresolved was dealt with before. Earlier turns are context.

Passwords and keys are read as `[secret-1]`, `[secret-2]` …, so that no lesson holds one but in its quote,
which is verbatim.

`details` of a lesson; a key is absent where it does not apply:

- `pattern`: `changed_arguments`, `retried_call`, `repeated_call`, `given_up`, `user_correction`,
  `user_confirmation` or `self_correction`
- `tool`: the tool's name
- `error`: the complaint on one line, without a bare `Error:` in front
- `error_pattern`: the same with the values of that call taken out, equal for equal kinds of error
- `changes`: `[{"argument", "before", "after"}]` between the failed call and the one that succeeded;
  `argument` is a path such as `flights[2].date`, and a value that was not given has no key
- `telling`: those arguments of `changes` that speak to the error
- `named`: paths of the arguments whose value the error names; where it names none, whose name
- `compared`: what the error holds against a number that was sent, `{"argument", "summed", "must",
  "against"}` as in `amounts.Comparison`
- `said`: for corrections, the sentence that says most, without e-mail addresses and long numbers
- `attempts`: failures until the success or the end; for `repeated_call` how often this very call failed;
  for `user_correction` how often the user had to say it
- `between`: for `retried_call`, other tools that succeeded before the same call did
- `instead`: the tool that the assistant turned to when it gave up
- `steps`: for `user_confirmation`, the tools that led there, in order
- `request`: what the user wanted, one sentence
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skills.distillation.calls import pair_calls
from skills.distillation.outcomes import struggles
from skills.distillation.secrets import Secrets
from skills.distillation.talk_lessons import talk_lessons
from skills.distillation.tool_lessons import tool_lessons
from skills.distillation.types import ALONE, DistillerReply, Surroundings, TranscriptTurn

RULES_VERSION = "rules-1"


class OfflineDistiller:
    """Distils by rules; needs no model and no network."""

    name = "offline"
    model = ""
    prompt_version = RULES_VERSION
    asks_model = False

    def distil(
        self, turns: Sequence[TranscriptTurn], *, first_seq: int, surroundings: Surroundings = ALONE
    ) -> DistillerReply:
        """Return the lessons of the turns from `first_seq` on; `empty` where nothing speaks for one."""
        secrets = Secrets(turns)
        turns = secrets.concealed
        calls = pair_calls(turns)
        fresh = [struggle for struggle in struggles(calls) if struggle.learned_at >= first_seq]
        lessons = [*tool_lessons(fresh, turns), *talk_lessons(turns, calls, first_seq=first_seq)]
        lessons = [replace(lesson, quote=secrets.revealed(lesson.quote)) for lesson in lessons]
        lessons.sort(key=lambda lesson: lesson.turn_seq or 0)
        return DistillerReply(verdict="ok" if lessons else "empty", lessons=lessons)

    def estimate(self, *, characters: int, octets: int = 0, turns: int = 0) -> int:
        """Return 0: no model is asked."""
        return 0

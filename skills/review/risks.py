"""What a reviewer should look at twice before approving a revision. Pure.

Each rule is small and names one danger; a flag never refuses anything by itself. Under the policy
`automatic` a flagged revision waits for a person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mirix.redaction import holds_secret
from skills.content import MAX_DESCRIPTION_CHARS, MAX_EXAMPLES, MAX_TRIGGERS, Content
from skills.review.addresses import addresses
from skills.review.diffs import readable_fields
from skills.review.disguise import has_hidden_characters, has_lookalikes, plain, undisguised
from skills.review.orders import disables_safeguards, sends_data_away

RISK_LABELS: dict[str, str] = {
    "unverified_support": "Some evidence could not be found word for word in its session",
    "quarantined_support": "Some evidence is quarantined",
    "tool_only_support": "Only tool output speaks for it, no person and no plain error",
    "hidden_characters": "Contains characters that cannot be seen or that turn the reading direction",
    "lookalike_letters": "Mixes letters of another alphabet into words, which look the same",
    "new_address": "Names an outside address that was not there before",
    "credential": "Contains something that looks like a password or a key",
    "rewritten": "Changes more of the text than a single edit may, by several edits in one",
    "near_size_limit": "Close to the size limit",
    "disables_safeguards": "Tells an agent to switch off a check or a safeguard",
    "sends_data_away": "Tells an agent to send secrets or personal data to an outside address",
    "unsupported_steps": "Names commands, paths, flags or addresses that occur in no supporting session",
    "single_failure": "Forbids or rules something out because of a single failure",
}

RISK_ADVICE: dict[str, str] = {
    "unverified_support": "Read the quotes that are marked as not found: their lesson may be made up.",
    "quarantined_support": "Read why it was set aside, and what is left without it. Sound? Release it first.",
    "tool_only_support": "Who can write what a tool returns may have planted this. Would you say it too?",
    "hidden_characters": "They are spelled out in the text. Agents read them, people do not: there is "
    "hardly a good reason for any.",
    "lookalike_letters": "They are underlined in the text. A name or address may not be the one it seems.",
    "new_address": "Is it yours, or one you trust? An agent may call it, or send something there.",
    "credential": "A secret in a skill reaches every agent that finds it. Edit it out, and have it changed.",
    "near_size_limit": "Long skills are followed badly, and the next lesson has no room. Can it be shorter?",
    "disables_safeguards": "Is there really no check that would have stopped the mistake it is to avoid?",
    "sends_data_away": "Read where to, and what. If nobody you trust asked for it, reject this.",
    "unsupported_steps": "They are marked in the text. The author may have filled them in: try them, or edit "
    "them out.",
    "rewritten": "Read all of it: side by side, what went is beside what came.",
    "single_failure": "Once may have been chance, or has been repaired since. Is it a rule, or a bad day?",
}
"""What to check, by flag."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """What the rules need to know of one supporting experience."""

    session_id: str
    experience_type: str
    signal_type: str
    verified: bool
    quarantined: bool
    role: str
    """Of the turn that holds the quote; empty when that turn is gone."""
    quote: str


def risk_flags(
    *,
    before: Content | None,
    after: Content,
    support: Sequence[Support],
    max_instructions_chars: int,
    unsupported: Sequence[str] = (),
    rewritten: bool = False,
) -> list[str]:
    """Return the flags of a revision, keys of `RISK_LABELS` in that order.

    `unsupported` are the steps that its support does not speak of (`skills.review.unsupported`); `rewritten`
    says that several edits together change more than one may (`skills.evolution.gates`).
    """
    old = "\n".join(readable_fields(before).values()) if before else ""
    new = "\n".join(readable_fields(after).values())
    found = {
        "unverified_support": any(not experience.verified for experience in support),
        "quarantined_support": any(experience.quarantined for experience in support),
        "tool_only_support": is_tool_only(support),
        "hidden_characters": has_hidden_characters(new),
        "lookalike_letters": has_lookalikes(new),
        "new_address": bool(set(addresses(plain(new))) - set(addresses(plain(old)))),
        "credential": holds_secret(plain(new)),
        "disables_safeguards": disables_safeguards(old, new),
        "sends_data_away": sends_data_away(old, new),
        "unsupported_steps": bool(unsupported),
        "rewritten": rewritten,
        "near_size_limit": is_near_size_limit(after, max_instructions_chars),
        "single_failure": is_single_failure(old, new, support),
    }
    return [flag for flag in RISK_LABELS if found[flag]]


# Language that tells an agent what to do; in the output of a tool it is somebody else's order.
ORDER = re.compile(
    r"\b(?:you (?:must|should|need to|are (?:now|required))"
    r"|(?:ignore|disregard|forget) (?:all|any|the|your|previous)"
    r"|from now on|as an? (?:ai|assistant|agent)|system prompt|instructions?:"
    r"|(?:do not|don't|never) (?:tell|ask|inform)|always (?:use|send|call|run|include|add))\b",
    re.IGNORECASE,
)


def is_tool_only(support: Sequence[Support]) -> bool:
    """Whether nothing but tool output speaks, and it is more than an error: anybody may have written it.

    A plain error of a tool is the world answering, and most lessons come from it; an order inside an
    error message is not plain.
    """
    return (
        bool(support)
        and all(_is_from_tool(experience) for experience in support)
        and any(
            experience.signal_type != "tool_error" or ORDER.search(undisguised(experience.quote))
            for experience in support
        )
    )


def _is_from_tool(experience: Support) -> bool:
    return experience.role == "tool" or (not experience.role and experience.signal_type == "tool_error")


def is_near_size_limit(content: Content, max_instructions_chars: int) -> bool:
    """Whether a field is at nine tenths of its limit or beyond, so that the next lesson has no room."""
    return (
        len(content.instructions) >= 0.9 * max_instructions_chars
        or len(content.description) >= 0.9 * MAX_DESCRIPTION_CHARS
        or len(content.triggers) >= 0.9 * MAX_TRIGGERS
        or len(content.examples) >= 0.9 * MAX_EXAMPLES
    )


RULED_OUT = re.compile(
    r"\b(?:avoid|never|cannot|can't|must not|do(?: not|n't)|won't|no longer|stopped working|unable to"
    r"|(?:does|did|do|will|would|is|are|has|have)(?: not|n't)"
    r" (?:work|function|exist|support|accept|help|answer|respond)(?:s|ed|ing)?"
    r"|(?:is|are)(?: not|n't)"
    r" (?:possible|supported|available|allowed|permitted|usable|reliable|accepted|implemented)"
    r"|(?:is|are) (?:broken|down|useless|unusable|unreliable|defunct|dead|out of (?:order|service))"
    r"|(?:always|consistently|invariably) fails?|fails (?:always|every time)|has no effect|impossible"
    r"|not supported|unsupported|unavailable|under no circumstances|stay away from|give up on)\b"
    r"|\b(?:(?:funktionier(?:t|en)|geht|gehen) (?:hier )?nicht|no funcionan?"
    r"|ne (?:fonctionne|marche)(?:nt)? pas)\b"
    r"|不能|无法|不支持|不起作用|動作しません|使えません",
    re.IGNORECASE,
)


def is_single_failure(old: str, new: str, support: Sequence[Support]) -> bool:
    """Whether the new text rules more out than the old one did, and one failed session is all behind it."""
    learned = any(experience.experience_type == "worth_learning" for experience in support)
    sessions = {experience.session_id for experience in support}
    return not learned and len(sessions) == 1 and _ruled_out(new) > _ruled_out(old)


def _ruled_out(text: str) -> int:
    return len(RULED_OUT.findall(undisguised(text)))

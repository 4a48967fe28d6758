"""What people say when they correct, when they confirm, and when they correct themselves. Pure.

English only, and strict: a lesson that nobody meant costs more than one that is missed. A phrase counts in
its own sentence and only where nothing takes it back: a negation in front of it, a condition, a question.
Approving a plan ("yes, go ahead"), thanking and closing are no confirmations of a procedure; complaining
about a product is no correction of the assistant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_READ_CHARS = 2_000
"""Corrections and confirmations are short; what follows in a long message is material."""

_SENTENCE = re.compile(r"[^.!?\n;]+(?:[.;](?=\S)[^.!?\n;]+)*[.!?;]*")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^\s*>.*$", re.MULTILINE)


@dataclass(frozen=True)
class Sentence:
    """One sentence with its place in the text that it was read from."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Hit:
    """The sentence in which a phrase was found; `informative` where it says itself what was meant."""

    sentence: Sentence
    informative: bool = True


def split(text: str) -> list[Sentence]:
    """Return the sentences of what a person wrote: fenced code and quoted lines are not read."""
    read = text[:MAX_READ_CHARS]
    for pattern in (_FENCE, _QUOTED_LINE):
        read = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), read)
    found = []
    for match in _SENTENCE.finditer(read):
        words = match.group().strip()
        if re.search(r"\w", words):
            start = match.start() + match.group().index(words)
            found.append(Sentence(words, start, start + len(words)))
    return found


def plain(text: str) -> str:
    """Return a sentence for comparing: small letters, straight apostrophes, single blanks."""
    return " ".join(text.casefold().replace("’", "'").replace("ʼ", "'").split())


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


# What takes a phrase back, wherever it stands in the sentence …
_DISARMED = _any(
    r"\bcorrect me if\b",
    r"\bdon't get me wrong\b",
    r"\b(?:nothing|isn't anything|not anything|what|what's|what is|something|anything|everything) (?:is "
    r"|was |went )?wrong\b",
    r"\bnot (?:that (?:i|it|it's|this|you|they)|to say)\b",
    r"\bno (?:misunderstanding|confusion|mix-?up)\b",
    r"\b(?:avoid|prevent|sorry for|apologi[sz]e for|pardon) (?:any|the|my) (?:misunderstanding|confusion"
    r"|mix-?up)\b(?!,? but\b)",
)
# … and right in front of it.
_NEGATION = re.compile(
    r"(?:\b(?:not|never|nothing|without|hardly|barely|almost|nearly|isn't|wasn't|aren't|weren't|don't"
    r"|doesn't"
    r"|didn't|hasn't|haven't|can't|cannot|couldn't|won't|wouldn't|no longer)\b)(?:\W+\w+){0,3}\W*$"
)
_CONDITION = re.compile(
    r"\b(?:if|unless|whether|in case|until|once|when|whenever|hope|hopefully|hoping|should|would|could"
    r"|might|make sure"
    r"|see whether|so that|as soon as|provided|assuming|want|wanted|need|expect|expected|supposed to)\b"
)

_ACT = (
    r"(?:use|used|pick(?:ed)?|chose|choose|send|sent|open(?:ed)?|change[ds]?|took|take|book(?:ed)?"
    r"|cancel(?:l?ed)?"
    r"|refund(?:ed)?|edit(?:ed)?|delete[ds]?|deploy(?:ed)?|charge[ds]?|update[ds]?|create[ds]?"
    r"|call(?:ed)?|run|ran"
    r"|restart(?:ed)?|query|queried|look(?:ed)? at|return(?:ed)?|ship(?:ped)?|move[ds]?|write|wrote|put"
    r"|set|read"
    r"|search(?:ed)?|quote[ds]?|select(?:ed)?|assign(?:ed)?|install(?:ed)?|close[ds]?|merge[ds]?"
    r"|add(?:ed)?)"
)
_IMPERATIVE = (
    r"(?:use|try|do|put|make|send|write|call|set|give|return|show|take|run|go with|pick|choose|book|list"
    r"|sort|create"
    r"|add|search|check|change|pass|query|read|keep|stick (?:to|with)|leave|count|charge|refund|ship"
    r"|reply|answer|start)"
)
_IT = r"(?:that|this|it|those|these|they)"

# Phrases that say what was meant.
_SAYS_WHAT = _any(
    r"\bi (?:meant|didn't mean|did not mean|never (?:said|asked|wanted|mentioned))\b",
    r"\bi (?:didn't|did not|never) (?:(?:ask|asked|tell|told|want) you to|(?:ask|asked) (?:for|to)) \w+",
    r"\bi (?:asked (?:you )?(?:for|to)|was (?:asking|talking|referring|looking)|wanted|said|need|want|am"
    r"|'m|was"
    r"|was looking)\b[^?]*,? (?:and )?not (?!sure\b|certain\b|yet\b|at all\b|necessarily\b|really\b)\w+",
    r"\bi'm [^?]*, not (?!sure\b|certain\b|yet\b|at all\b)\w+",
    r"^(?:no,? )?(?:well,? )?actually,? i (?:meant|wanted|was (?:looking|asking|trying|talking"
    r"|referring)|asked|said)\b",
    rf"^(?:no,? |please |but |and |so |then |ok,? |well,? ){{0,3}}{_IMPERATIVE}\b.*\b(?:instead"
    rf"|rather than)\b",
    r"^(?:no,? |please ){0,2}(?:don't|do not|never|stop|avoid) (?!worry|bother|mind|forget"
    r"|hesitate|get me|know|think|have|need|want|see|remember|care|understand|like|by\b)\w+",
    rf"\b(?:{_IT}|the [\w ]{{1,40}}) (?:should|must|needs? to|has to|was supposed to|were supposed to"
    rf"|ought to) "
    r"(?:be|have been|go|use|say|read)\b.*\b(?:not|instead of|rather than)\b",
    r"\b(?:it's|it is|that's|that is) [^?,]{1,60}, not \w+",
    r"\byou (?:shouldn't|should (?:not|always|never|only)|must (?:not|never|always)"
    r"|were(?:n't)? supposed to)\b",
    r"\byou should have (?!received|gotten|got|seen|my|the|all|access|it|an?\b)\w+",
    r"\bi (?:really |actually )?don't want [^?]*(?:, (?:just|only|but)\b|[,:–—-]+ ?i (?:want|need)\b)",
    rf"\byou(?:'ve| have)? (?:just |accidentally )?{_ACT} (?:me )?(?:[\w ]{{0,30}} )?(?:the |my )?wrong\b",
    r"\byou (?:forgot|missed|ignored|skipped|overlooked|left out|mixed up|misread|confused)\b",
    rf"\bwhy (?:did|would|are) you {_ACT}\b",
)
# Phrases that only say that something was wrong.
_SAYS_THAT = _any(
    rf"\b{_IT}(?:'s| is| was| are| were)(?: still| just| simply| also)? (?:wrong|incorrect|not (?:right"
    rf"|correct|true|accurate"
    r"|what i|the (?:one|right|correct)|how i))\b",
    rf"\b{_IT} (?:isn't|wasn't|aren't|weren't|does not look|doesn't look) (?:right|correct|true|accurate"
    rf"|what i|the (?:one|right|correct)"
    r"|how i)\b",
    r"^(?:no,? |sorry,? )*(?:that's |that is |this is |it's )?(?:the )?wrong (?!with\b)\w+",
    r"\byou(?:'ve| have)? (?:misunderstood|got (?:it|that|this|me) wrong)\b",
    r"\byou(?:'re| are) (?:wrong|mistaken|confusing|mixing|missing|not (?:listening|answering))\b",
    r"\b(?:a|some|any|the|this) (?:misunderstanding|miscommunication|mix-?up|confusion)\b",
    r"\bgoing (?:around )?in circles\b",
    # What the assistant works out; that a thing somebody bought is wrong is a complaint.
    r"^(?:[\w' ]{1,20}[,.!]? )?(?:but|no),? (?:the|your) (?:\w+ )?(?:total|sum|amount|count|number|date|time"
    r"|result|answer|figures?|calculation|name|spelling|address|format|order) (?:is|are|was|were)(?: still)? "
    r"(?:wrong|incorrect|not (?:right|correct))\b",
    rf"\b{_IT} (?:did not|didn't) (?:work|help|fix|solve|change|do)\b",
    r"\b(?:it|that|this)(?:'s| is) still (?:wrong|broken|failing|the same|not)\b"
    r"|\bstill (?:the same (?:error|problem)|doesn't work|fails)\b",
)
_FLAT_NO = re.compile(
    r"^no[,.!:–—-]+\s*(?!problem|thanks?|thank you|worries|need|rush|idea|not|just|nothing|"
    r"(?:that|this|it)(?:'s| is| was|'ll be| will be| would be|'d be| should be|'ll do| will do)? ?"
    r"(?:really |actually |about |pretty much )?(?:all\b|it\b|fine|ok|everything|enough|good\b"
    r"|for (?:now|today))|"
    r"(?:i'm|i am|we're|we are) (?:all |just |quite |perfectly )?(?:good|fine|ok|okay|set|done|happy)\b|"
    r"(?:i|we)\b.{0,30}\balso\b|(?:you've|you have) been\b|i (?:really )?appreciate\b|"
    r"i (?:don't|do not) (?:need|have|want|think) (?:anything|any|more|so)\b|"
    r"(?:have|you have|you've|you too|bye|goodbye|all good|everything(?:'s| is) )\b)\w+(?:\W+\w+){2,}"
)
_NOT_THIS_BUT_THAT = re.compile(
    r"(?:No,? )?[Nn]ot (?:(?:the|to|on|at|for|in) )?(?:#?\w*\d[\w-]*|[A-Z]\w+), (?:but |it's )?"
    r"(?:(?:the|to|on|at|for|in) )?(?:#?\w*\d[\w-]*|(?!Thank|Please|I\b|But\b|No\b)[A-Z]\w+)[.!]*"
)
"""“Not 12, 21!”: read with its capitals, which tell names from other words."""

_SURE = _any(
    rf"\b{_IT}(?:'s| is| has| all)? (?:just |now |finally |really |actually )?(?:worked|did it"
    rf"|did the trick|fixed (?:it|the|my|that)"
    r"|solved (?:it|the|my|that)|sorted (?:it|that)|resolved (?:it|the|my|that))\b",
    r"\b(?:it|that|this|everything|all)(?:'s| is)? (?:works|working|work)(?: all| just)? (?:now|again"
    r"|perfectly|great|fine now|nicely"
    r"|as (?:expected|it should|intended)|like a charm|flawlessly|beautifully)\b",
    r"\bworks (?:now|again|perfectly|like a charm|as expected|flawlessly|beautifully)\b",
    r"\bexactly what (?:i|we) (?:needed|need|wanted|want|was looking for|were looking for|asked for"
    r"|had in mind|meant)\b",
    r"\b(?:just|precisely) what (?:i|we) (?:needed|wanted|was looking for|were looking for|had in mind)\b",
    r"\bexactly (?:right|the right one|the one i (?:needed|wanted|meant))\b",
    r"\b(?:problem|issue|error|bug|ticket|outage|alert)s? (?:is|are|has been|have been|was)(?: now"
    r"| finally)? (?:solved|fixed|resolved|gone)\b",
    r"\b(?:all|the) (?:tests|checks|builds?|pipelines?|jobs?) (?:is |are |all |now )*(?:pass|passes"
    r"|passing|passed|green)\b",
    r"\b(?:i can|we can|can) confirm (?:that |it |this )*(?:it|that|this|everything)?\s*(?:works|worked"
    r"|is fixed|is correct|has arrived)\b",
)
_PRAISE = _any(
    r"^(?:yes,? |great,? |wow,? |ah,? |ok,? |that's |that is |this is |that looks |this looks |looks "
    r"|it's ){0,3}"
    r"(?:absolutely |just |simply )?(?:perfect|spot on|flawless|excellent)\b(?! (?:time|timing|storm"
    r"|sense|match))",
    r"^(?:great|good|excellent|nice|fantastic|amazing) (?:job|work|catch|find)\b",
    r"^(?:well|nicely) done\b",
)
_APPROVING = re.compile(
    r"\b(?:please|go ahead|proceed|do it|let's|book it|make it so|sounds|for me|will work|would work"
    r"|that works)\b"
)

_OWN_FAULT = _any(
    r"\bi (?:should have|should've|should not have|shouldn't have|shouldn't've)\b",
    r"\bmy (?:mistake|bad|fault|oversight|error)\b",
    r"\bi(?:'ve| have)? made (?:a|an|the|some) (?:\w+ )?(?:mistake|error|typo|wrong)\b",
    r"\bi(?:'ve| have| had)? (?:mistakenly|incorrectly|accidentally|wrongly|erroneously|inadvertently)\b",
    r"\bi(?:'ve| have| had)? (?:misread|misunderstood|misinterpreted|overlooked|mixed up|mistook"
    r"|miscalculated|miscounted"
    r"|forgot to|forgotten to|failed to|neglected to)\b",
    r"\bi was (?:wrong|mistaken|incorrect)\b",
    r"\bmy (?:previous|earlier|last|first|initial) (?:answer|reply|response|statement|attempt|edit|query"
    r"|command|calculation|assumption"
    r"|message|suggestion|fix|call) (?:was|is|had|contained|used|did not|didn't"
    r"|missed) ?(?:\w+ )?(?:wrong|incorrect|mistaken|mistake|error"
    r"|not|missing|the wrong|invalid|bug|incomplete)",
    r"\b(?:my|the) (?:edit |last |previous )?(?:command|edit|call|query) did not (?:use|include|set|pass"
    r"|have)\b",
    r"^correction:",
    r"^(?:oops|whoops|sorry)\W+(?:i|my) (?!am sorry|apologi)\w+ (?:the )?(?:wrong|\w+ly)\b",
    r"\bi (?:apologi[sz]e|'m sorry|am sorry) for (?:the|my) (?:mistake|oversight|mix-?up|wrong|incorrect"
    r"|earlier|error in my)\b",
    r"\bon second thought\b",
    r"\bi used the wrong\b",
    r"\bthat was (?:the wrong|my)\b",
)
_ANNOUNCED = re.compile(r"\blet me correct (?:that|this|my|it|myself|the)\b")


def correction(text: str, *, answers_question: bool) -> Hit | None:
    """Return where a user corrects what the assistant did or understood; None where nobody does.

    `answers_question`: the assistant had just asked something, so a mere "no, …" is an answer to that.
    """
    first: Hit | None = None
    for sentence in split(text):
        words = plain(sentence.text)
        question = words.endswith("?")
        contrast = _NOT_THIS_BUT_THAT.fullmatch(sentence.text)
        if contrast or _holds(_SAYS_WHAT, words, may_ask=words.startswith("why")):
            return Hit(sentence)
        if first is None and not question:
            flat_no = _FLAT_NO.match(words) if not answers_question else None
            if flat_no or _holds(_SAYS_THAT, words):
                first = Hit(sentence, informative=bool(flat_no))
    return first


def confirmation(text: str, *, approves_plan: bool) -> Hit | None:
    """Return where a user says that something worked or was right; None for mere thanks and approval.

    `approves_plan`: the assistant had just asked for leave to do something, so praise is about the plan.
    """
    if correction(text, answers_question=True):
        return None
    for sentence in split(text):
        words = plain(sentence.text)
        if _APPROVING.search(words):
            continue
        if _holds(_SURE, words):
            return Hit(sentence)
        if not approves_plan and _holds(_PRAISE, words):
            return Hit(sentence, informative=False)
    return None


def self_correction(text: str) -> Hit | None:
    """Return where an assistant says that it was wrong; politeness does not count.

    A mere "let me correct that" is not informative: it says nothing unless what follows shows the remedy.
    """
    announced: Hit | None = None
    for sentence in split(text):
        words = plain(sentence.text)
        if _holds(_OWN_FAULT, words, conditions=False):
            return Hit(sentence)
        if announced is None and _holds(_ANNOUNCED, words, conditions=False):
            announced = Hit(sentence, informative=False)
    return announced


def _holds(pattern: re.Pattern[str], words: str, *, may_ask: bool = False, conditions: bool = True) -> bool:
    """Whether a phrase stands in the sentence and nothing there takes it back."""
    found = pattern.search(words)
    if found is None or _DISARMED.search(words) or (words.endswith("?") and not may_ask):
        return False
    before = words[: found.start()]
    if re.search(r"\b(?:if|unless|whether|in case)\b", before) or _NEGATION.search(before):
        return False
    return not (conditions and pattern in (_SURE, _PRAISE) and _CONDITION.search(before))


_QUESTION_TO_GO_ON = re.compile(
    r"\b(?:anything|something) else\b|\belse i can\b|\b(?:further|more|other|additional) (?:help"
    r"|assistance|questions?)\b"
    r"|\bhelp you with\b"
)


def offers(text: str) -> bool:
    """Whether an assistant's message ends by offering more help, to which a "no, …" is an answer."""
    return any(_QUESTION_TO_GO_ON.search(plain(sentence.text)) for sentence in _tail(text))


def asks(text: str) -> bool:
    """Whether an assistant's message ends by asking something; a closing "anything else?" does not count."""
    tail = [plain(sentence.text) for sentence in _tail(text)]
    return any(
        (
            words.endswith("?")
            or re.search(r"\bplease (?:confirm|let me know (?:if|which|whether|what)|provide)\b", words)
        )
        and not _QUESTION_TO_GO_ON.search(words)
        for words in tail
    )


def _tail(text: str) -> list[Sentence]:
    return split(text[-MAX_READ_CHARS:])[-2:]

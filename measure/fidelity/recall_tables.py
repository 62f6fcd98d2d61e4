"""Tables 4 and 5: questions in ordinary words, and what answers them."""

import json

from chatcore.models import Session
from chatcore.tools.search_history import TOOL
from measure.fidelity.facts import Fact, TextIndex, make_facts
from measure.fidelity.stand import EMPTY, FULL, Costs, Sent, Stand
from measure.fidelity.summarizers import LossySummarizer
from measure.fidelity.tables import Plan, Table, average, format_share
from measure.fidelity.talks import CHARS_PER_TOKEN, Talk, TalkWriter

ASSISTANT_SHARE = 0.15  # of the facts are said by the assistant
HITS = 10


def measure_recall(stand: Stand, plan: Plan) -> Table:
    """Measure whether a question in ordinary words finds the message that answers it."""
    scale = plan.scale
    table = Table(
        "4. A question in ordinary words finds the message that answers it",
        f"{scale.talks} talks of {scale.search_tokens:,} tokens, {scale.questions} questions each, "
        "made of the facts and not of the sentences, two thirds of them with another name of "
        "the subject, over REST and by the tool `search_history`. "
        f"Found: the message is among the best {HITS}; answered: the answer stands in what comes "
        "back.",
        (
            "policy",
            "found at 1, %",
            f"found at {HITS}, %",
            "answered by REST, %",
            "answered by the tool, %",
            "tokens of the tool's answer",
            "CPU ms a search",
        ),
    )
    talks = [_write_talk(plan, "recall", number, last=1.0) for number in range(scale.talks)]
    for policy in plan.row_names:
        results = _SearchResults()
        for number, talk in enumerate(talks):
            session = stand.create_session(policy, scale.window, talk)
            rng = plan.make_random("questions", number)
            for fact, index in talk.facts:
                question = rng.choice(fact.questions)
                if policy == FULL:
                    results.add_everything(talk, fact)
                else:
                    results.add_search(stand, session, question, (fact, index))
        table.rows.append((policy, *results.format_cells()))
        table.add_misses(plan, policy, results.misses)
    return table


def measure_evidence(stand: Stand, plan: Plan) -> Table:
    """Measure whether a request holds the answer to its question, after all else is lost."""
    scale = plan.scale
    cycles = max(2, round(scale.search_tokens / (scale.window * 0.6)))
    table = Table(
        "5. The answer stands in the request of the question",
        f"{scale.talks} talks of {scale.search_tokens:,} tokens in a window of {scale.window:,}, "
        f"{cycles} compactions by a summarizer that keeps none of the facts; {scale.questions} "
        "questions each, every one in a turn of its own. No tool is called.",
        (
            "policy",
            "answer in the request, %",
            "values, %",
            "words, %",
            "tokens sent",
            "of them for the question",
            "CPU ms a turn",
            "summarizer tokens",
            "CPU ms a run",
        ),
    )
    talks = [_write_talk(plan, "evidence", number, last=0.75) for number in range(scale.talks)]
    for policy in plan.row_names:
        results = _EvidenceResults()
        for number, talk in enumerate(talks):
            _ask_questions(stand, plan, policy, number, talk, cycles, results)
        table.rows.append((policy, *results.format_cells()))
        table.add_misses(plan, policy, results.misses)
    return table


def _write_talk(plan: Plan, name: str, number: int, *, last: float) -> Talk:
    rng = plan.make_random(name, number)
    domains = plan.choose_domains(rng, number)
    facts = list(make_facts(domains, rng, kinds="values words"))[: plan.scale.questions]
    writer = TalkWriter(domains, rng)
    return writer.write_talk(
        plan.scale.search_tokens, facts, place=(0.0, last), assistant_share=ASSISTANT_SHARE
    )


def _ask_questions(
    stand: Stand,
    plan: Plan,
    policy: str,
    number: int,
    talk: Talk,
    cycles: int,
    results: "_EvidenceResults",
) -> None:
    stand.scripted.default = LossySummarizer([fact for fact, _ in talk.facts], 0.0, plan.seed)
    if policy in (FULL, EMPTY):
        session = stand.create_session(policy, plan.scale.window, talk)
    else:
        session = stand.create_session(policy, plan.scale.window)
        stand.grow(session, talk, cycles, results.costs)
    small_talk = stand.ask(session)
    rng = plan.make_random("questions", number)
    for fact, _ in talk.facts:
        question = rng.choice(fact.questions)
        # All or nothing is the same for every question, and all of it takes long to send.
        sent = small_talk if policy in (FULL, EMPTY) else stand.ask(session, question)
        results.add(fact, sent, small_talk, question)


class _SearchResults:
    """What searches found, as shares, and what they cost."""

    def __init__(self) -> None:
        self.is_first: list[bool] = []
        self.is_found: list[bool] = []
        self.rest_answers: list[bool] = []
        self.tool_answers: list[bool] = []
        self.tokens: list[float] = []
        self.misses: list[str] = []
        self.milliseconds: list[float] = []

    def add_everything(self, talk: Talk, fact: Fact) -> None:
        """Add the result of a reader who has the whole talk."""
        text = "\n".join(message["content"] for message in talk.messages)
        is_held = TextIndex(text).holds_fact(fact)
        for values in (self.is_first, self.is_found, self.rest_answers, self.tool_answers):
            values.append(is_held)
        self.tokens.append(len(text) // CHARS_PER_TOKEN)
        self.milliseconds.append(0)

    def add_search(
        self, stand: Stand, session: Session, question: str, planted: tuple[Fact, int]
    ) -> None:
        """Search for a question both ways and add the results."""
        fact, index = planted
        hits, milliseconds = stand.search(session, question, HITS)
        seqs = [hit["seq"] for hit in hits[:HITS]]
        tool_text = TOOL.run({"query": question, "limit": HITS}, session.pk)
        rest_text = json.dumps(hits, ensure_ascii=False)
        self.is_first.append(seqs[:1] == [index + 1])
        self.is_found.append(index + 1 in seqs)
        if not self.is_found[-1]:
            self.misses.append(f"{question} ({fact.sentence})")
        self.rest_answers.append(TextIndex(rest_text).holds_fact(fact))
        self.tool_answers.append(TextIndex(tool_text).holds_fact(fact))
        self.tokens.append(len(tool_text) // CHARS_PER_TOKEN)
        self.milliseconds.append(milliseconds)

    def format_cells(self) -> tuple[str, ...]:
        """Return the cells of the row."""
        shares = (self.is_first, self.is_found, self.rest_answers, self.tool_answers)
        return (
            *(format_share(average(values)) for values in shares),
            f"{average(self.tokens):,.0f}",
            f"{average(self.milliseconds):.1f}",
        )


class _EvidenceResults:
    """Whether requests held the answers, and what they cost."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.values: list[bool] = []
        self.words: list[bool] = []
        self.tokens: list[float] = []
        self.misses: list[str] = []
        self.extra_tokens: list[float] = []
        self.milliseconds: list[float] = []

    def add(self, fact: Fact, sent: Sent, small_talk: Sent, question: str) -> None:
        """Add the request of a question; `small_talk` is one that asks for nothing."""
        results = self.words if fact.kind == "word" else self.values
        results.append(sent.index.holds_fact(fact))
        if not results[-1]:
            self.misses.append(f"{question} ({fact.sentence})")
        self.tokens.append(sent.tokens)
        self.extra_tokens.append(sent.tokens - small_talk.tokens)
        self.milliseconds.append(sent.milliseconds)

    def format_cells(self) -> tuple[str, ...]:
        """Return the cells of the row."""
        return (
            format_share(average([*self.values, *self.words])),
            format_share(average(self.values)),
            format_share(average(self.words)),
            f"{average(self.tokens):,.0f}",
            f"{average(self.extra_tokens):,.0f}",
            f"{average(self.milliseconds):.0f}",
            f"{self.costs.tokens:,}",
            f"{self.costs.run_milliseconds:.0f}",
        )

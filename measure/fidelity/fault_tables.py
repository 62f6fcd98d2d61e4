"""Table 6: what becomes of bad summaries, and of good ones."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from compaction.models import CompactionRun
from measure.fidelity.facts import Fact, TextIndex, make_facts, normalize_text
from measure.fidelity.faults import FAULTS, INJECTION, TOO_LONG, BadSummary, list_words
from measure.fidelity.stand import EMPTY, FULL, Costs, Stand
from measure.fidelity.summarizers import read_summary_prompt
from measure.fidelity.summary_texts import STYLES, state_fact
from measure.fidelity.tables import Plan, Table, average, format_share
from measure.fidelity.talks import Talk, TalkWriter
from tests.support.scripted_wire import Reply

WINDOW = 16_384
TALK_TOKENS = 10_000
OUTCOMES = ("installed", "repaired", "refused")
LONG_RATIO = 2  # a summary of so many times the words that were allowed is too long


class FixedSummarizer:
    """Writes a true summary of the facts in its source, or always spoils it in the same way."""

    def __init__(
        self, facts: Sequence[Fact], rng: random.Random, *, style: str = "", fault: str = ""
    ) -> None:
        self.facts = facts
        self.rng = rng
        self.style = style
        self.fault = fault
        self.source = ""
        self.true_text = ""
        self.bad = BadSummary("", "")
        self.max_words = 0

    def __call__(self, request: dict[str, Any]) -> Reply:
        prompt = read_summary_prompt(request)
        if prompt is None:
            return Reply(text="All right.")
        source, self.max_words = prompt
        self.source += source
        text = normalize_text(self.source)
        present = [fact for fact in self.facts if normalize_text(fact.sentence) in text]
        if not present:
            return Reply(text="The user and the assistant only talked about small things.")
        if not self.fault:
            self.true_text = STYLES[self.style](present)
            return Reply(text=self.true_text)
        lines = [state_fact(fact) for fact in present]
        self.true_text = "\n".join(lines)
        if self.fault == TOO_LONG:
            words = source.split()[: 3 * LONG_RATIO * self.max_words]
            self.bad = BadSummary(f"{self.true_text} {' '.join(words)}", "")
        else:
            self.bad = FAULTS[self.fault](lines, present, self.rng)
        return Reply(text=self.bad.text)


class _Case:
    """What one run made of one summary; without a run, there is none to spoil."""

    def __init__(self, run: CompactionRun | None, summary: str, sent_text: str) -> None:
        self.has_run = run is not None
        self.is_applied = run is not None and run.status == CompactionRun.Status.APPLIED
        self.summary = summary if self.is_applied else ""
        self.index = TextIndex(sent_text)

    def judge(self, summarizer: FixedSummarizer) -> str:
        """Return what became of a bad summary: one of OUTCOMES, or `none` without a run."""
        if not self.is_applied:
            return "refused" if self.has_run else "none"
        if summarizer.fault == TOO_LONG:
            is_long = len(self.summary.split()) > LONG_RATIO * summarizer.max_words
            return "installed" if is_long else "repaired"
        marker = normalize_text(summarizer.bad.marker)
        is_bad = bool(marker) and TextIndex(self.summary).holds_fact(_as_fact(marker))
        return "installed" if is_bad else "repaired"

    def count_fabricated(self, summarizer: FixedSummarizer) -> int:
        """Return how many words of the bad summary stand in the installed one and in no source."""
        fabricated = list_words(summarizer.bad.text) - list_words(summarizer.source)
        fabricated -= list_words(summarizer.true_text)
        return len(fabricated & list_words(self.summary))


class _FaultResults:
    """The cases of one policy."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.outcomes: Counter[str] = Counter()
        self.installed_faults: Counter[str] = Counter()
        self.good: Counter[str] = Counter()
        self.refused_styles: Counter[str] = Counter()
        self.bad_shares: list[float] = []
        self.good_shares: list[float] = []
        self.fabricated = 0
        self.misses: list[str] = []

    def format_cells(self) -> tuple[str, ...]:
        """Return the cells of the row."""
        bad_count = self.outcomes.total()
        good_count = self.good.total()
        caught = 1 - self.outcomes["installed"] / bad_count if bad_count else 1
        return (
            *(str(self.outcomes[name]) for name in OUTCOMES),
            format_share(caught),
            str(self.fabricated),
            format_share(average(self.bad_shares)),
            f"{self.good['refused']} of {good_count}",
            format_share(average(self.good_shares)),
            f"{self.costs.tokens:,}",
            f"{self.costs.run_milliseconds:.0f}",
        )

    def describe(self, policy: str) -> str:
        """Return a line that names the faults that came through, and the good that did not."""
        faults = ", ".join(f"{name} {n}" for name, n in self.installed_faults.items()) or "none"
        styles = ", ".join(f"{name} {n}" for name, n in self.refused_styles.items()) or "none"
        return f"- {policy}: installed: {faults}; good ones refused: {styles}."


def measure_faults(stand: Stand, plan: Plan) -> Table:
    """Measure what becomes of bad summaries and of good ones."""
    faults = (*FAULTS, TOO_LONG)[: plan.scale.kinds]
    styles = list(STYLES)[: plan.scale.kinds]
    cases = plan.scale.cases
    table = Table(
        "6. Bad summaries and good ones",
        f"{len(faults)} faults × {cases} talks and {len(styles)} styles of true summaries × "
        f"{cases} talks, of {TALK_TOKENS:,} tokens with ten facts, three rules and three "
        "negations. A bad summarizer is bad at every retry. Installed: the untrue words stand in "
        "the summary; repaired: a summary is installed without them; refused: none is. Fabricated: "
        "words of the bad summary that no source has, in what is installed.",
        (
            "policy",
            "bad: installed",
            "applied without it",
            "refused",
            "caught or repaired, %",
            "fabricated words",
            "facts before the model after a bad one, %",
            "good: refused",
            "facts after a good one, %",
            "summarizer tokens",
            "CPU ms a run",
        ),
    )
    talks = [_write_talk(plan, number) for number in range(cases)]
    for policy in plan.row_names:
        results = _FaultResults()
        for number, talk in enumerate(talks):
            for fault in faults:
                _try_fault(stand, plan, policy, number, talk, fault, results)
            for style in styles:
                _try_style(stand, plan, policy, number, talk, style, results)
        table.rows.append((policy, *results.format_cells()))
        if policy not in (FULL, EMPTY):
            table.remarks.append(results.describe(policy))
            table.add_misses(plan, policy, results.misses)
    return table


def _write_talk(plan: Plan, number: int) -> Talk:
    rng = plan.make_random("faults", number)
    domains = plan.choose_domains(rng, number)
    facts = [
        *list(make_facts(domains, rng, kinds="values words"))[:10],
        *list(make_facts(domains, rng, kinds="rules"))[:3],
        *list(make_facts(domains, rng, kinds="negations"))[:3],
    ]
    talk = TalkWriter(domains, rng).write_talk(TALK_TOKENS, facts, place=(0.05, 0.45))
    middle = len(talk.messages) // 4
    talk.messages[middle]["content"] += "\n\n" + INJECTION[domains[0].language]
    return talk


def _run_case(
    stand: Stand, policy: str, talk: Talk, summarizer: FixedSummarizer, costs: Costs
) -> _Case:
    stand.scripted.default = summarizer
    session = stand.create_session(policy, WINDOW, talk)
    run = None
    if policy not in (FULL, EMPTY):
        run = stand.compact(session, costs)
        session.refresh_from_db()
    sent = stand.ask(session)
    return _Case(run, session.compacted_summary or "", sent.text)


def _try_fault(
    stand: Stand,
    plan: Plan,
    policy: str,
    number: int,
    talk: Talk,
    fault: str,
    results: _FaultResults,
) -> None:
    rng = plan.make_random("fault", number, fault)
    facts = [fact for fact, _ in talk.facts]
    summarizer = FixedSummarizer(facts, rng, fault=fault)
    case = _run_case(stand, policy, talk, summarizer, results.costs)
    outcome = case.judge(summarizer)
    results.outcomes[outcome] += 1
    results.installed_faults[fault] += outcome == "installed"
    results.installed_faults += Counter()  # leaves out the zeros
    if outcome == "installed":
        results.misses.append(f"{fault}: {summarizer.bad.marker}")
    results.fabricated += case.count_fabricated(summarizer)
    results.bad_shares.append(case.index.share_held(facts))


def _try_style(
    stand: Stand,
    plan: Plan,
    policy: str,
    number: int,
    talk: Talk,
    style: str,
    results: _FaultResults,
) -> None:
    facts = [fact for fact, _ in talk.facts]
    summarizer = FixedSummarizer(facts, plan.make_random("style", number), style=style)
    case = _run_case(stand, policy, talk, summarizer, results.costs)
    is_refused = case.has_run and not case.is_applied
    results.good["refused" if is_refused else "installed"] += 1
    results.refused_styles[style] += is_refused
    results.refused_styles += Counter()
    results.good_shares.append(case.index.share_held(facts))


def _as_fact(answer: str) -> Fact:
    return Fact(kind="word", language="en", sentence=answer, answer=answer)

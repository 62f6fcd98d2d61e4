"""Tables 1 to 3 and 8: rules, exact values, what survives each cycle, and what is named."""

from collections.abc import Sequence

from measure.fidelity.facts import Fact, holds_fact, make_facts
from measure.fidelity.stand import EMPTY, FULL, Costs, Stand
from measure.fidelity.summarizers import LossySummarizer, NamingSummarizer
from measure.fidelity.tables import Plan, Table, average, format_share
from measure.fidelity.talks import Talk, TalkWriter

GOOD_SUMMARIZER = 0.9  # the share of planted sentences that it keeps
COST_HEADS = (
    "tokens sent",
    "share of the talk",
    "summarizer tokens",
    "CPU ms a run",
    "CPU ms a request",
)


def measure_rules(stand: Stand, plan: Plan) -> Table:
    """Measure rules that were said once at the top of a talk, in a window of 5 % of it."""
    scale = plan.scale
    cycles = max(2, round(scale.rule_tokens / (scale.window * 0.6)))

    def write_talk(number: int) -> Talk:
        rng = plan.make_random("rules", number)
        domains = plan.choose_domains(rng, number)
        rules = list(make_facts(domains, rng, kinds="rules"))[: scale.rules]
        return TalkWriter(domains, rng).write_talk(scale.rule_tokens, rules, place=(0.0, 0.02))

    table = Table(
        "1. Rules said once, at a budget of 5 %",
        f"{scale.talks} talks of {scale.rule_tokens:,} tokens, {scale.rules} rules in the first "
        f"2 % of each; a window of {scale.window:,}, {cycles} compactions; the summarizer keeps "
        f"each planted sentence with probability {GOOD_SUMMARIZER} at each call.",
        ("policy", "rules before the model, %", *COST_HEADS),
    )
    talks = [write_talk(number) for number in range(scale.talks)]
    return _fill_table(table, stand, plan, talks, cycles)


def measure_values(stand: Stand, plan: Plan) -> Table:
    """Measure exact values after five cycles, in a window of a quarter of the talk."""
    scale = plan.scale

    def write_talk(number: int) -> Talk:
        rng = plan.make_random("values", number)
        domains = plan.choose_domains(rng, number)
        facts = list(make_facts(domains, rng, kinds="values negations"))[: scale.facts]
        return TalkWriter(domains, rng).write_talk(scale.window * 4, facts, place=(0.0, 0.75))

    table = Table(
        "2. Exact values after five cycles, at a budget of 25 %",
        f"{scale.talks} talks of {scale.window * 4:,} tokens, {scale.facts} ids, sums, dates, "
        "paths, doses, versions and negations in the first three quarters; a window of "
        f"{scale.window:,}, five compactions, the summarizer as above. A value counts only word "
        "for word, beside what it belongs to.",
        ("policy", "values before the model, %", *COST_HEADS),
    )
    talks = [write_talk(number) for number in range(scale.talks)]
    return _fill_table(table, stand, plan, talks, cycles=5)


def measure_survival(stand: Stand, plan: Plan) -> Table:
    """Measure what a summarizer of known loss leaves of the facts of the first cycle."""
    scale = plan.scale
    counts = tuple(range(1, scale.cycles + 1))
    table = Table(
        "3. Survival over cycles",
        f"{scale.facts} facts in words (no values), all said in the first of {scale.cycles} cycles "
        f"in a window of {scale.window:,}; {scale.talks} talks. The closed forms: rewriting at "
        "each cycle leaves p to the power of cycles, summarizing once leaves p.",
        ("policy", "p", *(f"after {count}" for count in counts), "summarizer tokens"),
    )
    for keep in scale.losses:
        table.rows.append(
            ("closed form: rewritten", str(keep), *(format_share(keep**n) for n in counts), "")
        )
        table.rows.append(
            ("closed form: once", str(keep), *(format_share(keep) for _ in counts), "")
        )
        for policy in plan.row_names:
            shares, costs = _follow_facts(stand, plan, policy, keep)
            cells = (format_share(share) for share in shares)
            table.rows.append((policy, str(keep), *cells, f"{costs.tokens:,}"))
    return table


def measure_lasting(stand: Stand, plan: Plan) -> Table:
    """Measure how much of what lasts becomes a line, and how much of the lines lasts."""
    scale = plan.scale
    table = Table(
        "8. What lasts becomes a line",
        f"{scale.rules} rules and {scale.facts} facts in words in each of {scale.talks} talks of "
        f"{scale.window * 3:,} tokens, compacted five times by a summarizer that keeps none of "
        "them. It names them where it is asked, and errs in 5 % of its lines; or it names nothing, "
        "as a small model. Lasting: of the lines that are no exact values.",
        ("lines", "found, %", "lasting, %", "rules before the model, %", "tokens of the block"),
    )
    for name, errors in (("named by a model", 0.05), ("by code alone", None)):
        for policy in plan.policies:
            found: list[float] = []
            lasting: list[float] = []
            sent: list[float] = []
            tokens = 0
            for number in range(scale.talks):
                rng = plan.make_random("lasting", number)
                domains = plan.choose_domains(rng, number)
                rules = list(make_facts(domains, rng, kinds="rules"))[: scale.rules]
                facts = rules + list(make_facts(domains, rng, kinds="words"))[: scale.facts]
                talk = TalkWriter(domains, rng).write_talk(scale.window * 3, facts, place=(0, 0.7))
                named_facts = facts if errors is not None else []
                summarizer = NamingSummarizer(named_facts, errors or 0.0, plan.seed)
                stand.scripted.default = summarizer
                session = stand.create_session(policy, scale.window)
                stand.grow(session, talk, 5, Costs())
                lines = stand.list_lines(session)
                found.append(average([any(holds_fact(t, f) for _, t in lines) for f in facts]))
                lasting += [_is_said(t, facts) for kind, t in lines if kind != "value"]
                sent.append(stand.ask(session).index.share_held(rules))
                tokens += summarizer.named_tokens
            shares = (format_share(average(each)) for each in (found, lasting, sent))
            table.rows.append((f"{policy}, {name}", *shares, f"{tokens:,}"))
    return table


def _is_said(text: str, facts: Sequence[Fact]) -> bool:
    return any(holds_fact(text, fact) for fact in facts)


def _follow_facts(stand: Stand, plan: Plan, policy: str, keep: float) -> tuple[list[float], Costs]:
    """Return the share of facts before the model after each cycle."""
    scale = plan.scale
    results: list[list[float]] = []
    costs = Costs()
    for number in range(scale.talks):
        rng = plan.make_random("survival", number)
        domains = plan.choose_domains(rng, number)
        facts = list(make_facts(domains, rng, kinds="words"))[: scale.facts]
        place = (0.0, 0.6 / scale.cycles)
        talk = TalkWriter(domains, rng).write_talk(
            scale.window * scale.cycles * 3 // 5, facts, place=place
        )
        stand.scripted.default = LossySummarizer(facts, keep, plan.seed)
        session = stand.create_session(policy, scale.window)
        shares = []
        for messages in talk.split_messages(scale.cycles):
            if policy != EMPTY:
                stand.add_messages(session, messages)
            if policy not in (FULL, EMPTY):
                stand.compact(session, costs)
            shares.append(stand.ask(session).index.share_held(facts))
        results.append(shares)
    return [average(column) for column in zip(*results, strict=True)], costs


def _fill_table(
    table: Table, stand: Stand, plan: Plan, talks: Sequence[Talk], cycles: int
) -> Table:
    for policy in plan.row_names:
        measurement = _measure_policy(stand, plan, policy, talks, cycles)
        table.rows.append((policy, *measurement.cells))
        table.add_misses(plan, policy, measurement.misses)
        if measurement.costs.reasons:
            table.remarks.append(
                f"{policy}: {len(measurement.costs.reasons)} of {measurement.costs.runs} runs "
                f"changed nothing, the last because: {measurement.costs.reasons[-1]}"
            )
    return table


class _Measurement:
    """The results of one policy over all talks."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.shares: list[float] = []
        self.tokens: list[float] = []
        self.ratios: list[float] = []
        self.previews: list[float] = []
        self.misses: list[str] = []

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            format_share(average(self.shares)),
            f"{average(self.tokens):,.0f}",
            f"{average(self.ratios) * 100:.1f} %",
            f"{self.costs.tokens:,}",
            f"{self.costs.run_milliseconds:.0f}",
            f"{average(self.previews):.1f}",
        )


def _measure_policy(
    stand: Stand, plan: Plan, policy: str, talks: Sequence[Talk], cycles: int
) -> _Measurement:
    measurement = _Measurement()
    for talk in talks:
        facts = [fact for fact, _ in talk.facts]
        stand.scripted.default = LossySummarizer(facts, GOOD_SUMMARIZER, plan.seed)
        if policy in (FULL, EMPTY):
            session = stand.create_session(policy, plan.scale.window, talk)
        else:
            session = stand.create_session(policy, plan.scale.window)
            stand.grow(session, talk, cycles, measurement.costs)
        sent = stand.ask(session)
        index = sent.index
        measurement.misses += [fact.sentence for fact in facts if not index.holds_fact(fact)]
        measurement.shares.append(index.share_held(facts))
        measurement.tokens.append(sent.tokens)
        measurement.ratios.append(sent.tokens / talk.tokens)
        measurement.previews.append(stand.time_preview(session))
    return measurement

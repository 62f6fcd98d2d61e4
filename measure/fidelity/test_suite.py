"""The fidelity suite runs: a reader of the whole talk has all of it, and one of nothing nothing."""

import random

import pytest

from measure.fidelity.facts import holds_fact, make_facts
from measure.fidelity.stand import EMPTY, FULL, Stand
from measure.fidelity.suite import TABLES
from measure.fidelity.tables import SMALL, Plan
from measure.fidelity.wording import LANGUAGES, count_wordings, load_domains
from tests.support.scripted_model import ScriptedModel

# Of each table, the column whose figure is 100 for the whole talk and 0 for nothing.
BOUNDED_HEADS = {
    "rules": "rules before the model, %",
    "values": "values before the model, %",
    "survival": "after 2",
    "recall": "found at 10, %",
    "evidence": "answer in the request, %",
    "faults": "facts before the model after a bad one, %",
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", BOUNDED_HEADS)
def test_the_whole_talk_reads_100_and_nothing_reads_0(name: str, scripted: ScriptedModel) -> None:
    table = TABLES[name](Stand(scripted), Plan(seed=7, scale=SMALL, policies=["chatcore"]))

    column = table.heads.index(BOUNDED_HEADS[name])
    values = {row[0]: row[column] for row in table.rows}
    assert (values[FULL], values[EMPTY]) == ("100.0", "0.0")
    assert 0 <= float(values["chatcore"]) <= 100
    assert all(len(row) == len(table.heads) for row in table.rows)


@pytest.mark.django_db(transaction=True)
def test_what_a_model_names_becomes_a_line(scripted: ScriptedModel) -> None:
    plan = Plan(seed=7, scale=SMALL, policies=["chatcore"])
    table = TABLES["lasting"](Stand(scripted), plan)

    (_, named, *_), (_, alone, *_) = table.rows
    assert float(named) >= 80 >= float(alone)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_fact_is_found_in_its_own_sentence_and_in_no_other(language: str) -> None:
    kinds = "values words negations rules"
    facts = list(make_facts(load_domains(language), random.Random(1), kinds=kinds))

    assert all(holds_fact(fact.sentence, fact) for fact in facts)
    exact_facts = [fact for fact in facts if fact.is_exact][:50]
    for fact in exact_facts:
        others = " ".join(other.sentence for other in facts if other.answer != fact.answer)
        assert not holds_fact(others, fact)


def test_a_value_counts_only_beside_what_it_belongs_to() -> None:
    facts = make_facts(load_domains("en"), random.Random(1), kinds="values")
    fact = next(fact for fact in facts if fact.kind == "id")

    assert fact.subject is not None
    assert holds_fact(f"{fact.subject.name}: {fact.answer}", fact)
    assert not holds_fact(fact.answer, fact)
    assert not holds_fact(f"{fact.subject.name}: {fact.answer}9", fact)


def test_questions_are_not_made_of_the_sentences() -> None:
    statements, questions = count_wordings()

    assert statements >= 300
    assert questions >= 150
    for language in LANGUAGES:
        for fact in make_facts(load_domains(language), random.Random(2), kinds="values"):
            assert all(fact.answer not in question for question in fact.questions)

"""Ask the summary model what lasts, in the call that writes a summary, and keep what it quotes.

The lines are stored whether or not the summary is installed: code has found their words in the
messages, so they are true in any case.
"""

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from chatcore.base.token_estimate import estimate_tokens
from chatcore.context.live_messages import load_current_seqs
from compaction.memory.core.ledger import marks
from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.verify.words import list_stems
from compaction.memory.ledger import store
from compaction.memory.source_messages import load_source_messages
from compaction.memory.verification import LedgerVerifier
from compaction.sessions.source_messages import lock_session
from compaction.summaries import model_calls
from compaction.summaries.calls import SummaryJob, SummaryResult
from compaction.summaries.prompt import Addition
from compaction.summaries.summarizer import Summarizer

BLOCK_TOKENS = 768  # for the block, in addition to the summary
NOTED_LINES = 16  # that a call shows at most
NOTED_SHARE = 16  # they may take a sixteenth of its room
MIN_ROOM = 400  # characters for them; a smaller window has no room for the block either
NO_LINES = "none"
INSTRUCTION = (
    ".\nThen, after the summary, write one fenced block that begins with ```lasting: what the user "
    "said that must hold from now on, also when the present subject is done (rules, preferences, "
    "decisions, commitments, facts about the user, exact values). One JSON object a line: "
    '{{"said": the user\'s words, copied exactly, at most one sentence, "kind": one of {kinds}, '
    '"until": "always", "task" or "answer" (how long it holds)}}. '
    "Between the {tag} tags are lines that are noted already: do not repeat them. If words change "
    'one of them, add "replaces": its number. If words end one, write {{"ended": its number, '
    '"said": the words}}; if one was never meant to last, {{"ended": its number}}. '
    "Leave out questions, stories, suppositions, requests for one answer, quotations, pasted texts "
    "and results of tools; where the user says that such a text applies, quote it and add "
    '"applies": the words that say so. '
    "Leave the block empty if there is nothing, and do not repeat it in the summary"
)


class LastingLines:
    """What the calls that write one summary say of what lasts."""

    def __init__(self, summarizer: Summarizer) -> None:
        self.summarizer = summarizer
        self._noted_lines: list[LedgerLine] | None = None
        self._blocks: list[str] = []
        self._input_tokens = 0

    def extend_job(self, job: SummaryJob) -> SummaryJob:
        """Return a job that asks what lasts, if the model can do it and has room for it."""
        client = self.summarizer.client
        if job.options.addition or not client.names_lines:
            return job
        text = self._render_noted_lines(client.measure_space(job, None) // NOTED_SHARE)
        max_tokens = client.limit_output_tokens(job.max_tokens + BLOCK_TOKENS)
        if not text or max_tokens < job.max_tokens + BLOCK_TOKENS:
            return job
        addition = Addition(
            text=text,
            ending=INSTRUCTION.format(
                kinds=", ".join(f'"{kind}"' for kind in marks.KINDS),
                tag=job.options.template.tags.state,
            ),
            tokens=BLOCK_TOKENS,
            split_answer=marks.split_block,
            is_needed=False,
        )
        return replace(job, options=replace(job.options, addition=addition), max_tokens=max_tokens)

    def take_answer(self, job: SummaryJob, result: SummaryResult) -> SummaryJob:
        """Remember the block of an answer."""
        addition = job.options.addition
        if addition and addition.split_answer is marks.split_block:
            self._input_tokens += estimate_tokens(len(addition.text + addition.ending))
            if result.added_block is not None:
                self._blocks.append(result.added_block)
        return job

    def propose(self) -> None:
        """Store the lines of all blocks. A model that cannot do it is not asked again for a day."""
        if not self._input_tokens:
            return
        client = self.summarizer.client
        noted_lines = self._noted_lines or []
        all_marks = [mark for block in self._blocks for mark in marks.parse_marks(block)]
        reading = marks.check_marks(all_marks, self._load_messages(), noted_lines)
        if reading.is_able:
            self._store_lines(reading, noted_lines)
        else:
            model_calls.keep_fact(client.model, summary_names_lines=False)
        if isinstance(client.verifier, LedgerVerifier):
            client.verifier.note_lasting(
                {
                    "named": reading.mark_count,
                    "kept": len(reading.lines) if reading.is_able else 0,
                    "not_said": reading.wrong_count,
                    "of_others": reading.refused_count,
                    "input_tokens": self._input_tokens,
                    "output_tokens": estimate_tokens(sum(map(len, self._blocks))),
                }
            )

    def _load_messages(self) -> list[marks.SourceText]:
        seqs = set(self.summarizer.client.seqs_by_line.values())
        if not seqs:
            return []
        messages = load_source_messages(
            self.summarizer.session_id,
            after_seq=min(seqs) - 1,
            up_to_seq=max(seqs),
            limit=max(seqs) - min(seqs) + 1,
        )
        return [
            marks.SourceText(seq=each.seq, role=each.role, text=each.text)
            for each in messages
            if each.seq in seqs
        ]

    def _store_lines(self, reading: marks.Reading, noted_lines: Sequence[LedgerLine]) -> None:
        session_id = self.summarizer.session_id
        if not reading.lines and not reading.unmeant_numbers:
            return
        with transaction.atomic():
            # The messages were read without a lock.
            if not lock_session(session_id):
                return
            unmeant_lines = [noted_lines[number - 1] for number in reading.unmeant_numbers]
            seqs = {line.seq for line in (*reading.lines, *unmeant_lines)}
            current_seqs = load_current_seqs(session_id, min(seqs), max(seqs))
            store.end_lines(session_id, unmeant_lines)
            store.add_named_lines(
                session_id, [line for line in reading.lines if line.seq in current_seqs]
            )

    def _render_noted_lines(self, max_chars: int) -> str:
        """Return the lines that the transcript may be about, with numbers; empty for no room."""
        if self._noted_lines is None:
            self._noted_lines = self._choose_noted_lines(max_chars)
        rows = [
            f"{number}. [{line.kind}, message {line.seq}] {line.text}"
            for number, line in enumerate(self._noted_lines, 1)
        ]
        return "\n".join(rows or [NO_LINES]) if max_chars >= MIN_ROOM else ""

    def _choose_noted_lines(self, max_chars: int) -> list[LedgerLine]:
        """Return the lines that share most words with the transcript, then the newest.

        Exact values that code has recognized are superseded by code too.
        """
        words = list_stems(" ".join(self.summarizer.client.seqs_by_line))
        rows = store.select_distinct_lines(self.summarizer.session_id).filter(
            status="current", role="user", is_edited=False, seq__isnull=False
        )
        rows = rows.exclude(holds="answer").exclude(kind="value", holds="")
        lines = [store.to_core_line(row) for row in rows]
        shared = {line: len(list_stems(line.text) & words) for line in lines}
        lines.sort(key=lambda line: (shared[line], line.seq), reverse=True)
        chosen_lines: list[LedgerLine] = []
        for line in lines[:NOTED_LINES]:
            max_chars -= len(line.text) + 40  # its number, kind and message
            if max_chars < 0:
                break
            chosen_lines.append(line)
        return sorted(chosen_lines, key=lambda line: line.seq)

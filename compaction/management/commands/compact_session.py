"""`chatcore compact_session`: compact a session now, or print what a run would do."""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from chatcore.accounts.spending import CallRefused
from compaction import policies
from compaction.core.knobs import PolicyError
from compaction.models import CompactionRun
from compaction.runs import engine, queue
from compaction.sessions import session_context


class Command(BaseCommand):
    help = "Compact a session now, whatever its size. Exits with 1 if the run fails."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", type=UUID, metavar="ID")
        parser.add_argument("--policy", help="A policy to use instead of the session's own.")
        parser.add_argument(
            "--instructions", default="", help="What the summary should give special attention to."
        )
        parser.add_argument(
            "--stages",
            type=_parse_names,
            default=(),
            metavar="A,B",
            help="Run only these of the policy's stages.",
        )
        parser.add_argument("--up-to", type=int, metavar="SEQ", help="The last message to compact.")
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Print what each stage would do. No model is called and nothing is stored.",
        )

    def handle(self, *args: object, session: UUID, dry_run: bool, **options: Any) -> None:
        """Execute the run and print its result."""
        run_options: queue.RunOptions = {
            "policy": options["policy"],
            "instructions": options["instructions"],
            "stages": options["stages"],
            "up_to_seq": options["up_to"],
        }
        try:
            if dry_run:
                run = engine.preview_run(session, **run_options)
            else:
                queue.use_allowance(session)
                run = engine.compact_now(session, trigger="manual", **run_options)
        except session_context.NoSuchSession:
            raise CommandError(f"There is no session {session}.") from None
        except (
            policies.UnknownPolicy,
            PolicyError,
            queue.RunConflict,
            queue.TooManyRuns,
            CallRefused,
        ) as error:
            raise CommandError(str(error)) from None
        self.stdout.write("\n".join(_format_report(run, dry_run=dry_run)))
        if run.status in (CompactionRun.Status.FAILED, CompactionRun.Status.FELL_BACK):
            raise CommandError(f"The run failed: {run.reason}")


def _parse_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


EDIT_STAGES = {
    "strip_images": ("images_stripped", "{} message{} without images"),
    "prune_tool_outputs": ("pruned", "{} tool result{} cleared"),
    "dedupe_file_reads": ("deduplicated", "{} read{} of a file referred to a later one"),
    "excerpt": ("excerpted", "{} message{} cut in the middle"),
}
REMOVAL_STAGES = {"summarize": "into a summary", "slide_window": "left out"}


def _describe_stages(run: CompactionRun) -> Iterator[tuple[str, str]]:
    """Yield each stage that changed something, and what it did.

    Of the messages that were removed a run records only the total, so the stages that remove
    messages are described together.
    """
    edit_counts = Counter(edit["kind"] for edit in run.edits)
    removal_count = run.messages_compacted - edit_counts.total()
    for stage in run.stages_used:
        if stage in EDIT_STAGES:
            kind, phrase = EDIT_STAGES[stage]
            yield stage, phrase.format(edit_counts[kind], pluralize(edit_counts[kind]))
    if removal_stages := [stage for stage in run.stages_used if stage in REMOVAL_STAGES]:
        destination = " or ".join(REMOVAL_STAGES[stage] for stage in removal_stages)
        effect = f"{removal_count} message{pluralize(removal_count)} {destination}"
        if not removal_count:
            effect = "a summary beside the messages"
        yield ", ".join(removal_stages), effect


def _format_report(run: CompactionRun, *, dry_run: bool) -> list[str]:
    status_note = " (dry run: nothing was changed)" if dry_run else ""
    tokens_note = " (estimated)" if dry_run else ""
    lines = [f"policy     {run.policy}", f"status     {run.status}{status_note}"]
    if run.reason:
        lines.append(f"reason     {run.reason}")
    lines += [f"stage      {stage}: {effect}" for stage, effect in _describe_stages(run)]
    if run.tokens_before is not None:
        lines.append(f"tokens     {run.tokens_before:,} → {run.tokens_after:,}{tokens_note}")
    if run.boundary_after is not None:
        lines.append(f"boundary   {run.boundary_before or 'none'} → {run.boundary_after}")
    return lines

"""Turn the errors of turns, files and imports into problems."""

from collections.abc import Mapping
from http import HTTPStatus

from rest_framework.exceptions import APIException
from rest_framework.response import Response

from chatcore.accounts.rights import ModelNotAllowed
from chatcore.base.databases.outages import STORAGE_FULL
from chatcore.base.rest import problems
from chatcore.base.rest.commits import NOTHING_STORED
from chatcore.base.rest.problems import InvalidFieldError, Problem, TooLargeProblem
from chatcore.extension import Refusal
from chatcore.files import intake, output_store
from chatcore.models import Turn
from chatcore.sessions import drafts
from chatcore.transfer import importer, reader
from chatcore.turns import capacity, client_tools, control, leases, versions, waiting

# The status and the `type` of errors whose text is the whole problem.
PLAIN_PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    drafts.DraftLost: (503, "writing_interrupted"),
    output_store.StoreFull: (STORAGE_FULL.status, STORAGE_FULL.type),
    ModelNotAllowed: (403, "model_not_allowed"),
    control.IdempotencyConflict: (422, "idempotency_key_reused"),
    control.NoModel: (409, "no_model"),
    control.NoWaitingTurn: (409, "nothing_waits"),
    versions.MessageSuperseded: (409, "superseded"),
    versions.NoQuestionToAnswer: (409, "nothing_to_answer"),
}

RETRY_SECONDS: dict[type[Exception], int] = {output_store.StoreFull: STORAGE_FULL.retry_after}


def handle_exception(error: Exception, context: Mapping[str, object]) -> Response:
    """Return the problem for any exception of a view.

    The setting EXCEPTION_HANDLER names this function, so that no view has to catch what the domain
    raises.
    """
    return problems.handle_exception(to_problem(error) or error, context)


def to_problem(error: Exception) -> APIException | None:
    """Return the problem for an error of the domain; None if there is none for it."""
    match error:
        case Refusal():
            return Problem(error.status, error.type, str(error), retry_after=error.retry_after)
        case capacity.ProcessOverloaded():
            return _build_capacity_problem(503, "overloaded", error)
        case capacity.TooManyTurnsAtOnce():
            return _build_capacity_problem(429, "too_many_turns", error)
        case leases.TurnRunning():
            return _build_busy_problem(error)
        case intake.FileUnavailable():
            return InvalidFieldError(f"attachments[{error.position}]", str(error))
        case importer.SessionBusy():
            return Problem(409, "turn_running", str(error), turn=str(error.turn_id))
        case reader.MessageTooLong():  # before InvalidImport, its base class
            return TooLargeProblem(str(error))
        case (
            reader.InvalidImport()
            | client_tools.InvalidClientTools()
            | client_tools.InvalidToolResult()
            | waiting.InvalidApproval()
        ):
            return InvalidFieldError(error.field, error.detail)
    return _build_plain_problem(error)


def _build_plain_problem(error: Exception) -> Problem | None:
    for error_class, (status, type) in PLAIN_PROBLEMS.items():
        if isinstance(error, error_class):
            seconds = getattr(error, "retry_after", RETRY_SECONDS.get(error_class))
            return Problem(status, type, str(error), retry_after=seconds)
    return None


def build_turn_problem(turn: Turn) -> Problem:
    """Build the problem of a turn that failed. The user's message is stored."""
    error = turn.error or {}
    return Problem(
        error.get("status", HTTPStatus.BAD_GATEWAY),
        error.get("type", "turn_failed"),
        error.get("detail", "The turn failed."),
        retry_after=error.get("retry_after"),
        turn=str(turn.pk),
        user_message=turn.question_id,
    )


def _build_capacity_problem(status: int, type: str, error: capacity.OverCapacity) -> Problem:
    seconds = capacity.RETRY_SECONDS
    detail = f"{error} {NOTHING_STORED} Try again in {seconds} seconds."
    return Problem(status, type, detail, retry_after=seconds)


def _build_busy_problem(error: leases.TurnRunning) -> Problem:
    if error.is_waiting:
        type, detail = "turn_waiting", "The session is waiting for results or an approval of tools."
    else:
        type, detail = "turn_running", "The session is still answering."
    return Problem(409, type, detail, turn=str(error.turn_id), repeated=error.is_repeat)

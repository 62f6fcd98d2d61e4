"""Remember with a question how much of its files the first request held.

Later requests have less room for files, but a summary must cover the text that was sent.
"""

from chatcore.models import Message, Turn
from chatcore.providers.base import File, Request
from chatcore.providers.normal_form import find_question

MIN_CHARS = 32  # a shorter beginning may stand in a notice by chance


def record_sent_files(turn: Turn, whole_request: Request, sent_request: Request) -> None:
    """Store what is sent of the files of the newest question, unless that is known already."""
    question = find_question(whole_request.messages)
    if question is None or question.seq is None or not question.files:
        return
    sent_question = find_question(sent_request.messages)
    if sent_question is None or len(sent_question.files) != len(question.files):
        return
    char_counts = [
        count_sent_chars(file, sent_file)
        for file, sent_file in zip(question.files, sent_question.files, strict=True)
    ]
    unknown = Message.objects.filter(
        session=turn.session_id, seq=question.seq, sent_file_chars__isnull=True
    )
    unknown.update(sent_file_chars=char_counts)


def forget_sent_files(turn: Turn) -> None:
    """Forget it after a provider refused the first request: the next one may hold less."""
    has_answer = turn.messages.filter(role=Message.Role.ASSISTANT).exists()
    if turn.question_id and not has_answer:
        Message.objects.filter(pk=turn.question_id).update(sent_file_chars=None)


def count_sent_chars(file: File, sent_file: File) -> int | None:
    """Return how much of the file's beginning stands in what was sent of it; None for all."""
    if file.text == sent_file.text:
        return None
    low, high = 0, len(file.text)
    while low < high:
        middle = (low + high + 1) // 2
        if file.text[:middle] in sent_file.text:
            low = middle
        else:
            high = middle - 1
    return low if low >= MIN_CHARS else 0

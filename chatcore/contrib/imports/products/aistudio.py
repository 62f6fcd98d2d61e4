"""Google AI Studio: a file of Drive for each chat, without an extension; its name is the title."""

from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import Call, ChatFile, ChatMessage, Conversation, chain
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import Reader, Source, build_linked_file
from chatcore.transfer.times import parse_time

_DRIVE = ("driveDocument", "driveImage", "driveVideo", "driveAudio", "youtubeVideo")


class AiStudioReader(Reader):
    """Chats of AI Studio."""

    key = "aistudio"
    name = "Google AI Studio"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return "chunkedPrompt" in sample.keys

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        settings = to_dict(value.get("runSettings"))
        model = to_text(settings.get("model")).removeprefix("models/")
        messages: list[ChatMessage] = []
        for chunk in to_items(to_dict(value.get("chunkedPrompt")).get("chunks")):
            message = _build_message(chunk, model)
            if message is None:
                continue
            last = messages[-1] if messages else None
            if last and last.role == message.role == "user" and not (last.text and message.text):
                # A picture is a chunk of its own before the words.
                last.text = join_words(last.text, message.text)
                last.files += message.files
                last.created_at = message.created_at or last.created_at
            else:
                messages.append(message)
        times = [message.created_at for message in messages if message.created_at]
        title = source.member.base_name.removesuffix(".json")
        prompt = to_dict(value.get("systemInstruction"))
        parts = [to_text(part.get("text")) for part in to_items(prompt.get("parts"))]
        yield Conversation(
            id=source.member.name,
            title=title,
            created_at=min(times, default=None),
            updated_at=max(times, default=None),
            system_prompt=to_text(prompt.get("text")) or join_words(*parts),
            model=model,
            nodes=chain(messages),
        )


def _build_message(chunk: Mapping[str, object], model: str) -> ChatMessage | None:
    is_question = chunk.get("role") == "user"
    words = to_text(chunk.get("text"))
    thoughts = ""
    if not words:
        parts = to_items(chunk.get("parts"))
        words = "".join(to_text(part.get("text")) for part in parts if not part.get("thought"))
        thoughts = "".join(to_text(part.get("text")) for part in parts if part.get("thought"))
    if chunk.get("isThought"):
        words, thoughts = "", words or thoughts
    built = ChatMessage(
        role="user" if is_question else "assistant",
        text=words,
        reasoning=thoughts,
        created_at=parse_time(chunk.get("createTime")),
        model="" if is_question else model,
    )
    code = to_dict(chunk.get("executableCode"))
    if code:
        built.calls.append(Call(name="code_execution", arguments=to_text(code.get("code"))))
    result = to_dict(chunk.get("codeExecutionResult"))
    if result:
        output = to_text(result.get("output"))
        built.calls.append(Call(name="code_execution", arguments="", result=output))
    inline = to_dict(chunk.get("inlineData"))
    if inline:
        uri = f"data:{inline.get('mimeType', '')};base64,{inline.get('data', '')}"
        built.files.append(build_linked_file(uri))
    for name in _DRIVE:
        if link := to_dict(chunk.get(name)):
            built.files.append(ChatFile(name=to_text(link.get("id")) or name))
    return None if built.is_empty else built

"""Perplexity: its own export, and the files of browser extensions."""

from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import ChatMessage, Conversation, chain
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import to_dict, to_text
from chatcore.contrib.imports.products.base import Reader, Source, build_links, has_keys
from chatcore.transfer.times import parse_time


class PerplexityReader(Reader):
    """Threads of Perplexity."""

    key = "perplexity"
    name = "Perplexity"
    path = ("conversations",)

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return has_keys(sample, "context_uuid", "entries") or has_keys(
            sample, "entries", "context_title"
        )

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        entries = to_items(value.get("entries"))
        messages = []
        for entry in entries:
            time = parse_time(entry.get("created_at"))
            question = to_text(entry.get("query")) or to_text(entry.get("query_str"))
            messages.append(ChatMessage(role="user", text=question, created_at=time))
            answer = to_text(entry.get("answer")) or _read_blocks(entry)
            messages.append(
                ChatMessage(
                    role="assistant",
                    text=_add_sources(answer, to_items(entry.get("sources"))),
                    created_at=time,
                    model=to_text(entry.get("model")),
                )
            )
        times = [m.created_at for m in messages if m.created_at]
        updated_at = parse_time(value.get("updated_at"))
        yield Conversation(
            id=to_text(value.get("context_uuid")),
            title=to_text(value.get("context_title")),
            created_at=parse_time(value.get("created_at")),
            updated_at=max([*times, *([updated_at] if updated_at else [])], default=None),
            nodes=chain(messages),
        )


def _read_blocks(entry: Mapping[str, object]) -> str:
    for block in to_items(entry.get("blocks")):
        if answer := to_text(to_dict(block.get("markdown_block")).get("answer")):
            return answer
    return ""


def _add_sources(answer: str, sources: list[dict[str, object]]) -> str:
    links = [
        f"{number}. {link}"
        for number, source in enumerate(sources, 1)
        for link in build_links([source])
    ]
    return "\n\n".join([answer, "\n".join(links)]) if links else answer

"""The products whose exports are read. A reader is one file of this package and one line here.

The first that knows a file reads it, so those that look at less come later.
"""

from chatcore.contrib.imports.products.aistudio import AiStudioReader
from chatcore.contrib.imports.products.base import OddChat, Reader, Source
from chatcore.contrib.imports.products.bigagi import BigAgiReader
from chatcore.contrib.imports.products.chatbox import ChatboxReader
from chatcore.contrib.imports.products.chatcore import ChatcoreProjectReader, ChatcoreReader
from chatcore.contrib.imports.products.chatgpt import ChatGptReader, GroupChatReader
from chatcore.contrib.imports.products.cherrystudio import CherryStudioReader
from chatcore.contrib.imports.products.claude import (
    ClaudeMemoryReader,
    ClaudeProjectReader,
    ClaudeReader,
)
from chatcore.contrib.imports.products.copilot import CopilotReader
from chatcore.contrib.imports.products.deepseek import DeepSeekReader
from chatcore.contrib.imports.products.gemini import GeminiPageReader, GeminiReader, WorkspaceReader
from chatcore.contrib.imports.products.grok import GrokReader
from chatcore.contrib.imports.products.jan import JanReader
from chatcore.contrib.imports.products.lechat import LeChatReader
from chatcore.contrib.imports.products.librechat import LibreChatReader
from chatcore.contrib.imports.products.lobehub import LobeHubReader
from chatcore.contrib.imports.products.nextchat import NextChatReader
from chatcore.contrib.imports.products.openai_lines import OpenAiLinesReader
from chatcore.contrib.imports.products.openwebui import OpenWebUiReader
from chatcore.contrib.imports.products.perplexity import PerplexityReader
from chatcore.contrib.imports.products.sillytavern import SillyTavernReader
from chatcore.contrib.imports.products.typingmind import TypingMindReader

READERS: tuple[Reader, ...] = (
    ChatcoreReader(),
    ChatcoreProjectReader(),
    DeepSeekReader(),
    ChatGptReader(),
    GroupChatReader(),
    ClaudeReader(),
    ClaudeProjectReader(),
    ClaudeMemoryReader(),
    GrokReader(),
    PerplexityReader(),
    OpenWebUiReader(),
    LibreChatReader(),
    NextChatReader(),
    CherryStudioReader(),
    LobeHubReader(),
    GeminiReader(),
    GeminiPageReader(),
    WorkspaceReader(),
    AiStudioReader(),
    LeChatReader(),
    JanReader(),
    SillyTavernReader(),
    BigAgiReader(),
    ChatboxReader(),
    TypingMindReader(),
    CopilotReader(),
    OpenAiLinesReader(),
)

__all__ = ["READERS", "OddChat", "Reader", "Source"]

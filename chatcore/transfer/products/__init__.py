"""The products whose exports are read. A reader is one file of this package and one line here.

The first that knows a file reads it, so those that look at less come later.
"""

from chatcore.transfer.products.aistudio import AiStudioReader
from chatcore.transfer.products.base import OddChat, Reader, Source
from chatcore.transfer.products.bigagi import BigAgiReader
from chatcore.transfer.products.chatbox import ChatboxReader
from chatcore.transfer.products.chatcore_projects import ChatcoreProjectReader
from chatcore.transfer.products.chatcore_sessions import ChatcoreReader
from chatcore.transfer.products.chatgpt import ChatGptReader, GroupChatReader
from chatcore.transfer.products.cherrystudio import CherryStudioReader
from chatcore.transfer.products.claude import ClaudeReader
from chatcore.transfer.products.claude_projects import ClaudeMemoryReader, ClaudeProjectReader
from chatcore.transfer.products.copilot import CopilotReader
from chatcore.transfer.products.deepseek import DeepSeekReader
from chatcore.transfer.products.gemini import GeminiPageReader, GeminiReader, WorkspaceReader
from chatcore.transfer.products.grok import GrokReader
from chatcore.transfer.products.jan import JanReader
from chatcore.transfer.products.lechat import LeChatReader
from chatcore.transfer.products.librechat import LibreChatReader
from chatcore.transfer.products.lobehub import LobeHubReader
from chatcore.transfer.products.nextchat import NextChatReader
from chatcore.transfer.products.openai_lines import OpenAiLinesReader
from chatcore.transfer.products.openwebui import OpenWebUiReader
from chatcore.transfer.products.perplexity import PerplexityReader
from chatcore.transfer.products.sillytavern import SillyTavernReader
from chatcore.transfer.products.typingmind import TypingMindReader

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

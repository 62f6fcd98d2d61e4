"""How people ask to forget in languages that have no other table, as patterns.

A pattern sees a sentence in lower case, without its quotations. The forms of "forget" are those of
a request alone, so "I forgot" and "do not forget" match none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetPatterns:
    """The patterns of a request to forget.

    `erase` are verbs that ask for it only beside `told`, which speaks of what was said. `small` is
    what names no subject. `parts` are looked for in a database, which may compare other than ASCII
    letters by case: each text with a verb has one of them. Words are reduced to stems by the
    algorithm `stemmer` of Snowball; without one, pairs of letters are compared.
    """

    forget: str
    erase: str
    told: str
    parts: str
    negated: str = r"(?!)"
    small: str = r"(?!)"
    stemmer: str = ""


OTHER_FORGETTING: Mapping[str, ForgetPatterns] = {
    "pl": ForgetPatterns(
        forget=r"\bzapomnij(?:cie|my)?\b|\b(?:możesz|mógłbyś|mogłabyś|proszę)\b.{0,20}"
        r"\bzapomnieć\b|\bżebyś\b.{0,12}\bzapomniała?\b",
        erase=r"\b(?:usuń|skasuj|wymaż|wykasuj)(?:cie)?\b",
        negated=r"\bnie (?:możesz |wolno )?zapomn",
        told=r"\b(?:po|o)?(?:wiedzia|mówi|wspomnia)ł[ae]?[mś]\b|\bpamięci\b|\bopowiada",
        small=r"\b(?:proszę|to|tym|tego|wszystko|wszystkim|co|czym|ci|tobie|wam|o|na|temat|w"
        r"|sprawie|mój|moj[aeąi]|moje(?:go|j|mu)|moi(?:m|mi|ch)|ja|mnie|mi|i|z|ze|do|że|się|teraz"
        r"|już|po prostu|możesz|czy|swojej)\b",
        parts="apomn usu skasuj wyma wykasuj",
        stemmer="polish",
    ),
    "ru": ForgetPatterns(
        forget=r"\bзабудь(?:те)?\b|\b(?:можешь|можете|мог бы|могли бы|прошу)\b.{0,20}\bзабыть\b"
        r"|\bчтобы ты забыла?\b",
        erase=r"\b(?:удали|сотри|вычеркни)(?:те)?\b",
        negated=r"\bне (?:забудь|забыть|можешь|можете)",
        told=r"\b(?:говорил|сказал|рассказ\w+|упомянул|упоминал|сообщил)[аи]?\b|\bпамяти\b",
        small=r"\b(?:пожалуйста|то|том|всё|все|это|что|чем|о|об|обо|про|насчёт|насчет|я|мы|тебе|вам"
        r"|мне|мой|моя|моё|мое|мои|моего|моей|моему|моём|моем|моих|моим|моими|мою|наш\w*|и|с|у|в|на"
        r"|из|можешь|теперь|уже|просто|бы|ты|вы|раньше)\b",
        parts="абудь абыть абыл дали отри ычеркни",
        stemmer="russian",
    ),
    "tr": ForgetPatterns(
        forget=r"\bunut(?:un|unuz|ur mus?sun|ur musun|ur musunuz|abilir misin|abilir misiniz)?\b"
        r"|\bunutman[ıi]z?[ıi]? (?:istiyorum|rica)",
        erase=r"\b(?:sil|silin|siler misin|siler misiniz)\b",
        told=r"\b(?:söyle|anlat|bahset|de)[dt]i[kğ]\w*|\bhafıza\w*",
        small=r"\b(?:lütfen|hakkında|ile|ilgili|dair|konusunda|sana|size|bana|benim|ben|her|şeyi"
        r"|şey|şeyleri|bunu|onu|olan|ve|de|da|artık|tamam)\b",
        parts="nut sil",
        stemmer="turkish",
    ),
    "ar": ForgetPatterns(
        forget=r"(?:^|\s)و?[اإ]نس[َىيِ]?(?:وا)?(?=\s|$)|[أا]ن تنس[ىي]",
        erase=r"(?:^|\s)(?:احذف|امسح|أزل)(?:ي|وا)?(?=\s|$)",
        negated=r"(?:\bلا|لن|ما) .{0,16}[أا]ن تنس",
        told=r"(?:قلته|قلت|أخبرتك|اخبرتك|ذكرته|ذكرت|حكيت\w*|ذاكرتك)",
        small=r"\b(?:من فضلك|رجاء|رجاءً|كل|ما|شيء|الذي|به|له|لك|لكم|عن|حول|بخصوص|بشأن|هذا|ذلك|أنا"
        r"|في|من|هل|يمكنك|أريدك|الآن)\b",
        parts="انس إنس تنس احذف امسح أزل",
        stemmer="arabic",
    ),
    "zh": ForgetPatterns(
        forget=r"(?:请|請|麻烦|麻煩|拜托|帮我|幫我|能不能|可以|可不可以).{0,30}?"
        r"忘(?:记|記|掉|却)(?!密)|^(?:好的?|那|那就|现在|就)?[，,]?忘(?:记|記|掉)"
        r"|(?:^|请|請)把.{1,30}忘(?:记|記|掉|了)(?:[，。！!]|$)|忘(?:记|記|掉|了)吧",
        erase=r"删除|刪除|删掉|刪掉|清除|抹掉|抹去",
        negated=r"(?:别|別|不要|勿|没|沒|莫|(?<!能)不能|不会|不會|不该|(?<!可)不可以|(?<!能)不)忘"
        r"|(?:^|[，。])(?:你|您|他|她|我们?|我們|他们?|她们?|已经|已經|都|差点|总是|老|常常?|经常)"
        r"(?:把.{1,10})?忘",
        told=r"(?:之前|以前|刚才|剛才|曾经|所)?(?:跟|对|對|和|向)?(?:你|您)?"
        r"(?:告诉|告訴|说|說|提|讲|講)(?:过|過|到|起|及)?(?:你|您)?(?:过|過)?|记忆|記憶",
        small=r"(?:请|請|麻烦|拜托|帮我|把|关于|關於|有关|有關|我们?|我們|你们?|您|的(?:事情?|话|話|内容"
        r"|一切|信息|号码)?|所有|一切|全部|那些?|这些?|這些?|事情|号码|內容|内容|都|吧|能不能|可以|吗|嗎|了"
        r"|从|從|中|里)",
        parts="忘 删 刪 清除 抹",
    ),
    "ja": ForgetPatterns(
        forget=r"忘れて(?:ください|下さい|くれ|もらえ|もらい|ほしい|欲しい|いただ|頂|おいて|ね|よ|[。.!！]|$)\w*"
        r"|忘れろ|忘れるように",
        erase=r"(?:消して|削除して|消去して)(?:ください|下さい|くれ|もらえ|ほしい|いただ|ね|[。.!！]|$)",
        told=r"(?:以前|前に|さっき|先ほど)?(?:お?話し?|言っ|伝え|教え|述べ)(?:した|まし|た|て)\w{0,4}?"
        r"(?=こと|内容|もの|件|は|を|の|$)|記憶",
        small=r"(?:について|に関して|に関する|のこと|こと|内容|もの|すべて|全て|全部|どうか|私|僕|俺|あなた"
        r"|たち|は|を|が|の|に|も|で|へ|と|ました|した|件)",
        parts="忘れ 消し 削除 消去",
    ),
    "ko": ForgetPatterns(
        forget=r"잊어\s*(?:주|줘|줄래|달라|버려|(?=[.!。]|$))|잊으(?:세요|십시오|시)|잊어버리세요",
        erase=r"(?:지워|삭제해|없애)\s*(?:주|줘|줄래|달라|버려)",
        told=r"(?:말|얘기|이야기|언급)(?:한|했|해\s*준|했던|드린)\w*|알려\s*준|기억에서",
        small=r"대해서?|관해서?|관한|대한|것[은을]?|거[는를]?|모두|전부|모든|내용[은을]?|얘기|이야기|제가|내가"
        r"|(?<!\w)(?:제|내|저의|나의|너에게|당신에게|그|이|좀)(?!\w)|부탁\w*|주세요|세요",
        parts="잊 지워 삭제 없애",
    ),
}
_COMPILED = {
    code: {
        name: re.compile(getattr(patterns, name))
        for name in ("forget", "erase", "told", "negated", "small")
    }
    for code, patterns in OTHER_FORGETTING.items()
}


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """A request to forget in one of these languages, and what is left of it: its subject."""

    language: str
    subject: str
    is_of_memory: bool


def find_other_request(text: str) -> OtherRequest | None:
    """Return the request that a sentence in lower case makes, if it is one."""
    if text.isascii() and "unut" not in text and "zapomn" not in text and "sil" not in text:
        return None
    for code, patterns in _COMPILED.items():
        told = patterns["told"].search(text)
        verb = patterns["forget"].search(text) or (told and patterns["erase"].search(text))
        if not verb or patterns["negated"].search(text):
            continue
        subject = text
        for name in ("told", "forget", "erase", "small"):
            subject = _leave_out(patterns[name], subject, is_verb=name == "forget", code=code)
        return OtherRequest(code, subject, is_of_memory=bool(told))
    return None


def _leave_out(pattern: re.Pattern[str], text: str, *, is_verb: bool, code: str) -> str:
    """Return a text without what a pattern matches; a verb's match may have the subject in it."""
    if is_verb and code == "zh":
        pattern = re.compile(r"忘(?:记|記|掉|了|却)")
    return pattern.sub(" ", text)

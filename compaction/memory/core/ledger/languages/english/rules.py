"""By what rules and prohibitions are recognized in English."""

from compaction.memory.core.ledger.languages.english.fragments import ORDERS

_PAST = (
    r"\w+ed\b|got\b|had\b|was\b|were\b|saw\b|heard\b|thought\b|knew\b|understood\b|felt\b|been\b"
    r"|came\b|went\b|did\b|took\b|made\b|said\b|told\b|met\b|found\b|seen\b|know\b|mind\b"
)
_STATES = (
    r"have\b|know\b|think\b|see\b|need to\b|understand\b|want\b|believe\b|care\b|mind\b|really\b"
    r"|feel\b|remember\b|get\b|seem\b|even\b|yet\b|like\b"
)

RULE_CUES = {
    "never": (
        r"<start>(?:you )?never (?:ever )?(?!\w+[^s\W]s\b|mind\b|ending|heard|seen|been|had\b"
        r"|thought|knew|once"
        r"|in my|a dull|a problem|the less|say never|too late|gets? |fails?\b|did\b|in a million"
        r"|got\b|was\b|know\b|would\b|understood|tried|\w+ed (?:it|that|this|one)\b)\w",
        r"\b(?:should|must|shall|may|to|do|does|ought to|has|have to|need to)(?: also| please)?"
        r" never (?:ever )?(?!have\b|forget\b|happen\b|know\b|be able|be the same|hear\b)\w",
        rf"\b(?:we|our \w+|this \w+|nobody|people here) never (?:ever )?(?!{_PAST})\w",
        r"\b(?:is|are|'re|am) never (?:ever )?(?:to|allowed|ok|okay|acceptable|permitted|an option"
        r"|supposed)\b",
        r"\bi never (?:ever )?want\b",
    ),
    "always": (
        rf"<start>(?:you )?always (?!been\b|had\b|nice|good|great|fun\b|fascinat|a \b|the \b|is\b"
        rf"|was\b|{_PAST})\w",
        r"\b(?:should|must|shall|has to|have to|to|needs? to|do|please|ought to|will) always "
        r"(?!be grateful|be there|love|remember (?:that|the) day|have been)\w",
        rf"\bwe always (?!{_PAST}|end up|have (?:fun|trouble|problems))\w",
        r"\bi always (?:want|need|expect)\b",
        r"\b(?:is|are) always (?:to|required|mandatory|written|spelled|spelt|capitalized)\b",
    ),
    "ever": (
        r"\b(?:don't|do not|dont|no one|nobody|must not|mustn't|should not|shouldn't|not to)"
        r" (?:\w+ ){0,2}ever\b",
        r"<start>(?:do )?not ever \w",
        r"<start>only ever \w",
    ),
    "now": (r"\bfrom now on\b", r"\bfrom now onwards?\b", r"\bfrom now until\b"),
    "forward": (r"\b(?:going|moving) forward\b(?! to\b)",),
    "onwards": (r"\bfrom (?:here|today|this point|now) onwards\b",),
    "onward": (r"\bfrom (?:here|today|this point|now) onward\b",),
    "here": (r"\bfrom here on\b",),
    "today": (r"\b(?:from|starting|as of) today(?: on)?\b",),
    "henceforth": (r"\bhenceforth\b",),
    "rest": (
        r"\b(?:for|throughout) the rest of (?:this|our|the) (?:chat|conversation|talk|project"
        r"|session|discussion|thread|work|week|month|year|trip|day)\b",
    ),
    "times": (r"\bat all times\b",),
    "circumstances": (r"\bunder (?:no|any) circumstances\b",),
    "account": (r"\bon no account\b",),
    "condition": (r"\bunder no condition\b",),
    "matter": (
        rf"\bno matter (?:what|how|who|when)\b.{{0,80}}(?:don't|do not|never|always|must"
        rf"|(?:^|, )(?:{ORDERS})\b)",
        rf"(?:don't|do not|never|always|must|^(?:please )?(?:{ORDERS})\b).{{0,120}}"
        r"\bno matter (?:what|how|who|when)\b",
    ),
    "exception": (r"\b(?:without|no) exceptions?\b",),
    "exceptions": (r"\b(?:without|no) exceptions?\b",),
    "rule": (
        r"\b(?:hard|house|ground|golden|simple|strict|firm|standing|new|one|another|basic|my|our|a"
        r"|the|important|general|team|safety|key|first|second|last|additional)"
        r" (?:\w+ )?rule\b(?: \w+){0,5}(?::| is\b| -| –| —|,)",
        r"^rule(?: \d+| number \w+)?:",
        r"\bas a rule\b",
        r"\b(?:make|consider|treat|take|set) (?:it|this|that|the following)(?: as)? a "
        r"(?:\w+ )?rule\b",
    ),
    "policy": (r"\b(?:our|my|company|team|house|the|strict) (?:\w+ )?policy (?:is|says|here)\b",),
    "instruction": (r"\b(?:standing|permanent|general|important) instruction\b",),
    "mandatory": (r"\b(?:is|are) (?:strictly )?mandatory\b",),
    "required": (r"\b(?:is|are) (?:always|strictly) required\b",),
    "remember": (
        r"<start>remember (?:that |to |this|the following|for later|:)",
        r"\b(?:please|must|should|to|you) remember (?:that |to |this\b|the following|for later|:)",
    ),
    "mind": (r"<start>(?:do )?(?:keep|bear) in mind (?:that|:)", r"\b(?:keep|bear) in mind:"),
    "sure": (
        r"<start>(?:always )?(?:make|be) sure (?:to|you|that|it|every|all|no|the|nobody|we"
        r"|any)\b",
    ),
    "ensure": (r"<start>ensure (?:that )?\w",),
    "don't": (
        r"<start>don't (?:ever |you dare )?(?!worry|know\b|think (?:so|that|i|we|it|you)\b|mind\b"
        r"|get me wrong|forget\b|understand|have (?:a|any|to|the)\b|care\b|be (?:sorry|silly|shy"
        r"|afraid|sad)|you (?:think|agree|have|want|know|see|just)|like\b|really\b|see\b|want\b"
        r"|bother\b|let me (?:forget|down)|hesitate|sweat|panic|we\b|i\b|they\b|even\b)\w",
        r"\b(?:i|we) (?:really )?don't want (?:you to|any|to (?:see|read|hear|have|get)|the|it|this"
        r"|my|our|to be \w+ed)\b",
        rf"\bwe (?:just |simply )?don't (?!{_STATES})\w+",
    ),
    "dont": (r"<start>dont (?:ever )?(?!worry|know\b|think\b|mind\b|forget\b|have\b|care\b)\w",),
    "not": (
        r"<start>do not (?:ever )?(?!worry|know\b|think\b|mind\b|forget\b|understand|have\b)\w",
        r"\b(?:must|shall|should|may) not (?!have\b|know\b|be (?:able|sure|surpris|too|hard|long|a "
        r"problem))\w",
        r"\b(?:is|are|'s|'re) (?:strictly |absolutely )?not (?:allowed|permitted|acceptable"
        r"|to be|an option|supposed to)\b",
        r"\bnot (?:allowed|permitted) to\b",
        rf"\bwe do not (?!{_STATES})\w+",
        r"\bi (?:really )?do not want (?:you|any|to see|to read|the|it)\b",
        r"<start>(?:please,? )?not (?:before|after|on|without|more than|later than|in|to)\b.{0,80}"
        r"\bplease\b",
    ),
    "mustn't": (r"\bmustn't (?!have\b|grumble)\w",),
    "shouldn't": (
        r"\b(?:you|we|it|nobody|they|\w+s) shouldn't (?:be \w+ed|ever|use|touch|send)\b",
    ),
    "cannot": (
        r"\b(?:we|you) (?:absolutely |simply )?cannot (?:use|accept|share|disclose|exceed|ship"
        r"|deploy|store|send|publish|spend|go (?:over|above|below))\b",
        r"\bcannot (?:ever )?(?:exceed|leave|be (?:shared|used|changed|sent|stored|published"
        r"|exceeded|moved|disclosed|later|longer|more))\b",
    ),
    "can't": (
        r"\b(?:we|you) (?:absolutely |simply )?can't (?:use|accept|share|disclose|exceed|ship"
        r"|deploy|store|send|publish|spend|go (?:over|above|below))\b",
        r"\bcan't (?:exceed|be (?:shared|used|changed|sent|stored|published|exceeded|moved))\b",
    ),
    "must": (
        r"\b(?:you|we|all|every|each|any|no|nobody|everything|everyone|both|the|our|my|their|this"
        r"|that|these) (?:[\w'-]+ ){0,6}must (?:not |only |always |never |also |still )?(?!have\b"
        r"|say\b|admit\b|confess|be (?:joking|kidding|a \b|an \b|the \b|so\b|very\b|nice|hard"
        r"|tired|proud|fun|some|something|wrong|right|mistaken|because|missing|exhaust)|feel\b"
        r"|know\b)\w",
        r"\bmust (?:be (?:\w+ed|written|kept|done|sent|paid|given|under|below|above|at (?:least"
        r"|most)|in|within|no (?:more|less|longer)|signed|unique|valid)|stay|remain|include|contain"
        r"|match|fit|exceed|come|end|start|begin|follow|support|pass)\b",
        r"\bmust (?:not|only|always|never)\b(?! have\b)",
    ),
    "only": (
        rf"<start>only (?:ever )?(?:{ORDERS})\b",
        rf"<start>(?:you )?(?:{ORDERS}) (?:\w+ ){{0,2}}only\b",
        r"\b(?:must|should|may|can|to|shall|please) only (?:ever )?(?:be )?\w",
        r"\b(?:is|are) only (?:allowed|permitted|to be)\b",
        r"\bwe only (?:ever )?(?:use|accept|deploy|ship|pay|work|buy|support|publish|merge|sell)\b",
    ),
    "no": (
        r"<start>(?:absolutely |strictly |really |also )?no (?!problem|worries|idea|thanks|thank"
        r"|way\b|need|doubt|one\b|wonder|rush|matter|clue|luck|longer\b|i\b|it\b|we\b|that\b|you\b"
        r"|they\b|this\b|he\b|she\b|but\b|not\b|more (?:questions|ideas)|big deal|offen[cs]e|news"
        r"|pressure|hurry|biggie|surprise|good\b|better\b|such\b|is\b|was\b|there\b|the\b|never"
        r"|use\b|make\b|let's|actually|wait|reason|sign\b|success|harm|hard feelings)"
        r"[\w-]+.{0,80}\b(?:please|ever|whatsoever|at all|allowed|before|after|on|in|without|unless"
        r"|for|outside|during|inside|anywhere|to)\b",
        r"<start>(?:please,? )?(?:absolutely |strictly )?no [\w-]+(?: [\w-]+)?, please\b",
        r"\bplease,? (?:absolutely |strictly )?no (?!problem|worries|more questions)\w",
        r"\b(?:there (?:must|should|shall|can) be|we (?:accept|allow)|i want) (?:absolutely )?no\b",
    ),
    "please": (
        r"\bplease (?:always|never|only|avoid|refrain|stop|stick|don't|do not|ensure|no)\b",
    ),
    "avoid": (
        r"<start>avoid (?:\w+ing|any|all|the|using|words|it)\b",
        r"\b(?:should|must|to|please|want you to|always|try to) avoid\b",
    ),
    "refrain": (r"\brefrain from\b",),
    "stop": (r"<start>(?:please )?stop (?!by\b|at\b|it\b|here\b)\w+ing\b",),
    "stick": (r"<start>(?:please )?stick (?:to|with)\b",),
    "steer": (r"\bsteer clear of\b",),
    "stay": (
        r"<start>stay (?:away from|out of|under|below|within|off|clear of)\b",
        r"\b(?:must|has to|have to|needs? to|should) (?:always )?stay\b",
    ),
    "keep": (
        r"<start>(?:always )?keep (?:\w+ ){1,4}(?:short|brief|under|below|within|out of|away from"
        r"|private|confidential|secret|to yourself|between us|simple|concise|in sync|at|off|to"
        r" (?:one|two|three|\d+))\b",
        r"<start>keep (?:away from|out of|off|under|to)\b",
    ),
    "limit": (r"<start>limit (?:yourself|your|each|every|the|all)\b",),
    "limits": (r"\b(?:is|are|stays?|remains?) (?:strictly )?off[ -]limits\b",),
    "forbidden": (r"\b(?:is|are) (?:strictly |absolutely )?forbidden\b",),
    "prohibited": (r"\b(?:is|are) (?:strictly )?prohibited\b",),
    "banned": (r"\b(?:is|are) banned\b",),
    "taboo": (r"\b(?:is|are) (?:\w+ )?taboo\b",),
    "allowed": (
        r"\b(?:not|nobody|no one|only|never) (?:\w+ ){0,5}(?:is |are )?allowed\b",
        r"\b(?:is|are)n't allowed\b",
    ),
    "approval": (
        r"\b(?:without|needs?|requires?|get|until|has|have|ask(?:ing)? for) (?:\w+ ){0,3}approval"
        r"\b",
    ),
    "permission": (r"\b(?:without|ask(?:ing)? for|unless|get) (?:\w+ ){0,3}permission\b",),
    "asking": (r"\bwithout (?:first )?asking\b", r"\bwithout asking (?:me|us|first)\b"),
    "ask": (r"<start>(?:always )?ask (?:me|us|before|first)\b.{0,60}\b(?:before|first|if|when)\b",),
    "check": (r"<start>(?:always )?check with (?:me|us|\w+)\b.{0,60}\b(?:before|first)\b",),
    "unless": (
        r"\bunless i (?:say|ask|tell|explicitly|specifically|give|confirm)\b",
        r"\b(?:don't|do not|never|no|not|nothing|must|should)\b.{0,120}\bunless\b",
    ),
    "until": (r"\b(?:don't|do not|never|nothing|nobody|hold off|wait)\b.{0,120}\buntil i\b",),
    "whenever": (
        rf"\bwhenever (?:you|i|we|someone|anyone|there)\b.{{0,100}}, (?:please |then |you )?"
        rf"(?:must |should |have to |always )?(?:{ORDERS})\b",
        rf"<start>(?:{ORDERS})\b.{{0,100}}\bwhenever (?:you|i|we|someone|there)\b",
    ),
    "every": (
        rf"\b(?:every|each) time (?:you|i|we)\b.{{0,100}}, (?:please |then )?(?:{ORDERS})\b",
        r"^every [\w-]+(?: [\w-]+){0,3} (?:must|needs?|has to|should|gets|ends|starts|begins"
        r"|requires)\b",
        rf"<start>(?:{ORDERS}) (?:\w+ ){{1,6}}(?:every time|in every|with every|for every|at the "
        rf"end of every|at the start of every)\b",
    ),
    "each": (
        r"^each [\w-]+(?: [\w-]+){0,3} (?:must|needs?|has to|should|gets|ends|starts|begins)\b",
        rf"<start>(?:{ORDERS}) (?:\w+ ){{1,6}}(?:each time|in each|with each|for each)\b",
    ),
    "everything": (r"<start>everything (?:must|has to|needs to|should|stays|goes through)\b",),
    "needs": (
        r"\b(?:everything|anything|every \w+|each \w+|any \w+|all \w+) (?:\w+ ){0,4}needs? to\b",
    ),
    "has": (r"\b(?:everything|anything|every \w+|each \w+|any \w+) (?:\w+ ){0,4}has to\b",),
    "have": (r"\b(?:you|all \w+) (?:always |only |absolutely )?have to (?!be kidding|admit)\w",),
    "insist": (r"\bi (?:must |really )?insist\b",),
    "nobody": (r"\bnobody (?:else )?(?:may|must|should|can|is (?:allowed|to)|but)\b",),
    "nothing": (r"\bnothing (?:\w+ ){0,5}(?:may|must|should|is (?:allowed|to)|leaves|goes)\b",),
    "anything": (r"\banything (?:\w+ ){0,5}(?:must|should|is (?:off|not allowed)|needs)\b",),
    "can": (
        r"\b(?:you|we) can (?:\w+ ){0,5}(?:again|after all)\b",
        r"\byou can (?:now|from now|go back to)\b",
    ),
    "longer": (r"\b(?:you|we) no longer (?:need|have) to\b",),
    "forget": (r"<start>forget (?:about )?(?:the|that|my) (?:\w+ ){0,4}(?:rule|instruction)\b",),
    "lift": (r"\blift(?:ing)? the (?:\w+ ){0,4}(?:rule|ban|restriction|freeze|limit)\b",),
    "fine": (
        r"\b(?:it's|it is) (?:now )?(?:fine|ok|okay) to\b.{0,100}\b(?:again|now|after all)\b",
    ),
    "okay": (r"\b(?:it's|it is) (?:now )?okay to\b.{0,100}\b(?:again|now|after all)\b",),
    "ok": (r"\b(?:it's|it is) (?:now )?ok to\b.{0,100}\b(?:again|now|after all)\b",),
    "important": (
        r"^(?:very |most |really )?important(?:ly)?(?: note)?[:,–—-]",
        r"\b(?:it's|it is) (?:very |really |absolutely )?(?:important|essential|crucial|vital|key)"
        r" (?:to me |for us |for me )?(?:that|to)\b",
    ),
    "essential": (r"\b(?:it's|it is) (?:absolutely )?essential (?:that|to)\b",),
    "crucial": (r"\b(?:it's|it is) (?:absolutely )?crucial (?:that|to)\b",),
    "regardless": (r"\bregardless of (?:what|who|how|the)\b",),
    "instead": (r"<start>(?:say|write|use) (?:\S+ ){1,6}instead of\b",),
    "rather": (r"<start>(?:say|write|use) (?:\S+ ){1,6}rather than\b",),
    "treat": (r"<start>treat (?:\w+ ){1,6}as\b",),
    "assume": (r"<start>(?:always )?assume (?:that |i\b|we\b|the\b|my\b|all\b)",),
    "default": (r"<start>default to\b", r"\bby default,? (?:use|write|answer|assume)\b"),
    "confidential": (r"\b(?:is|are|this|strictly|stays?|remains?) (?:strictly )?confidential\b",),
    "begin": (r"<start>begin (?:every|each|all)\b",),
    "start": (r"<start>start (?:every|each|all)\b",),
    "end": (r"<start>end (?:every|each|all)\b",),
    "future": (
        rf"\bin (?:the )?future,? (?:please )?(?:{ORDERS}|always|never|only|avoid|don't)\b",
        rf"<start>(?:{ORDERS})\b.{{0,100}}\bin (?:the )?future\b",
    ),
}

"""By what standing orders are recognized in English that need no word such as "never".

They are imperatives with a limit ("quote prices only in euros"), orders with a condition ("when a
period comes up, use the fiscal year"), and duties of things ("dates have to be in ISO format").
"""

from compaction.memory.core.ledger.languages.english.fragments import ORDERS

_MORE_ORDERS = (
    r"leave|omit|exclude|drop|skip|mask|redact|hide|spell|abbreviate|prefix|indent|wrap|attach|copy"
    r"|cc|bcc|forward|report|record|document|track|number|label|tag|mark|flag|escalate|notify"
    r"|inform|confirm|verify|check|double-check|validate|review|approve|prefer|choose|pick|open"
    r"|close|lock|turn|switch|set|wait|hold|stay|go|bring|wear|wash|clean|feed|water|charge|bill"
    r"|invoice|deliver|pack|freeze|heat|cook|serve|drive|park|fly|travel|reserve|cancel|move|let"
    r"|allow|grant|revoke|rotate|encrypt|back|sync|build|lint|rebase|squash|release|publish|post"
    r"|share|upload|download|print|scan|file|archive|destroy|shred|throw|respect|follow|obey|honor"
    r"|observe|assume|treat|consider|express|convert|calculate|compute|measure|weigh|estimate"
    r"|price|state|phrase|word|draft|propose|offer|present|describe|structure|sort|group|split"
    r"|restrict|cap|base|stick|remain|repeat|promise|guarantee|warn|ring|phone|text|message|ping"
    r"|visit|invite|seat|place|hang|plant|paint|cut|trim|apply|prescribe|administer|substitute"
    r"|replace|swap|say|think|talk|dress|sit|stand|smoke|eat|drink|lend|sell|hire|stop|finish"
    r"|steer|shut|discuss|approach|beware|hand|disclose|reveal|refuse|reject|decline|ignore|defer"
    r"|disregard|consult|involve|credit|greet|rely|trust|refer|escape|pad|begin"
)
_LASTING_ORDERS = rf"(?:{ORDERS}|{_MORE_ORDERS})"
# What is asked once and at once: "show me every error", "write a poem without the letter e".
_TASKS = (
    r"(?!(?:tell|show|explain|let|help|find|see|know|write|create|make|give|build|generate|list|do"
    r"|describe|draft|say|think|compare|go|take|wait|hold|come) )"
)
_OTHER_SUBJECTS = r"(?!i\b|i'|he\b|she\b|it\b|it's|they\b|my\b|there\b|we (?:had|got|were)|that\b)"
_NO_STORY = (
    r"(?<!\bi )(?<!\bwe )(?<!they )(?<!he )(?<!\bit )(?<!there )(?<!that )(?<!this )(?<!you )"
)
_DUTIES = (
    r"(?:be|go|stay|carry|use|come|match|include|contain|fit|end|start|read|say|pass|follow|appear"
    r"|remain|bear|show|list|look|keep|stand|name|quote|cite|mention|reach|have|work|support|run)"
)
_DUTIES_OF_EACH = (
    r"(?:must|should|has to|have to|needs? to|gets|goes|ends|starts|begins|closes|opens|carries"
    r"|bears|stays|requires|comes|shows|includes|contains|follows|uses|leaves|passes|waits|is to"
    r"|(?:is|are) \w+(?:ed|en) (?:by|with|in|on|at|before|after|from|to|first|twice))"
)
_CONDITION = (
    rf", (?:please |always |never |then |just |you )?{_TASKS}{_LASTING_ORDERS}\b(?! (?:is|was)\b)"
)

ORDER_CUES = {
    "only": (
        r"(?:^|[,:;] )(?!i\b|it\b|he\b|she\b|if\b|not\b)(?!.*\b(?:is|was|are|were|had|has)\b)"
        r"[\w'-]+(?: [\w'-]+){0,4} only(?=[.,;!]|$)",
        rf"<start>{_LASTING_ORDERS}\b[^.;]{{0,80}}\bonly\b(?! (?:a|one|two|joking|kidding)\b)",
        r"^(?!(?:it|this|that|he|she|i|there|they|we)\b)[^,;]{2,60}\b(?:is|are|go|goes|gets?|stays?"
        r"|happens?|runs?|comes?|leaves?|works?)\b[^.,;]{0,60}\bonly(?: (?:in|by|with|on|via"
        r"|through"
        r"|from|to|after|before|when|if|for|as|per|under)\b|[.,;!]|$)",
        r"<start>only (?!a\b|the\b|one\b|you\b|i\b|it\b|if\b|because\b|after all|then\b|my\b"
        r"|problem"
        r"|thing|question|time\b|yesterday|recently|just\b|he\b|she\b|we\b|they\b|in\b|had\b"
        r"|when\b)"
        r"\w+ .{2,80}\b(?:when|if|after|once|with|in|on|via|through|by|from|to|at)\b",
        r"\bonly (?:[\w'-]+ ){1,5}(?:may|can|gets? to|is allowed|are allowed)\b",
    ),
    "nothing": (
        r"<start>(?:absolutely )?nothing (?:with|from|in|over|under|on|made|that|before|after)\b",
        rf"<start>{_LASTING_ORDERS}\b[^.;]{{0,60}}\bnothing\b(?! (?:wrong|new|special))",
        r"\bnothing (?:[\w'-]+ ){0,6}(?:goes|leaves|gets|is to|stays|ships|without)\b",
    ),
    "no": (
        r"<start>no (?!one\b|idea|doubt|problem|wonder|longer|matter|reason|sign\b|way\b)[\w-]+"
        r"(?: [\w-]+)? (?:that|which|containing|of any|with)\b",
        r"<start>no (?!one\b|idea|doubt|problem|wonder|longer|matter|reason|sign\b|way\b"
        r"|thanks|need"
        r"|worries|rush|clue|luck|offence|offense|hurry|pressure|kidding|comment|news|hard)[\w-]+"
        r"(?:s|ing)(?=[.,;!]|$)",
        rf"<start>{_LASTING_ORDERS} (?!me no)[^.,;]{{0,40}}\bno (?!idea|problem|one else|matter)\w",
        r"\bno (?!one\b|idea|doubt|problem|wonder|longer)[\w' -]{2,50}?\b(?:may|must|should|shall"
        r"|is to|are to|gets?|goes|leaves|enters)\b",
        r", (?:and |so |but )?no (?!idea|problem|doubt|worries|wonder|matter|longer|rush|need"
        r"|thanks|pun\b)[\w-]+(?: [\w-]+){0,3} (?:in|on|before|after|without|for|to|from|with|at"
        r"|during|unless)\b",
    ),
    "without": (
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;]{{0,80}}\bwithout\b",
        r"\b(?:nothing|no|nobody|don't|never|not)\b[^.;]{0,80}\bwithout\b(?! (?:you|doubt)\b)",
    ),
    "whenever": (
        rf"\bwhenever [^,;]{{3,80}}, {_OTHER_SUBJECTS}\w",
        rf"<start>{_LASTING_ORDERS}\b[^.;]{{0,80}}\bwhenever\b",
    ),
    "whatever": (
        rf"\bwhatever (?!happened)[^,;]{{3,80}}, {_OTHER_SUBJECTS}\w+ \w+",
        r"\bwhatever [^,;]{3,80}, (?:it|they) (?:has to|have to|must|should|needs? to|can only)\b",
    ),
    "wherever": (
        rf"\bwherever [^,;]{{3,80}}, {_OTHER_SUBJECTS}\w",
        rf"<start>{_LASTING_ORDERS}\b[^.;]{{0,80}}\bwherever\b",
    ),
    "whoever": (
        r"<start>whoever [^,;]{3,60} \w+s (?:it|the|them|for|up)\b",
        r"\bwhoever [^,;]{3,80}\b(?:must|has to|should|asks|needs to|gets)\b",
    ),
    "anyone": (r"\banyone (?:who )?[^,;]{3,80}\b(?:must|has to|should|needs to)\b",),
    "when": (
        rf"\bwhen (?:you|i|we|it|there|someone|anyone|a|an|the|any"
        rf"|\w+ing) [^,;]{{3,80}}{_CONDITION}",
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;,]{{2,80}}\bwhen (?:you|i|we|it|there|someone|a|an"
        rf"|the|any|\w+ing)\b(?! (?:are|'re) (?:done|ready|back))",
    ),
    "if": (
        rf"\bif (?:you|i|we|it|there|someone|anyone|anything|something|a|an|the|any) "
        rf"(?!have time|have a minute|want\b|can\b|could\b|like\b"
        rf"|don't mind)[^,;]{{3,80}}{_CONDITION}",
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;,]{{2,80}}\bif (?:there|someone|anyone|anything|a"
        rf"|an|the|any)\b",
    ),
    "every": (
        rf"<start>{_TASKS}{_LASTING_ORDERS} every [\w-]+ (?:to|in|into|as|with|by|for|on)\b",
        r"^(?!.*\b(?:is|was|are|were)\b)every [\w-]+ (?:to|in|into|with|by|on)\b",
        rf"\bevery (?!time i|day i|one of)[\w' -]{{2,50}}?\b{_DUTIES_OF_EACH}\b",
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;]{{1,80}}\b(?:in|with|on|at|after|before|for"
        rf"|of) every\b",
    ),
    "each": (
        rf"<start>{_TASKS}{_LASTING_ORDERS} each [\w-]+ (?:to|in|into|as|with|by|for|on)\b",
        rf"\beach [\w' -]{{2,50}}?\b{_DUTIES_OF_EACH}\b",
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;]{{1,80}}\b(?:in|with|on|at|after|before|for"
        rf"|of) each\b",
    ),
    "all": (
        rf"<start>{_TASKS}{_LASTING_ORDERS} all (?:the |our |my )?[\w-]+ (?:to|in|into|as|with"
        rf"|by)\b",
        r"^(?!.*\b(?:is|was|are|were)\b)all (?:the |our |my )?[\w-]+ (?:in|with|by)\b",
        r"\ball [\w' -]{2,50}?\b(?:go|goes|must|should|are to|have to|need to|shall|get \w+ed|use"
        r"|start|end|stay|come)\b(?! (?:well|home|back)\b)",
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;]{{1,60}}\b(?:in|with|on|at|for|to|of) all\b",
    ),
    "any": (
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^.;]{{1,80}}\b(?:in|with|on|at|after|before|for|from"
        rf"|to) any\b",
        r"\bany [\w' -]{2,50}?\b(?:must|should|has to|have to|needs? to|goes|gets)\b",
    ),
    "anything": (r"<start>(?:keep|leave)\b[^.;]{1,80}\b(?:out of|from|off) anything\b",),
    "to": (
        rf"(?<!plan )(?<!goal )(?<!idea )(?<!point )(?<!aim )(?<!task )(?<!trick )(?<!way )"
        rf"{_NO_STORY}\b(?:is|are) to (?!be (?:expected|blame|fair|honest)){_DUTIES}\b",
    ),
    "have": (rf"{_NO_STORY}\bhave to {_DUTIES}\b",),
    "has": (rf"{_NO_STORY}\bhas to {_DUTIES}\b(?!.*\bby (?:\w+day|the end|\d|noon|tomorrow))",),
    "needs": (
        rf"{_NO_STORY}\bneeds? to {_DUTIES}\b(?!.*\bby (?:\w+day|the end|\d|noon|tomorrow))",
    ),
    "need": (
        rf"{_NO_STORY}\bneed to {_DUTIES}\b(?!.*\bby (?:\w+day|the end|\d|noon|tomorrow))",
        r"\bi need (?:you to|every|each|all)\b.{0,80}\b(?:every|each|all|any|only|before|whenever"
        r"|when|first|next to)\b",
    ),
    "should": (
        rf"\byou should (?:always |never |only |not |also )?{_LASTING_ORDERS}\b(?! (?:more|it a))",
        rf"{_NO_STORY}\bshould (?:not |always |only |never )?(?:be (?:\w+(?:ed|en|t) |in |at "
        rf"|on |no "
        rf"|under |short|brief)|appear|go|leave|contain|include|exceed|carry|use|stay|come|follow"
        rf"|end|start|fit)\b",
    ),
    "shouldn't": (
        rf"{_NO_STORY}\bshouldn't (?:be \w+(?:ed|en|t)|appear|go|leave|contain|include"
        rf"|exceed|end up|use|see|know)\b",
    ),
    "may": (
        r"\b(?:no|nothing|none|neither|only|nobody) [^.;,]{0,60}\bmay\b",
        rf"{_NO_STORY}\bmay (?:not|only|never|be \w+ed only)\b",
    ),
    "ask": (r"\bi(?:'d| would)? (?:also |just |kindly )?ask (?:that|you to)\b",),
    "like": (
        r"\b(?:i'd|i would) (?:really )?like (?:you to|every|each|all|it if you)\b"
        r".{0,100}\b(?:every|each|all|always|any|when|whenever|only|not|instead|in|with)\b",
    ),
    "appreciate": (
        r"\b(?:i'd|i would) appreciate it if you\b.{0,100}\b(?:always|never|not|only"
        r"|every|each|any|stopped|kept|used|avoided|didn't|wouldn't)\b",
    ),
    "expect": (r"\bi expect (?:you to|that|every|each|all|no)\b",),
    "supposed": (r"\b(?:are|is|'re) (?:not )?supposed to (?:be|use|go|stay|follow)\b",),
    "expected": (r"\b(?:are|is|'re) expected to (?:be|use|go|stay|follow)\b",),
    "than": (
        r"\b(?:not|no|never) (?:more|longer|later|fewer|less|earlier) than\b.{0,60}\b(?:please"
        r"|per|each|every|a day|at once)\b",
        rf"<start>{_LASTING_ORDERS}\b[^.;]{{1,60}}\b(?:no|not) (?:more|longer|later|less) than",
    ),
    "most": (rf"<start>{_LASTING_ORDERS}\b[^.;]{{0,60}}\bat most\b",),
    "maximum": (
        rf"<start>{_LASTING_ORDERS}\b[^.;]{{0,60}}\bmaximum\b",
        r"\bmaximum of\b.{0,40}"
        r"\bper\b",
    ),
    "instead": (rf"<start>{_LASTING_ORDERS}\b[^;]{{2,80}}\binstead of\b",),
    "rather": (rf"<start>{_LASTING_ORDERS}\b[^;]{{2,80}}\brather than\b",),
    "not": (
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^;.]{{2,80}}, not \w+",
        r", not (?:in |with |by |on |to |as )?[\w-]+,? please\b",
        r"\bare not (?:for|to)\b(?! (?:blame|worry))",
    ),
    "first": (rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^;.]{{2,80}}\bfirst\b(?! (?:time|of)\b)",),
    "before": (
        rf"<start>{_TASKS}{_LASTING_ORDERS}\b[^;.]{{2,80}}\bbefore (?:you|any|every|each"
        rf"|\w+ing)\b",
    ),
    "throughout": (
        rf"<start>{_LASTING_ORDERS}\b[^;.]{{2,80}}\bthroughout\b",
        r"^[\w' -]{2,60} throughout\b(?=[.,!;]|$)",
    ),
    "consistently": (rf"<start>{_LASTING_ORDERS}\b[^;.]{{2,80}}\bconsistently\b",),
    "default": (rf"<start>{_LASTING_ORDERS}\b[^;.]{{2,80}}\bby default\b",),
    "out": (
        r"^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\bstays? out\b",
        r"<start>(?:keep|leave|cut|strip|take|edit|filter)\b[^.;]{1,60}\bout(?: of)?\b(?! a "
        r"(?:look|walk)| the trash)",
    ),
    "from": (r"<start>keep\b[^.;]{1,60}\b(?:away from|from)\b",),
    "mask": (r"<start>mask\b",),
    "redact": (r"<start>redact\b",),
    "omit": (r"<start>omit\b",),
    "anonymize": (r"<start>anonymi[sz]e\b",),
    "anonymise": (r"<start>anonymise\b",),
    "abbreviate": (r"<start>abbreviate\b",),
    "spell": (r"<start>spell\b.{2,60}\b(?:out|with|in|as|like)\b",),
    "spelling": (r"\b(?:british|american|us|uk|canadian) spelling\b",),
    "between": (
        r"\b(?:stays?|keep|remains?|strictly) (?:this |it |that )?(?:just |strictly )?"
        r"between (?:us|you|the two)\b",
    ),
    "record": (r"\boff the record\b",),
    "hands": (r"<start>hands off\b",),
    "exclusively": (r"\bexclusively\b",),
    "strictly": (
        r"^strictly \w",
        r"\bstrictly (?:no|in|by|for|after|before|under|confidential|internal)\b",
    ),
    "compulsory": (r"\b(?:is|are) compulsory\b",),
    "obligatory": (r"\b(?:is|are) obligatory\b",),
    "acceptable": (r"\b(?:is|are)(?:n't| not| never) acceptable\b",),
    "touch": (r"<start>(?:do not|don't|never|nobody) (?:\w+ )?touch\b",),
    "nobody": (
        r"\bnobody (?:[\w'-]+ ){1,5}(?:gets|may|must|should|sees|touches|hears)\b",
        r"\bnobody (?:else )?(?:gets|touches|sees|sends|signs|leaves|goes|merges"
        r"|deploys)\b",
    ),
    "one": (r"\bno one (?:else )?(?:gets|touches|sees|sends|may|must|should|is to|can)\b",),
    "future": (r"\bin future,? \w",),
    "let's": (r"\blet's (?:always|never|not|only|keep [^.;]{1,60}\b(?:out|short|private))\b",),
    "ok": (r"\b(?:without|wait for|until you have|need|get) my (?:explicit )?ok\b",),
    "okay": (r"\b(?:without|wait for|until you have|need|get) my (?:explicit )?okay\b",),
    "go-ahead": (r"\bmy (?:explicit )?go-ahead\b",),
    "sign-off": (r"\b(?:without|need|needs|get|gets) (?:\w+ ){0,3}sign-off\b",),
    "consent": (r"\bwithout (?:\w+ ){0,4}consent\b",),
    "orders": (r"\b(?:doctor|boss|management|partner|client)'?s'? orders\b",),
    "thumb": (r"\brule of thumb\b",),
    "everything": (rf"<start>{_TASKS}{_LASTING_ORDERS} everything\b",),
    "policy": (r"\b(?:strict|firm|no-\w+|zero-\w+|general) (?:[\w-]+ )?policy\b",),
    "ban": (r"<start>ban\b(?! (?:is|was)\b)",),
    "forbid": (r"\bi forbid\b", r"\b(?:rules|law|contract|policy|terms) forbids?\b"),
    "forbids": (r"\b(?:law|contract|policy|management|doctor|boss|lease) forbids\b",),
    "prohibits": (r"\b(?:law|contract|policy|lease) prohibits\b",),
    "spare": (r"<start>spare me\b",),
    "dare": (r"\bdon't you dare\b",),
    "max": (
        r"^(?:please,? )?[\w' -]{2,60} max(?=[.,!;]|$)",
        r"<start>max(?:imum)? (?:of )?\w+ \w+",
    ),
    "tops": (r"^[\w' -]{2,40},? tops[.!]*$",),
    "wait": (r"\b(?:are|'re|have|has) to wait (?:for|until)\b",),
    "mind": (r"<start>mind (?:that|you,? no|you,? never)\b",),
    "trust": (r"\bcounting on you (?:not )?to\b",),
    "counting": (r"\bcounting on you (?:not )?to\b",),
    "careful": (r"<start>(?:always )?be careful (?:to|not to|that|never)\b",),
    "question": (r"\b(?:is|are) out of the question\b",),
    "go": (r"\b(?:is|are) a no[ -]go\b",),
    "no-go": (r"\b(?:is|are) (?:an absolute |a total |a )?no-go\b",),
    "understand": (r"\bis that understood\b",),
    "tolerate": (r"\b(?:we|i) (?:don't|do not|won't|will not) tolerate\b",),
    "business": (r"\bnone of (?:their|his|her) business\b",),
    "sacred": (r"\b(?:is|are) sacred\b",),
    "sight": (r"<start>keep\b[^.;]{1,60}\bout of sight\b",),
    "can't": (
        r"\b(?:i|we|you|they|she|he) can't (?:have|take|do|handle|use|wear|work|travel|fly"
        r"|drive) (?:any"
        r"|anything|on|after|before|\w+s)\b",
    ),
    "cannot": (
        r"\b(?:i|we|you|they|she|he) cannot (?:have|take|do|use|wear|work|travel|fly|drive) (?:any"
        r"|anything|on|after|before|\w+s)\b",
    ),
    "address": (r"<start>address .{2,60} as\b",),
    "call": (
        r"<start>call (?:it|this|that|him|her|them|the [\w ]{2,30}) (?!off|back|in\b)[\w'-]+[.!]?$",
    ),
    "always": (
        r"^(?!(?:it|he|she|they|i|this|that|there)\b)[^,;]{2,60}\b(?:is|are|gets?|goes|go) always "
        r"(?:\w+(?:ed|en|t)|in|with|by|on|to) ",
    ),
    "never": (
        r"<start>never,? ever,? \w",
        r"^(?!(?:it|he|she|they|i|this|that|there)\b)[^,;]{2,60}\b(?:gets?|goes|go) never\b",
        r"\b(?:and|but|,) never (?!mind|again)(?:the |a |in |on |with |to |by |before |after "
        r"|up|down)",
    ),
    "until": (r"\buntil i (?:say|tell|give|ask|confirm|explicitly)\b",),
    "don't": (
        r"\byou don't (?!know\b|think|have\b|need\b|want\b|like\b|understand|see\b|say\b"
        r"|mind\b|get\b"
        r"|really|even|seem|believe|feel|care\b|remember)\w",
    ),
    "doesn't": (r"\bdoesn't (?:get|leave|go (?:to|into|out|in)|ship|enter) (?:\w+(?:ed|en|t)\b)?",),
    "time": (rf"\b(?:any|each|every) time [^,;]{{3,80}}{_CONDITION}",),
    "must": (r"\bis a must\b",),
    "required": (rf"{_NO_STORY}\b(?:is|are) (?:always |strictly )?required\b(?! by \w+day)",),
    "stays": (
        r"^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\bstays (?:off"
        r"|in|under|below|away|shut|closed|private|within|on)\b",
    ),
    "stay": (
        r"^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\bstay (?:off"
        r"|in|under|below|away|shut|closed|private|within|on)\b",
    ),
    "get": (
        r"^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\bget \w+(?:ed"
        r"|en|lt|nt|pt) (?!married|divorced|tired|bored)",
    ),
    "gets": (
        r"^(?!(?:it|he|she|i|we|they|this|that|there|you|who"
        r"|what)\b)[^,;]{2,50}\bgets \w+(?:ed|en|lt|nt|pt) (?!married|divorced|tired|bored)",
    ),
    "adamant": (r"\b(?:is|am|'m|are) adamant (?:that|about)\b",),
    "insists": (r"\binsists (?:that|on)\b",),
    "demands": (r"\bdemands that\b",),
    "requires": (r"\brequires that\b",),
    "bans": (r"\b(?:guide|policy|contract|lease|rules?|law|boss|school) bans\b",),
    "for": (
        rf"^for (?:all|every|any|each) [^,;]{{2,50}}, (?:please )?{_TASKS}{_LASTING_ORDERS}\b",
    ),
}

"""English: by what rules, preferences, decisions, commitments and values are recognized."""

from compaction.memory.core.ledger.languages.base import Language, parse_cues, parse_parts

PARTS = parse_parts(r"""
orders: use|answer|reply|respond|write|speak|send|email|call|contact|deploy|push|merge|commit|ship
        |book|order|buy|pay|accept|run|test|keep|include|show|give|list|return|quote|cite|name|ask
        |tell|put|store|save|log|schedule|change|edit|touch|delete|create|install|read|translate
        |round|format|sign|start|end|add|do|make|take|refer|mention|suggest|recommend|work|connect
language names: english|german|french|spanish|italian|dutch|portuguese|polish|russian|turkish|arabic
        |chinese|japanese|swedish|danish|greek|ukrainian|latin|hindi|korean
past: \w+ed\b|got\b|had\b|was\b|were\b|saw\b|heard\b|thought\b|knew\b|understood\b|felt\b|been\b
        |came\b|went\b|did\b|took\b|made\b|said\b|told\b|met\b|found\b|seen\b|know\b|mind\b
states: have\b|know\b|think\b|see\b|need to\b|understand\b|want\b|believe\b|care\b|mind\b|really\b
        |feel\b|remember\b|get\b|seem\b|even\b|yet\b|like\b
more orders: leave|omit|exclude|drop|skip|mask|redact|hide|spell|abbreviate|prefix|indent|wrap
        |attach|copy|cc|bcc|forward|report|record|document|track|number|label|tag|mark|flag|escalate
        |notify|inform|confirm|verify|check|double-check|validate|review|approve|prefer|choose|pick
        |open|close|lock|turn|switch|set|wait|hold|stay|go|bring|wear|wash|clean|feed|water|charge
        |bill|invoice|deliver|pack|freeze|heat|cook|serve|drive|park|fly|travel|reserve|cancel|move
        |let|allow|grant|revoke|rotate|encrypt|back|sync|build|lint|rebase|squash|release|publish
        |post|share|upload|download|print|scan|file|archive|destroy|shred|throw|respect|follow|obey
        |honor|observe|assume|treat|consider|express|convert|calculate|compute|measure|weigh
        |estimate|price|state|phrase|word|draft|propose|offer|present|describe|structure|sort|group
        |split|restrict|cap|base|stick|remain|repeat|promise|guarantee|warn|ring|phone|text|message
        |ping|visit|invite|seat|place|hang|plant|paint|cut|trim|apply|prescribe|administer
        |substitute|replace|swap|say|think|talk|dress|sit|stand|smoke|eat|drink|lend|sell|hire|stop
        |finish|steer|shut|discuss|approach|beware|hand|disclose|reveal|refuse|reject|decline|ignore
        |defer|disregard|consult|involve|credit|greet|rely|trust|refer|escape|pad|begin
lasting orders: (?:<orders>|<more orders>)
# What is asked once and at once: "show me every error", "write a poem without the letter e".
tasks: (?!(?:tell|show|explain|let|help|find|see|know|write|create|make|give|build|generate|list|do
        |describe|draft|say|think|compare|go|take|wait|hold|come) )
other subjects: (?!i\b|i'|he\b|she\b|it\b|it's|they\b|my\b|there\b|we (?:had|got|were)|that\b)
no story: (?<!\bi )(?<!\bwe )(?<!they )(?<!he )(?<!\bit )(?<!there )(?<!that )(?<!this )(?<!you )
duties: (?:be|go|stay|carry|use|come|match|include|contain|fit|end|start|read|say|pass|follow|appear
        |remain|bear|show|list|look|keep|stand|name|quote|cite|mention|reach|have|work|support|run)
duties of each: (?:must|should|has to|have to|needs? to|gets|goes|ends|starts|begins|closes|opens
        |carries|bears|stays|requires|comes|shows|includes|contains|follows|uses|leaves|passes|waits
        |is to|(?:is|are) \w+(?:ed|en) (?:by|with|in|on|at|before|after|from|to|first|twice))
condition: , (?:please |always |never |then |just |you )?<tasks><lasting orders>\b(?! (?:is|was)\b)
when: (?:by|on|before|until|till|after|at|in|within|next|this|tomorrow|tonight|today|later|once|when
        |as soon as|first thing|end of|eod|eow|monday|tuesday|wednesday|thursday|friday|saturday
        |sunday)\b
""")

RULES = r"""
never:
    <start>(?:you )?never (?:ever )?(?!\w+[^s\W]s\b|mind\b|ending|heard|seen|been|had\b|thought|knew
        |once|in my|a dull|a problem|the less|say never|too late|gets? |fails?\b|did\b|in a million
        |got\b|was\b|know\b|would\b|understood|tried|\w+ed (?:it|that|this|one)\b)\w
    \b(?:should|must|shall|may|to|do|does|ought to|has|have to|need to)(?: also
        | please)? never (?:ever )?(?!have\b|forget\b|happen\b|know\b|be able|be the same|hear\b)\w
    \b(?:we|our \w+|this \w+|nobody|people here) never (?:ever )?(?!<past>)\w
    \b(?:is|are|'re|am) never (?:ever )?(?:to|allowed|ok|okay|acceptable|permitted|an option
        |supposed)\b
    \bi never (?:ever )?want\b
always:
    <start>(?:you )?always (?!been\b|had\b|nice|good|great|fun\b|fascinat|a \b|the \b|is\b|was\b
        |<past>)\w
    \b(?:should|must|shall|has to|have to|to|needs? to|do|please|ought to
        |will) always (?!be grateful|be there|love|remember (?:that|the) day|have been)\w
    \bwe always (?!<past>|end up|have (?:fun|trouble|problems))\w
    \bi always (?:want|need|expect)\b
    \b(?:is|are) always (?:to|required|mandatory|written|spelled|spelt|capitalized)\b
ever:
    \b(?:don't|do not|dont|no one|nobody|must not|mustn't|should not|shouldn't
        |not to) (?:\w+ ){0,2}ever\b
    <start>(?:do )?not ever \w
    <start>only ever \w
now:
    \bfrom now on\b
    \bfrom now onwards?\b
    \bfrom now until\b
forward: \b(?:going|moving) forward\b(?! to\b)
onwards onward: \bfrom (?:here|today|this point|now) <word>\b
here: \bfrom here on\b
today: \b(?:from|starting|as of) today(?: on)?\b
rest: \b(?:for|throughout) the rest of (?:this|our|the) (?:chat|conversation|talk|project|session
        |discussion|thread|work|week|month|year|trip|day)\b
times: \bat all times\b
circumstances: \bunder (?:no|any) circumstances\b
account: \bon no account\b
condition: \bunder no condition\b
matter:
    \bno matter (?:what|how|who|when)\b.{0,80}(?:don't|do not|never|always|must|(?:^
        |, )(?:<orders>)\b)
    (?:don't|do not|never|always|must|^(?:please )?(?:<orders>)\b).{0,120}\bno matter (?:what|how
        |who|when)\b
exception exceptions: \b(?:without|no) exceptions?\b
rule:
    \b(?:hard|house|ground|golden|simple|strict|firm|standing|new|one|another|basic|my|our|a|the
        |important|general|team|safety|key|first|second|last
        |additional) (?:\w+ )?rule\b(?: \w+){0,5}(?::| is\b| -| –| —|,)
    ^rule(?: \d+| number \w+)?:
    \bas a rule\b
    \b(?:make|consider|treat|take|set) (?:it|this|that|the following)(?: as)? a (?:\w+ )?rule\b
policy: \b(?:our|my|company|team|house|the|strict) (?:\w+ )?policy (?:is|says|here)\b
instruction: \b(?:standing|permanent|general|important) instruction\b
mandatory prohibited: \b(?:is|are) (?:strictly )?<word>\b
required: \b(?:is|are) (?:always|strictly) required\b
remember:
    <start>remember (?:that |to |this|the following|for later|:)
    \b(?:please|must|should|to|you) remember (?:that |to |this\b|the following|for later|:)
mind:
    <start>(?:do )?(?:keep|bear) in mind (?:that|:)
    \b(?:keep|bear) in mind:
sure: <start>(?:always )?(?:make|be) sure (?:to|you|that|it|every|all|no|the|nobody|we|any)\b
ensure: <start>ensure (?:that )?\w
don't:
    <start>don't (?:ever |you dare )?(?!worry|know\b|think (?:so|that|i|we|it|you)\b|mind\b
        |get me wrong|forget\b|understand|have (?:a|any|to|the)\b|care\b|be (?:sorry|silly|shy
        |afraid|sad)|you (?:think|agree|have|want|know|see|just)|like\b|really\b|see\b|want\b
        |bother\b|let me (?:forget|down)|hesitate|sweat|panic|we\b|i\b|they\b|even\b)\w
    \b(?:i|we) (?:really )?don't want (?:you to|any|to (?:see|read|hear|have|get)|the|it|this|my|our
        |to be \w+ed)\b
    \bwe (?:just |simply )?don't (?!<states>)\w+
dont: <start>dont (?:ever )?(?!worry|know\b|think\b|mind\b|forget\b|have\b|care\b)\w
not:
    <start>do not (?:ever )?(?!worry|know\b|think\b|mind\b|forget\b|understand|have\b)\w
    \b(?:must|shall|should|may) not (?!have\b|know\b|be (?:able|sure|surpris|too|hard|long
        |a problem))\w
    \b(?:is|are|'s|'re) (?:strictly |absolutely )?not (?:allowed|permitted|acceptable|to be
        |an option|supposed to)\b
    \bnot (?:allowed|permitted) to\b
    \bwe do not (?!<states>)\w+
    \bi (?:really )?do not want (?:you|any|to see|to read|the|it)\b
    <start>(?:please,? )?not (?:before|after|on|without|more than|later than|in
        |to)\b.{0,80}\bplease\b
mustn't: \bmustn't (?!have\b|grumble)\w
shouldn't: \b(?:you|we|it|nobody|they|\w+s) shouldn't (?:be \w+ed|ever|use|touch|send)\b
cannot can't: \b(?:we|you) (?:absolutely |simply )?<word> (?:use|accept|share|disclose|exceed|ship
        |deploy|store|send|publish|spend|go (?:over|above|below))\b
cannot: \bcannot (?:ever )?(?:exceed|leave|be (?:shared|used|changed|sent|stored|published|exceeded
        |moved|disclosed|later|longer|more))\b
can't: \bcan't (?:exceed|be (?:shared|used|changed|sent|stored|published|exceeded|moved))\b
must:
    \b(?:you|we|all|every|each|any|no|nobody|everything|everyone|both|the|our|my|their|this|that
        |these) (?:[\w'-]+ ){0,6}must (?:not |only |always |never |also |still )?(?!have\b|say\b
        |admit\b|confess|be (?:joking|kidding|a \b|an \b|the \b|so\b|very\b|nice|hard|tired|proud
        |fun|some|something|wrong|right|mistaken|because|missing|exhaust)|feel\b|know\b)\w
    \bmust (?:be (?:\w+ed|written|kept|done|sent|paid|given|under|below|above|at (?:least|most)|in
        |within|no (?:more|less|longer)|signed|unique|valid)|stay|remain|include|contain|match|fit
        |exceed|come|end|start|begin|follow|support|pass)\b
    \bmust (?:not|only|always|never)\b(?! have\b)
only:
    <start>only (?:ever )?(?:<orders>)\b
    <start>(?:you )?(?:<orders>) (?:\w+ ){0,2}only\b
    \b(?:must|should|may|can|to|shall|please) only (?:ever )?(?:be )?\w
    \b(?:is|are) only (?:allowed|permitted|to be)\b
    \bwe only (?:ever )?(?:use|accept|deploy|ship|pay|work|buy|support|publish|merge|sell)\b
no:
    <start>(?:absolutely |strictly |really |also )?no (?!problem|worries|idea|thanks|thank|way\b
        |need|doubt|one\b|wonder|rush|matter|clue|luck|longer\b|i\b|it\b|we\b|that\b|you\b|they\b
        |this\b|he\b|she\b|but\b|not\b|more (?:questions|ideas)|big deal|offen[cs]e|news|pressure
        |hurry|biggie|surprise|good\b|better\b|such\b|is\b|was\b|there\b|the\b|never|use\b|make\b
        |let's|actually|wait|reason|sign\b|success|harm|hard feelings)[\w-]+.{0,80}\b(?:please|ever
        |whatsoever|at all|allowed|before|after|on|in|without|unless|for|outside|during|inside
        |anywhere|to)\b
    <start>(?:please,? )?(?:absolutely |strictly )?no [\w-]+(?: [\w-]+)?, please\b
    \bplease,? (?:absolutely |strictly )?no (?!problem|worries|more questions)\w
    \b(?:there (?:must|should|shall|can) be|we (?:accept|allow)|i want) (?:absolutely )?no\b
please: \bplease (?:always|never|only|avoid|refrain|stop|stick|don't|do not|ensure|no)\b
avoid:
    <start>avoid (?:\w+ing|any|all|the|using|words|it)\b
    \b(?:should|must|to|please|want you to|always|try to) avoid\b
refrain: \brefrain from\b
stop: <start>(?:please )?stop (?!by\b|at\b|it\b|here\b)\w+ing\b
stick: <start>(?:please )?stick (?:to|with)\b
steer: \bsteer clear of\b
stay:
    <start>stay (?:away from|out of|under|below|within|off|clear of)\b
    \b(?:must|has to|have to|needs? to|should) (?:always )?stay\b
keep:
    <start>(?:always )?keep (?:\w+ ){1,4}(?:short|brief|under|below|within|out of|away from|private
        |confidential|secret|to yourself|between us|simple|concise|in sync|at|off|to (?:one|two
        |three|\d+))\b
    <start>keep (?:away from|out of|off|under|to)\b
limit: <start>limit (?:yourself|your|each|every|the|all)\b
limits: \b(?:is|are|stays?|remains?) (?:strictly )?off[ -]limits\b
forbidden: \b(?:is|are) (?:strictly |absolutely )?forbidden\b
banned: \b(?:is|are) banned\b
taboo: \b(?:is|are) (?:\w+ )?taboo\b
allowed:
    \b(?:not|nobody|no one|only|never) (?:\w+ ){0,5}(?:is |are )?allowed\b
    \b(?:is|are)n't allowed\b
approval: \b(?:without|needs?|requires?|get|until|has|have|ask(?:ing)? for) (?:\w+ ){0,3}approval\b
permission: \b(?:without|ask(?:ing)? for|unless|get) (?:\w+ ){0,3}permission\b
asking:
    \bwithout (?:first )?asking\b
    \bwithout asking (?:me|us|first)\b
ask: <start>(?:always )?ask (?:me|us|before|first)\b.{0,60}\b(?:before|first|if|when)\b
check: <start>(?:always )?check with (?:me|us|\w+)\b.{0,60}\b(?:before|first)\b
unless:
    \bunless i (?:say|ask|tell|explicitly|specifically|give|confirm)\b
    \b(?:don't|do not|never|no|not|nothing|must|should)\b.{0,120}\bunless\b
until: \b(?:don't|do not|never|nothing|nobody|hold off|wait)\b.{0,120}\buntil i\b
whenever:
    \bwhenever (?:you|i|we|someone|anyone|there)\b.{0,100}, (?:please |then |you )?
        (?:must |should |have to |always )?(?:<orders>)\b
    <start>(?:<orders>)\b.{0,100}\bwhenever (?:you|i|we|someone|there)\b
every:
    \b(?:every|each) time (?:you|i|we)\b.{0,100}, (?:please |then )?(?:<orders>)\b
    ^every [\w-]+(?: [\w-]+){0,3} (?:must|needs?|has to|should|gets|ends|starts|begins|requires)\b
    <start>(?:<orders>) (?:\w+ ){1,6}(?:every time|in every|with every|for every|at the end of every
        |at the start of every)\b
each:
    ^each [\w-]+(?: [\w-]+){0,3} (?:must|needs?|has to|should|gets|ends|starts|begins)\b
    <start>(?:<orders>) (?:\w+ ){1,6}(?:each time|in each|with each|for each)\b
everything: <start>everything (?:must|has to|needs to|should|stays|goes through)\b
needs: \b(?:everything|anything|every \w+|each \w+|any \w+|all \w+) (?:\w+ ){0,4}needs? to\b
has: \b(?:everything|anything|every \w+|each \w+|any \w+) (?:\w+ ){0,4}has to\b
have: \b(?:you|all \w+) (?:always |only |absolutely )?have to (?!be kidding|admit)\w
insist: \bi (?:must |really )?insist\b
nobody: \bnobody (?:else )?(?:may|must|should|can|is (?:allowed|to)|but)\b
nothing: \bnothing (?:\w+ ){0,5}(?:may|must|should|is (?:allowed|to)|leaves|goes)\b
anything: \banything (?:\w+ ){0,5}(?:must|should|is (?:off|not allowed)|needs)\b
can:
    \b(?:you|we) can (?:\w+ ){0,5}(?:again|after all)\b
    \byou can (?:now|from now|go back to)\b
longer: \b(?:you|we) no longer (?:need|have) to\b
forget: <start>forget (?:about )?(?:the|that|my) (?:\w+ ){0,4}(?:rule|instruction)\b
lift: \blift(?:ing)? the (?:\w+ ){0,4}(?:rule|ban|restriction|freeze|limit)\b
fine: \b(?:it's|it is) (?:now )?(?:fine|ok|okay) to\b.{0,100}\b(?:again|now|after all)\b
okay ok: \b(?:it's|it is) (?:now )?<word> to\b.{0,100}\b(?:again|now|after all)\b
important:
    ^(?:very |most |really )?important(?:ly)?(?: note)?[:,–—-]
    \b(?:it's|it is) (?:very |really |absolutely )?(?:important|essential|crucial|vital
        |key) (?:to me |for us |for me )?(?:that|to)\b
essential crucial: \b(?:it's|it is) (?:absolutely )?<word> (?:that|to)\b
regardless: \bregardless of (?:what|who|how|the)\b
instead: <start>(?:say|write|use) (?:\S+ ){1,6}instead of\b
rather: <start>(?:say|write|use) (?:\S+ ){1,6}rather than\b
treat: <start>treat (?:\w+ ){1,6}as\b
assume: <start>(?:always )?assume (?:that |i\b|we\b|the\b|my\b|all\b)
default:
    <start>default to\b
    \bby default,? (?:use|write|answer|assume)\b
confidential: \b(?:is|are|this|strictly|stays?|remains?) (?:strictly )?confidential\b
begin start end: <start><word> (?:every|each|all)\b
future:
    \bin (?:the )?future,? (?:please )?(?:<orders>|always|never|only|avoid|don't)\b
    <start>(?:<orders>)\b.{0,100}\bin (?:the )?future\b
henceforth
"""

# Standing orders that need no word such as "never": imperatives with a limit ("quote prices only in
# euros"), orders with a condition ("when a period comes up, use the fiscal year"), and duties of
# things ("dates have to be in ISO format").
ORDERS = r"""
only:
    (?:^|[,:;] )(?!i\b|it\b|he\b|she\b|if\b|not\b)(?!.*\b(?:is|was|are|were|had
        |has)\b)[\w'-]+(?: [\w'-]+){0,4} only(?=[.,;!]|$)
    <start><lasting orders>\b[^.;]{0,80}\bonly\b(?! (?:a|one|two|joking|kidding)\b)
    ^(?!(?:it|this|that|he|she|i|there|they|we)\b)[^,;]{2,60}\b(?:is|are|go|goes|gets?|stays?
        |happens?|runs?|comes?|leaves?|works?)\b[^.,;]{0,60}\bonly(?: (?:in|by|with|on|via|through
        |from|to|after|before|when|if|for|as|per|under)\b|[.,;!]|$)
    <start>only (?!a\b|the\b|one\b|you\b|i\b|it\b|if\b|because\b|after all|then\b|my\b|problem|thing
        |question|time\b|yesterday|recently|just\b|he\b|she\b|we\b|they\b|in\b|had\b
        |when\b)\w+ .{2,80}\b(?:when|if|after|once|with|in|on|via|through|by|from|to|at)\b
    \bonly (?:[\w'-]+ ){1,5}(?:may|can|gets? to|is allowed|are allowed)\b
nothing:
    <start>(?:absolutely )?nothing (?:with|from|in|over|under|on|made|that|before|after)\b
    <start><lasting orders>\b[^.;]{0,60}\bnothing\b(?! (?:wrong|new|special))
    \bnothing (?:[\w'-]+ ){0,6}(?:goes|leaves|gets|is to|stays|ships|without)\b
no:
    <start>no (?!one\b|idea|doubt|problem|wonder|longer|matter|reason|sign\b
        |way\b)[\w-]+(?: [\w-]+)? (?:that|which|containing|of any|with)\b
    <start>no (?!one\b|idea|doubt|problem|wonder|longer|matter|reason|sign\b|way\b|thanks|need
        |worries|rush|clue|luck|offence|offense|hurry|pressure|kidding|comment|news|hard)[\w-]+(?:s
        |ing)(?=[.,;!]|$)
    <start><lasting orders> (?!me no)[^.,;]{0,40}\bno (?!idea|problem|one else|matter)\w
    \bno (?!one\b|idea|doubt|problem|wonder|longer)[\w' -]{2,50}?\b(?:may|must|should|shall|is to
        |are to|gets?|goes|leaves|enters)\b
    , (?:and |so |but )?no (?!idea|problem|doubt|worries|wonder|matter|longer|rush|need|thanks
        |pun\b)[\w-]+(?: [\w-]+){0,3} (?:in|on|before|after|without|for|to|from|with|at|during
        |unless)\b
without:
    <start><tasks><lasting orders>\b[^.;]{0,80}\bwithout\b
    \b(?:nothing|no|nobody|don't|never|not)\b[^.;]{0,80}\bwithout\b(?! (?:you|doubt)\b)
whenever wherever:
    \b<word> [^,;]{3,80}, <other subjects>\w
    <start><lasting orders>\b[^.;]{0,80}\b<word>\b
whatever:
    \bwhatever (?!happened)[^,;]{3,80}, <other subjects>\w+ \w+
    \bwhatever [^,;]{3,80}, (?:it|they) (?:has to|have to|must|should|needs? to|can only)\b
whoever:
    <start>whoever [^,;]{3,60} \w+s (?:it|the|them|for|up)\b
    \bwhoever [^,;]{3,80}\b(?:must|has to|should|asks|needs to|gets)\b
anyone: \banyone (?:who )?[^,;]{3,80}\b(?:must|has to|should|needs to)\b
when:
    \bwhen (?:you|i|we|it|there|someone|anyone|a|an|the|any|\w+ing) [^,;]{3,80}<condition>
    <start><tasks><lasting orders>\b[^.;,]{2,80}\bwhen (?:you|i|we|it|there|someone|a|an|the|any
        |\w+ing)\b(?! (?:are|'re) (?:done|ready|back))
if:
    \bif (?:you|i|we|it|there|someone|anyone|anything|something|a|an|the|any) (?!have time
        |have a minute|want\b|can\b|could\b|like\b|don't mind)[^,;]{3,80}<condition>
    <start><tasks><lasting orders>\b[^.;,]{2,80}\bif (?:there|someone|anyone|anything|a|an|the
        |any)\b
every each:
    <start><tasks><lasting orders> <word> [\w-]+ (?:to|in|into|as|with|by|for|on)\b
    <start><tasks><lasting orders>\b[^.;]{1,80}\b(?:in|with|on|at|after|before|for|of) <word>\b
every:
    ^(?!.*\b(?:is|was|are|were)\b)every [\w-]+ (?:to|in|into|with|by|on)\b
    \bevery (?!time i|day i|one of)[\w' -]{2,50}?\b<duties of each>\b
each: \beach [\w' -]{2,50}?\b<duties of each>\b
all:
    <start><tasks><lasting orders> all (?:the |our |my )?[\w-]+ (?:to|in|into|as|with|by)\b
    ^(?!.*\b(?:is|was|are|were)\b)all (?:the |our |my )?[\w-]+ (?:in|with|by)\b
    \ball [\w' -]{2,50}?\b(?:go|goes|must|should|are to|have to|need to|shall|get \w+ed|use|start
        |end|stay|come)\b(?! (?:well|home|back)\b)
    <start><tasks><lasting orders>\b[^.;]{1,60}\b(?:in|with|on|at|for|to|of) all\b
any:
    <start><tasks><lasting orders>\b[^.;]{1,80}\b(?:in|with|on|at|after|before|for|from|to) any\b
    \bany [\w' -]{2,50}?\b(?:must|should|has to|have to|needs? to|goes|gets)\b
anything: <start>(?:keep|leave)\b[^.;]{1,80}\b(?:out of|from|off) anything\b
to: (?<!plan )(?<!goal )(?<!idea )(?<!point )(?<!aim )(?<!task )(?<!trick )(?<!way )<no story>\b
        (?:is|are) to (?!be (?:expected|blame|fair|honest))<duties>\b
have: <no story>\bhave to <duties>\b
has need: <no story>\b<word> to <duties>\b(?!.*\bby (?:\w+day|the end|\d|noon|tomorrow))
needs: <no story>\bneeds? to <duties>\b(?!.*\bby (?:\w+day|the end|\d|noon|tomorrow))
need: \bi need (?:you to|every|each|all)\b.{0,80}\b(?:every|each|all|any|only|before|whenever|when
        |first|next to)\b
should:
    \byou should (?:always |never |only |not |also )?<lasting orders>\b(?! (?:more|it a))
    <no story>\bshould (?:not |always |only |never )?(?:be (?:\w+(?:ed|en
        |t) |in |at |on |no |under |short|brief)|appear|go|leave|contain|include|exceed|carry|use
        |stay|come|follow|end|start|fit)\b
shouldn't: <no story>\bshouldn't (?:be \w+(?:ed|en|t)|appear|go|leave|contain|include|exceed|end up
        |use|see|know)\b
may:
    \b(?:no|nothing|none|neither|only|nobody) [^.;,]{0,60}\bmay\b
    <no story>\bmay (?:not|only|never|be \w+ed only)\b
ask: \bi(?:'d| would)? (?:also |just |kindly )?ask (?:that|you to)\b
like: \b(?:i'd|i would) (?:really )?like (?:you to|every|each|all|it if you)\b.{0,100}\b(?:every
        |each|all|always|any|when|whenever|only|not|instead|in|with)\b
appreciate: \b(?:i'd|i would) appreciate it if you\b.{0,100}\b(?:always|never|not|only|every|each
        |any|stopped|kept|used|avoided|didn't|wouldn't)\b
expect: \bi expect (?:you to|that|every|each|all|no)\b
supposed: \b(?:are|is|'re) (?:not )?supposed to (?:be|use|go|stay|follow)\b
expected: \b(?:are|is|'re) expected to (?:be|use|go|stay|follow)\b
than:
    \b(?:not|no|never) (?:more|longer|later|fewer|less|earlier) than\b.{0,60}\b(?:please|per|each
        |every|a day|at once)\b
    <start><lasting orders>\b[^.;]{1,60}\b(?:no|not) (?:more|longer|later|less) than
most: <start><lasting orders>\b[^.;]{0,60}\bat most\b
maximum:
    <start><lasting orders>\b[^.;]{0,60}\bmaximum\b
    \bmaximum of\b.{0,40}\bper\b
instead: <start><lasting orders>\b[^;]{2,80}\binstead of\b
rather: <start><lasting orders>\b[^;]{2,80}\brather than\b
not:
    <start><tasks><lasting orders>\b[^;.]{2,80}, not \w+
    , not (?:in |with |by |on |to |as )?[\w-]+,? please\b
    \bare not (?:for|to)\b(?! (?:blame|worry))
first: <start><tasks><lasting orders>\b[^;.]{2,80}\bfirst\b(?! (?:time|of)\b)
before: <start><tasks><lasting orders>\b[^;.]{2,80}\bbefore (?:you|any|every|each|\w+ing)\b
throughout consistently: <start><lasting orders>\b[^;.]{2,80}\b<word>\b
throughout: ^[\w' -]{2,60} throughout\b(?=[.,!;]|$)
default: <start><lasting orders>\b[^;.]{2,80}\bby default\b
out:
    ^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\bstays? out\b
    <start>(?:keep|leave|cut|strip|take|edit|filter)\b[^.;]{1,60}\bout(?: of)?\b(?! a (?:look|walk)
        | the trash)
from: <start>keep\b[^.;]{1,60}\b(?:away from|from)\b
mask redact omit anonymise abbreviate: <start><word>\b
anonymize: <start>anonymi[sz]e\b
spell: <start>spell\b.{2,60}\b(?:out|with|in|as|like)\b
spelling: \b(?:british|american|us|uk|canadian) spelling\b
between: \b(?:stays?|keep|remains?|strictly) (?:this |it |that )?(?:just |strictly )?between (?:us
        |you|the two)\b
record: \boff the record\b
hands: <start>hands off\b
strictly:
    ^strictly \w
    \bstrictly (?:no|in|by|for|after|before|under|confidential|internal)\b
compulsory obligatory sacred: \b(?:is|are) <word>\b
acceptable: \b(?:is|are)(?:n't| not| never) acceptable\b
touch: <start>(?:do not|don't|never|nobody) (?:\w+ )?touch\b
nobody:
    \bnobody (?:[\w'-]+ ){1,5}(?:gets|may|must|should|sees|touches|hears)\b
    \bnobody (?:else )?(?:gets|touches|sees|sends|signs|leaves|goes|merges|deploys)\b
one: \bno one (?:else )?(?:gets|touches|sees|sends|may|must|should|is to|can)\b
future: \bin future,? \w
let's: \blet's (?:always|never|not|only|keep [^.;]{1,60}\b(?:out|short|private))\b
ok okay: \b(?:without|wait for|until you have|need|get) my (?:explicit )?<word>\b
go-ahead: \bmy (?:explicit )?go-ahead\b
sign-off: \b(?:without|need|needs|get|gets) (?:\w+ ){0,3}sign-off\b
consent: \bwithout (?:\w+ ){0,4}consent\b
orders: \b(?:doctor|boss|management|partner|client)'?s'? orders\b
thumb: \brule of thumb\b
everything: <start><tasks><lasting orders> everything\b
policy: \b(?:strict|firm|no-\w+|zero-\w+|general) (?:[\w-]+ )?policy\b
ban: <start>ban\b(?! (?:is|was)\b)
forbid:
    \bi forbid\b
    \b(?:rules|law|contract|policy|terms) forbids?\b
forbids: \b(?:law|contract|policy|management|doctor|boss|lease) forbids\b
prohibits: \b(?:law|contract|policy|lease) prohibits\b
spare: <start>spare me\b
dare: \bdon't you dare\b
max:
    ^(?:please,? )?[\w' -]{2,60} max(?=[.,!;]|$)
    <start>max(?:imum)? (?:of )?\w+ \w+
tops: ^[\w' -]{2,40},? tops[.!]*$
wait: \b(?:are|'re|have|has) to wait (?:for|until)\b
mind: <start>mind (?:that|you,? no|you,? never)\b
trust counting: \bcounting on you (?:not )?to\b
careful: <start>(?:always )?be careful (?:to|not to|that|never)\b
question: \b(?:is|are) out of the question\b
go: \b(?:is|are) a no[ -]go\b
no-go: \b(?:is|are) (?:an absolute |a total |a )?no-go\b
understand: \bis that understood\b
tolerate: \b(?:we|i) (?:don't|do not|won't|will not) tolerate\b
business: \bnone of (?:their|his|her) business\b
sight: <start>keep\b[^.;]{1,60}\bout of sight\b
can't: \b(?:i|we|you|they|she|he) can't (?:have|take|do|handle|use|wear|work|travel|fly
        |drive) (?:any|anything|on|after|before|\w+s)\b
cannot: \b(?:i|we|you|they|she|he) cannot (?:have|take|do|use|wear|work|travel|fly|drive) (?:any
        |anything|on|after|before|\w+s)\b
address: <start>address .{2,60} as\b
call: <start>call (?:it|this|that|him|her|them|the [\w ]{2,30}) (?!off|back|in\b)[\w'-]+[.!]?$
always: ^(?!(?:it|he|she|they|i|this|that|there)\b)[^,;]{2,60}\b(?:is|are|gets?|goes
        |go) always (?:\w+(?:ed|en|t)|in|with|by|on|to)[ ]
never:
    <start>never,? ever,? \w
    ^(?!(?:it|he|she|they|i|this|that|there)\b)[^,;]{2,60}\b(?:gets?|goes|go) never\b
    \b(?:and|but|,) never (?!mind|again)(?:the |a |in |on |with |to |by |before |after |up|down)
until: \buntil i (?:say|tell|give|ask|confirm|explicitly)\b
don't: \byou don't (?!know\b|think|have\b|need\b|want\b|like\b|understand|see\b|say\b|mind\b|get\b
        |really|even|seem|believe|feel|care\b|remember)\w
doesn't: \bdoesn't (?:get|leave|go (?:to|into|out|in)|ship|enter) (?:\w+(?:ed|en|t)\b)?
time: \b(?:any|each|every) time [^,;]{3,80}<condition>
must: \bis a must\b
required: <no story>\b(?:is|are) (?:always |strictly )?required\b(?! by \w+day)
stays stay: ^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\b<word> (?:off|in
        |under|below|away|shut|closed|private|within|on)\b
get gets: ^(?!(?:it|he|she|i|we|they|this|that|there|you|who|what)\b)[^,;]{2,50}\b<word> \w+(?:ed|en
        |lt|nt|pt) (?!married|divorced|tired|bored)
adamant: \b(?:is|am|'m|are) adamant (?:that|about)\b
insists: \binsists (?:that|on)\b
demands requires: \b<word> that\b
bans: \b(?:guide|policy|contract|lease|rules?|law|boss|school) bans\b
for: ^for (?:all|every|any|each) [^,;]{2,50}, (?:please )?<tasks><lasting orders>\b
exclusively
"""

PREFERENCES = r"""
prefer:
    \b(?:i|we)(?:'d| would| really| generally| usually| always| much| strongly)* prefer\b
    \b(?:i|we) do prefer\b
preferred:
    \b(?:my|our) preferred\b
    \bpreferred \w+(?: \w+)?(?:: | is )
preference: \b(?:my|our|strong|personal) preference\b
rather: \b(?:i|we)(?:'d| would)(?: much)? rather\b(?! not say)
call:
    <start>(?:just |you can |simply )?call me (?!back|when|if|at|on|tomorrow|later|in \d|crazy
        |a |before|after|old)\w+
    \b(?:you can|you may|friends|everyone|everybody|people) (?:just )?calls? me (?!back)\w
address: <start>(?:please )?address me\b
refer: \brefer to (?:me|us|him|her|them|it) as\b
pronouns:
    \bmy pronouns\b
    \buse \w+/\w+ pronouns\b
favorite favourite: \bmy (?:\w+ )?favou?rite\b
like:
    \bi(?:'d| would)? (?:really )?like (?:my|your|it (?:when|if|best)|to (?:be called|keep|see|get
        |have|receive)|short|long|detailed|concise|things)\b
    \bi (?:really )?(?:don't|do not) like\b
hate: \bi (?:really |absolutely )?hate (?:it when|when|\w+ing|the word|meetings|long|any|emojis?
        |bullet|jargon|being)\b
stand: \bi can(?:'t|not) stand\b
allergic: \b(?:allergic|intolerant) to\b
allergy: \bi have (?:a|an) (?:\w+ ){0,3}allergy\b
vegetarian: \b(?:i'm|i am|we're|we are|is|are) (?:a )?(?:strict )?vegetarians?\b
vegan: \b(?:i'm|i am|we're|we are|is|are) (?:a )?(?:strict )?vegans?\b
please:
    <start>please (?:<orders>)\b.{0,60}\b(?:in future|by default|every time|each time|in all
        |throughout|only)\b
    ^(?!.*\b(?:is|are|was|can|could|would|help)\b)(?!(?:give|show|tell|list|write|make|explain|send
        |find|try|summari[sz]e|translate|go|do|check|help|just|one more|another
        |more)\b)(?:[\w'-]+,? ){1,8}[\w'-]+, please[.!]*$
eat:
    \b(?:can't|cannot|mustn't|shouldn't|doesn't|don't|never|only) eat\b
    \b(?:i|we) (?:don't|do not|never|only|can't|cannot) eat\b
drink:
    \b(?:can't|cannot|mustn't|shouldn't|doesn't|never|only) drink\b
    \b(?:i|we) (?:don't|do not|never|only) drink\b
use:
    \bi (?:only|always|never|mostly|usually) use\b
    <start>(?:please )?use (?:british|american|us|uk|metric|imperial|the metric|formal|informal
        |simple|plain|24|european|si|gender|inclusive|bullet|markdown|dark|light|celsius|fahrenheit
        |tabs|spaces|snake|camel|type hints|the 24|iso|they|she|he)\b
fly: \bi (?:only|never|always|don't|won't) (?:ever )?fly\b
want:
    \bi (?:only|just|always) want (?!to (?:know|ask|say|check|see if))\w
    \bi want (?:you|your|all|every|everything|the answers?|short|only) (?:\w+ ){0,3}(?:to|in|short
        |brief|as|be|with)\b
works: \bworks (?:best|better) for (?:me|us)\b
suits: \bsuits (?:me|us)(?: best| better)?\b
in:
    \b(?:answer|reply|respond|write|speak|talk|continue|explain)(?: to)?(?: me| us| everything
        | your answers)? (?:only )?in (?:<language names>|plain|simple|short|bullet|full sentences
        |prose|markdown|json|one|two|three)\b
    \bin (?:<language names>),? please\b
    <start>please,? in (?:<language names>)\b
answers: \b(?:keep|make|i like|i want|give me) (?:your |the |all )?(?:\w+ )?answers(?: \w+){0,2}\b
emojis: \b(?:no|without|skip|drop|hold|lose) (?:the |any )?emojis\b
tone: \b(?:keep|use) (?:a|the|your) (?:\w+ ){0,2}tone\b
gluten: \bgluten[- ]free\b
always: \bi always (?:use|order|drink|eat|take|travel|sit|book|fly|buy|choose)\b
never: \bi never (?:ever )?(?:eat|drink|use|work|fly|take|travel|order|buy|drive|answer|check|read
        |book|sit|touch|open|accept|go|do|wear)\b
skip: <start>skip (?:the|any|all)\b
"""

DECISIONS = r"""
let's: \blet's (?:just |all )?(?:go (?:with|for|ahead)|use|stick|take|do|pick|choose|make|switch
        |keep|settle|call it|name|set|move|drop|book|say|stay|schedule|postpone|skip|put|plan|agree
        |have it|go back|replace|start with|change)\b
lets: \blets (?:go (?:with|for)|use|stick|take|switch|keep|make|set|move|drop|call it)\b
let: \blet us (?:go (?:with|for)|use|stick|take|agree|keep|make)\b
decided:
    \b(?:i|we|they|team|board|management|'ve|have|has|was|been|is|it's) (?:\w+ ){0,2}decided\b
    ^decided\b
decision:
    \b(?:the|our|my|final|a) (?:\w+ )?decision (?:is|was|on|for|about|has)\b
    ^(?:final )?decision\b ?[:–—-]
agreed:
    \b(?:we|we've|have|they|all|was|is|been) (?:\w+ )?agreed (?:on|to|that|with)\b
    ^agreed[:,]
settled: \b(?:we|we've|i've|have|it's|is|that's) (?:\w+ )?settled\b
chose: \b(?:i|we|they) (?:\w+ )?chose\b
chosen: \b(?:i've|we've|have|has) (?:\w+ )?chosen\b
picked opted: \b(?:i|we|i've|we've|have) (?:\w+ )?<word>\b
going: \b(?:i'm|i am|we're|we are) (?:\w+ )?going (?:with|for|ahead)\b
go:
    \b(?:i'll|we'll|we will|i will|we should|i'd) (?:\w+ )?go (?:with|for|back to)\b
    <start>go (?:with|for) (?!it\b|a (?:walk|run|swim))\w
switching: \b(?:i'm|we're|we are|i am) switching\b
switch: \b(?:we|we'll|i'll|i|please|to|and) (?:\w+ )?switch(?:ed)? (?:\w+ ){0,3}to\b
switched: \b(?:we|i|we've|i've|they) (?:\w+ )?switched\b
moved: \b(?:we|we've|i|i've|was|been|got|is|has|they) (?:\w+ ){0,2}moved\b.{0,80}\bto\b
take: \b(?:i'll|we'll|i will|we will) take (?:the|option|that one|number|both|room|number)\b
final: \bfinal (?:answer|choice|version|word)\b(?: is|:|,)
actually: \bactually,? (?:no\b|let's|use|make|change|switch|go|keep|i(?:'d| would)|we(?:'ll| will)
        |scratch|not\b|forget|it's|the \w+ (?:\w+ )?(?:is|should))
scratch: \bscratch that\b
thought: \bon second thoughts?\b
thoughts: \bon second thoughts\b
mind: \bchanged (?:my|our|his|her|their) minds?\b
minds: \bchanged (?:our|their) minds\b
plan:
    \bchange of plan\b
    \bthe (?:new |final )?plan is\b
plans: \bchange of plans\b
instead:
    \b(?:use|take|make it|go|let's|we'll|we|it's|do|book|with|try|want|need|pick|choose
        |is)\b.{1,80}\binstead\b(?! of\b)
    \binstead of .{1,60}, (?:use|let's|we|take|it's)\b
longer: \b(?:is|are|we|do|'re|i) no longer\b
forget: <start>forget (?:what i said|about|the|that|my)\b
cancel:
    <start>(?:please )?cancel (?:the|my|our|that)\b
    \b(?:let's|we'll|i'll|we) cancel\b
cancelled canceled: \b(?:is|was|are|been|we|have|got) <word>\b
approved: \b(?:is|was|are|been|has|have|board|they|boss|management) (?:\w+ )?approved\b
rejected: \b(?:is|was|are|been|we|they|board) (?:\w+ )?rejected\b
drop: \b(?:we'll|we|i'll|let's|will) drop\b
dropping: \b(?:we're|i'm|we are) dropping\b
not: \bnot (?:the )?\S+(?: \S+){0,3},? but \S+
correction: ^(?:small |quick |one )?correction\b
revert: \brevert (?:back )?to\b
ruled: \bruled out\b
wait: ^(?:no,? |oh,? )?wait,? (?:no|make|use|it's|actually)\b
make:
    <start>(?:no,? )?make (?:it|that) \S*\d
    \b(?:actually|rather|no|wait),? make (?:it|that)\b
we'll: \bwe'll (?:use|take|keep|stick|do it|have|host|build|run|store|start with|meet|launch|ship)\b
"""

COMMITMENTS = r"""
remind: \bremind (?:me|us|him|her|them)\b
forget: \b(?:don't|do not|dont|not|never) (?:let me |you )?forget (?:to|about|the|that|my|our|it)\b
promise:
    \bi promise (?!you )\w
    \bi(?:'ll)? promise (?:to|that|i)\b
promised: \b(?:i|we|you|he|she|they|i've|we've)(?: have| had)? promised\b
owe: \b(?:i|we|he|she|they) (?:still )?owe\b
due:
    \b(?:is|are|was|comes|falls) due\b
    \bdue (?:on|by|date|next|this|tomorrow)\b
todo: ^(?:my |our )?(?:todo|to-do)s?\b
follow: \b(?:i'll|i will|we'll|need to|have to|to) follow up\b
i'll:
    \bi'll (?!be honest|try\b|think about|see\b|never|take (?:a look|the)|go (?:with
        |for))(?:\w+ ).{0,100}?\b<when>
    \bi'll (?:send|deliver|share|prepare|finish|pay|upload|review|submit|forward|provide|book|sign
        |get back|bring|ship|transfer|email|mail|hand over|fix|handle|take care)\b
will:
    \b(?:i|we) will (?!be honest|never|see\b|have to see)\w+ .{0,100}?\b<when>
    \b(?:i|we) will (?:send|deliver|share|prepare|finish|pay|upload|review|submit|forward|provide
        |book|sign|get back|bring|ship|transfer)\b
we'll: \bwe'll (?!see\b)\w+ .{0,100}?\b(?:by|before|until|no later)\b
committed: \b(?:i|we|i've|we've|have) (?:\w+ )?committed to\b
need have: \b(?:i|we) <word> to \w+ .{0,100}?\b(?:by|before|until|no later than)\b
need: \bi need (?:it|this|that|the \w+) (?:by|before|until|no later than)\b
must: \bi must \w+ .{0,100}?\b(?:by|before|until)\b
going: \bi'm going to \w+ .{0,80}?\b<when>
action: \baction items?\b
deadline
"""

ENGLISH = Language(
    code="en",
    starters=frozenset(
        """
        please and but so also then just or ok okay btw oh well that because again now first
        second finally however importantly important note seriously really actually hey hi
        listen look remember anyway though too generally plus yes no thanks sure right
        otherwise reminder
        """.split()  # noqa: SIM905
    ),
    cues={
        "rule": parse_cues(RULES + ORDERS, PARTS),
        "preference": parse_cues(PREFERENCES, PARTS),
        "decision": parse_cues(DECISIONS, PARTS),
        "commitment": parse_cues(COMMITMENTS, PARTS),
    },
    requests=(
        r"\b(?:can|could|would|will) you (?:please |kindly |also |just )*(?:always|never|only|stop"
        r"|avoid|refrain|keep|make sure|remember|remind|not|call me|answer|reply|respond|stick"
        r"|from now on|use|write|speak)\b|\b(?:from now on|going forward)\b|\blet's\b"
        r"|\bwould you mind (?:not|always|keeping|using)\b"
    ),
    reports=(
        r"\b(?:he|she|they|someone|somebody|people|everyone|the (?:article|book|post|docs?|paper"
        r"|author|sign|email|text|documentation|film|movie|song|comment|reviewer|guy|man|woman"
        r"|speaker|teacher)|my (?:teacher|grandmother|grandfather|grandma|grandpa|mother|father"
        r"|mom|dad|friend|ex)|some \w+|many \w+|critics|experts|historians|legend|it) "
        r"(?:\w+ )?(?:said|says|say|told|tell|tells|wrote|writes|claims?|claimed|thinks?|thought"
        r"|believes?|believed|argues?|argued|keeps? saying|used to say|advised|warned|recommends?"
        r"|suggests?|suggested|insisted|has it)\b|\bi (?:once |recently )?(?:read|heard|saw"
        r"|was told)\b"
        r"|\b(?:maybe|perhaps) (?:you|i|we|it)\b|^why\b"
    ),
    list_titles=(
        r"\b(?:rules?|guidelines?|requirements?|constraints?|conventions?|instructions?"
        r"|preferences?|ground rules|house rules|dos and don'ts|don'ts?|follow these|principles"
        r"|keep in mind|remember|please note|from now on|must-haves?|restrictions?|standards?"
        r"|policies|no-gos?)\b"
    ),
    foreign_titles=(
        r"\b(?:wrote|writes|said|says|forwarded message|original message|here(?:'s| is| are) "
        r"(?:the|an|a|my|this|what|some) (?:\w+ ){0,4}(?:e-?mail|mail|article|text|message|review"
        r"|transcript|post|story|letter|poem|lyrics|excerpt|passage|paragraph|snippet|quote|essay"
        r"|draft|log|output|error|code|script|function|file|readme|document|contract|recipe)s?"
        r"|(?:summari[sz]e|translate|proofread|rewrite|correct|improve|edit|analy[sz]e|explain"
        r"|review|shorten|paraphrase) (?:this|the following|these|the)\b[^:]{0,60}"
        r"|the following (?:\w+ ){0,2}(?:e-?mail|article|text|message|letter|passage|story))"
    ),
    abbreviations=frozenset(
        """
        e.g i.e eg ie etc vs mr mrs ms dr prof st no nos vol fig figs approx inc ltd corp co jr sr
        dept est ext ca cf al a.m p.m am pm u.s u.k u.n ph.d b.sc m.sc rev gen gov sen rep hon sgt
        capt lt col ave blvd rd apt jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed
        thu fri sat sun tel min max incl excl p pp para art sec ch ed eds op resp
        """.split()  # noqa: SIM905
    ),
    weekdays=(
        r"(?:next |this |on |by |every )?(?:monday|tuesday|wednesday|thursday|friday|saturday"
        r"|sunday)s?|tomorrow|tonight|next (?:week|month|year|quarter)|end of (?:the )?(?:week"
        r"|month|year|quarter)"
    ),
    units=(
        r"percent|years?|yrs?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?"
        r"|miles?|feet|foot|inch(?:es)?|yards?|pounds?|lbs?|ounces?|oz|gallons?|cups?|tbsp|tsp"
        r"|tablespoons?|teaspoons?|people|persons?|guests?|seats?|users?|employees?|requests?"
        r"|tokens?|characters?|words?|lines?|rows?|columns?|pages?|items?|units?|pieces?|nights?"
        r"|retries|workers?|nodes?|replicas?|cores?|threads?|instances?|bytes?|pixels?|points?"
        r"|degrees?|times|square (?:feet|meters|metres)|acres?|liters?|litres?|meters?|metres?"
        r"|kilometers?|kilometres?|kilos?|grams?|servings?|tickets?|floors?|bedrooms?|rooms?"
    ),
    relations=frozenset(
        """
        sister-in-law brother-in-law mother-in-law father-in-law stepmother stepfather stepsister
        stepbrother stepson stepdaughter sister brother mother father mom mum dad wife husband
        partner son daughter boss manager colleague coworker co-worker friend neighbor neighbour
        client customer landlord landlady doctor dentist lawyer attorney accountant dog cat horse
        teacher coach assistant cousin aunt uncle nephew niece grandmother grandfather grandma
        grandpa project company team startup employer vendor supplier contact hotel boat ship band
        school roommate flatmate fiancé fiancée fiance fiancee girlfriend boyfriend kid baby puppy
        kitten cto ceo cfo intern lead director supervisor advisor therapist nanny babysitter
        contractor designer developer engineer editor agent mechanic vet owner tenant secretary
        professor mentor brand app product server cluster database parrot rabbit gardener plumber
        electrician architect cardiologist surgeon nurse pediatrician physiotherapist grandson
        granddaughter godmother godfather ex
        """.split()  # noqa: SIM905
    ),
    events=frozenset(
        """
        deadline due meeting appointment call flight demo launch release review interview exam
        delivery party wedding surgery presentation workshop trip check-in checkin go-live kickoff
        audit birthday anniversary conference session rehearsal hearing inspection move-in pickup
        train freeze cutoff submission
        """.split()  # noqa: SIM905
    ),
    possessives=r"my|our|his|her|their|the",
    glue_words=frozenset(
        """
        the a an of for in at on from to with by within per and this that these those my our your
        its their his her
        """.split()  # noqa: SIM905
    ),
    break_words=frozenset(
        """
        i you he she it we they me him us them who which what where when why how if so as than
        is are was were be been being am isn't aren't wasn't weren't do does did done don't doesn't
        didn't have has had having hasn't haven't can could will would shall should must may might
        won't can't cannot couldn't wouldn't shouldn't mustn't i'm i've i'll i'd you're you've we're
        we've we'll it's that's there's they're he's she's here's let's lets there here or but not
        no never always only just also too very now then today yesterday currently new current
        final updated correct correctly actual actually real really exact exactly about around
        roughly approximately nearly almost over under more most less least up down out off into
        onto until till before after since during because while though although however anyway
        please thanks thank sorry ok okay yes well oh btw still already again once maybe perhaps
        probably instead both either neither each every all any some other another such same own
        set changed change changes moved move moves becomes become became make makes made use uses
        used using runs run running listens listen listening comes come came costs cost amounts
        equals equal gets get got goes go went going needs need needed wants want wanted says say
        said told tell tells know knows knew think thinks thought decided agreed takes take took
        put puts keep keeps kept stays stay remains remain gave give gives given called call named
        name starts start started ends end ended scheduled planned booked book due lives live lived
        born works work worked paid pay pays charged bought sold ordered found see look looks
        noted note remember forget reads lies sits stands weighs measures lasts remind wrote
        mentioned like right quick quickly side by way fyi let switch switched use raise raised
        lower lowered increase increased decrease decreased reduce reduced bump bumped adjust
        adjusted fixed confirmed confirm turned turn
        """.split()  # noqa: SIM905
    ),
    marker_words=frozenset(
        """
        never always ever from now on must mustn't not don't dont do no only please should shouldn't
        shall may can can't cannot again make sure remember keep mind rule rules going forward
        whenever every time times strictly absolutely important under any circumstances please
        allowed forbidden prohibited want wants prefer preferred preference rather i i'd you we
        the a an of for in at on to with by my our your is are be this that it its
        i'm i've i'll we'll will would let's let decided decide decision have has had go went
        actually instead longer okay ok fine and but so also then just all until after
        henceforth today onwards here rest conversation chat
        """.split()  # noqa: SIM905
    ),
    negations=frozenset(
        """
        not no never don't dont doesn't didn't isn't aren't wasn't weren't won't can't cannot
        hasn't haven't hadn't couldn't wouldn't nobody nothing none neither nowhere
        """.split()  # noqa: SIM905
    ),
    feelings=(
        r"\bi(?:'m| am| was|'ve| have| had| do| did| could| can| would| will)?(?: \w+)?(?: not|n't"
        r"| never| no)(?: \w+)? (?:know|think|remember|sure|mind|worry|care|understand|want"
        r"|like|feel"
        r"|see|get|find|believe|hear|expect|wait|help|say|complain|sleep|idea|clue|time"
        r"|certain|been"
        r"|able|in|very|too|so|good|really|imagine|decide|figure|tell|seen|heard|had|thought|liked"
        r"|knew|forget|stop)\b|\b(?:not|isn't|wasn't|doesn't|won't|no|nothing"
        r"|never) (?:\w+ )?(?:sure"
        r"|bad|really|much|matter|too|so|very|idea|problem|worries|thanks|doubt|rush|hurry"
        r"|help|work"
        r"|works|worked|working|easy|great|good|nice|fun|important|mind|wonder|urgent|fair"
        r"|clear|make"
        r"|only|just|always|new|wrong|better|worse|to complain|end|ends|stop|stops|seem|happen"
        r"|rains)"
        r"\b|^(?:no|not|never|nope)\b[^,]*$|\b(?:can't|cannot|couldn't) (?:wait|believe|stand"
        r"|decide"
        r"|complain|help|find|sleep|imagine|remember|say)\b|\bwhy\b|\b(?:don't|didn't) (?:you"
        r"|they)\b"
        r"|^(?:it|that|this|there)(?:'s| is| was)? (?:\w+ )?(?:not|no|never)\b|^(?:he|she) "
    ),
    topics={
        "language of answers": (
            rf"\b(?:answer|answers|reply|replies|respond|responses?|write|speak|talk|communicate"
            rf"|switch to|continue|please)\b.{{0,40}}\b(?:{PARTS['language names']})\b"
        ),
        "form of address": r"\b(?:call me|address me|refer to me)\b",
        "length of answers": (
            r"\b(?:answers?|replies|reply|responses?)\b.{0,40}\b(?:short|brief|concise|long"
            r"|detailed"
            r"|longer|shorter|length)\b"
        ),
        "units of measure": r"\b(?:metric|imperial|celsius|fahrenheit)\b",
        "spelling": r"\b(?:british|american|us|uk) (?:english|spelling)\b",
    },
)

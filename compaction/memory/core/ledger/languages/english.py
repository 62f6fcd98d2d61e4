"""English: by what rules, preferences, decisions, commitments and values are recognized."""

from compaction.memory.core.ledger.languages.base import Language, join_rows

LANGUAGE_NAMES = (
    r"english|german|french|spanish|italian|dutch|portuguese|polish|"
    r"russian|turkish|arabic|chinese|japanese|swedish|danish|greek|"
    r"ukrainian|latin|hindi|korean"
)

# What only orders, and never reports: at the beginning of a clause.
RULE_STARTS = r"""
(?:you )?never (?:ever )?(?!\w+[^s\W]s\b|mind\b|been\b|had\b|heard\b|seen\b|thought\b|knew\b|was\b
        |got\b|would\b)\w
(?:you )?always (?!been\b|had\b|was\b|is\b|nice\b|good\b|great\b|fun\b|a\b|the\b)\w
(?:do not|don't|dont) (?:ever )?(?!worry|know\b|mind\b|think\b|forget\b|understand|have\b|care\b
        |get me)\w
(?:absolutely |strictly )?no [\w-]+(?: [\w-]+){0,3},? please\b
(?:always )?(?:ask|check with|tell) (?:me|us|\w+) (?:first|before)\b
(?:keep|bear) in mind(?: that\b|:)
avoid [\w-]+
make sure (?:you|to|that|no|every|all|nobody)\b
only ever \w
refrain from\b
remember (?:that\b|to\b|this\b|:)
stay (?:away from|out of|off|clear of)\b
stick (?:to|with)\b
treat [^,;]{2,60} as (?:confidential|secret|private)\b
"""
RULES = r"""
\b(?:from now on|from here on|going forward|moving forward|henceforth|as of today
        |in (?:the )?future,)
\b(?:under (?:no|any) circumstances|at all times|on no account|(?:without|no) exceptions?)\b
\b(?:please|must|should|shall|may|to) (?:never|always|only|not ever)\b(?! (?:have|be able)\b)
\b(?:must|should|shall|may) not (?!have\b|know\b|be (?:able|sure|too|so|hard)\b)\w
\bmustn't\b
\b(?:don't|do not) ever\b
\bfor the rest of (?:this|our|the) \w+
\b(?:every|each) time (?:you|i|we)\b[^,;]{3,80}, (?!i\b|he\b|she\b|it\b|they\b|there\b)\w
\bwhenever (?:you|i|we|a|an|the|someone|anyone|there)\b[^,;]{3,80}, (?!i\b|he\b|she\b|it\b|they\b)\w
\b(?:is|are) (?:strictly |absolutely )?(?:forbidden|off[ -]limits|not allowed|prohibited|banned
        |taboo)\b
\b(?:house|ground|hard|standing|golden|strict) rule\b
\bunless i (?:say|ask|tell|confirm)\b
\bwithout (?:asking|telling) (?:me|us)\b|\bwithout (?:my|our) (?:approval|permission|consent|ok)\b
\bnobody (?:but|except|else|may)\b|\bno one may\b
\bwe never (?:ever )?(?!had\b|got\b|were\b|knew\b|saw\b|heard\b|thought\b|\w+ed\b)\w
\bi (?:don't|do not) want you to\b|\bi want you to (?:always|never|only)\b
"""
PREFERENCES = r"""
\bcall me (?!back\b|later\b|when\b|at\b|on\b|if\b|tomorrow\b|crazy\b|a\b|old\b|again\b)\w
\bi (?:really |usually |generally )?(?:prefer|dislike|hate|detest|loathe|avoid)\b
\bi (?:really |just )?(?:can't|cannot) (?:stand|eat|tolerate)\b
\bi (?:don't|do not|never) (?:like|eat|drink|smoke|fly|drive)\b
\bi(?:'d| would) (?:rather|prefer)\b
\b(?:am|i'm|is|he's|she's|are|we're) (?:\w+ )?(?:allergic|intolerant|vegan|vegetarian|co?eliac
        |diabetic)\b
\b(?:allergy|aversion) to\b
\b(?:answer|reply|respond|write|speak)(?: to me)? in (?:<languages>)\b
\bmy favou?rite\b
"""
DECISIONS = r"""
\blet's (?:go with|use|stick|take|make it|settle|switch)\b
\b(?:we|i)(?:'ve| have)? (?:decided|settled on|agreed on|agreed to|chose|opted)\b
\b(?:we're|i'm|we are|i am) (?:going with|switching)\b
"""
COMMITMENTS = r"""
\bremind (?:me|us)\b
\bi promise (?!you\b)\w
\b(?:i'll|i will|we'll|we will) [^,;]{3,80}\b(?:by|before|until|no later than) (?!the way|hand\b)\w
\bstill (?:has|have|needs?) to\b|\b(?:i|we) (?:must|have to|need to) [^,;]{3,60}
        \b(?:by|before|until)\b
\b(?:is|are) due (?:on|by|next|this|tomorrow)\b
"""

ENGLISH = Language(
    code="en",
    starters=frozenset(
        """
        please and but so also then just or ok okay btw oh well that because again now first
        second finally however importantly important note seriously really actually hey hi
        listen look remember anyway though too generally plus yes thanks sure right
        otherwise reminder
        """.split()  # noqa: SIM905
    ),
    rule_starts=join_rows(RULE_STARTS),
    cues={
        "rule": join_rows(RULES),
        "preference": join_rows(PREFERENCES, languages=LANGUAGE_NAMES),
        "decision": join_rows(DECISIONS),
        "commitment": join_rows(COMMITMENTS),
    },
    one_off=r"\b(?:this time|(?:just|only) (?:this )?once|for (?:now|once)|(?:just|right) now)\b",
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
    units=(
        r"percent|years?|yrs?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?"
        r"|miles?|feet|foot|inch(?:es)?|yards?|pounds?|lbs?|ounces?|oz|gallons?|cups?|tbsp|tsp"
        r"|tablespoons?|teaspoons?|people|persons?|guests?|seats?|users?|employees?|requests?"
        r"|tokens?|characters?|words?|lines?|rows?|columns?|pages?|items?|units?|pieces?|nights?"
        r"|retries|workers?|nodes?|replicas?|cores?|threads?|instances?|bytes?|pixels?|points?"
        r"|degrees?|times|square (?:feet|meters|metres)|acres?|liters?|litres?|meters?|metres?"
        r"|kilometers?|kilometres?|kilos?|grams?|servings?|tickets?|floors?|bedrooms?|rooms?"
    ),
    plain_words=frozenset(
        """
        absolutely actual adjust adjusted agreed allowed amounts anyway approximately become
        becomes book booked born bought btw bump bumped change changed changes charged chat
        circumstances comes confirm confirmed conversation correct correctly cost costs
        current currently decide decided decision decrease decreased due end ended ends
        equal equals exact exactly final fine fixed forbidden forget forward found fyi gave
        gives henceforth important increase increased instead keep keeps kept knew knows
        lasts least less lies listen listening listens live lived lives longer look looks
        lower lowered makes measures mind move moved moves name named nearly needed needs
        new note noted onwards ordered paid pay pays perhaps planned prefer preference
        preferred probably prohibited put puts quick quickly raise raised reads real reduce
        reduced remain remains rest right roughly rule rules run running runs scheduled set
        side sits sold sorry stands start started starts stay stays strictly switch switched
        takes tells thinks thought till time times today took turn turned updated uses using
        wants weighs went whenever work worked works wrote yesterday
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
)

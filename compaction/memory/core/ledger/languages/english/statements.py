"""By what preferences, decisions and commitments are recognized in English."""

from compaction.memory.core.ledger.languages.english.fragments import LANGUAGE_NAMES, ORDERS

_WHEN = (
    r"(?:by|on|before|until|till|after|at|in|within|next|this|tomorrow|tonight|today|later|once"
    r"|when|as soon as|first thing|end of|eod|eow|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday)\b"
)

PREFERENCE_CUES = {
    "prefer": (
        r"\b(?:i|we)(?:'d| would| really| generally| usually| always| much| strongly)* prefer\b",
        r"\b(?:i|we) do prefer\b",
    ),
    "preferred": (r"\b(?:my|our) preferred\b", r"\bpreferred \w+(?: \w+)?(?:: | is )"),
    "preference": (r"\b(?:my|our|strong|personal) preference\b",),
    "rather": (r"\b(?:i|we)(?:'d| would)(?: much)? rather\b(?! not say)",),
    "call": (
        r"<start>(?:just |you can |simply )?call me (?!back|when|if|at|on|tomorrow|later|in \d"
        r"|crazy|a |before|after|old)\w+",
        r"\b(?:you can|you may|friends|everyone|everybody|people) (?:just )?calls? me (?!back)\w",
    ),
    "address": (r"<start>(?:please )?address me\b",),
    "refer": (r"\brefer to (?:me|us|him|her|them|it) as\b",),
    "pronouns": (r"\bmy pronouns\b", r"\buse \w+/\w+ pronouns\b"),
    "favorite": (r"\bmy (?:\w+ )?favou?rite\b",),
    "favourite": (r"\bmy (?:\w+ )?favou?rite\b",),
    "like": (
        r"\bi(?:'d| would)? (?:really )?like (?:my|your|it (?:when|if|best)|to (?:be called|keep"
        r"|see|get|have|receive)|short|long|detailed|concise|things)\b",
        r"\bi (?:really )?(?:don't|do not) like\b",
    ),
    "hate": (
        r"\bi (?:really |absolutely )?hate (?:it when|when|\w+ing|the word|meetings|long|any"
        r"|emojis?|bullet|jargon|being)\b",
    ),
    "stand": (r"\bi can(?:'t|not) stand\b",),
    "allergic": (r"\b(?:allergic|intolerant) to\b",),
    "allergy": (r"\bi have (?:a|an) (?:\w+ ){0,3}allergy\b",),
    "vegetarian": (r"\b(?:i'm|i am|we're|we are|is|are) (?:a )?(?:strict )?vegetarians?\b",),
    "vegan": (r"\b(?:i'm|i am|we're|we are|is|are) (?:a )?(?:strict )?vegans?\b",),
    "please": (
        rf"<start>please (?:{ORDERS})\b.{{0,60}}\b(?:in future|by default|every time|each time"
        r"|in all|throughout|only)\b",
        r"^(?!.*\b(?:is|are|was|can|could|would|help)\b)(?!(?:give|show|tell|list|write|make"
        r"|explain|send|find|try|summari[sz]e|translate|go|do|check|help|just|one more|another"
        r"|more)\b)(?:[\w'-]+,? ){1,8}[\w'-]+, please[.!]*$",
    ),
    "eat": (
        r"\b(?:can't|cannot|mustn't|shouldn't|doesn't|don't|never|only) eat\b",
        r"\b(?:i|we) (?:don't|do not|never|only|can't|cannot) eat\b",
    ),
    "drink": (
        r"\b(?:can't|cannot|mustn't|shouldn't|doesn't|never|only) drink\b",
        r"\b(?:i|we) (?:don't|do not|never|only) drink\b",
    ),
    "use": (
        r"\bi (?:only|always|never|mostly|usually) use\b",
        r"<start>(?:please )?use (?:british|american|us|uk|metric|imperial|the metric|formal"
        r"|informal|simple|plain|24|european|si|gender|inclusive|bullet|markdown|dark|light"
        r"|celsius|fahrenheit|tabs|spaces|snake|camel|type hints|the 24|iso|they|she|he)\b",
    ),
    "fly": (r"\bi (?:only|never|always|don't|won't) (?:ever )?fly\b",),
    "want": (
        r"\bi (?:only|just|always) want (?!to (?:know|ask|say|check|see if))\w",
        r"\bi want (?:you|your|all|every|everything|the answers?|short|only) (?:\w+ ){0,3}"
        r"(?:to|in|short|brief|as|be|with)\b",
    ),
    "works": (r"\bworks (?:best|better) for (?:me|us)\b",),
    "suits": (r"\bsuits (?:me|us)(?: best| better)?\b",),
    "in": (
        rf"\b(?:answer|reply|respond|write|speak|talk|continue|explain)(?: to)?(?: me| us"
        rf"| everything| your answers)? (?:only )?in (?:{LANGUAGE_NAMES}|plain|simple|short"
        rf"|bullet|full sentences|prose|markdown|json|one|two|three)\b",
        rf"\bin (?:{LANGUAGE_NAMES}),? please\b",
        rf"<start>please,? in (?:{LANGUAGE_NAMES})\b",
    ),
    "answers": (
        r"\b(?:keep|make|i like|i want|give me) (?:your |the |all )?(?:\w+ )?answers"
        r"(?: \w+){0,2}\b",
    ),
    "emojis": (r"\b(?:no|without|skip|drop|hold|lose) (?:the |any )?emojis\b",),
    "tone": (r"\b(?:keep|use) (?:a|the|your) (?:\w+ ){0,2}tone\b",),
    "gluten": (r"\bgluten[- ]free\b",),
    "always": (r"\bi always (?:use|order|drink|eat|take|travel|sit|book|fly|buy|choose)\b",),
    "never": (
        r"\bi never (?:ever )?(?:eat|drink|use|work|fly|take|travel|order|buy|drive|answer|check"
        r"|read|book|sit|touch|open|accept|go|do|wear)\b",
    ),
    "skip": (r"<start>skip (?:the|any|all)\b",),
}

DECISION_CUES = {
    "let's": (
        r"\blet's (?:just |all )?(?:go (?:with|for|ahead)|use|stick|take|do|pick|choose|make|switch"
        r"|keep|settle|call it|name|set|move|drop|book|say|stay|schedule|postpone|skip|put|plan"
        r"|agree|have it|go back|replace|start with|change)\b",
    ),
    "lets": (
        r"\blets (?:go (?:with|for)|use|stick|take|switch|keep|make|set|move|drop|call it)\b",
    ),
    "let": (r"\blet us (?:go (?:with|for)|use|stick|take|agree|keep|make)\b",),
    "decided": (
        r"\b(?:i|we|they|team|board|management|'ve|have|has|was|been|is|it's) (?:\w+ ){0,2}"
        r"decided\b",
        r"^decided\b",
    ),
    "decision": (
        r"\b(?:the|our|my|final|a) (?:\w+ )?decision (?:is|was|on|for|about|has)\b",
        r"^(?:final )?decision\b ?[:–—-]",
    ),
    "agreed": (
        r"\b(?:we|we've|have|they|all|was|is|been) (?:\w+ )?agreed (?:on|to|that|with)\b",
        r"^agreed[:,]",
    ),
    "settled": (r"\b(?:we|we've|i've|have|it's|is|that's) (?:\w+ )?settled\b",),
    "chose": (r"\b(?:i|we|they) (?:\w+ )?chose\b",),
    "chosen": (r"\b(?:i've|we've|have|has) (?:\w+ )?chosen\b",),
    "picked": (r"\b(?:i|we|i've|we've|have) (?:\w+ )?picked\b",),
    "opted": (r"\b(?:i|we|i've|we've|have) (?:\w+ )?opted\b",),
    "going": (r"\b(?:i'm|i am|we're|we are) (?:\w+ )?going (?:with|for|ahead)\b",),
    "go": (
        r"\b(?:i'll|we'll|we will|i will|we should|i'd) (?:\w+ )?go (?:with|for|back to)\b",
        r"<start>go (?:with|for) (?!it\b|a (?:walk|run|swim))\w",
    ),
    "switching": (r"\b(?:i'm|we're|we are|i am) switching\b",),
    "switch": (r"\b(?:we|we'll|i'll|i|please|to|and) (?:\w+ )?switch(?:ed)? (?:\w+ ){0,3}to\b",),
    "switched": (r"\b(?:we|i|we've|i've|they) (?:\w+ )?switched\b",),
    "moved": (r"\b(?:we|we've|i|i've|was|been|got|is|has|they) (?:\w+ ){0,2}moved\b.{0,80}\bto\b",),
    "take": (
        r"\b(?:i'll|we'll|i will|we will) take (?:the|option|that one|number|both|room"
        r"|number)\b",
    ),
    "final": (r"\bfinal (?:answer|choice|version|word)\b(?: is|:|,)",),
    "actually": (
        r"\bactually,? (?:no\b|let's|use|make|change|switch|go|keep|i(?:'d| would)"
        r"|we(?:'ll| will)|scratch|not\b|forget|it's|the \w+ (?:\w+ )?(?:is|should))",
    ),
    "scratch": (r"\bscratch that\b",),
    "thought": (r"\bon second thoughts?\b",),
    "thoughts": (r"\bon second thoughts\b",),
    "mind": (r"\bchanged (?:my|our|his|her|their) minds?\b",),
    "minds": (r"\bchanged (?:our|their) minds\b",),
    "plan": (r"\bchange of plan\b", r"\bthe (?:new |final )?plan is\b"),
    "plans": (r"\bchange of plans\b",),
    "instead": (
        r"\b(?:use|take|make it|go|let's|we'll|we|it's|do|book|with|try|want|need|pick"
        r"|choose|is)\b.{1,80}\binstead\b(?! of\b)",
        r"\binstead of .{1,60}, (?:use|let's|"
        r"we|take|it's)\b",
    ),
    "longer": (r"\b(?:is|are|we|do|'re|i) no longer\b",),
    "forget": (r"<start>forget (?:what i said|about|the|that|my)\b",),
    "cancel": (
        r"<start>(?:please )?cancel (?:the|my|our|that)\b",
        r"\b(?:let's|we'll|i'll|we) "
        r"cancel\b",
    ),
    "cancelled": (r"\b(?:is|was|are|been|we|have|got) cancelled\b",),
    "canceled": (r"\b(?:is|was|are|been|we|have|got) canceled\b",),
    "approved": (r"\b(?:is|was|are|been|has|have|board|they|boss|management) (?:\w+ )?approved\b",),
    "rejected": (r"\b(?:is|was|are|been|we|they|board) (?:\w+ )?rejected\b",),
    "drop": (r"\b(?:we'll|we|i'll|let's|will) drop\b",),
    "dropping": (r"\b(?:we're|i'm|we are) dropping\b",),
    "not": (r"\bnot (?:the )?\S+(?: \S+){0,3},? but \S+",),
    "correction": (r"^(?:small |quick |one )?correction\b",),
    "revert": (r"\brevert (?:back )?to\b",),
    "ruled": (r"\bruled out\b",),
    "wait": (r"^(?:no,? |oh,? )?wait,? (?:no|make|use|it's|actually)\b",),
    "make": (
        r"<start>(?:no,? )?make (?:it|that) \S*\d",
        r"\b(?:actually|rather|no|wait),? make "
        r"(?:it|that)\b",
    ),
    "we'll": (
        r"\bwe'll (?:use|take|keep|stick|do it|have|host|build|run|store|start with|meet"
        r"|launch|ship)\b",
    ),
}

COMMITMENT_CUES = {
    "remind": (r"\bremind (?:me|us|him|her|them)\b",),
    "forget": (
        r"\b(?:don't|do not|dont|not|never) (?:let me |you )?forget (?:to|about|the|that|my"
        r"|our|it)\b",
    ),
    "promise": (r"\bi promise (?!you )\w", r"\bi(?:'ll)? promise (?:to|that|i)\b"),
    "promised": (r"\b(?:i|we|you|he|she|they|i've|we've)(?: have| had)? promised\b",),
    "owe": (r"\b(?:i|we|he|she|they) (?:still )?owe\b",),
    "due": (r"\b(?:is|are|was|comes|falls) due\b", r"\bdue (?:on|by|date|next|this|tomorrow)\b"),
    "deadline": (r"\bdeadline\b",),
    "todo": (r"^(?:my |our )?(?:todo|to-do)s?\b",),
    "follow": (r"\b(?:i'll|i will|we'll|need to|have to|to) follow up\b",),
    "i'll": (
        rf"\bi'll (?!be honest|try\b|think about|see\b|never|take (?:a look|the)|go (?:with"
        rf"|for))(?:\w+ ).{{0,100}}?\b{_WHEN}",
        r"\bi'll (?:send|deliver|share|prepare|finish|pay|upload|review|submit|forward|provide"
        r"|book|sign|get back|bring|ship|transfer|email|mail|hand over|fix|handle|take care)"
        r"\b",
    ),
    "will": (
        rf"\b(?:i|we) will (?!be honest|never|see\b|have to see)\w+ .{{0,100}}?\b{_WHEN}",
        r"\b(?:i|we) will (?:send|deliver|share|prepare|finish|pay|upload|review|submit"
        r"|forward|provide|book|sign|get back|bring|ship|transfer)\b",
    ),
    "we'll": (r"\bwe'll (?!see\b)\w+ .{0,100}?\b(?:by|before|until|no later)\b",),
    "committed": (r"\b(?:i|we|i've|we've|have) (?:\w+ )?committed to\b",),
    "need": (
        r"\b(?:i|we) need to \w+ .{0,100}?\b(?:by|before|until|no later than)\b",
        r"\bi need (?:it|this|that|the \w+) (?:by|before|until|no later than)\b",
    ),
    "have": (r"\b(?:i|we) have to \w+ .{0,100}?\b(?:by|before|until|no later than)\b",),
    "must": (r"\bi must \w+ .{0,100}?\b(?:by|before|until)\b",),
    "going": (rf"\bi'm going to \w+ .{{0,80}}?\b{_WHEN}",),
    "action": (r"\baction items?\b",),
}

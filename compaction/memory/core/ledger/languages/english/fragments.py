"""Parts of patterns that English uses in more than one place: alternations."""

ORDERS = (
    r"use|answer|reply|respond|write|speak|send|email|call|contact|deploy|push|merge|commit|ship"
    r"|book|order|buy|pay|accept|run|test|keep|include|show|give|list|return|quote|cite|name|ask"
    r"|tell|put|store|save|log|schedule|change|edit|touch|delete|create|install|read|translate"
    r"|round|format|sign|start|end|add|do|make|take|refer|mention|suggest|recommend|work|connect"
)
LANGUAGE_NAMES = (
    r"english|german|french|spanish|italian|dutch|portuguese|polish|russian|turkish|arabic"
    r"|chinese|japanese|swedish|danish|greek|ukrainian|latin|hindi|korean"
)

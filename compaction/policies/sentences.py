"""Say in one sentence what a policy does, for those who choose one."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from compaction.core.policy import Policy

_STEPS = {
    "prune_tool_outputs": gettext_noop("old results of tools are left out"),
    "dedupe_file_reads": gettext_noop("of each file only the newest copy is kept"),
    "strip_images": gettext_noop("old images are left out"),
    "excerpt": gettext_noop("long messages are cut to their beginning and end"),
    "summarize": gettext_noop("older messages become a summary"),
    "slide_window": gettext_noop("at last the oldest messages are left out"),
}


def describe_policy(policy: Policy) -> str:
    """Return at what size the policy compacts, and its steps, in the reader's language."""
    steps = [_(_STEPS.get(stage, stage)) for stage in policy.stages]
    if policy.ledger.ratio:
        steps.append(_("facts are kept beside it as they were written"))
    sentence = _("From %(percent)d%% on: %(steps)s.")
    percent = round(policy.trigger.threshold * 100)
    return sentence % {"percent": percent, "steps": ", ".join(steps)}

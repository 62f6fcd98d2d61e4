// List the types of the session's events. The server defines them; the page takes them from here.

export const EventType = Object.freeze({
  TURN_STARTED: "turn.started",
  TURN_WAITING: "turn.waiting",
  TURN_COMPLETED: "turn.completed",
  TURN_FAILED: "turn.failed",
  TURN_CANCELLED: "turn.cancelled",
  APPROVAL_DECIDED: "approval.decided",
  MESSAGE_CREATED: "message.created",
  MESSAGE_DELTA: "message.delta",
  MESSAGE_COMPLETED: "message.completed",
  REASONING_DELTA: "reasoning.delta",
  TOOL_CALL_STARTED: "tool_call.started",
  TOOL_CALL_COMPLETED: "tool_call.completed",
  COMPACTION_STARTED: "compaction.started",
  COMPACTION_APPLIED: "compaction.applied",
  COMPACTION_SKIPPED: "compaction.skipped",
  COMPACTION_FAILED: "compaction.failed",
  CONTEXT_USAGE: "context.usage",
  CONTEXT_TRIMMED: "context.trimmed",
  SESSION_UPDATED: "session.updated",
  EVENTS_DROPPED: "events.dropped",
});

// Estimate the tokens of a text that the server has not counted yet.

const CHARACTERS_PER_TOKEN = 4;
// In these scripts a character is about one token.
const WIDE_CHARACTERS = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/g;

export function estimateTokens(text) {
  const wideCount = text.match(WIDE_CHARACTERS)?.length ?? 0;
  return Math.max(1, Math.round(wideCount + (text.length - wideCount) / CHARACTERS_PER_TOKEN));
}

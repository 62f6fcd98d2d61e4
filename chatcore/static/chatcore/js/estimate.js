// About how many tokens a text has, for what the server has not seen yet.

const CHARACTERS_A_TOKEN = 4;
const WIDE = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/g; // scripts whose every sign is about a token

export function estimate(text) {
  const wide = text.match(WIDE)?.length ?? 0;
  return Math.max(1, Math.round(wide + (text.length - wide) / CHARACTERS_A_TOKEN));
}

// Let emphasis begin and end beside Chinese, Japanese and Korean signs, which have no spaces between
// words: **「強調」**です. CommonMark alone leaves these stars as they are.

import { Tokenizer } from "../vendor/marked.esm.js";

const SIGN = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\uFF00-\uFF65]`;
const ENDS_WITH_SIGN = new RegExp(`${SIGN}$`, "u");
const BEFORE_SIGN = new RegExp(`^(?:\\*+|~+)${SIGN}`, "u");
// Punctuation before a mark, where it or what follows the mark is such a sign.
const CLOSING = new RegExp(
  String.raw`(?![*_~\\${"`"}])[\p{P}\p{S}](?=(?:\*+|~+)${SIGN})|(?=${SIGN})\p{P}(?=(?:\*+|~+)\S)`,
  "gu",
);

// Where a sign stands on either side, a mark may begin as it may after a space.
const readFreely = (name) =>
  function tokenize(source, mask, before = "") {
    const isFree = source[0] !== "_" && (ENDS_WITH_SIGN.test(before) || BEFORE_SIGN.test(source));
    return Tokenizer.prototype[name].call(this, source, mask, isFree ? " " : before);
  };

export const cjkEmphasis = {
  tokenizer: { emStrong: readFreely("emStrong"), del: readFreely("del") },
  // The mask tells where a mark may end; a letter in place of punctuation is no hindrance.
  hooks: { emStrongMask: (source) => source.replace(CLOSING, ({ length }) => "a".repeat(length)) },
};

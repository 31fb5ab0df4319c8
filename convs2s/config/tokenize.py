"""Section tokenize: raw text -> words."""

from typing import Literal, Self

from pydantic import model_validator

from convs2s.config.section import Section


class TokenizeParams(Section):
    """Raw text -> words (sacremoses)."""

    tokenizer: Literal["moses", "spaces", "none"]
    """`spaces`: raw text is split at spaces and comes back unchanged, in any language, for vocabulary.kind
    sentencepiece; `none`: text that is already tokenized is split at any whitespace."""
    corpus: Literal["raw", "tokenized"]
    """`tokenized`: the corpus comes tokenized, and its lines are only split; the other keys then describe how
    to tokenize raw text the same way and how to detokenize translations."""
    normalize_unicode: bool
    """Compose characters (Unicode NFC): text from macOS may have e plus an accent instead of é."""
    normalize_punctuation: bool
    """Moses' punctuation normalization, with perl_parity (T31)."""
    normalize_romanian: bool
    """In Romanian text, replace the cedilla of s and t by the comma below (T32)."""
    remove_diacritics: bool
    """Remove the diacritics of a Romanian source (T32); never of a target, which would inflate its score by
    about ten BLEU."""
    remove_nonprinting: bool
    """Replace control and format characters with spaces."""
    aggressive_hyphens: bool
    """Split hyphens: well-known -> well @-@ known."""
    escape: bool
    """Escape &, <, >, quotes, brackets and bars as HTML entities, as Moses does."""
    at_sign: Literal["@", "##AT##"]
    """How @ is written, including in split hyphens: Stanford's WMT'14 text has ##AT##-##AT## (T30)."""
    lowercase: bool
    """Lowercase all words, and the reference that translations are scored against."""
    truecase: bool
    """Give words the case they have mid-sentence, learned from the training text; translations get their
    sentence-initial capitals back (T32)."""
    typography: bool
    """Restore, in detokenized text, what punctuation normalization removed: the quotation marks and
    apostrophes of the language, and the no-break spaces of French."""

    @model_validator(mode="after")
    def _one_case(self) -> Self:
        if self.lowercase and self.truecase:
            raise ValueError("expected at most one of lowercase and truecase, found both")
        return self

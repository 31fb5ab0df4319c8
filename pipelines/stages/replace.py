"""Stage replace@MEMBER: hypotheses -> text, plain and with unknown words replaced."""

from pathlib import Path

from convs2s.base.files import atomic_path
from convs2s.config.results import ReplaceParams
from convs2s.config.section import Languages
from convs2s.config.tokenize import TokenizeParams
from convs2s.decode.translations import read_hypotheses, write_text
from convs2s.decode.unknown_replacement import replace_unknowns, write_replacements
from convs2s.text.alignment.dictionary import read_dictionary
from convs2s.text.words.tokenization import Tokenizer


def run(
    params: ReplaceParams,
    tokenize: TokenizeParams,
    languages: Languages,
    member: str,
    translations: Path,
    alignment: Path,
    out: Path,
) -> None:
    """Write the best hypotheses of translations/MEMBER/hypotheses.jsonl as text, one line per sentence.

    `member` is a seed or `ensemble`. Writes out/MEMBER/plain.txt, detokenized, and plain.tok.txt, words
    separated by spaces, both with `<unk>`. If `params.enabled`, also writes replaced.txt and
    replaced.tok.txt, with unknown words replaced using alignment/dictionary.tsv, and replacements.tsv, one
    line per replaced word.
    """
    tokenizer = Tokenizer(languages[1], tokenize)
    sentences = list(read_hypotheses(translations / member / "hypotheses.jsonl"))
    best = [hypotheses[0] for _, hypotheses in sentences]
    with atomic_path(out / member) as temporary:
        temporary.mkdir()
        write_text(temporary, "plain", [hypothesis.words for hypothesis in best], tokenizer)
        if params.enabled:
            dictionary = read_dictionary(alignment / "dictionary.tsv")
            replaced = [
                replace_unknowns(source, hypothesis.words, hypothesis.unknowns, dictionary)
                for (source, _), hypothesis in zip(sentences, best, strict=True)
            ]
            write_text(temporary, "replaced", [words for words, _ in replaced], tokenizer)
            print(write_replacements(temporary / "replacements.tsv", [records for _, records in replaced]))

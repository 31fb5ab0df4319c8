"""Text in, text out, for any input: sentence by sentence, or each text as one sentence."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from convs2s.config.faults import validate
from convs2s.config.text import SelectionParams
from convs2s.config.translate import PackagedTranslateParams, SearchPlace
from convs2s.decode.capitals import CapitalsReader, raise_words
from convs2s.decode.left_out import SourceLine, read_source
from convs2s.decode.links import attend_words, list_owners
from convs2s.decode.load import load_word_translator
from convs2s.decode.parallel import run_in_processes
from convs2s.decode.put_back import put_back
from convs2s.decode.sampling import Sampling
from convs2s.decode.translations import Attention, Hypothesis, PutBack, one_line
from convs2s.decode.unknown_replacement import Replacement, Unknown, replace_unknowns
from convs2s.decode.word_translator import GivenScore, WordTranslator
from convs2s.package.facts import Facts, read_facts
from convs2s.package.folder import check_same, check_whole, load_tokenizers, read_settings
from convs2s.text.alignment.dictionary import read_dictionary
from convs2s.text.sentences import join_sentences, split_sentences
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.words.literals import hide_literals, show_literals
from convs2s.text.words.tokenization import Tokenizer

Texts = TypeVar("Texts", str, Sequence[str])
READ_AT_ONCE = 1000
"""Texts that one of several processes splits into words at a time."""
SELECTION = SelectionParams(common=500, candidates=100)
"""For candidates from a file, if the model folder has no selection; the values of the authors' Lua code."""


@dataclass(frozen=True)
class Translation:
    """A translation of one text.

    Scores, tokens and attention are of what the model saw: without what was left out of the text, and in the
    case of a normal sentence if the text was in capitals.

    Attributes:
        text: detokenized, on one line.
        score: log_likelihood / |y|^alpha.
        log_likelihood: in nats.
        tokens: the model's output, EOS last; empty for an empty text.
        words: the words that make up the text, with what was put back, in capitals if the source's were.
        replacements: the words that were unknown and have been replaced.
        attention: if requested, for the best translation of each text only, with the tokens of both.
        sources: for each token, the index of the source word attended to most, -1 if there is none; words
            are those of the whole text, also where the model saw only a part of them.
        put_back: what was left out of the text, as the model never saw its characters, and put back into the
            translation.
        places: the indices of the words that the tokens spell among `words`; empty if nothing was put back.
        unknown_characters: number of the text's characters that the model never saw.
        source_pieces: for each token, the index of the source piece attended to most, of those that the model
            saw.
    """

    text: str
    score: float
    log_likelihood: float
    tokens: list[str]
    words: list[str]
    replacements: list[Replacement]
    attention: Attention | None
    sources: list[int]
    put_back: list[PutBack] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    unknown_characters: int = 0
    source_pieces: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TranslatedText:
    """A text whose sentences were translated one by one.

    Attributes:
        sentences: of the text, each with the white space that follows it; none if the text is empty.
        translations: up to n_best of each sentence, best first; at least one.
        language: of the translations.
    """

    sentences: list[str]
    translations: list[list[Translation]]
    language: str

    @property
    def text(self) -> str:
        """The best translation of the text."""
        return self.of_rank(0)

    @property
    def unknown_characters(self) -> int:
        """Number of the text's characters that the model never saw."""
        return sum(best.unknown_characters for best, *_ in self.translations)

    def of_rank(self, rank: int) -> str:
        """Return the translation of the text in which each sentence has this rank, from 0, or its last."""
        chosen = [ranked[min(rank, len(ranked) - 1)].text for ranked in self.translations]
        return join_sentences(self.sentences, chosen, self.language)


class Translator:
    """A model, or an ensemble, with everything needed to translate text; made by `load`.

    Args:
        words: translates tokenized text.
        source, target: tokenizers of the two languages.
        dictionary: source word -> target word, for unknown-word replacement; None to leave `<unk>`.
        facts: what is known about the model, or the first of an ensemble; None if nothing is.
        splits_sentences: whether texts are translated sentence by sentence unless a call says otherwise.
        keeps_literals: whether addresses, placeholders and other literals are kept as they are.
        capitals: whether what a text has in capitals or title case is lowered for the model, and full-width
            characters narrowed. A model of lowercased or truecased text has its own way.
    """

    def __init__(
        self,
        words: WordTranslator,
        source: Tokenizer,
        target: Tokenizer,
        dictionary: Mapping[str, str] | None,
        facts: Facts | None = None,
        splits_sentences: bool = True,
        keeps_literals: bool = True,
        capitals: bool = True,
    ) -> None:
        self.words = words
        self.source = source
        self.target = target
        self.dictionary = dictionary
        self.facts = facts
        self.splits_sentences = splits_sentences
        self._keeps_literals = keeps_literals
        has_case = not (source.params.lowercase or source.params.truecase)
        self._capitals = CapitalsReader(words.source, source.language) if capitals and has_case else None

    def translate(
        self,
        texts: Texts,
        *,
        prefixes: Texts | None = None,
        sampling: Sampling | None = None,
        split_sentences: bool | None = None,
    ) -> Texts:
        """Return the best translation of a text, or of each of several; empty for an empty text.

        Pass many texts at a time: they are sorted by length and translated in batches. Arguments and errors
        are those of `translate_n_best`, and

        Args:
            split_sentences: translate a text's sentences one by one, and keep the white space between them,
                line ends included; False: each text is one sentence, and its translation has no line ends;
                None: as packaged, but False with prefixes.

        Raises:
            ValueError: with prefixes, each of which belongs to one sentence, if split_sentences is True.
        """
        if split_sentences and prefixes is not None:
            raise ValueError("prefixes are of single sentences. Expected split_sentences of False or None.")
        if split_sentences is None:
            split_sentences = self.splits_sentences and prefixes is None
        if split_sentences:
            best = [translated.text for translated in self.translate_texts(texts, sampling=sampling)]
        else:
            n_best_lists = self.translate_n_best(texts, prefixes=prefixes, sampling=sampling)
            best = [translations[0].text for translations in n_best_lists]
        return best[0] if isinstance(texts, str) else best

    def translate_texts(
        self,
        texts: str | Sequence[str],
        *,
        sampling: Sampling | None = None,
        on_done: Callable[[int], object] | None = None,
    ) -> list[TranslatedText]:
        """Translate the sentences of each text one by one; those of all texts share batches.

        Arguments and errors are those of `translate_n_best`; drawn translations depend on the number of the
        sentence.
        """
        split = [self.split(text) for text in as_texts(texts)]
        sentences = [sentence for text in split for sentence in text]
        done = reported = 0  # sentences, texts

        def report(count: int) -> None:
            """Report as many texts as further sentences are complete, as if all texts had as many."""
            nonlocal done, reported
            done += count
            texts_done = len(split) if done == len(sentences) else done * len(split) // len(sentences)
            if on_done is not None:
                on_done(texts_done - reported)
            reported = texts_done

        n_best_lists = iter(self.translate_n_best(sentences, sampling=sampling, on_done=report))
        return [
            TranslatedText(text, [next(n_best_lists) for _ in text], self.target.language) for text in split
        ]

    def split(self, text: str) -> list[str]:
        """Return the sentences of a text, each with the white space that follows it."""
        return split_sentences(text, self.source.language)

    def translate_n_best(
        self,
        texts: str | Sequence[str],
        *,
        keep_attention: bool = False,
        prefixes: str | Sequence[str] | None = None,
        sampling: Sampling | None = None,
        on_done: Callable[[int], object] | None = None,
    ) -> list[list[Translation]]:
        """Return up to n_best translations of each text, taken as one sentence, best first; at least one.

        Literals, such as addresses and placeholders, characters that the model never saw in training, such as
        emoji or another script, and words with such letters are left out of what it translates, and put back
        into the translation. A text in capitals or title case is translated as a normal sentence, and the
        translation of what was in capitals is in capitals; a text with a prefix stays as it is.

        Args:
            texts: several; a single one counts as a list.
            keep_attention: return the attention of each text's best translation.
            prefixes: whole words that the translation of each text begins with; may be empty.
            sampling: draw n_best translations instead of searching for the best.
            on_done: called with the number of texts that each batch completes.

        Raises:
            ValueError: if the numbers of prefixes and texts differ, or the model's scores are not numbers.
        """
        sources = self.read(texts)
        if prefixes is None:
            read_prefixes = [SourceLine([])] * len(sources)
        else:
            read_prefixes = [self._read_target(prefix) for prefix in as_texts(prefixes)]
            sources = [
                self._read_as_written(text) if prefix.words else source
                for text, source, prefix in zip(as_texts(texts), sources, read_prefixes, strict=True)
            ]

        def finish(number: int, hypotheses: list[Hypothesis]) -> list[Translation]:
            source, prefix = sources[number], read_prefixes[number]
            return [self._finish(source, hypothesis, prefix) for hypothesis in hypotheses]

        return self.words.translate_into(
            finish,
            [source.seen for source in sources],
            keep_attention,
            prefixes=[prefix.seen for prefix in read_prefixes],
            sampling=sampling,
            on_done=on_done,
        )

    def read(self, texts: str | Sequence[str]) -> list[SourceLine]:
        """Return the words of each text, and those that the model sees; with a GPU, by several processes.

        Words are in the case in which the model sees them.
        """
        return self._read_all(texts, self._read_source)

    def score(
        self,
        texts: str | Sequence[str],
        translations: str | Sequence[str],
        on_done: Callable[[int], object] | None = None,
    ) -> list[GivenScore]:
        """Return the likelihood of the given translation of each text; `on_done` as `translate_n_best`.

        Literals, characters that the model never saw, and words with such letters are left out of both.
        Capitals stay.

        Raises:
            ValueError: if the numbers of translations and texts differ, or the model's scores are not
                numbers.
        """
        sources = self._read_all(texts, self._read_as_written)
        targets = [self._read_target(text) for text in as_texts(translations)]
        scores = self.words.score([s.seen for s in sources], [t.seen for t in targets], on_done)
        return [
            score._replace(unknown_characters=source.unknown + target.unknown)
            for score, source, target in zip(scores, sources, targets, strict=True)
        ]

    def align(self, translation: Translation) -> list[tuple[int, int]]:
        """Return the links of a translation: sorted pairs of a source and a target word, both from 0.

        Each token links its word to the source word that it attended to most, on average over layers; what
        was put back is linked to the words it comes from. The words are those of `self.read(text)[0].words`,
        where what the model did not see is words of its own, and of `translation.words`.
        """
        owners = list_owners(translation.tokens, self.words.target, translation.places)
        attended = attend_words(owners, translation.sources, len(translation.words))
        links = {(source, word) for word, sources in enumerate(attended) for source in sources}
        links.update((item.source, item.word) for item in translation.put_back)
        return sorted(links)

    def _read_all(self, texts: str | Sequence[str], read: Callable[[str], SourceLine]) -> list[SourceLine]:
        """Return each text as `read` reads it; with a GPU, by several processes."""
        rows = as_texts(texts)
        parts = [rows[start : start + READ_AT_ONCE] for start in range(0, len(rows), READ_AT_ONCE)]
        lines = run_in_processes(
            lambda part: [read(text) for text in part], parts, self.words.processes_beside
        )
        return list(itertools.chain.from_iterable(lines))

    def _read_source(self, text: str) -> SourceLine:
        """Return the words of a text in the source language, and those that the model sees."""
        line = self._read_as_written(text)
        return line if self._capitals is None else self._capitals.lower(line, text)

    def _read_as_written(self, text: str) -> SourceLine:
        """Return the same with capitals as they are."""
        rewrite = str if self._capitals is None else self._capitals.rewrite_unseen
        return self._read_line(text, self.source, self.words.source, rewrite)

    def _read_target(self, text: str) -> SourceLine:
        """Return the words of a text in the target language, and those that the model sees."""
        return self._read_line(text, self.target, self.words.target)

    def _read_line(
        self, text: str, tokenizer: Tokenizer, codec: Codec, rewrite: Callable[[str], str] = str
    ) -> SourceLine:
        """Return the words of a text, rewritten but for its literals, and those that the model sees."""
        shown, hidden = hide_literals(text) if self._keeps_literals else (text, [])
        return read_source(rewrite(shown), tokenizer.tokenize, codec).with_literals(hidden)

    def _finish(self, source: SourceLine, hypothesis: Hypothesis, prefix: SourceLine) -> Translation:
        hypothesis = put_back(source, hypothesis, self.words.target, self.target.restore_case, prefix)
        words = list(hypothesis.words)
        unknowns = list[Unknown]()
        for unknown in hypothesis.unknowns:
            if unknown.word < len(prefix.words):  # the prefix says which word it is
                words[unknown.word] = prefix.words_with_objects[unknown.word]
            else:
                unknowns.append(unknown)
        replacements = list[Replacement]()
        if self.dictionary is not None:
            words, replacements = replace_unknowns(source.words, words, unknowns, self.dictionary)
        words = raise_words(words, source, hypothesis, self.words.target, self.target.language)
        is_copy = not (hypothesis.tokens or prefix.words)  # of the source, which the model never saw
        text = one_line(" ".join(words) if is_copy else self.target.detokenize(words))
        hidden = iter(hypothesis.hidden)
        hidden_put_back = iter(hypothesis.hidden[len(prefix.hidden) :])
        return Translation(
            text=show_literals(text, iter(hypothesis.hidden)),
            score=hypothesis.score,
            log_likelihood=hypothesis.log_likelihood,
            tokens=hypothesis.tokens,
            words=[show_literals(word, hidden) for word in words],
            replacements=replacements,
            attention=hypothesis.attention,
            sources=hypothesis.sources,
            put_back=[
                dataclasses.replace(item, text=show_literals(item.text, hidden_put_back))
                for item in hypothesis.put_back
            ],
            places=hypothesis.places,
            unknown_characters=hypothesis.unknown_characters,
            source_pieces=hypothesis.source_pieces,
        )


def as_texts(texts: str | Sequence[str]) -> list[str]:
    """Return texts as a list; a lone surrogate, no character, becomes a question mark."""
    rows = [texts] if isinstance(texts, str) else texts
    return [text.encode("utf-8", "replace").decode("utf-8") for text in rows]


def load(
    folders: str | Path | Sequence[str | Path],
    device: str | None = None,
    *,
    replace: bool | None = None,
    candidates: str | Path | None = None,
    processes: int = 1,
    search: SearchPlace = "auto",
    keep_literals: bool | None = None,
    capitals: bool | None = None,
    **changes: Any,
) -> Translator:
    """Load a model folder, or several as an ensemble.

    Args:
        folders: written by the stage package; the first determines the settings.
        device: such as cpu, cuda or cuda:1; None selects a GPU if there is one, but the CPU for int8.
        replace: whether unknown words are replaced; None: as packaged.
        candidates: file from `convs2s candidates`: each batch then considers only the target tokens that its
            source tokens are likely to need (§5.4); None: as packaged.
        processes: number of processes that share what is loaded. On a CPU they translate batches in parallel,
            each on one thread; beside a GPU they split texts into words and put translations together.
        search: where beam search keeps its hypotheses, which changes no result.
        keep_literals: whether addresses, placeholders and other parts of a text that are no language are kept
            as they are; False: the model translates them; None: True, unless the text is already tokenized
            (tokenize.tokenizer: none).
        capitals: whether lines and words in capitals or title case are lowered for the model; False: it gets
            each text in the case that it has; None: as packaged, but False if the text is already tokenized.
        changes: new values for keys of the section `translate` of params.yaml, such as beam_size=1, or for
            split_sentences.

    Raises:
        FileNotFoundError: if a file of a model folder is missing.
        ValueError: if a file is damaged, a value is impossible, the device does not exist or cannot be
            shared by this many processes, or the members of an ensemble have different vocabularies or
            tokenization.
    """
    if isinstance(folders, str | Path):
        folders = [folders]
    paths = [Path(folder) for folder in folders]
    settings = read_settings(paths[0])
    for member in paths[1:]:
        check_whole(member)
        check_same(paths[0], member)
    params = validate(PackagedTranslateParams, {**settings.translate.model_dump(), **changes}, "translate")
    if candidates is not None and params.selection is None:
        params = params.model_copy(update={"selection": SELECTION})
    table = paths[0] / "candidates.npz" if candidates is None else Path(candidates)
    words = load_word_translator(paths, paths[0], table, params, device, processes=processes, search=search)
    is_tokenized = settings.tokenize.tokenizer == "none"
    is_replaced = settings.replace if replace is None else replace
    dictionary = read_dictionary(paths[0] / "dictionary.tsv") if is_replaced else None
    return Translator(
        words,
        *load_tokenizers(paths[0], settings),
        dictionary,
        read_facts(paths[0]),
        params.split_sentences,
        not is_tokenized if keep_literals is None else keep_literals,
        params.capitals and not is_tokenized if capitals is None else capitals,
    )

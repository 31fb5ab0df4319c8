"""The typed mirror of params.yaml: one frozen class per key, no defaults, checked before any stage works.

A value is in params.yaml or nowhere. What is ill-named, missing, ill-typed or impossible together is
reported with its dotted name, what was found and what was wanted.
"""

import difflib
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationError,
    model_validator,
)
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Section(BaseModel):
    """A section of params.yaml: frozen, strictly typed, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


# ---------------------------------------------------------------- download


class PairFiles(Section):
    """Where the two sides are: two files, or two columns of one TSV (numbered from 0).

    Files are text, a sentence a line; but .sgm and .xml are test sets in segments, as of WMT and IWSLT, and
    train.tags.* the talks of WIT3.
    """

    source: str | None
    """File of source sentences; null when `tsv` is given."""
    target: str | None
    """File of target sentences; null when `tsv` is given."""
    tsv: str | None
    """File with both sides, tab-separated; null when `source` and `target` are given."""
    columns: Annotated[tuple[Count, Count], Field(strict=False)] | None
    """Columns of source and target in the TSV; null without one."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        two_files = self.source is not None and self.target is not None
        one_file = self.tsv is not None and self.columns is not None
        if two_files == one_file or (self.tsv is None) != (self.columns is None):
            raise ValueError("give either `source` and `target`, or `tsv` and `columns`; the others null")
        if one_file and (self.source is not None or self.target is not None):
            raise ValueError("give either `source` and `target`, or `tsv` and `columns`; the others null")
        return self


class GeneratedSource(Section):
    """Pairs of the embedded English-German grammar."""

    kind: Literal["generated"]
    pairs: Positive
    """Number of sentence pairs."""
    seed: Count
    """Another seed, another corpus."""
    noise: Share
    """Share of pairs made bad on purpose (too long, ill-proportioned, empty); train only."""


class FilesSource(PairFiles):
    """Files of the user's own, looked up in `download.folder`; plain, .gz, .bz2, .xz or .zst."""

    kind: Literal["files"]


class RemoteFile(Section):
    """A file or archive to fetch."""

    urls: Annotated[list[str], Field(min_length=1)]
    """Where it is, mirrors tried in turn."""
    sha256: Sha256 | None
    """Of the file as fetched, before it is unpacked; null where it is not known: any file is taken then, and
    its hash told."""

    @property
    def digest(self) -> str | None:
        """What the file is checked by."""
        return self.sha256


class Md5RemoteFile(Section):
    """A file or archive to fetch of which only the MD5 is published, as of WMT's test sets."""

    urls: Annotated[list[str], Field(min_length=1)]
    """Where it is, mirrors tried in turn."""
    md5: Md5
    """Of the file as fetched, before it is unpacked."""

    @property
    def digest(self) -> str:
        """What the file is checked by."""
        return self.md5


def checksum_key(file: Any) -> str:
    """Return the tag of a file's class, told by the key of its checksum."""
    return "by_md5" if "md5" in (file if isinstance(file, dict) else dict(file)) else "by_sha256"


AnyRemoteFile = Annotated[
    Annotated[RemoteFile, Tag("by_sha256")] | Annotated[Md5RemoteFile, Tag("by_md5")],
    Discriminator(checksum_key),
]


class UrlSource(PairFiles):
    """Files from the network; names are file names, or paths inside the fetched archives."""

    kind: Literal["url"]
    fetch: Annotated[list[AnyRemoteFile], Field(min_length=1)]
    """What is fetched; a file of that name and checksum in `download.folder` is taken instead."""


class MtdataSource(Section):
    """Data sets by their mtdata ids (needs the extra `mtdata`)."""

    kind: Literal["mtdata"]
    ids: Annotated[list[str], Field(min_length=1)]
    """For example StanfordNLP-wmt14_train-1-eng-deu."""
    sha256: dict[str, Sha256]
    """Where known, id -> sha256 of the pairs as 'source TAB target LF' lines; may be empty."""


class SacrebleuSource(Section):
    """A test set by its sacreBLEU name."""

    kind: Literal["sacrebleu"]
    name: str
    """For example wmt14/full."""


Source = Annotated[
    GeneratedSource | FilesSource | UrlSource | MtdataSource | SacrebleuSource, Field(discriminator="kind")
]


class DownloadParams(Section):
    """Where the corpus comes from."""

    source_language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    """ISO 639 code, as sacremoses and sacreBLEU know it."""
    target_language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    """ISO 639 code."""
    folder: str
    """Folder of local files, from the repository root; when a file in it changes, `dvc repro` notices."""
    train: Annotated[list[Source], Field(min_length=1)]
    """Training pairs: these, one after the other."""
    valid: list[Source]
    """Validation pairs; [] takes every N-th training pair instead (filter.valid_every)."""
    development: list[Source]
    """Pairs that translate.alpha is tuned on (§4.3); [] takes the validation pairs."""
    test: Annotated[list[Source], Field(min_length=1)]
    """Test pairs."""
    references: list[str]
    """Files in `folder` with further references of the test pairs, a line each, for ROUGE; mostly []."""

    def sources(self, split: str) -> list[Source]:
        """Return the sources of a split: train, valid, development or test."""
        return {
            "train": self.train,
            "valid": self.valid,
            "development": self.development,
            "test": self.test,
        }[split]


# ---------------------------------------------------------------- text


class TokenizeParams(Section):
    """Raw text -> words (sacremoses)."""

    tokenizer: Literal["moses", "none"]
    """`none` for text that is tokenized already: words are split at white space, nothing is changed."""
    corpus: Literal["raw", "tokenized"]
    """`tokenized`: the corpus comes in words, by others, and its lines are only split; the keys here say how
    raw text is brought to the same form, and translations to raw text."""
    normalize_punctuation: bool
    """Moses' punctuation normalization, with perl_parity (T31)."""
    normalize_romanian: bool
    """In Romanian, s and t with cedilla become those with comma below (T32)."""
    remove_diacritics: bool
    """Of a Romanian source (T32); never of a target, whose score that would inflate by some ten BLEU."""
    remove_nonprinting: bool
    """Replace control and format characters by spaces."""
    aggressive_hyphens: bool
    """Split hyphens: well-known -> well @-@ known."""
    escape: bool
    """Escape &, <, >, quotes, brackets and bars as HTML entities, as Moses does."""
    at_sign: Literal["@", "##AT##"]
    """What stands for @, that of split hyphens too: Stanford's WMT'14 text has ##AT##-##AT## (T30)."""
    lowercase: bool
    """Lower-case all words, and the reference that translations are compared with."""
    truecase: bool
    """Words in the case that they have in mid-sentence, learned from the training text; translations get
    capitals at sentence starts again (T32)."""

    @model_validator(mode="after")
    def _one_case(self) -> Self:
        if self.lowercase and self.truecase:
            raise ValueError("lowercase and truecase are both true; wanted at most one of them")
        if self.lowercase and self.at_sign != "@":
            raise ValueError(
                f"lowercase is true and at_sign is {self.at_sign}, which it would change; wanted @"
            )
        return self


class FilterParams(Section):
    """Which training pairs are kept; null switches a limit off."""

    max_words: Positive | None
    """Longest side, in words (175 in §4.1)."""
    max_ratio: Annotated[float, Field(ge=1)] | None
    """Longer side / shorter side, in words (1.5 in §4.1)."""
    drop_empty: bool
    """Drop pairs with an empty side."""
    drop_repeats: bool
    """Keep only the first of equal pairs; the paper does not (T29)."""
    valid_every: Annotated[int, Field(ge=2)] | None
    """Every N-th kept pair goes to validation; null when download.valid is given."""


class VocabularyParams(Section):
    """Word pieces or words."""

    kind: Literal["bpe", "word"]
    """Pieces of words, or whole words with replacement of unknown ones."""
    joint: bool
    """bpe: learn one segmentation for both sides; the two vocabularies stay separate (T26)."""
    source_size: Positive
    """Types: pieces of the BPE model (of the joint one, if joint), or most frequent words."""
    target_size: Positive
    """Types, likewise; equal to source_size if joint."""

    @model_validator(mode="after")
    def _joint_fits(self) -> Self:
        if self.joint and self.kind == "word":
            raise ValueError("joint: true needs kind: bpe; word vocabularies are separate")
        if self.joint and self.source_size != self.target_size:
            raise ValueError(
                f"joint: true learns one model, so source_size ({self.source_size}) and target_size "
                f"({self.target_size}) must be equal"
            )
        return self


class AlignParams(Section):
    """Alignment for the dictionary of unknown-word replacement (§4.3) and for vocabulary selection (§5.4)."""

    backend: Literal["builtin", "fast_align", "none"]
    """`fast_align` needs the programs fast_align and atools on PATH; `none` makes an empty dictionary."""
    iterations: Positive
    """EM iterations in each direction (5 in fast_align)."""
    candidates: Positive | None
    """Target types kept for each source type, for vocabulary selection: the encoded text is aligned once
    more, for these; null: it is not."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.candidates is not None and self.backend == "none":
            raise ValueError("candidates need an alignment: set backend to builtin, or candidates to null")
        return self


# ---------------------------------------------------------------- model and training


class ModelParams(Section):
    """The architecture (§3)."""

    embedding_size: Positive
    """Word and position embeddings, also the width of attention, in channels."""
    output_embedding_size: Positive
    """Decoder output before the softmax layer, in channels."""
    encoder_widths: Annotated[list[Positive], Field(min_length=1)]
    """Channels of each encoder block, bottom first."""
    encoder_kernels: Annotated[list[Positive], Field(min_length=1)]
    """Kernel widths of the encoder blocks, in positions; odd."""
    decoder_widths: Annotated[list[Positive], Field(min_length=1)]
    """Channels of each decoder block, bottom first."""
    decoder_kernels: Annotated[list[Positive], Field(min_length=1)]
    """Kernel widths of the decoder blocks, in positions."""
    attention: Annotated[list[bool], Field(min_length=1)]
    """Which decoder blocks attend to the source (Table 5); at least one."""
    source_positions: bool
    """Position embeddings on the source side (Table 4)."""
    target_positions: bool
    """Position embeddings on the target side (Table 4)."""
    max_positions: Annotated[int, Field(ge=4)]
    """Rows of each position table, one of them for padding: the longest sentence has max_positions - 1
    tokens, its end mark counted (T18)."""
    encoder_grad_scale: Literal["paper", "fairseq"]
    """Scale gradients of the encoder's weights by 1/(2A), sparing the embeddings (paper) or not (T6)."""
    extra_scaling: bool
    """sqrt(0.5) also on d, z + e and c + h, as both reference codes do; the text names none (T4)."""

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        if len(self.encoder_widths) != len(self.encoder_kernels):
            raise ValueError(
                f"encoder_widths has {len(self.encoder_widths)} layers but encoder_kernels has "
                f"{len(self.encoder_kernels)}; give one of each per layer"
            )
        if len(self.decoder_widths) != len(self.decoder_kernels):
            raise ValueError(
                f"decoder_widths has {len(self.decoder_widths)} layers but decoder_kernels has "
                f"{len(self.decoder_kernels)}; give one of each per layer"
            )
        if len(self.attention) != len(self.decoder_widths):
            raise ValueError(
                f"attention has {len(self.attention)} flags but the decoder has "
                f"{len(self.decoder_widths)} layers; give one flag per layer"
            )
        if not any(self.attention):
            raise ValueError("attention has no layer switched on; the decoder would not see the source")
        even = [k for k in self.encoder_kernels if k % 2 == 0]
        if even:
            raise ValueError(
                f"encoder_kernels has the even width {even[0]}; wanted odd ones, which keep length"
            )
        return self


class SelectionParams(Section):
    """Vocabulary selection: a batch's output layer has some of the target types only (§5.4).

    A translation then depends on the sentences that share its batch: their candidates are open to it, too.
    """

    common: Count
    """Most frequent target types that every batch has (500 in the Lua code)."""
    candidates: Positive
    """Alignment candidates of each source type, the most frequent ones (100 in the Lua code)."""


class TrainParams(Section):
    """Optimization (§4.2)."""

    seeds: Annotated[list[Count], Field(min_length=1)]
    """One training, one DVC stage, per seed; their models also form the ensemble."""
    dropout: Share
    """Probability of dropping, on embeddings, block inputs and the decoder output."""
    batch_by: Literal["sentences", "tokens"]
    """`sentences`: an update is over batch_sentences, split at max_tokens (§4.2); `tokens`: over one
    batch of at most max_tokens."""
    batch_sentences: Positive
    """Sentences per update and worker; with `tokens`, at most so many."""
    max_tokens: Positive
    """Padded tokens of one side that are processed at once, per worker."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Of Nesterov's accelerated gradient, at the start."""
    momentum: Annotated[float, Field(gt=0, lt=1)]
    """Of Nesterov's accelerated gradient."""
    clip_norm: Annotated[float, Field(gt=0)]
    """Gradients of a larger norm are scaled down to it."""
    label_smoothing: Share
    """0 in the paper (T36)."""
    anneal_factor: Annotated[float, Field(gt=0, lt=1)]
    """What the learning rate is multiplied by, after each epoch once annealing has begun."""
    anneal_against: Literal["previous", "best"]
    """Annealing begins when an epoch's validation perplexity is not below this epoch's (T11)."""
    min_epochs_before_anneal: Count
    """Epochs before annealing may begin."""
    anneal_after_epoch: Positive | None
    """Annealing begins after this epoch at the latest; null: only when perplexity stops improving."""
    min_learning_rate: Annotated[float, Field(gt=0)]
    """Training ends when the learning rate falls below it."""
    patience: Positive | None
    """Training ends after so many epochs without a new best perplexity; null: never for this reason."""
    max_epochs: Positive
    """Training ends after so many epochs at the latest."""
    precision: Literal["float32", "bfloat16"]
    """Of products; weights, softmax and loss are float32 in any case (T38)."""
    workers: Positive
    """Processes per node, each with its own GPU if there are GPUs."""
    nodes: Positive
    """Machines that train together."""
    rendezvous: str | None
    """host:port of one of them, where they meet; null with one node."""
    selection: SelectionParams | None
    """Target types of a batch, the batch's own ones besides; null: all. With it, perplexities are those
    among the types selected, and the output layer is a plain table (T16)."""
    checkpoint_updates: Positive
    """Updates between checkpoints within an epoch; every epoch ends with one."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds {self.seeds} has a seed twice; wanted different ones")
        if (self.nodes > 1) != (self.rendezvous is not None):
            raise ValueError(
                f"nodes is {self.nodes} but rendezvous is {self.rendezvous}; give host:port exactly when "
                "several nodes train together"
            )
        return self


# ---------------------------------------------------------------- decoding and evaluation


def number_or_tuned(value: object) -> float | Literal["tuned"]:
    """Check an alpha of params.yaml; the two kinds in one message, which a union would tell one by one."""
    if value == "tuned":
        return "tuned"
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise ValueError(f"found {value!r}, wanted a number of at least 0, or tuned")


Alpha = Annotated[float, Field(ge=0)]
AlphaOrTuned = Annotated[float | Literal["tuned"], PlainValidator(number_or_tuned)]
AlphaT = TypeVar("AlphaT")


class BeamSearchSection(Section, Generic[AlphaT]):
    """Beam search (§4.3), with an alpha that is known or still to be tuned."""

    beam_size: Positive
    """Hypotheses kept per sentence; 1 is greedy search."""
    alpha: AlphaT
    """Final scores are log-likelihood / |y|^alpha; 1 is the mean over tokens. In params.yaml also `tuned`:
    the best of tune.alphas on the development set, for each seed and for the ensemble."""
    min_length: Count
    """Fewest tokens of a hypothesis, end mark not counted."""
    max_length_ratio: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Longest hypothesis = ratio * source tokens + max_length_extra, end marks not counted."""
    max_length_extra: Positive
    """See max_length_ratio; in tokens."""
    n_best: Positive
    """Hypotheses written per sentence, at most beam_size."""
    legacy_eos: bool
    """Accept an end mark anywhere among the 2 * beam_size candidates, as before 2017's end (T21)."""
    batch_sentences: Positive
    """Sentences translated at once."""
    precision: Literal["float32", "bfloat16"]
    """Of products; softmax and scores are float32 in any case."""
    selection: SelectionParams | None
    """Target types of a batch; null: all."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.n_best > self.beam_size:
            raise ValueError(
                f"n_best {self.n_best} exceeds beam_size {self.beam_size}; wanted at most as many"
            )
        return self


class TranslateParams(BeamSearchSection[Alpha]):
    """Beam search as the library takes it: alpha is a number."""


class TranslateSection(BeamSearchSection[AlphaOrTuned]):
    """Beam search as params.yaml has it: alpha is a number, or `tuned`."""

    def with_alpha(self, alpha: float) -> TranslateParams:
        """Return the same search with this number."""
        return TranslateParams.model_validate({**self.model_dump(), "alpha": alpha})


class TuneParams(Section):
    """Choice of translate.alpha on download.development (§4.3); only for `translate.alpha: tuned`."""

    alphas: Annotated[list[Alpha], Field(min_length=1)]
    """Values to choose from; all are scored on one search."""

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if len(set(self.alphas)) != len(self.alphas):
            raise ValueError(f"alphas {self.alphas} has a value twice; wanted different ones")
        return self


class ReplaceParams(Section):
    """Unknown-word replacement by attention (§4.3)."""

    enabled: bool
    """Whether translations come with replacement; word models: true, BPE: false (T35)."""


class EvaluateParams(Section):
    """Scores, tables and pictures."""

    examples: Count
    """Sentences shown in the examples table."""
    heat_maps: Count
    """Sentences whose attention is drawn."""
    rouge: Literal["gigaword", "duc2004"] | None
    """Also score ROUGE-1, 2 and L (§4.1): `gigaword` as F1 of whole texts, `duc2004` as recall of 75 bytes
    with the jackknife over references; null: not."""


class PackageParams(Section):
    """The model folder for users."""

    name: Annotated[str, Field(min_length=1)]
    """Title of the model card."""
    data_license: str
    """Licence of the training data, for the model card."""


class Params(Section):
    """All of params.yaml."""

    download: DownloadParams
    tokenize: TokenizeParams
    filter: FilterParams
    vocabulary: VocabularyParams
    align: AlignParams
    model: ModelParams
    train: TrainParams
    tune: TuneParams
    translate: TranslateSection
    replace: ReplaceParams
    evaluate: EvaluateParams
    package: PackageParams

    @model_validator(mode="after")
    def _romanian_is_there(self) -> Self:
        source, target = self.download.source_language, self.download.target_language
        if self.tokenize.remove_diacritics and source != "ro":
            raise ValueError(
                "tokenize.remove_diacritics is for a Romanian source; found download.source_language "
                f"{source!r}. Wanted false: a target keeps its diacritics"
            )
        if self.tokenize.normalize_romanian and "ro" not in (source, target):
            raise ValueError(
                "tokenize.normalize_romanian is true, but neither download.source_language "
                f"({source!r}) nor download.target_language ({target!r}) is 'ro'. Wanted false"
            )
        return self

    @model_validator(mode="after")
    def _one_validation_set(self) -> Self:
        if bool(self.download.valid) == (self.filter.valid_every is not None):
            raise ValueError(
                "filter.valid_every and download.valid: exactly one must be given, the other null or []; "
                f"found valid_every {self.filter.valid_every} and {len(self.download.valid)} valid sources"
            )
        return self

    @model_validator(mode="after")
    def _references_are_used(self) -> Self:
        if self.download.references and self.evaluate.rouge is None:
            raise ValueError(
                f"download.references names {len(self.download.references)} file(s), which ROUGE alone uses, "
                "but evaluate.rouge is null; wanted duc2004 or gigaword there, or no references"
            )
        return self

    @model_validator(mode="after")
    def _candidates_suffice(self) -> Self:
        if self.train.selection and not self.translate.selection:
            raise ValueError(
                "train.selection is set but translate.selection is null: a softmax over all types would be "
                "over types that training never set against each other; wanted a selection there, too"
            )
        for name, selection in (("train", self.train.selection), ("translate", self.translate.selection)):
            if selection is not None and selection.candidates > (self.align.candidates or 0):
                raise ValueError(
                    f"{name}.selection takes {selection.candidates} candidates of a source type but "
                    f"align.candidates is {self.align.candidates}; wanted at least as many, 1000 for example"
                )
        return self


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check params.yaml (or a preset).

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not YAML, or a key is unknown, missing, ill-typed or impossible; the message
            lists every fault with the key's dotted name, what was found and what was wanted.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Run this from the repository root, or copy a preset: "
            "cp presets/generated.yaml params.yaml"
        )
    try:
        # YAML 1.2 by ruamel, as DVC reads it: 1e-4 is a number there, a string to PyYAML.
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from error
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        faults = "\n".join(f"  {describe(fault)}" for fault in error.errors())
        raise ValueError(f"{path} has {error.error_count()} fault(s):\n{faults}") from None


def describe(fault: Any) -> str:
    """Return one line for a pydantic error: dotted name, what was found, what was wanted."""
    # A union's tag stands in the location behind the list index; it is no key of the file.
    kinds = {"generated", "files", "url", "mtdata", "sacrebleu", "by_sha256", "by_md5"}
    keys = [str(part) for part in fault["loc"]]
    name = (
        ".".join(key for i, key in enumerate(keys) if not (key in kinds and i and keys[i - 1].isdigit()))
        or "params.yaml"
    )
    match fault["type"]:
        case "extra_forbidden":
            known = sorted(known_keys(keys))
            near = difflib.get_close_matches(keys[-1], known, n=1)
            hint = f"did you mean {near[0]}?" if near else "known here: " + ", ".join(known)
            return f"{name}: unknown key, found {fault['input']!r}; {hint}"
        case "missing":
            return f"{name}: missing; every value stands in params.yaml, see presets/ for examples"
        case "value_error":
            # A rule about several sections has no key of its own and names them itself.
            return f"{name}: {fault['ctx']['error']}" if keys else str(fault["ctx"]["error"])
        case _:
            message = (
                fault["msg"]
                .replace("Input should be", "wanted")
                .replace("a valid ", "a ")
                .replace("a integer", "an integer")
            )
            return f"{name}: found {fault['input']!r}, {message}"


def known_keys(location: list[str]) -> set[str]:
    """Return the keys that the schema knows where the last key of `location` stands."""
    if len(location) <= 1:
        return set(Params.model_fields)
    section = Params.model_fields.get(location[0])
    annotation = section.annotation if section else None
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return set()
    if len(location) == 2:  # a key of a section
        return set(annotation.model_fields)
    sources: dict[str, type[BaseModel]] = {
        "generated": GeneratedSource, "files": FilesSource, "url": UrlSource,
        "mtdata": MtdataSource, "sacrebleu": SacrebleuSource,
    }  # fmt: skip
    if location[1] == "selection":
        return set(SelectionParams.model_fields)
    tags = [sources[key] for key in location if key in sources]
    last: type[BaseModel] = tags[-1] if tags else annotation
    if "fetch" in location[:-1]:
        last = Md5RemoteFile if "by_md5" in location else RemoteFile
    return set(last.model_fields)

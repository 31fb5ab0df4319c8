"""A fairseq `fconv` checkpoint with its dictionaries -> a model folder for `convs2s translate`."""

import re
import reprlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from convs2s.base.files import SIDES, write_json, write_lines
from convs2s.base.messages import is_out_of_memory
from convs2s.config.faults import validate
from convs2s.config.model import ModelParams
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import PackagedTranslateParams
from convs2s.fairseq.architecture import read_architecture
from convs2s.fairseq.files import Checkpoint, read_fairseq_checkpoint, read_fairseq_dictionary
from convs2s.fairseq.weights import convert_weights
from convs2s.ids.vocabulary import PAD, SPECIALS, write_vocabulary
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import build_unfilled, save_model
from convs2s.package import model_card
from convs2s.package.folder import LanguageCode, Settings, write_package
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.vocabulary.codec import ALLOWED, CODES, IMPORTED_MODEL
from convs2s.text.vocabulary.segmentation import Bpe, read_model
from convs2s.text.vocabulary.subword_nmt import read_codes, read_pieces

# fairseq's search: EOS only within the beam (T21), at least one token. The default limit is that of its
# golden outputs, 1.2 S + 10 tokens; S there counts EOS, hence 11.2.
SEARCH = PackagedTranslateParams(
    beam_size=5,
    alpha=1.0,
    min_length=1,
    max_length_ratio=1.2,
    max_length_extra=11.2,
    max_length_of="sentence",
    n_best=1,
    legacy_eos=False,
    batch_sentences=128,
    precision="float32",
    selection=None,
)


def import_fairseq(
    checkpoint: Path,
    dictionaries: tuple[Path, Path],
    out: Path,
    languages: tuple[str | None, str | None],
    tokenize: TokenizeParams,
    search: Mapping[str, Any],
    *,
    bpe_codes: Path | None = None,
    bpe_vocabulary: Path | None = None,
    bpe_vocabulary_threshold: int = 1,
    sentencepiece_model: Path | None = None,
) -> str:
    """Write a model folder; return a one-line summary.

    Args:
        checkpoint: file from any version of fairseq.
        dictionaries: of source and target, in fairseq's format.
        out: folder to write, which must not exist.
        languages: of source and target; None takes the checkpoint's, or that of a file `dict.LANGUAGE.txt`.
        search: values that the model folder's section `translate` has instead of those in `SEARCH`.
        bpe_codes: of subword-nmt; without them or a SentencePiece model, words are looked up unchanged.
        bpe_vocabulary: the source's pieces and their counts, as written by subword-nmt's get-vocab: other
            pieces are split further. None if training allowed all pieces.
        bpe_vocabulary_threshold: fewest occurrences of a piece in `bpe_vocabulary`.

    Raises:
        OSError: if a file cannot be read, or `out` exists.
        ValueError: if a file or a value is invalid, or the files do not fit each other.
    """
    if out.exists():
        raise FileExistsError(f"{out} already exists; expected a new folder. Delete it, or name another.")
    translate = validate(
        PackagedTranslateParams, {**SEARCH.model_dump(), **search}, "the search settings are invalid"
    )
    read = read_fairseq_checkpoint(checkpoint)
    source, target = (
        find_language(read, side, language, dictionary)
        for side, language, dictionary in zip(SIDES, languages, dictionaries, strict=True)
    )
    source_entries, target_entries = map(read_fairseq_dictionary, dictionaries)
    params = read_architecture(read)
    sizes = (len(SPECIALS) + len(source_entries), len(SPECIALS) + len(target_entries))
    model = convert_model(read, params, sizes)
    if bpe_codes:
        kind = "subword-nmt"
    elif sentencepiece_model:
        kind = "sentencepiece"
    else:
        kind = "word"
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
        parts = Path(temporary)
        save_model(parts / "model", model, params)
        vocabulary = parts / "vocabulary"
        vocabulary.mkdir()
        write_vocabulary(vocabulary / "source.tsv", source_entries)
        write_vocabulary(vocabulary / "target.tsv", target_entries)
        if bpe_codes:
            read_codes(bpe_codes)  # refuses another file
            shutil.copyfile(bpe_codes, vocabulary / CODES)
        if bpe_vocabulary:
            write_lines(vocabulary / ALLOWED, read_pieces(bpe_vocabulary, bpe_vocabulary_threshold))
        if sentencepiece_model:
            read_model(sentencepiece_model, Bpe)  # refuses another file
            shutil.copyfile(sentencepiece_model, vocabulary / IMPORTED_MODEL)
        write_json(vocabulary / "segmentation.json", {"kind": kind, "origin": "fairseq"})
        write_dictionary(parts / "dictionary.tsv", [])
        rows = model_card.describe_model(parts / "model", kind)
        table = model_card.format_table("", ("", ""), list(rows.items()))
        title = f"{checkpoint.name}, imported from fairseq"
        write_package(
            out,
            model=parts / "model",
            vocabulary=vocabulary,
            dictionary=parts / "dictionary.tsv",
            candidates=None,
            settings=Settings((source, target), tokenize, translate, replace=False),
            card=model_card.format_card(title, (source, target), "unknown", [table]),
        )
    return f"{rows['layers']}; parameters: {rows['parameters']}; vocabulary: {rows['vocabulary']}"


def convert_model(checkpoint: Checkpoint, params: ModelParams, sizes: tuple[int, int]) -> Seq2Seq:
    """Return our model with the checkpoint's weights, weight norm folded in, for translation.

    The sizes are those of the source and the target dictionary, fairseq's four special symbols included.
    """
    model = build_unfilled(params, *sizes, padding_id=PAD)
    try:
        weights = convert_weights(checkpoint.tensors, params.max_positions)
        model.load_state_dict(weights, assign=True)
    except (RuntimeError, ValueError) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:300]  # of perhaps a hundred names
        raise ValueError(
            f"{checkpoint.path} has different tensors from a plain fconv model with its arguments and "
            f"dictionaries of {sizes[0]:,} and {sizes[1]:,} entries (4 special ones included). Expected "
            f"those that it was trained with, the source's first. {reason}"
        ) from error
    return model.eval().requires_grad_(False)


def find_language(checkpoint: Checkpoint, side: str, option: str | None, dictionary: Path) -> str:
    """Return the language of a side: that of the option, the checkpoint or the dictionary's name."""
    in_name = re.fullmatch(r"dict\.(\w+)\.txt", dictionary.name)
    values = [option, checkpoint.arguments.get(f"{side}_lang"), in_name[1] if in_name else None]
    # What the checkpoint has may be anything, such as a tensor, which is neither true nor false.
    languages = [value for value in values if not isinstance(value, str | None) or value]
    if not languages:
        raise ValueError(
            f"{checkpoint.path} does not name its {side} language. Give --{side}-language, for example en."
        )
    try:
        return TypeAdapter(LanguageCode).validate_python(languages[0], strict=True)
    except ValidationError:
        raise ValueError(
            f"{checkpoint.path}: expected a {side} language of at most 50 ASCII characters without spaces, "
            f"found {reprlib.repr(languages[0])}. Give --{side}-language, for example en."
        ) from None

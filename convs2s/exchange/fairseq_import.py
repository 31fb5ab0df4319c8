"""A fairseq `fconv` checkpoint with its dictionaries -> a model folder for `convs2s translate`."""

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from convs2s.base.files import write_json, write_lines
from convs2s.base.messages import inflect
from convs2s.config.faults import validate
from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import TranslateParams
from convs2s.exchange.fairseq_architecture import position_rows, read_architecture
from convs2s.exchange.fairseq_files import Checkpoint, read_checkpoint, read_fairseq_dictionary
from convs2s.exchange.fairseq_weights import Fconv, compare_shapes, convert_weights, has_old_norm
from convs2s.ids.vocabulary import PAD, SPECIALS, write_vocabulary
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import build_unfilled, save_model
from convs2s.package import model_card
from convs2s.package.folder import Settings, write_package
from convs2s.text.alignment.dictionary import write_dictionary
from convs2s.text.vocabulary.codec import ALLOWED, CODES, IMPORTED_MODEL
from convs2s.text.vocabulary.segmentation import WORD_MARK, Bpe, read_model
from convs2s.text.vocabulary.subword_nmt import read_codes, read_pieces

SIDES = ("source", "target")
UNDETERMINED = "und"  # ISO 639, for a language that is not named and that nothing depends on
# fairseq's search: EOS only within the beam (T21), at least one token. The default limit is that of its
# golden outputs, 1.2 S + 10 tokens; S there counts EOS, hence 11.2.
SEARCH = TranslateParams(
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


@dataclass(frozen=True)
class Segmentation:
    """How words are split into the entries of the dictionaries.

    Attributes:
        kind: `word` if words are looked up unchanged, for instance because the text is already segmented.
        path: subword-nmt codes, or a SentencePiece model; None for `word`.
        vocabulary: with codes, the source's pieces and their counts, as written by subword-nmt's get-vocab:
            other pieces are split further. None if training allowed all pieces.
        threshold: fewest occurrences of a piece in `vocabulary`.
    """

    kind: Literal["word", "subword-nmt", "sentencepiece"]
    path: Path | None
    vocabulary: Path | None = None
    threshold: int = 1


def import_fairseq(
    checkpoint: Path,
    dictionaries: tuple[Path, Path],
    out: Path,
    languages: tuple[str | None, str | None],
    tokenize: TokenizeParams,
    segmentation: Segmentation,
    search: Mapping[str, Any],
) -> str:
    """Write a model folder; return a one-line summary.

    Args:
        checkpoint: file from any version of fairseq.
        dictionaries: of source and target, in fairseq's format.
        out: folder to write, which must not exist.
        languages: of source and target; None takes the checkpoint's, or that of a file `dict.LANGUAGE.txt`.
        search: values that the model folder's section `translate` has instead of those in `SEARCH`.

    Raises:
        OSError: if a file cannot be read, or `out` exists.
        ValueError: if a file or a value is invalid, or the files do not fit each other.
    """
    if out.exists():
        raise FileExistsError(f"{out} already exists; expected a new folder. Delete it, or name another.")
    translate = validate(TranslateParams, {**SEARCH.model_dump(), **search}, "the search is impossible")
    read = read_checkpoint(checkpoint)
    source, target = (
        find_language(read, side, language, dictionary, tokenize)
        for side, language, dictionary in zip(SIDES, languages, dictionaries, strict=True)
    )
    entries = [read_fairseq_dictionary(path) for path in dictionaries]
    description = describe_model(read, (len(entries[0]) + len(SPECIALS), len(entries[1]) + len(SPECIALS)))
    model = build_model(read, description)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
        parts = Path(temporary)
        save_model(parts / "model", model, description.params)
        write_segmentation(parts / "vocabulary", entries, segmentation)
        write_dictionary(parts / "dictionary.tsv", [])
        settings = Settings((source, target), tokenize, translate, replace=False)
        card = write_import_card(read, parts / "model", settings, segmentation.kind)
        write_package(
            out,
            model=parts / "model",
            vocabulary=parts / "vocabulary",
            dictionary=parts / "dictionary.tsv",
            candidates=None,
            settings=settings,
            card=card,
        )
    params, norm = description.params, "of 2017 (converted)" if description.old_norm else "per channel"
    return (
        f"{len(params.encoder_widths)} + {len(params.decoder_widths)} blocks, "
        f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters, "
        f"{description.sizes[0]:,} source and {description.sizes[1]:,} target entries, weight norm {norm}; "
        f"text is segmented by: {segmentation.kind}"
    )


def write_import_card(checkpoint: Checkpoint, model: Path, settings: Settings, segmentation: str) -> str:
    """Return the model card, with what docs/fairseq.md says is kept of fairseq's conventions."""
    tokenize, translate = settings.tokenize.model_dump(), settings.translate.model_dump()
    rows = {
        "fairseq's architecture": str(checkpoint.arguments.get("arch")),
        **model_card.describe_model(model, segmentation),
        "dropout in training": str(checkpoint.arguments.get("dropout")),
        "words": ", ".join(f"{key}: {value}" for key, value in tokenize.items() if value),
        "search": ", ".join(f"{key}: {value}" for key, value in translate.items()),
    }
    table = model_card.write_table("", ("", ""), list(rows.items()))
    title = f"{checkpoint.path.name}, imported from fairseq"
    return model_card.write_card(title, settings.languages, "unknown", [table])


def describe_model(checkpoint: Checkpoint, sizes: tuple[int, int]) -> Fconv:
    """Return the facts that determine the model's tensors; arguments and errors as `read_architecture`.

    The sizes are those of the source and the target dictionary, fairseq's four special symbols included.
    """
    params, old_norm = read_architecture(checkpoint), has_old_norm(checkpoint.tensors)
    tied = bool(checkpoint.arguments.get("share_input_output_embed", False))
    return Fconv(params, sizes, old_norm, tied, position_rows(checkpoint))


def build_model(checkpoint: Checkpoint, description: Fconv) -> Seq2Seq:
    """Return our model with the checkpoint's weights, weight norm folded in, for translation."""
    differences = compare_shapes(checkpoint.tensors, description)
    if differences:
        sizes = " and ".join(f"{size:,}" for size in description.sizes)
        only_entries = all("embed_tokens" in line or "decoder.fc3" in line for line in differences)
        raise ValueError(
            f"{checkpoint.path}: {inflect(len(differences), 'tensor')} of another name or shape, first "
            f"{differences[0]}. Expected "
            + (f"the dictionaries that it was trained with, source first; these have {sizes} entries (4 "
               "special ones included)." if only_entries else "a plain fconv model with the arguments that "
               "it was trained with.")
        )  # fmt: skip
    model = build_unfilled(description.params, *description.sizes, padding_id=PAD)
    model.load_state_dict(convert_weights(checkpoint.tensors, description), assign=True)
    return model.eval().requires_grad_(False)


def write_segmentation(
    folder: Path, entries: Sequence[list[tuple[str, int]]], segmentation: Segmentation
) -> None:
    """Write vocabularies, segmentation.json, and a copy of the codes or the model."""
    folder.mkdir()
    for side, counts in zip(SIDES, entries, strict=True):
        write_vocabulary(folder / f"{side}.tsv", counts)
    if segmentation.kind == "subword-nmt" and segmentation.path is not None:
        read_codes(segmentation.path)
        shutil.copyfile(segmentation.path, folder / CODES)
    if segmentation.kind == "sentencepiece" and segmentation.path is not None:
        read_model(segmentation.path, Bpe)
        wide = [piece for piece, _ in entries[0] + entries[1] if WORD_MARK in piece[1:-1]]
        if wide:
            raise ValueError(
                f"{segmentation.path} has the piece {wide[0]!r}, which spans several words; expected pieces "
                "of single words, because text is segmented word by word. It cannot be imported."
            )
        shutil.copyfile(segmentation.path, folder / IMPORTED_MODEL)
    if segmentation.vocabulary is not None:
        write_lines(folder / ALLOWED, read_pieces(segmentation.vocabulary, segmentation.threshold))
    write_json(folder / "segmentation.json", {"kind": segmentation.kind, "origin": "fairseq"})


def find_language(
    checkpoint: Checkpoint, side: str, option: str | None, dictionary: Path, tokenize: TokenizeParams
) -> str:
    """Return the language of a side: that of the option, the checkpoint or the dictionary's name."""
    in_name = re.fullmatch(r"dict\.(\w+)\.txt", dictionary.name)
    language = option or checkpoint.arguments.get(f"{side}_lang") or (in_name[1] if in_name else None)
    if not language and tokenize.tokenizer != "none":
        raise ValueError(
            f"{checkpoint.path} does not name its {side} language, which the tokenizer needs. Give "
            f"--{side}-language, for example en."
        )
    return str(language or UNDETERMINED)

"""The model card of an imported model: where it comes from, and which fairseq behavior it keeps."""

from convs2s.config.tokenize import TokenizeParams
from convs2s.config.translate import TranslateParams
from convs2s.exchange.fairseq_checkpoint import Checkpoint
from convs2s.exchange.fairseq_weights import Fconv
from convs2s.package.folder import Settings
from convs2s.package.front_matter import front_matter
from convs2s.package.model_card import USE, described
from convs2s.text.counted import counted


def import_card(checkpoint: Checkpoint, model: Fconv, settings: Settings, segmentation: str) -> str:
    """Return the card as Markdown; it depends only on the arguments."""
    languages, translate = settings.languages, settings.translate
    params, arguments = model.params, checkpoint.arguments
    layers, attending = len(params.attention), sum(params.attention)
    norm = "one g per kernel position in the decoder (2017)" if model.old_norm else "one g per channel"
    source, target = map(described, languages)
    title = f"{checkpoint.path.name}, imported from fairseq"
    return "\n".join([
        front_matter(title, languages, "unknown", {}, ""),
        f"# {title}",
        "",
        f"A convolutional sequence to sequence model (Gehring et al., 2017), from {source} to {target}.",
        "",
        "| | |",
        "|---|---|",
        f"| fairseq's architecture | {arguments.get('arch')} |",
        f"| layers | {len(params.encoder_widths)} encoder, {layers} decoder |",
        f"| words | {words(settings.tokenize)} |",
        f"| vocabulary | {segmentation}; {model.sizes[0]:,} source and {model.sizes[1]:,} target entries |",
        f"| dropout in training | {arguments.get('dropout')} |",
        f"| weight norm (T17) | {norm}; folded into the weights here |",
        "| sqrt(0.5) on d, z + e and c + h (T4) | `extra_scaling: true` in model.json |",
        "| gradients of the encoder and its embeddings times 1/(2A) (T6) | `encoder_grad_scale: fairseq` |",
        f"| attention (T7) | mean of {counted(attending, 'attending layer')}; fairseq's mean is over "
        f"all {layers}: this times {attending}/{layers} |",
        f"| positions (T18) | sentences up to {params.max_positions - 1} tokens, EOS included |",
        "| start symbol (T20) | the last entry of each vocabulary; never generated |",
        "| EOS (T21) | only within the beam: `legacy_eos: false` in translate.json |",
        f"| longest translation | {translate.max_length_ratio:g} S + {translate.max_length_extra:g} tokens "
        f"for S source tokens, not counting EOS{longest_of(translate)} |",
        "",
        *USE,
    ])  # fmt: skip


def longest_of(translate: TranslateParams) -> str:
    """Return a note on which sentence's tokens S counts, unless it is the sentence's own."""
    return "" if translate.max_length_of == "sentence" else ", of the longest sentence in the batch"


def words(tokenize: TokenizeParams) -> str:
    """Return how text is split into words."""
    done = ["whitespace-separated"]
    if tokenize.tokenizer == "moses":
        names = ("normalize_punctuation", "remove_nonprinting", "aggressive_hyphens", "escape")
        done = ["Moses", *(name.replace("_", " ") for name in names if getattr(tokenize, name))]
    if tokenize.at_sign != "@":
        done.append(f"`{tokenize.at_sign}` for @ (T30)")
    return ", ".join(done + ["lowercase"] * tokenize.lowercase)

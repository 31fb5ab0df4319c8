"""The model card of an imported model: where it comes from, and which fairseq behavior it keeps."""

from convs2s.base.messages import inflect
from convs2s.config.tokenize import TokenizeParams
from convs2s.exchange.fairseq_files import Checkpoint
from convs2s.exchange.fairseq_weights import Fconv
from convs2s.package.folder import Settings
from convs2s.package.model_card import USE, describe_language, front_matter


def import_card(checkpoint: Checkpoint, model: Fconv, settings: Settings, segmentation: str) -> str:
    """Return the card as Markdown; it depends only on the arguments."""
    languages, translate = settings.languages, settings.translate
    params, arguments = model.params, checkpoint.arguments
    layers, attending = len(params.attention), sum(params.attention)
    norm = "one g per kernel position in the decoder (2017)" if model.old_norm else "one g per channel"
    longest = "" if translate.max_length_of == "sentence" else ", of the longest sentence in the batch"
    source, target = map(describe_language, languages)
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
        f"| words | {describe_words(settings.tokenize)} |",
        f"| vocabulary | {segmentation}; {model.sizes[0]:,} source and {model.sizes[1]:,} target entries |",
        f"| dropout in training | {arguments.get('dropout')} |",
        f"| weight norm (T17) | {norm}; folded into the weights here |",
        "| sqrt(0.5) on d, z + e and c + h (T4) | `extra_scaling: true` in model.json |",
        "| gradients of the encoder and its embeddings times 1/(2A) (T6) | `encoder_grad_scale: fairseq` |",
        f"| attention (T7) | mean of {inflect(attending, 'attending layer')}; fairseq's mean is over "
        f"all {layers}: this times {attending}/{layers} |",
        f"| positions (T18) | sentences up to {params.max_positions - 1} tokens, EOS included |",
        "| start symbol (T20) | the last entry of each vocabulary; never generated |",
        "| EOS (T21) | only within the beam: `legacy_eos: false` in translate.json |",
        f"| longest translation | {translate.max_length_ratio:g} S + {translate.max_length_extra:g} tokens "
        f"for S source tokens, not counting EOS{longest} |",
        "",
        USE,
    ])  # fmt: skip


def describe_words(tokenize: TokenizeParams) -> str:
    """Return how text is split into words."""
    steps = ["whitespace-separated"]
    if tokenize.tokenizer == "moses":
        names = ("normalize_punctuation", "remove_nonprinting", "aggressive_hyphens", "escape")
        steps = ["Moses", *(name.replace("_", " ") for name in names if getattr(tokenize, name))]
    if tokenize.at_sign != "@":
        steps.append(f"`{tokenize.at_sign}` for @ (T30)")
    return ", ".join(steps + ["lowercase"] * tokenize.lowercase)

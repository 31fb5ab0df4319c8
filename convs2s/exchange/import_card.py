"""The model card of an imported model: where it comes from, and which fairseq behavior it keeps."""

from convs2s.base.messages import inflect
from convs2s.config.tokenize import TokenizeParams
from convs2s.exchange.fairseq_files import Checkpoint
from convs2s.exchange.fairseq_weights import Fconv
from convs2s.package.folder import Settings
from convs2s.package.model_card import write_card, write_table


def import_card(checkpoint: Checkpoint, model: Fconv, settings: Settings, segmentation: str) -> str:
    """Return the card as Markdown; it depends only on the arguments."""
    params, arguments, translate = model.params, checkpoint.arguments, settings.translate
    layers, attending = len(params.attention), sum(params.attention)
    norm = "one g per kernel position in the decoder (2017)" if model.old_norm else "one g per channel"
    longest = "" if translate.max_length_of == "sentence" else ", of the longest sentence in the batch"
    rows = {
        "fairseq's architecture": str(arguments.get("arch")),
        "layers": f"{len(params.encoder_widths)} encoder, {layers} decoder",
        "words": describe_words(settings.tokenize),
        "vocabulary": f"{segmentation}; {model.sizes[0]:,} source and {model.sizes[1]:,} target entries",
        "dropout in training": str(arguments.get("dropout")),
        "weight norm (T17)": f"{norm}; folded into the weights here",
        "sqrt(0.5) on d, z + e and c + h (T4)": "`extra_scaling: true` in model.json",
        "gradients of the encoder and its embeddings times 1/(2A) (T6)": "`encoder_grad_scale: fairseq`",
        "attention (T7)": f"mean of {inflect(attending, 'attending layer')}; fairseq's mean is over "
        f"all {layers}: this times {attending}/{layers}",
        "positions (T18)": f"sentences up to {params.max_positions - 1} tokens, EOS included",
        "start symbol (T20)": "the last entry of each vocabulary; never generated",
        "EOS (T21)": "only within the beam: `legacy_eos: false` in translate.json",
        "longest translation": f"{translate.max_length_ratio:g} S + {translate.max_length_extra:g} tokens "
        f"for S source tokens, not counting EOS{longest}",
    }
    title = f"{checkpoint.path.name}, imported from fairseq"
    return write_card(title, settings.languages, "unknown", [write_table("", ("", ""), list(rows.items()))])


def describe_words(tokenize: TokenizeParams) -> str:
    """Return how text is split into words."""
    steps = ["whitespace-separated"]
    if tokenize.tokenizer == "moses":
        names = ("normalize_punctuation", "remove_nonprinting", "aggressive_hyphens", "escape")
        steps = ["Moses", *(name.replace("_", " ") for name in names if getattr(tokenize, name))]
    if tokenize.at_sign != "@":
        steps.append(f"`{tokenize.at_sign}` for @ (T30)")
    return ", ".join(steps + ["lowercase"] * tokenize.lowercase)

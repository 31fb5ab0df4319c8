"""Edits of the model as people make them, and what each must change."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

GLU_BLOCK = "convs2s/model/glu_block.py"
ATTENTION = "convs2s/model/multistep_attention.py"
ENCODER = "convs2s/model/encoder.py"
DECODER = "convs2s/model/decoder.py"
EMBEDDING = "convs2s/model/embedding.py"
SEQ2SEQ = "convs2s/model/seq2seq.py"

TRAINING = {"training"}
DECODING = {"translate", "score", "serve", "attention"}
ALL = TRAINING | DECODING
GLU = "return F.glu(self.window_map(x), dim=-1)"


@dataclass(frozen=True)
class Edit:
    """An edit of one file.

    Attributes:
        replacements: texts that occur once in the file, and what replaces each.
        alters: the routes whose results differ from those before the edit; all others' are equal.
        left_out: the fast paths that compute something else, so that they are left out with a warning.
        adds_weights: whether model folders from before the edit lack weights.
        train: changes to the section train.
        error: what decoding says, if the edited model cannot decode.
    """

    name: str
    file: str
    replacements: tuple[tuple[str, str], ...]
    alters: set[str]
    left_out: set[str] = field(default_factory=set)
    adds_weights: bool = False
    train: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


EDITS = [
    Edit(
        "attention is scaled by m, not sqrt(m)", ATTENTION,
        (("memory.lengths.sqrt()[:", "memory.lengths.float()[:"),),
        ALL, {"decoder"},
    ),
    Edit(
        "attention scores are divided by sqrt(E)", ATTENTION,
        (("d @ memory.keys.transpose(1, 2)", "d @ memory.keys.transpose(1, 2) / math.sqrt(d.shape[-1])"),),
        ALL, {"decoder"},
    ),
    Edit(
        "attention also sees padding", ATTENTION,
        (("    if memory.padding is not None:\n"
          "        scores = scores.masked_fill(memory.padding[:, None, :], -math.inf)\n", ""),),
        ALL, {"decoder"},
    ),
    Edit(
        "d is without g", ATTENTION,
        (("(self.summary_map(h) + g) * self.scale", "self.summary_map(h) * self.scale"),),
        ALL, {"decoder"},
    ),
    Edit(
        "attention's sums are not scaled (the engine reads the scale)", ATTENTION,
        (("self.scale = SQRT_HALF if extra_scaling else 1.0", "self.scale = 1.0"),),
        ALL,
    ),
    Edit(
        "values are z, not z + e", ENCODER,
        (("return z, (z + e) * self.scale", "return z, z"),),
        ALL, {"decoder"},
    ),
    Edit(
        "z + e is not scaled (the engine reads the scale)", ENCODER,
        (("self.scale = SQRT_HALF if params.extra_scaling else 1.0", "self.scale = 1.0"),),
        ALL,
    ),
    Edit(
        "m counts padding", SEQ2SEQ,
        (("lengths = (~padded).sum(dim=1)", "lengths = torch.full_like(source[:, 0], source.shape[1])"),),
        ALL, {"decoder"},
    ),
    Edit(
        "gate is tanh", GLU_BLOCK,
        ((GLU, "values, gates = self.window_map(x).chunk(2, dim=-1)\n"
               "        return values * torch.tanh(gates)"),),
        ALL, {"decoder", "convolution"},
    ),
    Edit(
        "values and gates are exchanged", GLU_BLOCK,
        ((GLU, "gates, values = self.window_map(x).chunk(2, dim=-1)\n"
               "        return values * torch.sigmoid(gates)"),),
        ALL, {"decoder", "convolution"},
    ),
    Edit(
        "gated linear unit is written out (the same)", GLU_BLOCK,
        ((GLU, "values, gates = self.window_map(x).chunk(2, dim=-1)\n"
               "        return values * torch.sigmoid(gates)"),),
        set(),
    ),
    Edit(
        "GELU after the convolution", GLU_BLOCK,
        ((GLU, "return F.gelu(F.glu(self.window_map(x), dim=-1))"),),
        ALL, {"decoder", "convolution"},
    ),
    Edit(
        "kernel is turned around", GLU_BLOCK,
        (("padded.flatten(1)", "padded.flip(1).flatten(1)"),
         ("range(self.kernel_width)]", "reversed(range(self.kernel_width))]")),
        ALL, {"decoder", "convolution"},
    ),
    Edit(
        "kernel is turned around, but not step by step", GLU_BLOCK,
        (("range(self.kernel_width)]", "reversed(range(self.kernel_width))]"),),
        ALL, {"decoder", "convolution"}, error="the same position by position as in one pass",
    ),
    Edit(
        "padding counts in the encoder's blocks", GLU_BLOCK,
        (("real = x if padding is None else x.masked_fill(padding[:, :, None], 0.0)", "real = x"),),
        ALL, {"decoder"},
    ),
    Edit(
        "z is not zero at padding (attention does not see it)", ENCODER,
        (("        if padding is not None:\n            z = z.masked_fill(padding[:, :, None], 0.0)\n", ""),),
        set(),
    ),
    Edit(
        "residual sum is not scaled", GLU_BLOCK,
        (("return (output + block_input) * SQRT_HALF", "return output + block_input"),),
        ALL, {"decoder"},
    ),
    Edit(
        "residual connection only where widths are equal", GLU_BLOCK,
        (("            block_input = self.map(block_input)\n", "            return output\n"),),
        ALL, error="to read all weights, found decoder.blocks.",
    ),
    Edit(
        "decoder's convolutions see only earlier positions", DECODER,
        (("self.convolution(x, self.convolution.kernel_width - 1, 0)",
          "self.convolution(F.pad(x[:, :-1], (0, 0, self.convolution.kernel_width, 0)), 0, 0)"),
         ("self.convolution(seen, 0, 0)", "self.convolution(seen[:, :-1], 0, 0)"),
         ("weight.new_zeros(rows, block.convolution.kernel_width - 1,",
          "weight.new_zeros(rows, block.convolution.kernel_width,"),
         ("import torch\n", "import torch\nimport torch.nn.functional as F\n")),
        ALL, {"decoder", "convolution"},
    ),
    Edit(
        "learned gain in the encoder's blocks, 1 at first", GLU_BLOCK,
        (("    def forward(\n        self, x: Float[Tensor, \"B S C\"], padding",
          "        self.gain = nn.Parameter(torch.ones(()))\n\n"
          "    def forward(\n        self, x: Float[Tensor, \"B S C\"], padding"),
         ("return self.residual(x, self.convolution(real, side, side))",
          "return self.residual(x, self.convolution(real, side, side)) * self.gain")),
        TRAINING, {"decoder"}, adds_weights=True,
    ),
    Edit(
        "learned gain in the residual connection, 0.5 at first", GLU_BLOCK,
        (("        self.map = linear(inputs, outputs)",
          "        self.gain = nn.Parameter(torch.tensor(0.5))\n        self.map = linear(inputs, outputs)"),
         ("return (output + block_input) * SQRT_HALF",
          "return (self.gain * output + block_input) * SQRT_HALF")),
        ALL, {"decoder"}, adds_weights=True,
    ),
    Edit(
        "layer norm in the encoder's blocks", GLU_BLOCK,
        (("    def forward(\n        self, x: Float[Tensor, \"B S C\"], padding",
          "        self.norm = nn.LayerNorm(outputs)\n\n"
          "    def forward(\n        self, x: Float[Tensor, \"B S C\"], padding"),
         ("return self.residual(x, self.convolution(real, side, side))",
          "return self.norm(self.residual(x, self.convolution(real, side, side)))")),
        ALL, {"decoder"}, adds_weights=True,
    ),
    Edit(
        "layer norm in the decoder's blocks", DECODER,
        (("        self.residual = Residual(inputs, outputs)\n",
          "        self.residual = Residual(inputs, outputs)\n        self.norm = nn.LayerNorm(outputs)\n"),
         ("return self.residual(x, h), weights", "return self.norm(self.residual(x, h)), weights")),
        ALL, {"decoder"}, adds_weights=True,
    ),
    Edit(
        "batch norm before the softmax layer, the identity at first", SEQ2SEQ,
        (("        self.dropout = nn.Dropout(dropout)\n",
          "        self.dropout = nn.Dropout(dropout)\n"
          "        self.norm = nn.BatchNorm1d(params.output_embedding_size)\n"),
         ("return self.dropout(x), attention",
          "return self.dropout(self.norm(x.transpose(1, 2)).transpose(1, 2)), attention")),
        TRAINING, {"decoder"}, adds_weights=True,
    ),
    Edit(
        "positions begin one row later", EMBEDDING,
        (("first = before + 1 ", "first = before + 2 "), ("max_positions - 1 if", "max_positions - 2 if")),
        ALL, {"decoder"},
    ),
    Edit(
        "EOS has no position", EMBEDDING,
        (("        embedded: Tensor = self.words(tokens)\n",
          "        embedded: Tensor = self.words(tokens)\n"
          "        ends = tokens == EOS\n        padding = ends if padding is None else padding | ends\n"),
         ("from convs2s.model.initialization",
          "from convs2s.ids.vocabulary import EOS\nfrom convs2s.model.initialization")),
        ALL, {"decoder"},
    ),
    Edit(
        "words are scaled by sqrt(f)", EMBEDDING,
        (("embedded: Tensor = self.words(tokens)",
          "embedded: Tensor = self.words(tokens) * self.words.embedding_dim**0.5"),),
        ALL, {"decoder"},
    ),
    Edit(
        "tanh before the softmax layer", SEQ2SEQ,
        (("return self.dropout(x), attention", "return self.dropout(torch.tanh(x)), attention"),),
        ALL, {"decoder"},
    ),
    Edit(
        "softmax layer has a temperature", SEQ2SEQ,
        (("weight: Tensor = self.output_layer.weight", "weight: Tensor = self.output_layer.weight / 2"),),
        ALL, {"decoder"},
    ),
    Edit(
        "words are replaced by the top layer's attention", SEQ2SEQ,
        (("return torch.stack(list(layers)).mean(dim=0)", "return layers[-1]"),),
        {"translate", "serve", "attention"}, {"decoder"},
    ),
    Edit(
        "encoder's gradient is not scaled (training only)", ENCODER,
        (("self.gradient_scale = 1.0 / (2 * sum(params.attention))", "self.gradient_scale = 1.0"),),
        TRAINING,
    ),
    Edit(
        "no weight norm (training only)", "convs2s/model/initialization.py",
        (("    weight_norm(layer, dim=0)\n", ""),),
        TRAINING,
    ),
    Edit(
        "tables are always tied (training only)", "convs2s/train/setup.py",
        (("plain_output = params.selection is not None or params.tied_embeddings", "plain_output = True"),
         ("    if params.tied_embeddings:\n", "    if True:\n")),
        TRAINING,
    ),
    Edit(
        "z-loss (training only)", "convs2s/train/loss.py",
        (("    if not smoothing:\n",
          "    total = total + 1e-2 * logits.logsumexp(dim=1).square().sum()\n    if not smoothing:\n"),),
        TRAINING, {"loss"},
    ),
    Edit(
        "dropout on z as well (training only)", ENCODER,
        (("        self.output_map = linear(widths[-1], size)\n",
          "        self.output_map = linear(widths[-1], size)\n        self.dropout = nn.Dropout(dropout)\n"),
         ("z = self.output_map(x)", "z = self.dropout(self.output_map(x))")),
        TRAINING, train={"dropout": 0.3},
    ),
    Edit(
        "dropout after the gated linear unit (training only)", GLU_BLOCK,
        (("        x = F.dropout(x, self.dropout, self.training)\n", ""),
         (GLU, "return F.dropout(F.glu(self.window_map(x), dim=-1), self.dropout, self.training)")),
        TRAINING, {"convolution"}, train={"dropout": 0.3},
    ),
]  # fmt: skip


class LocalEdit(NamedTuple):
    """An edit that acts in some places only; fields as those of `Edit`."""

    name: str
    file: str
    replacements: tuple[tuple[str, str], ...]


SCORES = "scores = d @ memory.keys.transpose(1, 2)  # (B, T, S)\n"
WEIGHTS = "weights = torch.softmax(scores, dim=-1, dtype=torch.float32)\n"
SCALE = "scale = memory.lengths.sqrt()[:, None, None]\n"
Z = "z = self.output_map(x)\n"
ROWS = "rows = torch.arange(first, first + tokens.shape[1], device=tokens.device)\n"
WORDS = "embedded: Tensor = self.words(tokens)\n"
INPUT = "x = self.input_map(g)\n"
STEP = INPUT + "        at = torch.arange(g.shape[1])[:, None] + (state.steps if state else 0)\n"
LOCAL_EDITS = [
    LocalEdit("scale of the mean: at most five tokens count", ATTENTION,
              ((SCALE, "scale = memory.lengths.clamp(max=5).sqrt()[:, None, None]\n"),)),
    LocalEdit("scale of the mean: at least three tokens count", ATTENTION,
              ((SCALE, "scale = memory.lengths.clamp(min=3).sqrt()[:, None, None]\n"),)),
    LocalEdit("only the five likeliest positions are attended to", ATTENTION,
              ((WEIGHTS, WEIGHTS
                + "    least = weights.topk(min(5, weights.shape[-1]), dim=-1).values[..., -1:]\n"
                + "    weights = weights.masked_fill(weights < least, 0.0)\n"),)),
    LocalEdit("attention to the 41st position and later ones is halved", ATTENTION,
              ((WEIGHTS, WEIGHTS
                + "    weights = torch.cat([weights[..., :40], 0.5 * weights[..., 40:]], dim=-1)\n"),)),
    LocalEdit("attention is sharper in a batch without padding", ATTENTION,
              ((SCORES, SCORES + "    if memory.padding is None:\n        scores = 1.1 * scores\n"),)),
    LocalEdit("keys are larger in a batch of different lengths", ENCODER,
              ((Z, Z + "        z = z if padding is None else 1.1 * z\n"),)),
    LocalEdit("EOS is not attended to in sources of more than eight tokens", ATTENTION,
              ((SCORES, SCORES + "    ends = memory.lengths[:, None, None] - 1\n"
                "    is_end = (torch.arange(scores.shape[-1]) == ends) & (ends >= 8)\n"
                "    scores = scores.masked_fill(is_end, -math.inf)\n"),)),
    LocalEdit("key of the first position is zero", ENCODER,
              ((Z, Z + "        z = torch.cat([0 * z[:, :1], z[:, 1:]], dim=1)\n"),)),
    LocalEdit("values are z from position 21 on", ENCODER,
              (("return z, (z + e) * self.scale",
                "return z, (z + torch.cat([e[:, :20], 0 * e[:, 20:]], dim=1)) * self.scale"),)),
    LocalEdit("keys of a batch's second sentence are larger", ENCODER,
              ((Z, Z + "        z = torch.cat([z[:1], 1.1 * z[1:2], z[2:]])\n"),)),
    LocalEdit("positions end at 100", EMBEDDING, ((ROWS, ROWS.replace("\n", ".clamp(max=100)\n")),)),
    LocalEdit("last position has the row before it", EMBEDDING,
              ((ROWS, ROWS.replace("\n", ".clamp(max=len(self.positions.weight) - 2)\n")),)),
    LocalEdit("unknown words have no vector", EMBEDDING,
              ((WORDS, WORDS.replace("\n", ".masked_fill((tokens == 2)[..., None], 0.0)\n")),)),
    LocalEdit("padding counts in the encoder's blocks in sources of more than nine tokens", GLU_BLOCK,
              (("x if padding is None else x.masked",
                "x if padding is None or x.shape[1] > 9 else x.masked"),)),
    LocalEdit("encoder's convolution is smaller at the last position", GLU_BLOCK,
              ((GLU, "y = F.glu(self.window_map(x), dim=-1)\n"
                "        return torch.cat([y[:, :-1], 0.9 * y[:, -1:]], dim=1) if right else y"),)),
    LocalEdit("residual sum is larger in sequences of more than 30", GLU_BLOCK,
              (("return (output + block_input) * SQRT_HALF",
                "return (output + block_input) * (SQRT_HALF if output.shape[1] <= 30 else 0.72)"),)),
    LocalEdit("seventh target token has half the vector", DECODER,
              ((INPUT, STEP + "        x = torch.where(at == 6, self.input_map(0.5 * g), x)\n"),)),
    LocalEdit("decoder's input is smaller from position 500 on", DECODER,
              ((INPUT, STEP + "        x = torch.where(at >= 500, 0.9 * x, x)\n"),)),
    LocalEdit("softmax layer has a temperature, but not with vocabulary selection", SEQ2SEQ,
              (("            return weight, bias\n", "            return weight / 2, bias / 2\n"),)),
    LocalEdit("<unk> is never written", SEQ2SEQ,
              (("        bias: Tensor = self.output_layer.bias\n",
                "        bias: Tensor = self.output_layer.bias.clone()\n        bias[2] = -1e4\n"),)),
    LocalEdit("words are replaced by the top layer's attention in long sources", SEQ2SEQ,
              (("return torch.stack(list(layers)).mean(dim=0)",
                "attended = list(layers if layers[-1].shape[2] < 40 else layers[-1:])\n"
                "    return torch.stack(attended).mean(dim=0)"),)),
    LocalEdit("softmax layer's input is smaller after EOS", SEQ2SEQ,
              (("return self.dropout(x), attention",
                "return self.dropout(x) * (1 - 0.1 * (target_input == 1)[..., None].float()), attention"),)),
]  # fmt: skip
"""Each is seen when a model is loaded, though most tokens, positions, sentences or batches are as before."""

"""A trained model, decoded token by token without recomputation (§5.3), over all or some tokens (§5.4)."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.model.decoder import DecoderState
from convs2s.model.multistep_attention import Memory
from convs2s.model.seq2seq import Seq2Seq, average_attention


class StepwiseModel:
    """A model in the form that beam search uses; it computes what training does, a position at a time.

    Args:
        seq2seq: in eval mode; its weights must not change afterwards.
        tokens: ids of the only target tokens to consider, for vocabulary selection (§5.4). Token i of this
            model is then tokens[i], and probabilities are normalized over these tokens. None: all tokens.
    """

    def __init__(self, seq2seq: Seq2Seq, tokens: Int[Tensor, "N"] | None = None) -> None:
        self.seq2seq = seq2seq
        self.tokens = tokens
        self.max_source_tokens = seq2seq.max_source_tokens
        self.max_target_tokens = seq2seq.max_target_tokens
        self.output_weights, self.output_biases = seq2seq.output_rows(tokens)

    def restrict(self, tokens: Int[Tensor, "N"]) -> "StepwiseModel":
        """Return the same model over only these target tokens; all other weights are shared."""
        return StepwiseModel(self.seq2seq, tokens)

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode source sentences, each ending in EOS, then padded."""
        return self.seq2seq.encode(source)

    def start(self, rows: int) -> DecoderState:
        """Return the state before the first step, for `rows` hypotheses in total."""
        return self.seq2seq.decoder.start(rows)

    def step(
        self, tokens: Int[Tensor, "R"], memory: Memory, state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R S"], DecoderState]:
        """Advance every hypothesis by one token.

        Args:
            tokens: the newest token of each hypothesis, EOS at the first step. R = B * H rows, H per sentence
                of `memory`, grouped by sentence, so that the source is stored once.

        Returns:
            Logits of the next token, attention averaged over layers, and the next state.
        """
        entries = tokens if self.tokens is None else self.tokens[tokens]
        features, attention, following = self.seq2seq.features(entries[:, None], memory, state)
        assert following is not None
        logits = F.linear(features[:, 0], self.output_weights, self.output_biases)
        return logits.float(), average_attention(attention)[:, 0], following

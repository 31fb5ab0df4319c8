"""Where the fast paths are chosen: layers of a model on the CPU compute in training as in this folder."""

from torch import nn
from torch.nn.utils import parametrize

from convs2s.model.glu_block import GluConvolution
from convs2s.model.seq2seq import Seq2Seq
from convs2s.train.fast.dropout import FastDropout
from convs2s.train.fast.glu_block import FastGluConvolution
from convs2s.train.fast.linear import FastLinear
from convs2s.train.fast.loss import FastSummedLoss
from convs2s.train.loss import SummedLoss


def summed_loss(model: Seq2Seq, smoothing: float) -> SummedLoss:
    """Return the loss to train with: on the CPU the fast one, else the plain one.

    Layers get a subclass of their class that differs in `forward` alone, and only in training mode. So the
    weights, their names and everything that reads them stay as they are.
    """
    if next(model.parameters()).device.type != "cpu":
        return SummedLoss(model, smoothing)
    for module in model.modules():
        if type(module) is GluConvolution:
            module.__class__ = FastGluConvolution
        elif type(module) is nn.Dropout:
            module.__class__ = FastDropout
        elif parametrize.is_parametrized(module) and not isinstance(module, FastLinear):
            # A parametrized layer has a class of its own, where its weight is computed.
            module.__class__ = type("FastLinear", (FastLinear, type(module)), {})
    return FastSummedLoss(model, smoothing)

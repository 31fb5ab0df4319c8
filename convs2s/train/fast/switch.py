"""Choose the fast paths: in training, a model's layers are replaced by those in this folder."""

from torch import nn
from torch.nn.utils import parametrize

from convs2s.model.embedding import Embedding
from convs2s.model.glu_block import GluConvolution
from convs2s.model.seq2seq import Seq2Seq
from convs2s.train.fast.dropout import FastDropout
from convs2s.train.fast.glu_block import FastGluConvolution
from convs2s.train.fast.gpu_layers import GpuEmbedding, GpuGluConvolution, GpuLinear
from convs2s.train.fast.linear import FastLinear
from convs2s.train.fast.loss import ENTRIES, FastSummedLoss, GpuSummedLoss
from convs2s.train.loss import SummedLoss


def summed_loss(model: Seq2Seq, smoothing: float) -> SummedLoss:
    """Return the loss to train with.

    Each layer's class is replaced by a subclass that differs only in `forward`, and only in training mode. So
    the weights, their names and all code that reads them are unaffected.
    """
    if next(model.parameters()).device.type != "cpu":
        few_operations(model)
        return GpuSummedLoss(model, smoothing)
    for module in model.modules():
        if type(module) is GluConvolution:
            module.__class__ = FastGluConvolution
        elif type(module) is nn.Dropout:
            module.__class__ = FastDropout
    become(model, FastLinear, multiple=1)
    if isinstance(model.output_layer, FastLinear):
        model.output_layer.multiple = ENTRIES
    return FastSummedLoss(model, smoothing)


def few_operations(model: Seq2Seq) -> None:
    """Switch a model's layers to those for GPUs, which give the same results on any device."""
    for module in model.modules():
        if type(module) is GluConvolution:
            module.__class__ = GpuGluConvolution
        elif type(module) is Embedding:
            module.__class__ = GpuEmbedding
    become(model, GpuLinear)


def become(model: nn.Module, base: type[nn.Linear], **attributes: object) -> None:
    """Make all weight-normalized maps of a model instances of `base` as well, with these attributes."""
    for module in model.modules():
        if parametrize.is_parametrized(module) and not isinstance(module, base):
            # A parametrized layer has its own class, which computes the weight.
            module.__class__ = type(base.__name__, (base, type(module)), {})
            for name, value in {"shared": None, **attributes}.items():
                setattr(module, name, value)

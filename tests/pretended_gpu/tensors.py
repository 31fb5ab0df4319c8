"""Tensors of a pretended GPU: they compute on the CPU, by the rules of a GPU.

All that is computed comes to `run`. Python code sees cuda:0. The memory is the CPU's, and so is the device
that PyTorch's C++ code sees: for another one, its autograd engine would need CUDA.
"""

# mypy: disable-error-code="assignment,override,no-untyped-call,arg-type"

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.operations import SILENT, WAITS
from tests.pretended_gpu.state import STATE, Allocation, Copy, current_stream, index_of

HOST = torch.device("cpu", 0)
"""Where a copy to the host goes. C++ code means the tensor's own device by `cpu`, without a number."""
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
NO_NUMBERS = {"embedding", "gather", "index_select", "scatter", "scatter_add", "cat", "stack"}
"""Operations that do not take a number on the CPU among tensors of a GPU."""
ALLOCATIONS: weakref.WeakValueDictionary[int, Allocation] = weakref.WeakValueDictionary()
PINNED: weakref.WeakValueDictionary[int, torch.UntypedStorage] = weakref.WeakValueDictionary()


class DeviceTensor(Tensor):
    """A tensor on a pretended GPU.

    Attributes:
        values: the same memory, as a tensor of the CPU.
    """

    values: Tensor
    index: int
    allocation: Allocation
    # Functions of PyTorch treat it as a plain tensor, above autograd.
    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)

    @property
    def is_cuda(self) -> bool:
        return True

    @property
    def is_cpu(self) -> bool:
        return False

    def get_device(self) -> int:
        return self.index

    def type_as(self, other: Tensor) -> Tensor:
        return self.to(other)

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        return torch.tensor(data, **{"dtype": self.dtype, "device": self.device, **options})

    def pin_memory(self, *_: Any) -> Tensor:
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")

    def __deepcopy__(self, _: Any) -> Tensor:
        return self.detach().clone().requires_grad_(self.requires_grad)

    def __repr__(self, **_: Any) -> str:
        return f"{self.values!r} on cuda:{self.index}"


PLAIN_TO = Tensor.to


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return a tensor on a device, as `Tensor.to`, whose C++ code asks CUDA for the number of a device."""
    if "other" in kwargs or (args and isinstance(args[0], Tensor)):
        other, *rest = (kwargs.pop("other"), *args) if "other" in kwargs else args
        args = other.device, other.dtype, *rest
    is_copy = kwargs.pop("copy", False)
    device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    options: dict[str, Any] = {"dtype": dtype or self.dtype, "non_blocking": non_blocking}
    if memory_format is not None:
        options["memory_format"] = memory_format
    if device is not None and device.type == "cuda":
        device = torch.device("cuda", index_of(device))
    if device in (None, self.device) or {device.type, self.device.type} == {"cpu"}:
        return PLAIN_TO(self, copy=is_copy, **options)
    options["device"] = HOST if device.type == "cpu" else device
    return torch.ops.aten._to_copy(self, **options)  # type: ignore[no-any-return]


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> Tensor:
    """Return a tensor on a GPU, as `Tensor.cuda`."""
    return self.to(torch.device("cuda", index_of(device)), non_blocking=non_blocking)


def cpu(self: Tensor, **_: Any) -> Tensor:
    """Return a tensor on the host, as `Tensor.cpu`."""
    return self.to("cpu")


def place(values: Tensor, index: int) -> DeviceTensor:
    """Return values, which are in memory of the CPU, as a tensor on a GPU."""
    tensor: Any = torch.Tensor._make_subclass(
        DeviceTensor, values, device_for_backend_keys=torch.device("cuda", index)
    )
    storage = values.untyped_storage()
    key = storage._cdata
    allocation = ALLOCATIONS.get(key)
    if allocation is None:
        ALLOCATIONS[key] = allocation = Allocation(index, storage.nbytes())
        if is_captured():
            STATE.capture.own[key] = allocation
    tensor.values, tensor.index, tensor.allocation = values, index, allocation
    return tensor  # type: ignore[no-any-return]


def is_captured() -> bool:
    """Return whether a graph records what this thread does."""
    return STATE.capture is not None and STATE.capture.thread == threading.get_ident()


def pin(values: Tensor) -> Tensor:
    """Mark memory as pinned."""
    storage = values.untyped_storage()
    PINNED[storage._cdata] = storage
    return values


def is_pinned(values: Tensor, device: Any = None) -> bool:
    """Return whether memory is pinned."""
    return not isinstance(values, DeviceTensor) and values.untyped_storage()._cdata in PINNED


def wait(cause: str) -> None:
    """Make the host wait for the current stream."""
    STATE.wait(cause)
    current_stream().record_event().finish()


class DeviceMode(TorchDispatchMode):
    """Brings operations to `run` that have no tensor of a GPU yet, like `torch.zeros(3, device="cuda")`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: OpOverload, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operation of any tensors."""
    tensors = [*list_tensors((args, *kwargs.values()))]
    ours = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    device = kwargs.get("device")
    to_gpu = device is not None and torch.device(device).type == "cuda"
    if not ours and not to_gpu and not is_building():
        pins = kwargs.get("pin_memory")
        result = func(*args, **(kwargs | {"pin_memory": False} if pins else kwargs))
        return pin(result) if pins else result
    check_process()
    if torch.is_inference_mode_enabled() and is_composite(func):
        with DeviceMode():
            return func.decompose(*args, **kwargs)
    name = func.overloadpacket.__name__
    if name == "_to_copy" and (to_gpu or device == HOST):
        return copy_to(func, args[0], device, kwargs)
    if name == "copy_" and args[0].device != args[1].device:
        return copy_into(args[0], args[1], args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    if ours and not to_gpu and device is not None and (name.endswith("_like") or kwargs.get("pin_memory")):
        return run(func, convert(unwrap, args), kwargs)
    check_devices(name, tensors, ours)
    if needs_size(name, args, kwargs):
        wait(name)
    return compute(func, args, kwargs, ours, ours[0].index if ours else index_of(device))


def compute(func: OpOverload, args: Any, kwargs: dict[str, Any], ours: list[DeviceTensor], index: int) -> Any:
    """Compute an operation on a GPU."""
    is_recorded = is_captured()
    if not is_recorded:
        check_streams(ours)
    options = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory")}
    plain_args = convert(unwrap, args)
    plain_options = {key: convert(unwrap, value) for key, value in options.items()}
    written = list_written(func, args, kwargs)
    if is_recorded:
        STATE.capture.keep([*list_tensors(written)])
    result = func(*plain_args, **plain_options)
    if is_recorded:
        STATE.capture.record(func, plain_args, plain_options, result, ours)
    is_normal = func.is_view and bool(ours) and not ours[0].is_inference()
    with torch.inference_mode(False) if is_normal else contextlib.nullcontext():
        wrapped = convert(lambda leaf: wrap(leaf, ours, index), result)
    if not func.is_view and func.overloadpacket.__name__ not in SILENT:
        STATE.counts.launches[func.overloadpacket.__name__] += 1
        if not is_recorded:
            written = [
                tensor for tensor in list_tensors([*written, wrapped]) if isinstance(tensor, DeviceTensor)
            ]
            mark_written(written)
    return wrapped


def needs_size(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether the host needs the result of an operation, or its size."""
    if name in INDEXING:
        masks = [tensor for tensor in list_tensors(args[1]) if tensor.dtype == torch.bool]
        is_fill = len(masks) == 1 and "index_put" in name and args[2].numel() == 1
        return bool(masks) and not is_fill
    return name in WAITS and kwargs.get("output_size") is None


def list_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from list_tensors(item)


def convert(change: Callable[[Any], Any], value: Any) -> Any:
    """Return arguments or results with each changed, also those in lists."""
    if isinstance(value, list | tuple):
        items = [convert(change, item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return change(value)


def unwrap(value: Any) -> Any:
    """Return a tensor's values on the CPU, and anything else as it is."""
    return value.values if isinstance(value, DeviceTensor) else value


def wrap(value: Any, ours: list[DeviceTensor], index: int) -> Any:
    """Return a result on the GPU: one of these tensors, if it was changed in place."""
    if not isinstance(value, Tensor):
        return value
    for tensor in ours:
        if tensor.values is value:
            if tensor.shape != value.shape:
                raise NotImplementedError("A pretended GPU cannot change the shape of a tensor in place.")
            return tensor
    return place(value, index)


def list_written(func: OpOverload, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments that an operation changes in place."""
    places = written_places(func)
    return [args[number] if number < len(args) else kwargs.get(name) for number, name in places]


@functools.cache
def written_places(func: OpOverload) -> list[tuple[int, str]]:
    """Return the numbers and names of the arguments that an operation changes in place."""
    arguments = enumerate(func._schema.arguments)
    return [(number, a.name) for number, a in arguments if a.alias_info is not None and a.alias_info.is_write]


@functools.cache
def is_composite(func: OpOverload) -> bool:
    """Return whether an operation consists of others; only in inference mode does it come here whole."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def check_devices(name: str, tensors: list[Tensor], ours: list[DeviceTensor]) -> None:
    """Raise an error for tensors on different devices; count an index that is copied from the CPU."""
    found = {str(tensor.device) for tensor in ours}
    for tensor in tensors:
        if isinstance(tensor, DeviceTensor) or (tensor.dim() == 0 and name not in NO_NUMBERS):
            continue
        if name in INDEXING and tensor.dtype in (torch.int64, torch.bool):
            count_copy(tensor, False)
        else:
            found.add("cpu")
    if len(found) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{' and '.join(sorted(found))}! (in {name})"
        )


def check_streams(ours: list[DeviceTensor]) -> None:
    """Raise an error if another stream may not have written yet what is read."""
    for tensor in ours:
        writer, clock, stream = (
            tensor.allocation.stream,
            tensor.allocation.clock,
            current_stream(tensor.index),
        )
        if stream is not writer and clock > max(STATE.done.get(writer, 0), stream.seen.get(writer, 0)):
            raise RuntimeError("a stream uses a tensor before another has written it: call wait_stream first")


def mark_written(tensors: list[DeviceTensor]) -> None:
    """Remember the stream that has written to these tensors, and that it has done one thing more."""
    for stream in {current_stream(tensor.index) for tensor in tensors}:
        stream.clock += 1
    for tensor in tensors:
        tensor.allocation.stream = stream = current_stream(tensor.index)
        tensor.allocation.clock = stream.clock


def check_process() -> None:
    """Raise an error in a process that was forked from one that uses a GPU."""
    STATE.owner = STATE.owner or os.getpid()
    if STATE.owner != os.getpid():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")


def is_building() -> bool:
    """Return whether DistributedDataParallel makes its buffers; C++ code does, as if for the CPU."""
    return getattr(STATE.thread, "is_building", False)


def count_copy(source: Tensor, non_blocking: bool) -> None:
    """Count a copy to a GPU; the host waits for one that is not from pinned memory."""
    STATE.check_capture("a copy to the device")
    STATE.counts.launches["copy to the device"] += 1
    pinned = is_pinned(source)
    STATE.counts.unpinned += not pinned
    if not (pinned and non_blocking):
        wait("a copy to the device" if pinned else "a copy to the device from memory that is not pinned")


def copy_to(func: OpOverload, source: Tensor, device: torch.device, options: dict[str, Any]) -> Tensor:
    """Return a copy on a GPU or the host."""
    non_blocking = options.get("non_blocking", False)
    options = {key: options[key] for key in ("dtype", "layout", "memory_format") if key in options}
    values = func(unwrap(source), **options)
    if device != HOST:
        if isinstance(source, DeviceTensor):
            check_streams([source])
        else:
            count_copy(source, non_blocking)
        tensor = place(values, index_of(device))
        mark_written([tensor])
        return tensor
    assert isinstance(source, DeviceTensor)
    copy_to_host(values, source, non_blocking)
    return pin(values) if non_blocking else values


def copy_into(target: Tensor, source: Tensor, non_blocking: bool) -> Tensor:
    """Copy between devices in place."""
    if isinstance(target, DeviceTensor):
        check_streams([tensor for tensor in (target, source) if isinstance(tensor, DeviceTensor)])
        if not isinstance(source, DeviceTensor) and source.dim():
            count_copy(source, non_blocking)
        target.values.copy_(unwrap(source))
        mark_written([target])
    else:
        assert isinstance(source, DeviceTensor)
        copy_to_host(target, source, non_blocking)
    return target


def copy_to_host(target: Tensor, source: DeviceTensor, non_blocking: bool) -> None:
    """Copy to the host, which waits for it now or later."""
    STATE.check_capture("a copy to the host")
    STATE.counts.launches["copy to the host"] += 1
    check_streams([source])
    stream = current_stream(source.index)
    if non_blocking:
        stream.clock += 1
        stream.copies.append(Copy(target, source.values, not stream.is_default))
    else:
        wait("a copy to the host")
        target.copy_(source.values)

"""Make PyTorch for a CPU believe that there are GPUs."""

# mypy: disable-error-code="assignment,misc,valid-type,no-untyped-call,method-assign"

import os
import threading
import types
from typing import Any

import torch
import torch.distributed as dist

from tests.pretended_gpu import state
from tests.pretended_gpu.autocast import pretend_autocast
from tests.pretended_gpu.graphs import HANDLES, Graph
from tests.pretended_gpu.state import GIB, STATE, Event, Stream, index_of
from tests.pretended_gpu.tensors import DeviceMode, DeviceTensor, cpu, cuda, is_pinned, pin, to

NAME, CAPABILITY = "a pretended GPU", (9, 0)


def pretend(gpus: int = 1, memory: int = 80 * GIB) -> None:
    """Change PyTorch in this process, for good; CUDA_VISIBLE_DEVICES still limits the GPUs.

    Args:
        memory: of each GPU, in bytes.
    """
    assert not torch.cuda.is_available(), "there is a real GPU"
    STATE.gpus, STATE.memory = gpus, memory
    properties = types.SimpleNamespace(
        name=NAME, total_memory=memory, multi_processor_count=132, major=CAPABILITY[0], minor=CAPABILITY[1]
    )
    for name, value in {
        "is_available": lambda: count_gpus() > 0,
        "device_count": count_gpus,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_, **__: True,
        "_lazy_init": lambda: None,
        "_is_in_bad_fork": lambda: False,
        "current_device": index_of,
        "set_device": set_device,
        "device": Device,
        "get_device_name": lambda _=None: NAME,
        "get_device_capability": lambda _=None: CAPABILITY,
        "get_device_properties": lambda _=None: properties,
        "Stream": Stream,
        "Event": Event,
        "stream": lambda stream: stream,
        "current_stream": state.current_stream,
        "default_stream": state.default_stream,
        "set_stream": state.set_stream,
        "synchronize": state.synchronize,
        "CUDAGraph": Graph,
        "graph_pool_handle": lambda: (0, next(HANDLES)),
        "is_current_stream_capturing": lambda: STATE.capture is not None,
        "set_sync_debug_mode": set_sync_debug_mode,
        "get_sync_debug_mode": lambda: ["default", "warn", "error"].index(STATE.sync_mode),
        "empty_cache": lambda: None,
        "mem_get_info": lambda device=None: (memory_left(device), STATE.memory),
        "memory_allocated": lambda device=None: STATE.used[index_of(device)],
        "memory_reserved": lambda device=None: STATE.used[index_of(device)],
        "max_memory_allocated": lambda device=None: STATE.peak[index_of(device)],
        "max_memory_reserved": lambda device=None: STATE.peak[index_of(device)],
        "reset_peak_memory_stats": reset_peak,
        "manual_seed": lambda _: None,  # random numbers are those of the CPU's generator
        "manual_seed_all": lambda _: None,
        "get_rng_state": lambda _="cuda": torch.get_rng_state(),
        "set_rng_state": lambda state, _="cuda": torch.set_rng_state(state),
        "default_generators": (torch.default_generator,) * gpus,
    }.items():
        setattr(torch.cuda, name, value)
    torch.cuda.graphs.CUDAGraph = Graph
    torch._C._host_emptyCache = lambda: None
    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu = to, cuda, cpu
    torch.Tensor.pin_memory = lambda self, *_: pin(self.clone())
    torch.Tensor.is_pinned = is_pinned
    torch.tensor, torch.as_tensor = from_host(torch.tensor), from_host(torch.as_tensor)
    # A parameter stays the same object when its module moves to a GPU.
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch._C._group_tensors_by_device_and_dtype = by_device(torch._C._group_tensors_by_device_and_dtype)
    pretend_autocast()
    pretend_nccl()
    begin_thread: Any = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def begin(self: threading.Thread) -> None:
        with DeviceMode():
            begin_thread(self)

    threading.Thread._bootstrap_inner = begin  # type: ignore[attr-defined]
    DeviceMode().__enter__()


def count_gpus() -> int:
    """Return the number of GPUs that this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return STATE.gpus if visible is None else min(STATE.gpus, len(list(filter(None, visible.split(",")))))


def set_device(device: Any) -> None:
    """Change this thread's current GPU."""
    index = index_of(device)
    if index >= count_gpus():
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}")
    STATE.thread.device = index


class Device:
    """`torch.cuda.device`: another GPU for a while."""

    def __init__(self, device: Any) -> None:
        self.index = index_of(device)

    def __enter__(self) -> None:
        self.before = index_of()
        set_device(self.index)

    def __exit__(self, *_: object) -> None:
        set_device(self.before)


def set_sync_debug_mode(mode: str | int) -> None:
    """Choose what happens when the host waits."""
    STATE.sync_mode = ["default", "warn", "error"][mode] if isinstance(mode, int) else mode


def memory_left(device: Any = None) -> int:
    """Return the bytes of a GPU that are free."""
    return STATE.memory - STATE.used[index_of(device)]


def reset_peak(device: Any = None) -> None:
    """Forget how much memory was used at most."""
    STATE.peak[index_of(device)] = STATE.used[index_of(device)]


def from_host(make: Any) -> Any:
    """Return `torch.tensor` or `torch.as_tensor` for any device; no mode sees what these two do."""

    def made(data: Any, *args: Any, device: Any = None, **options: Any) -> Any:
        if isinstance(data, DeviceTensor):
            return data.to(data.device if device is None else device, options.get("dtype"))
        if device is None or torch.device(device).type != "cuda":
            return make(data, *args, device=device, **options)
        needs_grad = options.pop("requires_grad", False)
        return make(data, *args, **options).to(device).requires_grad_(needs_grad)

    return made


def by_device(group: Any) -> Any:
    """Return the function that groups an optimizer's tensors, for the devices that Python code sees."""

    def grouped(lists: Any, with_indices: bool = False) -> Any:
        found = group(lists, with_indices)
        return {
            (next(tensor.device for tensor in rows[0] if tensor is not None), dtype): (rows, indices)
            for (_, dtype), (rows, indices) in found.items()
        }

    return grouped


def pretend_nccl() -> None:
    """Let processes with a GPU each exchange tensors through gloo."""
    init, reducer = dist.init_process_group, dist.Reducer

    def init_process_group(backend: Any = None, *args: Any, **options: Any) -> None:
        init("gloo" if backend == "nccl" else backend, *args, **options)

    class Reducer(reducer):
        """Its buffers are made on the device that C++ code sees, and must be on the GPU."""

        def __init__(self, parameters: Any, *args: Any, **options: Any) -> None:
            self.on_gpu = isinstance(parameters[0], DeviceTensor)
            with Building(self.on_gpu):
                super().__init__(parameters, *args, **options)

        def _rebuild_buckets(self) -> Any:
            with Building(self.on_gpu):
                return super()._rebuild_buckets()

    dist.init_process_group = init_process_group
    dist.Reducer = Reducer


class Building:
    """While it lasts, what is made for the CPU is made on the current GPU."""

    def __init__(self, on_gpu: bool) -> None:
        self.on_gpu = on_gpu

    def __enter__(self) -> None:
        STATE.thread.is_building = self.on_gpu

    def __exit__(self, *_: object) -> None:
        STATE.thread.is_building = False

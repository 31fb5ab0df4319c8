"""What the pretended GPUs remember: counts, memory, streams with their unfinished copies, and the capture."""

import threading
import warnings
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

GIB = 2**30


@dataclass
class Counts:
    """What happened since the last `reset`.

    Attributes:
        launches: operations that a GPU would have to start, by name; a graph that is replayed is one.
        waits: of the host for a GPU, by cause.
        unpinned: copies to a GPU from memory that is not pinned.
    """

    launches: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    unpinned: int = 0

    def reset(self) -> None:
        """Count from zero."""
        self.launches.clear()
        self.waits.clear()
        self.unpinned = 0


class Copy:
    """A copy to the host that has not been waited for; its target has wrong values until then.

    Attributes:
        value: what it copies. None for a copy on a side stream, which may read its source as late as another
            stream or the host waits for it; whoever overwrites the source before then has a race.
    """

    def __init__(self, target: Tensor, source: Tensor, is_side: bool) -> None:
        self.target, self.source = target, source
        self.value = None if is_side else source.clone()
        target.copy_(poison(source))

    def read(self) -> None:
        """Read the source, if this has not been done."""
        if self.value is None:
            self.value = self.source.clone()

    def finish(self) -> None:
        """Give the target its values."""
        self.read()
        assert self.value is not None
        self.target.copy_(self.value)


def poison(values: Tensor) -> Tensor:
    """Return values that differ from the given ones everywhere."""
    if values.dtype == torch.bool:
        return ~values
    if values.dtype.is_floating_point:
        return torch.full_like(values, float("nan"))
    return torch.full_like(values, torch.iinfo(values.dtype).max)


class Stream:
    """A queue of work, as `torch.cuda.Stream`. Work is done at once; what must be waited for is remembered.

    Attributes:
        clock: number of operations so far.
        seen: for other streams, the clock up to which this one has waited for them.
        copies: to the host, that nobody has waited for.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, is_default: bool = False) -> None:
        self.device = torch.device("cuda", index_of(device))
        self.priority = priority
        self.is_default = is_default
        self.clock = 0
        self.seen: dict[Stream, int] = {}
        self.copies: list[Copy] = []
        STREAMS.add(self)

    def synchronize(self) -> None:
        """Make the host wait."""
        STATE.wait("a stream is synchronized")
        self.record_event().finish()

    def query(self) -> bool:
        """Return whether all is done; the first answer is no, as it may be."""
        return self.record_event().query()

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Return an event that is over when the work so far is."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """Make the work that follows wait for an event."""
        if event.stream is not None:
            clocks = {**event.seen, event.stream: event.clock}
            self.seen |= {stream: max(clock, self.seen.get(stream, 0)) for stream, clock in clocks.items()}
            for copy in event.copies:
                copy.read()

    def wait_stream(self, stream: "Stream") -> None:
        """Make the work that follows wait for that of another stream so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> "Stream":
        self.before = current_stream()
        set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_stream(self.before)


class Event:
    """A point in the work of a stream, as `torch.cuda.Event`."""

    def __init__(self, *_: object, **__: object) -> None:
        self.stream: Stream | None = None
        self.clock = 0
        self.seen: dict[Stream, int] = {}
        self.copies: list[Copy] = []
        self.is_over = False

    def record(self, stream: Stream | None = None) -> None:
        """Mark the work given to the stream so far."""
        self.stream = stream or current_stream()
        self.clock, self.seen, self.copies = self.stream.clock, dict(self.stream.seen), [*self.stream.copies]
        self.is_over = False

    def wait(self, stream: Stream | None = None) -> None:
        """Make a stream wait."""
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Make the host wait. PyTorch does not call that an error in any mode."""
        STATE.wait("an event is synchronized", is_error=False)
        self.finish()

    def query(self) -> bool:
        """Return whether the work is done; the first answer is no, as it may be."""
        STATE.check_capture("an event is queried")
        was_asked, self.is_over = self.is_over, True
        if was_asked:
            self.finish()
        return was_asked

    def finish(self) -> None:
        """Finish the work up to the mark."""
        if self.stream is not None:
            for stream, clock in {**self.seen, self.stream: self.clock}.items():
                STATE.done[stream] = max(clock, STATE.done.get(stream, 0))
            for copy in self.copies:
                copy.finish()
            self.stream.copies = [copy for copy in self.stream.copies if copy not in self.copies]

    def elapsed_time(self, _: "Event") -> float:
        """Return milliseconds; they mean nothing."""
        return 1.0


class Allocation:
    """Memory of a GPU, alive as long as any tensor uses it.

    Attributes:
        stream, clock: those of the operation that last wrote to it.
    """

    def __init__(self, device: int, size: int) -> None:
        room = STATE.memory - STATE.used[device]
        if size > room:
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size / GIB:.2f} GiB. GPU {device} has a total "
                f"capacity of {STATE.memory / GIB:.2f} GiB of which {room / GIB:.2f} GiB is free."
            )
        self.stream, self.clock = current_stream(device), 0
        STATE.change(device, size)
        weakref.finalize(self, STATE.change, device, -size).atexit = False


@dataclass
class State:
    """Of all GPUs.

    Attributes:
        sync_mode: what a wait is: default, warn or error, as for `torch.cuda.set_sync_debug_mode`.
        capture: the graph that is being captured.
        done: for each stream, the clock up to which the host has waited for it.
        owner: the process that uses the GPUs; those that are forked from it must not.
    """

    gpus: int = 0
    memory: int = 80 * GIB
    counts: Counts = field(default_factory=Counts)
    sync_mode: str = "default"
    capture: Any = None
    used: Counter[int] = field(default_factory=Counter)
    peak: Counter[int] = field(default_factory=Counter)
    done: dict[Stream, int] = field(default_factory=dict)
    default_streams: dict[int, Stream] = field(default_factory=dict)
    owner: int | None = None
    thread: threading.local = field(default_factory=threading.local)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def change(self, device: int, size: int) -> None:
        """Count memory that is taken or, below 0, given back."""
        with self.lock:
            self.used[device] += size
            self.peak[device] = max(self.peak[device], self.used[device])

    def check_capture(self, cause: str) -> None:
        """Raise an error if a capture forbids what is done, in this thread or, if it is global, in any."""
        capture = self.capture
        if capture is not None and (capture.thread == threading.get_ident() or capture.mode == "global"):
            capture.is_broken = True
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({cause})")

    def wait(self, cause: str, is_error: bool = True) -> None:
        """Count a wait of the host."""
        self.counts.waits[cause] += 1
        self.check_capture(cause)
        if is_error and self.sync_mode != "default":
            message = f"called a synchronizing CUDA operation ({cause})"
            if self.sync_mode == "error":
                raise RuntimeError(message)
            warnings.warn(message, stacklevel=2)


STATE = State()
STREAMS: weakref.WeakSet[Stream] = weakref.WeakSet()


def index_of(device: Any = None) -> int:
    """Return a GPU's number, by default that of this thread's current one."""
    if isinstance(device, int):
        return device
    index = None if device is None else torch.device(device).index
    return getattr(STATE.thread, "device", 0) if index is None else index


def current_stream(device: Any = None) -> Stream:
    """Return the stream that this thread works on."""
    index = index_of(device)
    stream: Stream | None = getattr(STATE.thread, f"stream{index}", None)
    return stream or default_stream(index)


def default_stream(device: Any = None) -> Stream:
    """Return the stream that all threads begin with."""
    index = index_of(device)
    if index not in STATE.default_streams:
        STATE.default_streams[index] = Stream(index, is_default=True)
    return STATE.default_streams[index]


def set_stream(stream: Stream | None) -> None:
    """Change the stream that this thread works on."""
    if stream is not None:
        setattr(STATE.thread, f"stream{stream.device.index}", stream)


def synchronize(device: Any = None) -> None:
    """Make the host wait for all streams of a GPU."""
    STATE.wait("a device is synchronized")
    finish_all(index_of(device))


def finish_all(device: int) -> None:
    """Finish all work of a GPU."""
    for stream in [*STREAMS]:
        if stream.device.index == device:
            stream.record_event().finish()

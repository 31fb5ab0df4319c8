"""The classes and functions named in pickles, read from their instructions; nothing is executed."""

import pickletools
from dataclasses import dataclass
from typing import IO, Any

OTHER = object()  # any value but a string
MARK = object()


@dataclass(frozen=True)
class Survey:
    """The names in pickles.

    Attributes:
        names: module.name of classes and functions, in order, with repetitions.
        protocol: protocol 0 counts as 1, because the difference does not matter here; None if there is no
            pickle.
    """

    names: list[str]
    protocol: int | None


def survey(stream: IO[bytes], pickles: int) -> Survey:
    """Return the names in consecutive pickles, up to the first damage.

    Args:
        stream: at the start of the first pickle.
        pickles: most pickles to read.
    """
    names, protocols = list[str](), list[int]()
    for _ in range(pickles):
        walk = Walk()
        try:
            walk.follow(stream)
        except Exception:  # a non-pickle can fail in any way
            break
        finally:
            names += walk.names
            protocols += walk.protocols
    return Survey(names, max(protocols, default=None))


class Walk:
    """Steps through a pickle with a stack and a memo that keep only strings, because names consist of them.

    From protocol 4 on, a name is two strings on the stack, which may come from the memo.
    """

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.names: list[str] = []
        self.protocols: list[int] = []

    def follow(self, stream: IO[bytes]) -> None:
        """Walk to the end of the pickle."""
        for opcode, argument, _ in pickletools.genops(stream):
            self._step(opcode, argument)
        self.protocols = self.protocols or [1]  # only protocols 0 and 1 do not state their number

    def _step(self, opcode: pickletools.OpcodeInfo, argument: Any) -> None:
        match opcode.name:
            case "PROTO":
                self.protocols.append(argument)
            case "MARK":
                self.stack.append(MARK)
            case "DUP":
                self.stack.append(self.stack[-1])
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                self.stack.append(self.memo[argument])
            case name if name.endswith(("UNICODE", "UNICODE8", "STRING")):
                self.stack.append(argument)
            case _:
                self._other(opcode, argument)

    def _other(self, opcode: pickletools.OpcodeInfo, argument: Any) -> None:
        """Pop what the instruction pops, and push as many values as it pushes."""
        taken = len(opcode.stack_before)
        if pickletools.markobject in opcode.stack_before:
            while self.stack.pop() is not MARK:
                pass
            taken = opcode.stack_before.index(pickletools.markobject)
        if opcode.name in ("GLOBAL", "INST"):
            self.names.append(argument.replace(" ", "."))
        elif opcode.name == "STACK_GLOBAL" and all(isinstance(part, str) for part in self.stack[-2:]):
            self.names.append(".".join(map(str, self.stack[-2:])))
        for _ in range(taken):
            self.stack.pop()
        self.stack += [OTHER] * len(opcode.stack_after)

"""The classes and functions that pickles name, read off their instructions; nothing is executed."""

import pickletools
from dataclasses import dataclass
from typing import IO, Any

OTHER = object()  # any value but a string
MARK = object()


@dataclass(frozen=True)
class Survey:
    """What pickles name.

    Attributes:
        names: module.name of classes and functions, in order, as often as they are named.
        protocol: 1 also stands for 0, which differs in nothing that matters here; None if there is no pickle.
    """

    names: list[str]
    protocol: int | None


def survey(stream: IO[bytes], pickles: int) -> Survey:
    """Return what pickles name that stand one after the other, as far as they are undamaged.

    Args:
        stream: at the first of them.
        pickles: how many there are at most.
    """
    names, protocols = list[str](), list[int]()
    for _ in range(pickles):
        walk = Walk()
        try:
            walk.follow(stream)
        except Exception:  # what is no pickle can be wrong in any way
            break
        finally:
            names += walk.names
            protocols += walk.protocols
    return Survey(names, max(protocols, default=None))


class Walk:
    """Goes through a pickle with a stack and a memo that keep strings, of which names are made, only.

    From protocol 4 on, a name is two strings of the stack, which may come from the memo.
    """

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.names: list[str] = []
        self.protocols: list[int] = []

    def follow(self, stream: IO[bytes]) -> None:
        """Go to the pickle's end."""
        for opcode, argument, _ in pickletools.genops(stream):
            self._step(opcode, argument)
        self.protocols = self.protocols or [1]  # only these two do not tell their number

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
        """Take from the stack what the instruction takes, and put there as many values as it does."""
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

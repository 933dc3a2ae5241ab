"""One part of the check."""

import dataclasses
import typing


@dataclasses.dataclass
class Part:
    name: str
    check: typing.Callable  # takes a Context
    usual: float  # seconds; with less than that left it is not begun
    limit: float  # seconds; longer than that it does not take
    by_default: bool = True
    needs: str = ""

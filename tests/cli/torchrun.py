"""torchrun, also where PyTorch 1.13 meets Python 3.11 (Debian 12).

There Std.from_str("0") gives None, since iterating over a flag's members leaves out the one that is
zero, and torchrun can start nothing.
"""

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import Std

from_str = Std.from_str.__func__


def from_str_with_zero(cls, text):
    return cls.NONE if text == "0" else from_str(cls, text)


Std.from_str = classmethod(from_str_with_zero)
run.main()

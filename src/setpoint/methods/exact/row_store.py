"""A shelf: one float32 for each row of the data, by row number, in memory or on disk.

Row i of n lies with process i mod W, in slot i div W: 4 bytes a row over all W processes. A batch
may hold any rows, whoever keeps them:

    take   the numbers of all rows of the batch are gathered, each owner answers for its own, and
           one sum brings the answers to everyone
    put    one more sum brings the new values to everyone, and each owner writes its own

A row that a batch mentions twice is written once, as its last mention says, and only that one
*counts*: sums that follow the values by differences stay exact.

Values are kept as the bits of float32, in int32: no change of type narrows or widens them, and sums
over processes, where all but one add 0, bring back every bit, the sign of zero included.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.files import replacing
from setpoint._core.options import whole
from setpoint.programs import Exchange

CHUNK = 1 << 20  #: slots that are written at once where a file is made


class Visit(NamedTuple):
    """The rows of a batch, found on the shelf.

    ``values`` (n,) float32 and ``counts`` (n,) are of this process's rows: what was kept, and
    whether a row's change counts here (None: all do). Of the rows of all processes, some lie on
    this shelf, in ``slots``; each is to hold what the row at ``last`` says (None: itself). Among
    them this process's own rows are where ``mine`` says.
    """

    values: Tensor
    counts: Tensor | None
    slots: Tensor
    last: Tensor | None
    mine: Tensor | None = None


class Shelf(nn.Module):
    """A table of one float32 per row, shared out over processes.

    Parameters
    ----------
    rows : int
        n; rows are numbered 0…n-1.
    empty : float
        What a row holds that was never written.
    path : path, optional
        A file that holds the table, of 4 bytes a row and 4 more; each of several processes has one
        of its own beside it. It is part of a run and not of its state, which only knows how often
        it was written: a file and a state of different moments are refused. Without, the table is
        in memory, and part of the state.

    Attributes
    ----------
    bits : torch.Tensor
        The slots of this process, where they are in memory; none before the first visit. In the
        state of all processes together (``gathered``) there are n, in order of rows.
    visits : torch.Tensor
        How often it was written.
    """

    bits: Tensor
    visits: Tensor

    def __init__(self, rows: Any, empty: float, path: Any = None) -> None:
        super().__init__()
        if path is not None and not isinstance(path, str | os.PathLike):
            raise KindError(f"table={path!r}: the name of a file, or None for a table in memory")
        self.rows = whole("rows", rows, 1, floats=True, error=KindError)
        self.empty = float(empty)
        self.path = None if path is None else Path(path)
        self.world = 1
        self.rank = 0
        self._code = int(np.array(empty, np.float32).view(np.int32))
        self._mapped: Tensor | None = None  #: the file's slots, and the number of its last visit
        self._checked = False  #: whether a batch of row numbers on a device was looked at
        self.register_buffer("bits", torch.empty(0, dtype=torch.int32))
        self.register_buffer("visits", torch.zeros((), dtype=torch.long))

    @property
    def slots(self) -> int:
        """Rows that lie with this process."""
        return (self.rows - self.rank + self.world - 1) // self.world

    @property
    def nbytes(self) -> int:
        """Bytes that this process's part takes, in memory or on disk."""
        slots = self.bits if self._mapped is None else self._mapped
        return slots.numel() * slots.element_size()

    # --- a batch ---------------------------------------------------------------------------------

    def take(self, row: Tensor, exchange: Exchange | None = None, device: Any = None) -> Visit:
        """What the shelf holds of these rows (n,), on a device; it stays as it is.

        Raises
        ------
        DataError
            For rows that are not 0…n-1; on a device only the first batch is looked at.
        """
        self._check(row)
        row = row.to(row.device if device is None else device, torch.long, non_blocking=True)
        bits, device = self._opened(exchange), row.device
        if exchange is None:
            slots = row.to(bits.device)
            bits_at, last, counts = _found(bits, slots)
            counts = counts if counts is None else counts.to(device)
            return Visit(bits_at.view(torch.float32).to(device), counts, slots, last)
        world, rank = exchange.world, exchange.rank
        named = exchange.rows(row * world + rank)[0]  # who asks, beside the row
        everyone, whose = named // world, named % world
        own = (everyone % world == rank).nonzero()[:, 0]
        slots = (everyone[own] // world).to(bits.device)
        bits_at, last, counts = _found(bits, slots)
        answer = torch.zeros(len(named), 2, dtype=torch.int32, device=device)
        answer[own, 0] = bits_at.to(device)
        answer[own, 1] = 1 if counts is None else counts.to(answer)
        mine = whose == rank
        answers = exchange.summed(answer)[mine]
        last = own if last is None else own[last.to(device)]
        values = answers[:, 0].contiguous().view(torch.float32)
        return Visit(values, answers[:, 1] > 0, slots, last, mine)

    def put(self, visit: Visit, values: Tensor, exchange: Exchange | None = None) -> None:
        """Keep new values (n,), float32, of the rows of a visit."""
        new = values.contiguous().view(torch.int32)
        if exchange is not None and visit.mine is not None:
            everyone = new.new_zeros(len(visit.mine))
            everyone[visit.mine] = new
            new = exchange.summed(everyone)
        bits = self._opened(exchange)
        self.visits.add_(1)
        if self._mapped is not None:  # first: a run that dies here is told from one that did not
            self._mapped[-1] += 1
        new = new if visit.last is None else new[visit.last]  # mentions of one row write the same
        if bits.is_cpu:
            bits.numpy()[visit.slots.numpy()] = new.cpu().numpy()
        else:
            bits[visit.slots] = new

    def values(self, exchange: Exchange | None = None) -> Tensor:
        """(n,) what each row holds; every process must ask at once."""
        bits = self._opened(exchange)
        whole = bits.new_zeros(self.rows)
        whole[self.rank :: self.world] = bits
        return (whole if exchange is None else exchange.summed(whole)).view(torch.float32)

    def _check(self, row: Tensor) -> None:
        if not isinstance(row, Tensor) or row.is_floating_point() or row.dtype == torch.bool:
            kind = row.dtype if isinstance(row, Tensor) else type(row).__name__
            raise KindError(f"row must be a tensor of whole numbers; got {kind}")
        if row.is_cpu or not self._checked:
            low, high = (int(x) for x in torch.aminmax(row))
            if low < 0 or high >= self.rows:
                odd = low if low < 0 else high
                raise DataError(
                    f"row {odd} is none of the {self.rows} rows of the table: pass row=, the "
                    f"number of each row among all rows, 0…{self.rows - 1}"
                )
            self._checked = True

    # --- where it is kept ------------------------------------------------------------------------

    def _opened(self, exchange: Exchange | None) -> Tensor:
        """The slots of this process, made where there are none yet."""
        world, rank = (1, 0) if exchange is None else (exchange.world, exchange.rank)
        if (world, rank) != (self.world, self.rank):
            if self.world > 1 or self._mapped is not None:
                raise DataError(
                    f"the table is shared out over {self.world} processes, and this is process "
                    f"{rank} of {world}: make the loss anew and load the state of the run"
                )
            self.bits = self.bits[rank::world].clone()
            self.world = world
            self.rank = rank
        if self.path is not None:
            if self._mapped is None:
                self._mapped = self._open(self.path)
            return self._mapped[:-1]
        if not len(self.bits):
            self.bits = self.bits.new_full((self.slots,), self._code)
        return self.bits

    def _open(self, path: Path) -> Tensor:
        if self.world > 1:
            path = path.with_name(f"{path.name}.{self.rank}-of-{self.world}")
        size, visits = 4 * (self.slots + 1), int(self.visits)
        if not path.exists():
            self._make(path)
        bytes_there = path.stat().st_size
        if bytes_there != size:
            raise FileError(
                f'"{path}" has {bytes_there} bytes, and a table of {self.slots} rows has {size}: '
                "it is another file, or of other rows; give another name, or delete it"
            )
        mapped = torch.from_file(str(path), shared=True, size=size // 4, dtype=torch.int32)
        if int(mapped[-1]) != visits:
            raise FileError(
                f'"{path}" was written {int(mapped[-1])} times, and this loss has made {visits} '
                "visits: they are not of one moment. Load the state that was saved with it, or "
                "delete it and start anew; a table in memory (table=None) is saved with the state"
            )
        return mapped

    def _make(self, path: Path) -> None:
        """A file of empty slots, under its name only when it is whole."""
        with replacing(path) as part, part.open("xb") as file:
            for start in range(0, self.slots, CHUNK):
                size = min(CHUNK, self.slots - start)
                file.write(np.full(size, self._code, np.int32).tobytes())
            file.write(np.zeros(1, np.int32).tobytes())
            file.flush()
            os.fsync(file.fileno())

    # --- state -----------------------------------------------------------------------------------

    def gathered(self, exchange: Exchange | None) -> dict[str, Tensor]:
        """What the state of all processes together has otherwise than this one's."""
        if self.path is not None or not len(self.bits):
            return {}
        return {"bits": self.values(exchange).view(torch.int32)}

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """A whole table, or this process's part of one."""
        del local_metadata, strict, unexpected_keys
        for name in ("bits", "visits"):
            if prefix + name not in state_dict:
                missing_keys.append(prefix + name)
                continue
            state = state_dict[prefix + name].to(self.visits.device)
            if name == "visits":
                self.visits.copy_(state)
            elif len(state) in (0, self.slots):
                self.bits = state.clone()
            elif len(state) == self.rows:
                self.bits = state[self.rank :: self.world].clone()
            else:
                error_msgs.append(
                    f"{prefix}bits is a table of {len(state)} rows, and this one has {self.rows}"
                )
        self._mapped = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy opens the file for itself."""
        return {**self.__dict__, "_mapped": None}

    def extra_repr(self) -> str:
        """The number of rows, and where they are."""
        return f"{self.rows} rows, {'in memory' if self.path is None else self.path}"


def _found(bits: Tensor, slots: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """What the slots hold, the place of the last mention of each, and which are the last.

    None where every mention is, as far as the host knows. The slots themselves say which is the
    last: each is given the number of its mention, is read, and gets its value back. That needs no
    sorting and no memory.
    """
    if not bits.is_cpu:
        return found_on_device(bits, slots)
    table, places = bits.numpy(), slots.numpy()
    bits_at, here = table.take(places), np.arange(len(places), dtype=np.int32)
    table[places] = here
    last = table.take(places)
    table[places] = bits_at
    counts = last == here
    if counts.all():
        return torch.from_numpy(bits_at), None, None
    return torch.from_numpy(bits_at), torch.from_numpy(last).long(), torch.from_numpy(counts)


def found_on_device(bits: Tensor, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same where the table is elsewhere: nobody waits, and the greatest number is the last."""
    bits_at = bits[slots]
    here = torch.arange(len(slots), dtype=torch.int32, device=slots.device)
    bits.scatter_reduce_(0, slots, here, "amax", include_self=False)
    last = bits[slots]
    bits[slots] = bits_at
    return bits_at, last.long(), last == here

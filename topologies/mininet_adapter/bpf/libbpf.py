"""The few functions of libbpf that are needed, which iproute2 brings along: objects, maps, links. Root alone may."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from topologies.mininet_adapter.system import CommandError
from topologies.network.congestion import LIBRARY

_SYS_BPF: Final = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), 280)
_LINK_CREATE: Final = 28
_ATTACH_STRUCT_OPS: Final = 44
_MMAPABLE: Final = 1 << 10
_WITH_LINK: Final = 1 << 13
"""Of a map of operations: they are there for as long as a link is open, and so for as long as this process lives."""
_MAKES_LINKS: Final = (1, 2)
"""From this version on the library makes the link itself."""
INGRESS, EGRESS = 1, 2
_EXISTS: Final = 17
_STRUCT_OPS_MAP: Final = 26
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _Hook(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("interface", ctypes.c_int),
        ("point", ctypes.c_int),
        ("parent", ctypes.c_uint32),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("program", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("number", ctypes.c_uint32),
        ("handle", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
    )


_PRINT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_SILENT = _PRINT(lambda _level, _format, _arguments: 0)


@cache
def _library() -> Any:
    """The library; ``CommandError`` where it is missing."""
    try:
        found = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError as error:
        raise CommandError(f"{LIBRARY} cannot be loaded: {error}; it comes with iproute2 or libbpf1") from None
    for name in ("bpf_object__open_file", "bpf_object__find_map_by_name", "bpf_object__find_program_by_name"):
        getattr(found, name).restype = ctypes.c_void_p
    for name in ("bpf_object__next_map", "bpf_map__initial_value", "bpf_map__attach_struct_ops"):
        getattr(found, name).restype = ctypes.c_void_p
    found.libbpf_set_print(_SILENT)
    return found


class BpfObject:
    """The programs and maps of a compiled file. What is loaded is gone with this process, whatever ends it."""

    def __init__(self, path: Path) -> None:
        """Open ``path``; ``CommandError`` if it is no such file."""
        self._path = path
        self._library = _library()
        self._object = self._library.bpf_object__open_file(os.fsencode(path), None)
        if not self._object:
            raise self._error("cannot be opened")

    def _error(self, what: str) -> CommandError:
        number = ctypes.get_errno()
        return CommandError(f"{self._path.name} {what}: {os.strerror(number) if number else 'no reason given'}")

    def map(self, name: str) -> ctypes.c_void_p:
        """The map of that name; ``CommandError`` if there is none."""
        found = self._library.bpf_object__find_map_by_name(ctypes.c_void_p(self._object), name.encode())
        if not found:
            raise CommandError(f"{self._path.name} has no map '{name}'")
        return ctypes.c_void_p(found)

    def make_shared(self, name: str, entries: int) -> None:
        """Give the array ``name`` room for ``entries``, to be shared with this process, before it is loaded."""
        found = self.map(name)
        self._call(self._library.bpf_map__set_max_entries, found, ctypes.c_uint32(entries))
        self._call(self._library.bpf_map__set_map_flags, found, ctypes.c_uint32(_MMAPABLE))

    def set_constant(self, value: bytes) -> None:
        """Give the first constant of the programs a ``value`` before they are loaded."""
        size = ctypes.c_size_t()
        address = self._library.bpf_map__initial_value(self.map(".rodata"), ctypes.byref(size))
        if not address or size.value < len(value):
            raise self._error("has no such constant")
        ctypes.memmove(address, value, len(value))

    def operations(self) -> ctypes.c_void_p:
        """Its first map of operations, such as a congestion control; ``CommandError`` if it has none."""
        found = None
        while True:
            found = self._library.bpf_object__next_map(
                ctypes.c_void_p(self._object), None if found is None else ctypes.c_void_p(found)
            )
            if not found:
                raise CommandError(f"{self._path.name} has no congestion control, expected a map in .struct_ops")
            if self._library.bpf_map__type(ctypes.c_void_p(found)) == _STRUCT_OPS_MAP:
                return ctypes.c_void_p(found)

    def load(self) -> None:
        """Load all of it; ``CommandError`` if the kernel refuses."""
        self._call(self._library.bpf_object__load, ctypes.c_void_p(self._object), what="is refused by this kernel")

    def descriptor(self, name: str) -> int:
        """File descriptor of the loaded program ``name``."""
        program = self._library.bpf_object__find_program_by_name(ctypes.c_void_p(self._object), name.encode())
        if not program:
            raise CommandError(f"{self._path.name} has no program '{name}'")
        return int(self._library.bpf_program__fd(ctypes.c_void_p(program)))

    def shared(self, name: str, size: int) -> mmap.mmap:
        """The memory of the loaded array ``name``, ``size`` bytes."""
        descriptor = self._library.bpf_map__fd(self.map(name))
        return mmap.mmap(descriptor, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)

    def register(self) -> None:
        """Load it and register its operations until this process ends."""
        found = self.operations()
        self._call(self._library.bpf_map__set_map_flags, found, ctypes.c_uint32(_WITH_LINK))
        self.load()
        if not self._library.bpf_map__attach_struct_ops(found):
            raise self._error("cannot be registered")
        version = (self._library.libbpf_major_version(), self._library.libbpf_minor_version())
        if version < _MAKES_LINKS:
            self._link(self._library.bpf_map__fd(found))

    def _link(self, descriptor: int) -> None:
        attributes = (ctypes.c_uint32 * 16)(descriptor, 0, _ATTACH_STRUCT_OPS)
        if _LIBC.syscall(_SYS_BPF, _LINK_CREATE, attributes, ctypes.sizeof(attributes)) < 0:
            raise self._error("cannot be registered")

    def _call(self, function: Callable[..., int], *arguments: object, what: str = "cannot be changed") -> None:
        if function(*arguments) < 0:
            raise self._error(what)


def attach(interface: int, point: int, program: int) -> None:
    """Run ``program`` on every packet at ``point`` of ``interface`` in the current namespace."""
    library = _library()
    hook = _Hook(ctypes.sizeof(_Hook), interface, point, 0)
    made = library.bpf_tc_hook_create(ctypes.byref(hook))
    if made < 0 and made != -_EXISTS:
        raise CommandError(f"interface {interface} cannot have programs: {os.strerror(-made)}")
    options = _Options(ctypes.sizeof(_Options), program, 0, 0, 1, 1)
    done = library.bpf_tc_attach(ctypes.byref(hook), ctypes.byref(options))
    if done < 0:
        raise CommandError(f"interface {interface} cannot have a program: {os.strerror(-done)}")

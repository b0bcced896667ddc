"""Methods of Python objects that compiled programs call.

On a CPU, calls go through XLA's foreign function interface; other devices use `jax.pure_callback`. JAX never writes a
program with a `pure_callback` to its compilation cache, and turns all arguments into device arrays, which costs more
than most of our calls. Here a program holds the number of the object instead of the object, so that another process can
load the program, and the object gets NumPy arrays over XLA's memory. The structures are those of `xla/ffi/api/c_api.h`,
a stable binary interface.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Protocol, cast, runtime_checkable
from weakref import WeakValueDictionary

import jax
import numpy as np
from jaxtyping import Int

TARGET = "vbsix_host_call"
"""The name by which programs know the handler."""
INTERFACE = 0, 1
"""The version of the interface that the structures below are part of."""
_ATTRIBUTES = ("call", "detail", "host")
"""What a program says about a call, sorted, as XLA has them."""


@runtime_checkable
class Host(Protocol):
    """An object that programs call."""

    def answer(self, call: int, detail: int, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Fills the results; before, they hold anything.

        Args:
            call: which method is meant.
            detail: a number that the program was compiled with.
            arguments: the first one is a number for each place of a batch, so its shape is that of the batch.
            results: with the axes of the batch in front.
        """
        ...


_hosts: WeakValueDictionary[int, Host] = WeakValueDictionary()
_numbers = itertools.count()


def number_host(host: Host) -> int:
    """The number of an object for `call_host`. It is counted, and so the same in the next process of a command."""
    number = next(_numbers)
    _hosts[number] = host
    return number


def call_host(
    host: int, call: int, detail: int, shapes: Sequence[tuple[int, ...]], *arguments: Int[Any, "..."]
) -> list[Int[jax.Array, "..."]]:
    """What `Host.answer` gives, in arrays of these shapes; one call serves all that is mapped over."""
    results = [jax.ShapeDtypeStruct(shape, np.int32) for shape in shapes]
    if jax.default_backend() != "cpu":
        callback = functools.partial(_answer_callback, host, call, detail, tuple(shapes))
        return jax.pure_callback(callback, results, *arguments, vmap_method="broadcast_all")
    _register()
    function = jax.ffi.ffi_call(TARGET, results, vmap_method="broadcast_all")
    return list(function(*arguments, call=np.int64(call), detail=np.int64(detail), host=np.int64(host)))


def _answer_callback(
    host: int, call: int, detail: int, shapes: Sequence[tuple[int, ...]], *arguments: Any
) -> list[np.ndarray]:
    given = [np.asarray(argument) for argument in arguments]
    results = [np.empty((*given[0].shape, *shape), np.int32) for shape in shapes]
    _hosts[host].answer(call, detail, given, results)
    return results


class _Base(Structure):
    """What all structures begin with."""

    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p)]


class _Version(_Base):
    _fields_ = [("major", c_int), ("minor", c_int)]


class _Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _Extension(Structure):
    """Of a call that asks for the version of a handler."""

    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata))]


class _Buffer(_Base):
    _fields_ = [("type", c_int), ("data", c_void_p), ("rank", c_int64), ("shape", POINTER(c_int64))]


class _Buffers(_Base):
    """Arguments or results."""

    _fields_ = [("size", c_int64), ("kinds", c_void_p), ("buffers", POINTER(POINTER(_Buffer)))]


class _Scalar(Structure):
    _fields_ = [("type", c_int), ("value", POINTER(c_int64))]


class _Attributes(_Base):
    _fields_ = [("size", c_int64), ("kinds", c_void_p), ("names", c_void_p), ("values", POINTER(POINTER(_Scalar)))]


class _ErrorArguments(_Base):
    _fields_ = [("message", c_char_p), ("code", c_int)]


class _Interface(_Base):
    _fields_ = [
        ("version", _Version),
        ("internal", c_void_p),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
    ]


class _Call(_Base):
    _fields_ = [
        ("interface", POINTER(_Interface)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    ]


_METADATA = 1
_INTERNAL_ERROR = 13
_INT32 = 4


@ctypes.CFUNCTYPE(c_void_p, POINTER(_Call))
def _handle(pointer: Any) -> int | None:
    """Answers a call of XLA; gives an error of XLA's, or None."""
    call = pointer.contents
    if call.extension:
        extension = ctypes.cast(call.extension, POINTER(_Extension)).contents
        if extension.type == _METADATA:
            version = extension.metadata.contents.version
            version.major, version.minor = INTERFACE
            return None
    try:
        values = (call.attributes.values[place].contents.value[0] for place in range(len(_ATTRIBUTES)))
        said = dict(zip(_ATTRIBUTES, values, strict=True))
        _hosts[said["host"]].answer(said["call"], said["detail"], _arrays(call.arguments), _arrays(call.results))
    except BaseException as error:  # nothing may be raised into XLA, Ctrl-C included
        text = f"{type(error).__name__}: {error}".encode()
        given = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text, _INTERNAL_ERROR)
        return call.interface.contents.create_error(ctypes.byref(given))
    return None


def _arrays(buffers: _Buffers) -> list[np.ndarray]:
    """Arrays over the memory of buffers."""
    return [_array(buffers.buffers[place].contents) for place in range(buffers.size)]


def _array(buffer: _Buffer) -> np.ndarray:
    assert buffer.type == _INT32
    shape = buffer.shape[: buffer.rank]
    memory = (ctypes.c_int32 * math.prod(shape)).from_address(buffer.data or 0)
    return np.ndarray(shape, np.int32, cast(Any, memory))


@functools.cache
def _register() -> None:
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(ctypes.cast(_handle, c_void_p).value), platform="cpu")

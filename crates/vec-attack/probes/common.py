"""What every probe needs: raw system calls by name, and one JSON line as the answer.

A probe tries one thing that a payload must not be able to do and answers
{"got": bool, "detail": str}: did the attacker get what it wanted, and what was seen.
Every probe bounds itself: also with its protection lifted it can do no harm to a host.
"""

import ctypes
import errno
import json
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PROBES = {}
# Numbers of this architecture, written by the driver.
NUMBERS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "syscalls.json")))


def probe(function):
    PROBES[function.__name__] = function
    return function


def call(name, *args):
    """The raw result of a system call, or -errno."""
    ctypes.set_errno(0)
    words = [a if isinstance(a, (bytes, ctypes._Pointer, ctypes.Array, ctypes.Structure)) or a is None
             else ctypes.c_long(a) for a in args]
    words = [ctypes.byref(w) if isinstance(w, ctypes.Structure) else w for w in words]
    result = LIBC.syscall(ctypes.c_long(NUMBERS[name]), *words)
    return -ctypes.get_errno() if result == -1 else result


def word(result):
    """A result in words."""
    return errno.errorcode.get(-result, str(result)) if result < 0 else f"ok {result}"


def tried(action):
    """(True, what) when `action` works, (False, errno name) when the kernel refuses it."""
    try:
        seen = action()
    except ValueError as error:
        return False, str(error)
    except OSError as error:
        return False, errno.errorcode.get(error.errno, str(error))
    return True, str(seen)


def each(attempts):
    """Several attempts of one kind: got if any worked."""
    seen = {name: tried(action) for name, action in attempts.items()}
    return any(got for got, _ in seen.values()), ", ".join(f"{n}: {d}" for n, (_, d) in seen.items())


def refused(result, *expected):
    """Got unless the call failed with one of `expected`."""
    names = [getattr(errno, name) for name in expected]
    return not (result < 0 and -result in names), word(result)


def write_file(path, text=b"x"):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        return os.write(fd, text)
    finally:
        os.close(fd)


def answer(got, detail):
    sys.stdout.write(json.dumps({"got": bool(got), "detail": str(detail)[:600]}) + "\n")
    sys.stdout.flush()


def main():
    name, args = sys.argv[1], sys.argv[2:]
    answer(*PROBES[name](*args))

"""Cases 6-8, 11, 12, 25-30, 34, 35: processes, terminals, descriptors, limits."""

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import sys
import time

from common import call, each, probe, tried, word


@probe
def touch_init(_=""):
    """6: PID 1's memory and files."""
    got, seen = False, []
    buffer = ctypes.create_string_buffer(16)
    fd = call("pidfd_open", 1, 0)
    for name, args in {
        "ptrace": (16, 1, 0, 0),
        "kcmp": (os.getpid(), 1, 0, 0, 0),
        "pidfd_getfd": (fd, 0, 0),
        "process_vm_readv": (1, buffer, 0, buffer, 0, 0),
    }.items():
        result = call(name, *args)
        # kcmp and process_vm_readv of nothing succeed where they are allowed at all.
        got |= result >= 0
        seen.append(f"{name}: {word(result)}")
    return got, ", ".join(seen)


@probe
def read_init(_=""):
    """6: /proc/1."""
    return each({name: (lambda name=name: len(open(f"/proc/1/{name}", "rb").read(64)))
                 for name in ("environ", "maps", "mem", "auxv", "stack")} |
                {name: (lambda name=name: os.readlink(f"/proc/1/{name}")) for name in ("root", "cwd", "exe")} |
                {"fd": lambda: os.listdir("/proc/1/fd")})


@probe
def limit_init(_=""):
    """7: prlimit of PID 1."""
    return tried(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE))


@probe
def kill_init(number):
    """7: a signal to PID 1. Whoever gets it through does not come back to answer."""
    seen = tried(lambda: os.kill(1, int(number)))
    time.sleep(1)
    return False, seen[1] + ", still here"


@probe
def host_processes(marker):
    """8: a process of the host, by its marker."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        if marker.encode() in line and int(pid) != os.getpid() and b"host_processes" not in line:
            return True, f"{pid}: {line[:80]}"
    return False, f"{len([p for p in os.listdir('/proc') if p.isdigit()])} processes, all ours"


@probe
def host_facts(_=""):
    """8: what /proc tells about the host."""
    names = ["cmdline", "config.gz", "kallsyms", "meminfo", "sys/kernel/ostype", "modules", "mounts"]
    seen = [n for n in names if n != "mounts" and os.path.exists("/proc/" + n)]
    return bool(seen), seen or "only processes"


@probe
def push_to_terminal(command):
    """11: TIOCSTI and relatives on a terminal of our own."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        master, slave = os.openpty()
        fcntl.ioctl(slave, 0x540E, 0)
        result = LIBC_IOCTL(slave, int(command, 0))
        os._exit(0 if result >= 0 else ctypes.get_errno() or 1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status == 0, "pushed" if status == 0 else word(-status)


def LIBC_IOCTL(fd, request):
    return call_result(call("ioctl", fd, request, ctypes.create_string_buffer(b"x")))


def call_result(result):
    if result < 0:
        ctypes.set_errno(-result)
        return -1
    return result


@probe
def open_terminal(_=""):
    """11: the controlling terminal of whoever started the run."""
    return tried(lambda: os.open("/dev/tty", os.O_RDWR))


@probe
def old_calls(_=""):
    """12: the 32-bit entry, int 0x80 with getpid (x86-64 only)."""
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
    pid = os.fork()
    if pid == 0:
        page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                         mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        entry = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        os._exit(0 if entry() > 0 else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status == 0, "answered" if status == 0 else f"status {status}"


@probe
def x32_calls(_=""):
    """12: an x32 number (mount)."""
    LIBC = ctypes.CDLL(None, use_errno=True)
    result = LIBC.syscall(ctypes.c_long(0x40000000 | 165), 0, 0, 0, 0, 0)
    error = ctypes.get_errno()
    return result != -1 or error not in (1, 38), word(-error)


@probe
def descriptors(_=""):
    """25: anything beyond stdin, stdout, stderr."""
    extra = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        # The descriptor that lists the directory, and Python's own script.
        if int(name) > 2 and "/proc/" not in target and not target.endswith(".py"):
            extra[name] = target
    return bool(extra), extra or "0, 1, 2"


@probe
def stdout_is_file(_=""):
    """26: truncating or reopening what stderr is; stdout carries the answer."""
    return each({
        "truncate": lambda: os.ftruncate(2, 0),
        "seek": lambda: os.lseek(2, 0, 0),
        "reopen": lambda: os.ftruncate(os.open("/proc/self/fd/2", os.O_RDWR), 0),
    })


@probe
def flood(mib):
    """27: `mib` MiB on stdout: NUL, escapes, no newline, no UTF-8."""
    block = (b"\0\xff\x1b[31m" + bytes(range(256))) * 4096
    left = int(mib) << 20
    while left > 0:
        left -= os.write(1, block[:left])
    return True, "all of it was taken"


@probe
def forks(count):
    """28: processes at once."""
    made, why = [], ""
    try:
        for _ in range(int(count)):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            made.append(pid)
    except OSError as error:
        why = os.strerror(error.errno)
    for pid in made:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(made) == int(count), f"{len(made)} processes {why}"


@probe
def threads(count):
    """28: threads at once."""
    import threading
    stop, made, why = threading.Event(), [], ""
    threading.stack_size(64 << 10)
    try:
        for _ in range(int(count)):
            thread = threading.Thread(target=stop.wait)
            thread.start()
            made.append(thread)
    except RuntimeError as error:
        why = str(error)
    stop.set()
    for thread in made:
        thread.join()
    return len(made) == int(count), f"{len(made)} threads {why}"


@probe
def daemons(count, marker):
    """28, 30: double-forked session leaders that ignore every signal; they hold no pipe."""
    for number in range(int(count)):
        try:
            between = os.fork()
        except OSError as error:
            return False, f"{number} daemons, then {os.strerror(error.errno)}"
        if between == 0:
            os.setsid()
            if os.fork() == 0:
                for number in range(1, 32):
                    try:
                        signal.signal(number, signal.SIG_IGN)
                    except (OSError, ValueError):
                        pass
                null = os.open("/dev/null", os.O_RDWR)
                for fd in (0, 1, 2):
                    os.dup2(null, fd)
                while True:
                    signal.pause()
            os._exit(0)
        os.waitpid(between, 0)
    return True, f"{count} daemons of {marker}"


@probe
def linger(marker):
    """30: stays for a minute at most."""
    time.sleep(60)
    return True, marker


@probe
def ignore_term(_=""):
    """29: does not end on TERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    time.sleep(60)
    return True, "outlived its deadline"


@probe
def exit_with(code):
    """29: an exit code that looks like somebody else's verdict."""
    os._exit(int(code))


@probe
def inotify(count):
    """34: inotify instances."""
    made = 0
    while made < int(count) and call("inotify_init1", 0) >= 0:
        made += 1
    return made == int(count), f"{made} instances"


@probe
def watches(count):
    """34: inotify watches."""
    fd, made = call("inotify_init1", 0), 0
    for place in ("/tmp/w", "/dev/shm/w"):
        os.makedirs(place)
    while made < int(count):
        path = ("/tmp/w/", "/dev/shm/w/")[made % 2] + str(made)
        os.mkdir(path)
        if call("inotify_add_watch", fd, path.encode(), 2) < 0:
            break
        made += 1
    return made == int(count), f"{made} watches"


@probe
def burn_hidden(milliseconds):
    """35: CPU time that wait4 never shows: of children that nobody waits for, and of one that ends
    together with init. The answer is what was burnt, by the burners' own clocks."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    share = int(milliseconds) / 3000
    read, write = os.pipe()

    def burner(lasts):
        if os.fork() == 0:
            while time.process_time() < share:
                pass
            os.write(write, b"%d " % (time.process_time() * 1e6))
            # One burns on until it is killed; a line of its time each millisecond.
            said = time.process_time()
            while lasts:
                if time.process_time() > said + 0.001:
                    said = time.process_time()
                    os.write(write, b"+%d " % (said * 1e6))
            os._exit(0)

    burner(False)
    burner(False)
    text = b""
    while len(text.split()) < 2 or not text.endswith(b" "):
        text += os.read(read, 4096)
    burner(True)
    rest = b""
    while len(rest.split()) < 1 or not rest.endswith(b" "):
        rest += os.read(read, 4096)
    waited = sum(int(word) for word in text.split())
    last = int(rest.split()[-1].lstrip(b"+"))
    own = time.process_time() * 1e6
    return True, str(int((waited + last + own) / 1000))


@probe
def raise_limit(_=""):
    """42: a resource limit raised again."""
    def lift(which):
        soft, hard = resource.getrlimit(which)
        resource.setrlimit(which, (hard + 1, hard + 1))
    return each({"nofile": lambda: lift(resource.RLIMIT_NOFILE), "nproc": lambda: lift(resource.RLIMIT_NPROC)})


@probe
def schedule(_=""):
    """43: real-time priority, a lower nice value, another's priority."""
    return each({
        "fifo": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
        "init": lambda: os.setpriority(os.PRIO_PROCESS, 1, 5),
    })


@probe
def environment(secret):
    """44: the environment of whoever started the sandbox."""
    found = [k for k, v in os.environ.items() if secret in v or k.startswith("VEC_ATTACK")]
    return bool(found), found or sorted(os.environ)


@probe
def shared_memory(key):
    """16: System V shared memory of the host."""
    result = call("shmget", int(key), 0, 0)
    return result >= 0, word(result)


@probe
def allocate(mib):
    """32: anonymous memory in one process."""
    try:
        block = bytearray(int(mib) << 20)
    except MemoryError:
        return False, "MemoryError"
    return len(block) > 0, f"{mib} MiB"


@probe
def allocate_children(count, mib):
    """32: the same in many children at once, held together."""
    read, write = os.pipe()
    for _ in range(int(count)):
        if os.fork() == 0:
            block = bytearray(os.urandom(1 << 20) * int(mib))
            os.write(write, b"1")
            time.sleep(30 if block else 0)
            os._exit(0)
    held = 0
    os.set_blocking(read, False)
    end = time.monotonic() + 4
    while held < int(count) and time.monotonic() < end:
        try:
            held += len(os.read(read, 4096))
        except BlockingIOError:
            time.sleep(0.05)
    return held == int(count), f"{held} children held {mib} MiB each"


@probe
def memory_files(mib):
    """32: files in memory that no process maps, in pieces below any limit of a file."""
    left = int(mib)
    block = b"x" * (1 << 20)
    while left > 0:
        fd = os.memfd_create(f"piece-{left}")
        for _ in range(min(4, left)):
            os.write(fd, block)
        left -= 4
    return True, f"{mib} MiB in memory files"


@probe
def pipe_buffers(mib):
    """32: full pipes, as long as descriptors and the user's share of pipe pages last."""
    total, want = 0, int(mib) << 20
    block = b"x" * 65536
    try:
        while total < want:
            read, write = os.pipe()
            try:
                fcntl.fcntl(write, 1031, 1 << 20)  # F_SETPIPE_SZ
            except OSError:
                pass
            os.set_blocking(write, False)
            try:
                while True:
                    total += os.write(write, block)
            except BlockingIOError:
                pass
    except OSError as error:
        return False, f"{total >> 20} MiB, then {os.strerror(error.errno)}"
    return True, f"{total >> 20} MiB in pipes"


@probe
def control_group(_=""):
    """48: the names of the groups that this process is in."""
    text = open("/proc/self/cgroup").read()
    return "vec-" in text, text.replace("\n", " ")


@probe
def personality(_=""):
    """45: address layout randomisation switched off for what is executed next."""
    result = call("personality", 0x0040000)
    return result >= 0, word(result)


@probe
def huge_arguments(_=""):
    """46: the longest argument list that the kernel takes must not reach the helper's own memory."""
    got, seen = tried(lambda: os.posix_spawn("/bin/true", ["true"] + ["x" * 131000] * 20, {}))
    return False, f"{got} {seen}"


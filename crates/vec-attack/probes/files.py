"""Cases 1-5, 9, 10, 33, 36: files, mounts, rights."""

import ctypes
import os
import stat

from common import call, each, probe, refused, tried, word, write_file


@probe
def write_read_only(path):
    """1: everything that changes a file below a read-only tree."""
    victim = os.path.join(path, "victim")
    return each({
        "create": lambda: write_file(os.path.join(path, "planted")),
        "write": lambda: write_file(victim),
        "chmod": lambda: os.chmod(victim, 0o777),
        "rename": lambda: os.rename(victim, victim + "2"),
        "utime": lambda: os.utime(victim, (1, 1)),
        "setxattr": lambda: os.setxattr(victim, "user.x", b"1"),
        "unlink": lambda: os.unlink(victim),
    })


@probe
def write_system(_=""):
    """1: /usr, /etc and the root itself."""
    return each({path: (lambda path=path: write_file(path)) for path in
                 ["/usr/planted", "/etc/passwd", "/planted", "/lib/planted", "/dev/planted"]})


@probe
def write_sub_mount(path):
    """2: a mount below a read-only bind."""
    return tried(lambda: write_file(os.path.join(path, "planted")))


@probe
def mount_calls(_=""):
    """3: all the ways to change mounts."""
    got, seen = False, []
    for name, args in {
        "mount": (b"none", b"/tmp", b"tmpfs", 0, None),
        "umount2": (b"/tmp", 2),
        "pivot_root": (b"/tmp", b"/tmp"),
        "fsopen": (b"tmpfs", 0),
        "open_tree": (-100, b"/tmp", 1),
        "mount_setattr": (-100, b"/tmp", 0, None, 0),
        "move_mount": (-100, b"/tmp", -100, b"/tmp", 0),
        "chroot": (b"/tmp",),
    }.items():
        result = call(name, *args)
        got |= result >= 0
        seen.append(f"{name}: {word(result)}")
    return got, ", ".join(seen)


@probe
def remount_rw(path):
    """3: a read-only bind made writable again (MS_REMOUNT|MS_BIND)."""
    result = call("mount", b"none", path.encode(), None, 0x20 | 0x1000, None)
    return result >= 0, word(result)


@probe
def new_user_namespace(_=""):
    """4: unshare(NEWUSER) in a child."""
    pid = os.fork()
    if pid == 0:
        result = call("unshare", 0x10000000)
        os._exit(0 if result >= 0 else -result)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status == 0, word(-status) if status else "ok"


@probe
def clone_user_namespace(_=""):
    """4: clone(NEWUSER) and clone3."""
    result = call("clone", 0x10000000 | 17, 0, 0, 0, 0)
    if result == 0:
        os._exit(0)
    third = call("clone3", None, 0)
    return result > 0 or third != -38, f"clone: {word(result)}, clone3: {word(third)}"


def status():
    with open("/proc/self/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


@probe
def capabilities(_=""):
    """5: any capability in any set."""
    held = {k: v for k, v in status().items() if k.startswith("Cap") and int(v, 16)}
    return bool(held), held or "all sets are empty"


@probe
def new_privileges(_=""):
    """5: no_new_privs must be set."""
    value = status()["NoNewPrivs"]
    return value != "1", f"NoNewPrivs {value}"


@probe
def become_root(_=""):
    """5: another id."""
    return each({
        "setuid": lambda: os.setuid(0),
        "setgid": lambda: os.setgid(0),
        "setgroups": lambda: os.setgroups([0]),
        "chown": lambda: (write_file("/tmp/c"), os.chown("/tmp/c", 0, 0)),
    })


@probe
def kernel_settings(_=""):
    """9: settings and triggers of the kernel."""
    return each({path: (lambda path=path: write_file(path)) for path in [
        "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/user/max_user_namespaces",
        "/proc/sys/user/max_inotify_instances", "/sys/kernel/mm/ksm/run", "/proc/sys/vm/drop_caches"]})


@probe
def make_nodes(_=""):
    """10: device nodes in every writable directory."""
    places = [p for p in ("/tmp", "/dev/shm", "/out", "/box") if os.access(p, os.W_OK)]
    return each({p: (lambda p=p: os.mknod(p + "/node", 0o666 | stat.S_IFBLK, os.makedev(254, 0)))
                 for p in places})


@probe
def host_devices(_=""):
    """10: what is in /dev."""
    wanted = {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr",
              "pts", "ptmx", "shm", "console"}
    extra = sorted(set(os.listdir("/dev")) - wanted)
    return bool(extra), extra or "only the harmless ones"


@probe
def inode_bomb(path, count):
    """33: many empty files."""
    made, why = 0, ""
    try:
        for n in range(int(count)):
            os.close(os.open(f"{path}/i{n}", os.O_CREAT | os.O_WRONLY, 0o600))
            made += 1
    except OSError as error:
        why = os.strerror(error.errno)
    return made == int(count), f"{made} files {why}"


@probe
def fill(path, mib):
    """33: many bytes, in files that each obey the size limit."""
    block, written, why = b"\1" * (1 << 20), 0, ""
    try:
        for n in range(int(mib)):
            fd = os.open(f"{path}/f{n // 8}", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            try:
                os.write(fd, block)
            finally:
                os.close(fd)
            written += 1
    except OSError as error:
        why = os.strerror(error.errno)
    return written == int(mib), f"{written} MiB {why}"


@probe
def big_file(path):
    """33: one sparse file beyond the size limit."""
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    return tried(lambda: os.truncate(os.open(f"{path}/s", os.O_CREAT | os.O_RDWR, 0o600), 1 << 40))


@probe
def core_file(path):
    """36: a crash leaves no core file."""
    os.chdir(path)
    pid = os.fork()
    if pid == 0:
        ctypes.string_at(0)
    os.waitpid(pid, 0)
    cores = [name for name in os.listdir(".") if name.startswith("core")]
    return bool(cores), cores or "no file"


@probe
def hostile_results(path):
    """38: traps for whoever collects results."""
    os.chdir(path)
    open("plain", "w").write("a result")
    os.symlink("/etc/shadow", "link")
    os.symlink("/", "up")
    os.mkfifo("fifo")
    open(b"odd\xff\nname", "w").close()
    with open("sparse", "w") as file:
        os.truncate(file.fileno(), 15 << 20)
    deep = "deep"
    for _ in range(30):
        os.mkdir(deep)
        deep += "/d"
    import socket
    socket.socket(socket.AF_UNIX).bind("socket")
    return True, os.listdir(".").__repr__()


@probe
def own_memory_map(_=""):
    """41: writing to a read-only file mapping through /proc/self/mem must not reach the file."""
    import mmap
    path = "/usr/bin/env"
    fd = os.open(path, os.O_RDONLY)
    before = os.pread(fd, 16, 0)
    mapping = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
    address = ctypes.addressof(ctypes.c_char.from_buffer_copy(mapping))
    del address
    seen = "no /proc/self/mem"
    for line in open("/proc/self/maps", encoding="utf8"):
        if line.rstrip().endswith(path):
            start = int(line.split("-")[0], 16)
            got, seen = tried(lambda: os.pwrite(os.open("/proc/self/mem", os.O_RDWR), b"PWNED", start))
            break
    after = os.pread(os.open(path, os.O_RDONLY), 16, 0)
    return before != after, f"own copy: {seen}; the file is {'changed' if before != after else 'the same'}"


@probe
def replace_service(path):
    """23: the client sockets' directory."""
    return each({
        "plant": lambda: write_file(path + "/planted"),
        "unlink": lambda: os.unlink(path + "/victim"),
        "rename": lambda: os.rename(path + "/victim", path + "/v2"),
    })


@probe
def other_clients(*guesses):
    """23: sockets of other clients and runs, by guessed path and through a planted link."""
    import socket

    def connect(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(2)
            s.connect(path)
            return "connected"

    attempts = {p: (lambda p=p: connect(p)) for p in guesses}
    link = "/tmp/link.s"
    os.symlink(guesses[0], link)
    attempts["through a link"] = lambda: connect(link)
    return each(attempts)


@probe
def forbidden(name, *args):
    """13: one forbidden system call."""
    result = call(name, *[int(a) for a in args])
    return refused(result, "EPERM", "ENOSYS")

//! What a payload can see, write and reach.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::{Value, json};

use vec_sandbox::RoBind;

use crate::support::{both_modes, outside, processes_with, started_by_root};

both_modes! {
    async fn only_the_work_directory_can_be_written(place) {
        let script = r#"
import errno, json, os
def attempt(act):
    try:
        act()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
files = ["/x", "/usr/x", "/usr/bin/x", "/etc/passwd", "/etc/x", "/dev/x", "/solution/run.py", "/solution/x",
         "/views/main/train.csv", "/views/x", "/out/x", "/tmp/x", "/dev/shm/x"]
seen = {f: attempt(lambda: open(f, "a").close()) for f in files}
seen["chmod"] = attempt(lambda: os.chmod("/views/main/train.csv", 0o777))
seen["rename"] = attempt(lambda: os.rename("/solution/run.py", "/solution/gone.py"))
seen["unlink"] = attempt(lambda: os.unlink("/usr/bin/python3"))
seen["utime"] = attempt(lambda: os.utime("/views/main"))
seen["mknod"] = attempt(lambda: os.mknod("/out/null", 0o20666, os.makedev(1, 3)))
print(json.dumps(seen))
"#;
        let seen = place.inside(script, &[]).await;
        for (act, outcome) in seen.as_object().unwrap() {
            let wanted = match act.as_str() {
                "/out/x" | "/tmp/x" | "/dev/shm/x" => "done",
                "mknod" => "EPERM",
                // Root's file: the owner is looked at before the mount.
                "/solution/run.py" | "/views/main/train.csv" if started_by_root() => "EACCES",
                // It belongs to init, whose id is another one then.
                "/etc/passwd" if started_by_root() => "EACCES",
                _ => "EROFS",
            };
            assert_eq!(outcome, wanted, "{act}");
        }
        assert!(place.path("out/x").exists(), "control: it arrived on the host");
        assert!(place.path("solution/run.py").exists());
        let view = std::fs::read_to_string(place.path("view/train.csv")).unwrap();
        assert_eq!(view, "id,x\n1,2\n");
    }
}

both_modes! {
    async fn mounts_below_a_read_only_bind_are_read_only_too(place) {
        // The host's /dev/shm is a mount of its own that everybody may write to.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        if !mounts.lines().any(|line| line.split(' ').nth(1) == Some("/dev/shm")) {
            eprintln!("SKIPPED: /dev/shm is no mount on this host");
            return;
        }
        let script = r#"
import errno, json, sys
try:
    open(sys.argv[1] + "/vec-sandbox-test", "w").close()
    print(json.dumps("done"))
except OSError as e:
    print(json.dumps(errno.errorcode[e.errno]))
"#;
        assert_eq!(outside(script, &["/dev/shm"]), "done", "control");
        std::fs::remove_file("/dev/shm/vec-sandbox-test").unwrap();
        let mut plan = place.plan(script, &["/views/dev/shm"]);
        plan.ro_binds.push(RoBind { source: "/dev".into(), dest: "/views/dev".into() });
        let run = place.run(&plan).await;
        assert_eq!(run.stdout.bytes, b"\"EROFS\"\n", "{:?}", run.report);
    }
}

both_modes! {
    async fn no_network_but_an_own_loopback(place) {
        let script = r#"
import errno, json, socket, sys
def attempt(family, address):
    s = socket.socket(family)
    s.settimeout(2)
    try:
        s.connect(address)
        return "connected"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
own = socket.create_server(("127.0.0.1", 0))
try:
    socket.getaddrinfo("example.com", 80)
    name = "resolved"
except OSError:
    name = "unknown"
print(json.dumps({
    "host_loopback": attempt(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))),
    "host_abstract": attempt(socket.AF_UNIX, "\0" + sys.argv[2]),
    "own_loopback": attempt(socket.AF_INET, own.getsockname()),
    "far": attempt(socket.AF_INET, ("192.0.2.1", 80)),
    "metadata": attempt(socket.AF_INET, ("169.254.169.254", 80)),
    "far6": attempt(socket.AF_INET6, ("2001:db8::1", 80)),
    "name": name,
}))
"#;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let name = format!("vec-sandbox-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_listener = UnixListener::bind_addr(&address).unwrap();
        let control = outside(script, &[&port, &name]);
        assert_eq!(control["host_loopback"], "connected");
        assert_eq!(control["host_abstract"], "connected");
        let seen = place.inside(script, &[&port, &name]).await;
        let wanted = json!({
            "host_loopback": "ECONNREFUSED", "host_abstract": "ECONNREFUSED", "own_loopback": "connected",
            "far": "ENETUNREACH", "metadata": "ENETUNREACH", "far6": "ENETUNREACH", "name": "unknown",
        });
        assert_eq!(seen, wanted);
        drop((listener, abstract_listener));
    }
}

both_modes! {
    async fn host_files_and_processes_are_invisible(place) {
        let secret = place.path("secret");
        std::fs::write(&secret, "truth").unwrap();
        let mut sleeper = std::process::Command::new("/bin/sleep").arg("300").spawn().unwrap();
        let script = r#"
import json, os, sys
def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False
def readable(path):
    try:
        with open(path, "rb") as f:
            f.read(1)
        return True
    except OSError:
        return False
print(json.dumps({
    "secret": os.path.exists(sys.argv[1]),
    "sleeper": alive(int(sys.argv[2])) or os.path.exists("/proc/" + sys.argv[2]),
    "root": sorted(os.listdir("/")),
    "pids": sorted(int(n) for n in os.listdir("/proc") if n.isdigit()),
    "init": [n for n in ("environ", "mem", "maps", "root", "cwd", "fd/4") if readable("/proc/1/" + n)],
    "kernel": [n for n in ("cmdline", "kallsyms", "config.gz", "sys", "meminfo", "sysrq-trigger") if os.path.exists("/proc/" + n)],
    "hostname": os.uname().nodename,
    "dev": sorted(os.listdir("/dev")),
    "mounts_named": any(sys.argv[1].rsplit("/", 1)[0] in line for line in open("/proc/self/mountinfo")),
}))
"#;
        let pid = sleeper.id().to_string();
        let secret = secret.to_str().unwrap();
        let control = outside(script, &[secret, &pid]);
        assert_eq!((&control["secret"], &control["sleeper"]), (&json!(true), &json!(true)));
        // A pid that exists outside and not inside: far above what the sandbox gives out.
        let seen = place.inside(script, &[secret, &pid]).await;
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(seen["secret"], false);
        assert_eq!(seen["sleeper"], false);
        assert_eq!(seen["init"], json!([]));
        assert_eq!(seen["kernel"], json!([]));
        assert_eq!(seen["hostname"], "sandbox");
        assert!(seen["pids"].as_array().unwrap().len() <= 2, "{seen}");
        for name in seen["root"].as_array().unwrap() {
            let known = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "out", "proc", "sbin", "solution", "tmp", "usr", "views"];
            assert!(known.iter().any(|k| name == k), "{name}");
        }
        let devices = json!(["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"]);
        assert_eq!(seen["dev"], devices);
    }
}

both_modes! {
    async fn no_right_is_left_and_none_can_be_had(place) {
        let script = r#"
import errno, json, os, subprocess
status = dict(line.rstrip("\n").split(":", 1) for line in open("/proc/self/status"))
def attempt(act):
    try:
        act()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
print(json.dumps({
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
    "caps": [status[c].strip() for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "nnp": status["NoNewPrivs"].strip(), "seccomp": status["Seccomp"].strip(),
    "groups": status["Groups"].split(),
    "setuid": attempt(lambda: os.setuid(0)),
    "chown": attempt(lambda: os.chown("/out", 0, 0)),
    "chroot": attempt(lambda: os.chroot("/out")),
    "priority": attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
}))
"#;
        let seen = place.inside(script, &[]).await;
        assert_eq!(seen["ids"], json!([1000, 1000, 1000, 1000]));
        assert_eq!(seen["caps"], json!(vec!["0000000000000000"; 5]));
        assert_eq!((&seen["nnp"], &seen["seccomp"]), (&json!("1"), &json!("2")));
        assert_eq!(seen["groups"], json!([]));
        for act in ["setuid", "chown"] {
            assert!(seen[act] == "EINVAL" || seen[act] == "EPERM", "{act}: {seen}");
        }
        assert_eq!(seen["chroot"], "EPERM");
        assert_eq!(seen["priority"], "EACCES");
    }
}

/// Calls `syscall(number, a, b, c)` for each line `name number a b c` of its argument.
const SYSCALLS: &str = r#"
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
seen = {}
for line in sys.argv[1].splitlines():
    name, *numbers = line.split()
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(int(n)) for n in numbers])
    seen[name] = errno.errorcode[ctypes.get_errno()] if result == -1 else "done"
print(json.dumps(seen))
"#;

both_modes! {
    async fn dangerous_system_calls_are_refused(place) {
        let calls = [
            ("clone3", libc::SYS_clone3, [0_i64, 0, 0]),
            ("io_uring_setup", libc::SYS_io_uring_setup, [1, 0, 0]),
            ("ptrace", libc::SYS_ptrace, [0x4206, 1, 0]),
            ("bpf", libc::SYS_bpf, [99, 0, 0]),
            ("keyctl", libc::SYS_keyctl, [0, -3, 0]),
            ("mount", libc::SYS_mount, [0, 0, 0]),
            ("open_tree", libc::SYS_open_tree, [-100, 0, 1]),
            ("userfaultfd", libc::SYS_userfaultfd, [0, 0, 0]),
            ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0]),
            ("open_by_handle_at", libc::SYS_open_by_handle_at, [-100, 0, 0]),
            ("process_vm_readv", libc::SYS_process_vm_readv, [1, 0, 0]),
            ("socket_vsock", libc::SYS_socket, [40, 1, 0]),
            ("socket_packet", libc::SYS_socket, [17, 3, 0]),
            ("socket_alg", libc::SYS_socket, [38, 5, 0]),
            ("socket_netlink", libc::SYS_socket, [16, 3, 0]),
            ("socket_vsock_high_bits", libc::SYS_socket, [0x1_0000_0028, 1, 0]),
            ("tiocsti", libc::SYS_ioctl, [1, 0x5412, 0]),
            ("tiocsti_high_bits", libc::SYS_ioctl, [1, 0x1_0000_5412, 0]),
            ("tioclinux", libc::SYS_ioctl, [1, 0x541C, 0]),
            ("socket_inet", libc::SYS_socket, [2, 1, 0]),
            // Last: outside it changes the caller's rights.
            ("unshare_user", libc::SYS_unshare, [0x1000_0000, 0, 0]),
        ];
        let text: String = calls
            .iter()
            .map(|(name, number, [a, b, c])| format!("{name} {number} {a} {b} {c}\n"))
            .collect();
        let seen = place.inside(SYSCALLS, &[&text]).await;
        for (name, ..) in calls {
            let wanted = match name {
                "clone3" => "ENOSYS",
                "socket_inet" => "done",
                _ => "EPERM",
            };
            assert_eq!(seen[name], wanted, "{name}");
        }
        // Controls: without the sandbox these get past the gate (to success or another error).
        let control = outside(SYSCALLS, &[&text]);
        let mut open = vec!["unshare_user", "clone3", "io_uring_setup", "socket_netlink", "tiocsti", "tiocsti_high_bits"];
        if started_by_root() {
            open.extend(["open_tree", "mount", "bpf"]);
        }
        for name in open {
            assert_ne!(control[name], seen[name], "control {name}: {control}");
        }
        if control["socket_vsock"] == "EAFNOSUPPORT" {
            eprintln!("SKIPPED control: this kernel has no AF_VSOCK");
        } else {
            assert_eq!(control["socket_vsock"], "done");
            assert_eq!(control["socket_vsock_high_bits"], "done");
        }
    }
}

#[cfg(target_arch = "x86_64")]
both_modes! {
    async fn foreign_call_conventions_are_refused(place) {
        // int 0x80 with eax = 20 (getpid), and getpid by its x32 number.
        let script = r#"
import ctypes, errno, json, mmap, os
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
pid = os.fork()
if pid == 0:
    call()
    os._exit(0)
raw = os.waitpid(pid, 0)[1]
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall(ctypes.c_long(0x40000000 | 39))
print(json.dumps({"int80": os.waitstatus_to_exitcode(raw), "x32": errno.errorcode[ctypes.get_errno()] if result == -1 else "done"}))
"#;
        let control = outside(script, &[]);
        if control["int80"] == 0 {
            let seen = place.inside(script, &[]).await;
            assert_eq!(seen, json!({"int80": -31, "x32": "EPERM"}));
        } else {
            eprintln!("SKIPPED: this kernel has no i386 entry ({control})");
        }
    }
}

both_modes! {
    async fn inherited_descriptors_do_not_arrive(place) {
        // Without close-on-exec, as a careless daemon would leave it.
        let root = std::fs::File::open("/").unwrap();
        let leaked = nix::unistd::dup(&root).unwrap();
        let script = r#"
import json, os
seen = []
for n in os.listdir("/proc/self/fd"):
    try:
        seen.append([int(n), os.readlink("/proc/self/fd/" + n)])
    except OSError:
        pass
print(json.dumps(sorted(seen)))
"#;
        let control = outside(script, &[]);
        assert!(control.as_array().unwrap().iter().any(|fd| fd[1] == "/"), "control: {control}");
        let seen = place.inside(script, &[]).await;
        let numbers: Vec<&Value> = seen.as_array().unwrap().iter().map(|fd| &fd[0]).collect();
        assert_eq!(numbers, [0, 1, 2], "{seen}");
        assert_eq!(seen[0][1], "/dev/null");
        assert!(seen[1][1].as_str().unwrap().starts_with("pipe:"));
        drop(leaked);
    }
}

both_modes! {
    async fn kernel_objects_are_bounded(place) {
        let script = r#"
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
instances = 0
while instances < 40 and libc.inotify_init1(0o2000000) >= 0:
    instances += 1
files = 0
try:
    while files < 20000:
        os.close(os.open(f"/tmp/{files}", os.O_CREAT | os.O_WRONLY))
        files += 1
    stopped = "never"
except OSError as e:
    stopped = errno.errorcode[e.errno]
try:
    os.truncate(os.open("/out/big", os.O_CREAT | os.O_RDWR), 1 << 40)
    big = "done"
except OSError as e:
    big = errno.errorcode[e.errno]
print(json.dumps({"inotify": instances, "files": files, "stopped": stopped, "big": big}))
"#;
        let mut plan = place.plan(script, &[]);
        plan.tmp.inodes = 1000;
        let run = place.run(&plan).await;
        let stderr = String::from_utf8_lossy(&run.stderr.bytes);
        // RLIMIT_FSIZE sends SIGXFSZ, which Python ignores in favour of EFBIG.
        let seen: Value = serde_json::from_slice(&run.stdout.bytes)
            .unwrap_or_else(|e| panic!("{e}: {:?} {stderr}", run.report));
        assert_eq!(seen["inotify"], 16);
        assert!(seen["files"].as_u64().unwrap() < 1000);
        assert_eq!(seen["stopped"], "ENOSPC");
        assert_eq!(seen["big"], "EFBIG");
        let control = outside("import ctypes\nlibc=ctypes.CDLL(None)\nprint(sum(libc.inotify_init1(0o2000000) >= 0 for _ in range(40)))", &[]);
        assert!(control.as_u64().unwrap() > 16, "control: {control}");
    }
}

both_modes! {
    async fn memory_is_bounded_per_process(place) {
        let script = r#"
import json
held, step = [], 16 << 20
try:
    while len(held) < 64:
        held.append(b"x" * step)
    print(json.dumps("never"))
except MemoryError:
    n = len(held)
    held.clear()
    print(json.dumps(n))
"#;
        let mut plan = place.plan(script, &[]);
        plan.limits.data_bytes = Some(256 << 20);
        let run = place.run(&plan).await;
        let seen: Value = serde_json::from_slice(&run.stdout.bytes).unwrap();
        assert!((4..16).contains(&seen.as_u64().unwrap()), "{seen}");
        assert!(run.report.max_rss_kib > 64 << 10, "{:?}", run.report);
        assert_eq!(outside(script, &[]), "never", "control");
    }
}

both_modes! {
    async fn a_finished_sandbox_leaves_no_process(place) {
        let marker = format!("vec-left-{}", std::process::id());
        let script = r#"
import os, signal, sys, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
print(os.getuid())
"#;
        let run = place.run(&place.plan(script, &[&marker])).await;
        assert!(run.report.succeeded(), "{:?}", run.report);
        assert_eq!(processes_with(&marker), 0);
        assert!(!started_by_root() || nix::sys::stat::stat(&place.path("out")).unwrap().st_uid == 64_100);
    }
}

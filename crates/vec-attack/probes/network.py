"""Cases 14-16, 23: sockets."""

import socket

from common import call, each, probe, tried, word


@probe
def socket_family(family, kind="1"):
    """14: one socket family."""
    result = call("socket", int(family), int(kind), 0)
    return result >= 0, word(result)


@probe
def host_listener(address, port):
    """15, 16: a TCP listener of the host."""
    def connect():
        with socket.create_connection((address, int(port)), timeout=3) as s:
            return s.recv(16)
    return tried(connect)


@probe
def outside(_=""):
    """15: addresses beyond the machine; all have documentation or link-local prefixes but two."""
    def udp(address, family=socket.AF_INET):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.connect((address, 53))
            return s.getsockname()
    return each({
        "1.1.1.1": lambda: udp("1.1.1.1"),
        "169.254.169.254": lambda: udp("169.254.169.254"),
        "2001:db8::1": lambda: udp("2001:db8::1", socket.AF_INET6),
        "name": lambda: socket.getaddrinfo("example.org", 80),
    })


@probe
def interfaces(_=""):
    """15: anything but lo."""
    try:
        names = [name for _, name in socket.if_nameindex()]
    except OSError as error:
        return False, f"not even listed: {error.strerror}"
    return names != ["lo"] and names != [], names


@probe
def abstract_socket(name):
    """16: an abstract Unix socket of the host."""
    def connect():
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(3)
            s.connect("\0" + name)
            return s.recv(16)
    return tried(connect)


@probe
def own_socket(path):
    """23: the client socket that this sandbox was given. Must work: this is a control."""
    def connect():
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(3)
            s.connect(path)
            return s.recv(16)
    return tried(connect)


@probe
def steal_port(port):
    """47: a listener port that init has opened for the gateway."""
    def bind():
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind(("127.0.0.1", int(port)))
            s.listen()
            return "bound"
    return tried(bind)


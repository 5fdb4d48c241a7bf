"""What the attacked job has open: its processes, their listeners and descriptors, and the kernel's memory for sockets.
And a network namespace of our own, so that neither somebody else's traffic nor ours is in the way."""
import ctypes
import fcntl
import os
import re
import socket
import struct


def own_namespace():
    """Moves this process into a new network namespace with a loopback that is up. False if that is not allowed."""
    new_network, get_flags, set_flags, up = 0x40000000, 0x8913, 0x8914, 0x1
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(new_network) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, get_flags, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(control, set_flags, struct.pack("16sh14x", b"lo", flags | up))
    return True


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def processes(group):
    """The processes of a process group, by id."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(name))
    return sorted(found)


def children(pid):
    """What a process has started and has not ended, by id. Much quicker than `processes`."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except OSError:  # it, or one of its threads, has ended
        pass
    return sorted(found)


def descriptors(pid):
    """What each descriptor of a process is; empty if it has gone."""
    found = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        pass
    return found


def listeners(group):
    """{port: process} of everything that listens in a process group."""
    by_inode = {}
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        with open(table) as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    by_inode[f"socket:[{fields[9]}]"] = int(fields[1].rpartition(":")[2], 16)
    return {by_inode[what]: pid for pid in processes(group) for what in descriptors(pid) if what in by_inode}


def addresses(group):
    """The addresses on which a process group listens."""
    found = set()
    for family, table in ((socket.AF_INET, "/proc/self/net/tcp"), (socket.AF_INET6, "/proc/self/net/tcp6")):
        mine = {what for pid in processes(group) for what in descriptors(pid)}
        with open(table) as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in mine:
                    words = bytes.fromhex(fields[1].rpartition(":")[0])
                    turned = b"".join(words[i:i + 4][::-1] for i in range(0, len(words), 4))
                    found.add(socket.inet_ntop(family, turned))
    return found


def socket_memory_mib():
    """The kernel's memory for TCP, of this network namespace's machine."""
    with open("/proc/net/sockstat") as file:
        return int(re.search(r"TCP:.* mem (\d+)", file.read()).group(1)) * os.sysconf("SC_PAGE_SIZE") / 2**20

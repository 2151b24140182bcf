# Tries to change protected names by rare system calls, in the directory in which it runs. It prints what it could do;
# the test looks at the files besides.
import ctypes, errno, mmap, os, stat, struct, subprocess, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
AT, EMPTY, FOLLOW = -100, 0x1000, 0x400
NAMES = [".git/config", ".git/hooks/pre-commit", ".mcp.json", ".git/config.lock"]


def call(number, *args):
    made = libc.syscall(ctypes.c_long(number), *[a if isinstance(a, bytes) else ctypes.c_long(a) for a in args])
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made


def attempt(name, f):
    try:
        f()
    except (OSError, ValueError, IndexError):
        return
    print("succeeded:", name, flush=True)


def write(fd):
    os.write(fd, b"evil\n")
    os.close(fd)


with open("mine", "w") as file:
    file.write("evil\n")
os.makedirs("dir/hooks", exist_ok=True)
with open("dir/config", "w") as file:
    file.write("evil\n")

for path in NAMES:
    p = path.encode()
    attempt("openat2 " + path, lambda: write(call(437, AT, p, struct.pack("QQQ", os.O_WRONLY | os.O_CREAT, 0o644, 0), 24)))
    attempt("handle " + path, lambda: call(303, AT, p, struct.pack("Ii", 128, 0) + bytes(128), struct.pack("i", 0), 0))
    attempt("exchange " + path, lambda: call(316, AT, b"mine", AT, p, 2))
    attempt("whiteout " + path, lambda: call(316, AT, b"mine", AT, p, 4))
    attempt("whiteout here " + path, lambda: call(316, AT, p, AT, b"gone", 4))
    attempt("replace " + path, lambda: os.rename("mine", path))
    attempt("link over " + path, lambda: os.link("mine", path))
    attempt("node over " + path, lambda: os.mknod(path + ".x" if False else path))
    attempt("truncate " + path, lambda: os.truncate(path, 0))
    attempt("open to truncate " + path, lambda: os.close(os.open(path, os.O_RDONLY | os.O_TRUNC)))
    attempt("open, other flags " + path, lambda: write(os.open(path, 3 | os.O_APPEND)))
    attempt("open, upper bits " + path, lambda: write(call(257, AT, p, 1 | 1 << 33)))
    attempt("socket there " + path, lambda: os.mknod(path, stat.S_IFSOCK | 0o600))

    def by_place():
        place = os.open(path, os.O_PATH)
        for again in ("/proc/self/fd/%d", "/dev/fd/%d", "/proc/thread-self/fd/%d", "/proc/%d/fd/%%d" % os.getpid()):
            try:
                write(os.open(again % place, os.O_WRONLY | os.O_APPEND))
                return
            except OSError:
                pass
        call(265, place, b"", AT, b"twin", EMPTY)
        write(os.open("twin", os.O_WRONLY | os.O_APPEND))

    attempt("place of " + path, by_place)
    attempt("link of " + path, lambda: (os.link(path, "twin2"), write(os.open("twin2", os.O_WRONLY))))

    def mapped():
        fd = os.open(path, os.O_RDONLY)
        mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_WRITE)[0:4] = b"evil"

    attempt("map " + path, mapped)

    def allocated():
        fd = os.open(path, os.O_RDONLY)
        for f in (lambda: os.ftruncate(fd, 0), lambda: os.posix_fallocate(fd, 0, 9), lambda: os.write(fd, b"evil"),
                  lambda: os.sendfile(fd, os.open("mine", os.O_RDONLY), 0, 5),
                  lambda: os.copy_file_range(os.open("mine", os.O_RDONLY), fd, 5),
                  lambda: libc.ioctl(fd, 0x40049409, os.open("mine", os.O_RDONLY)) == 0 or os.write(-1, b"")):
            try:
                f()
                return
            except OSError:
                pass
        raise OSError

    attempt("by reading " + path, allocated)

attempt("io_uring", lambda: call(425, 4, bytes(120)))
attempt("user namespace", lambda: call(272, 0x10000000))
attempt("mounts of a user namespace", lambda: call(272, 0x10020000))
attempt("clone3", lambda: call(435, struct.pack("11Q", 0x10000000, *[0] * 10), 88))
attempt("mount", lambda: libc.mount(b"dir", b".git", None, 4096, None) and os.write(-1, b""))
attempt("open_tree", lambda: call(428, AT, b"dir", 1))
attempt("fsopen", lambda: call(430, b"tmpfs", 0))
attempt("move_mount", lambda: call(429, AT, b"dir", AT, b".git", 0))
attempt("chroot", lambda: os.chroot("dir"))
attempt("open by handle", lambda: call(304, AT, bytes(136), os.O_WRONLY))
attempt("userfaultfd", lambda: call(323, 0))
attempt("bpf", lambda: call(321, 0, bytes(128), 128))
attempt("flags of a directory", lambda: [os.write(-1, b"") for _ in [0] if libc.ioctl(os.open(".", 0), 0x40086602, struct.pack("l", 0x40000000))])
attempt("attributes", lambda: call(469, AT, b".git/config", bytes(32), 32, 0))
for n in (1, 14, 23, 24):
    attempt("subvolume %d" % n, lambda: [os.write(-1, b"") for _ in [0] if libc.ioctl(
        os.open(".", 0), 0x50009400 | n, struct.pack("q", os.open(".", 0)) + b".claude".ljust(4088, b"\0"))])

parent = os.getppid()
attempt("trace the supervisor", lambda: call(101, 16, parent, 0, 0))
attempt("seize the supervisor", lambda: call(101, 0x4206, parent, 0, 0))
attempt("memory of the supervisor", lambda: open("/proc/%d/mem" % parent, "r+b"))
attempt("descriptors of the supervisor", lambda: os.listdir("/proc/%d/fd" % parent) and os.stat("/proc/%d/fd/3" % parent))
attempt("its directory", lambda: os.stat("/proc/%d/cwd" % parent))
attempt("its root", lambda: write(os.open("/proc/%d/root%s/.mcp.json" % (parent, os.getcwd()), os.O_WRONLY | os.O_CREAT)))


def of_supervisor():
    pid = call(434, parent, 0)
    for n in range(3, 64):
        try:
            call(438, pid, n, 0)
            return
        except OSError:
            pass
    raise OSError


attempt("pidfd_getfd", of_supervisor)
attempt("process_vm_writev", lambda: call(311, parent, bytes(16), 1, bytes(16), 1, 0))
attempt("process_vm_readv", lambda: call(310, parent, bytes(16), 1, bytes(16), 1, 0))
attempt("process_madvise", lambda: call(440, call(434, parent, 0), bytes(16), 1, 4, 0))
attempt("kcmp", lambda: call(312, parent, os.getpid(), 2, 0, 0))

child = subprocess.Popen(["sleep", "100"])
attempt("trace a sibling", lambda: call(101, 16, child.pid, 0, 0))
child.kill()
child.wait()


# A second listener would answer in the place of the supervisor.
def listens():
    code = struct.pack("HBBI", 0x06, 0, 0, 0x7FC00000)
    keep = ctypes.create_string_buffer(code)
    call(317, 1, 8, ctypes.addressof(ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(keep)))))


attempt("a second listener", listens)


# Directories move around the names while others write below them.
over = threading.Event()


def moves():
    for a, b in [("dir", ".git"), ("dir", ".claude"), ("dir", ".git/hooks"), ("dir/config", ".git/config"), ("dir", "dir2"),
                 ("dir2", "dir"), (".git", "git")] * 150:
        for f in (os.rename, lambda a, b: call(316, AT, a.encode(), AT, b.encode(), 2),
                  lambda a, b: (os.symlink(b, "way"), os.rename("way", a))):
            try:
                f(a, b)
            except OSError:
                pass
    over.set()


mover = threading.Thread(target=moves)
mover.start()
while not over.is_set():
    for path in ("dir/config", "dir/../.git/config", "way/config", "dir/hooks/pre-commit", "way/hooks/pre-commit"):
        try:
            write(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
        except OSError:
            pass
mover.join()

# A program without a file writes as any other.
fd = os.memfd_create("program")
with open("/bin/sh", "rb") as file:
    os.write(fd, file.read())
if os.fork() == 0:
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 2)
    os.execve(fd, ["sh", "-c", "echo evil >> .git/config; echo evil > .mcp.json; mkdir .claude; echo x > ran"], os.environ)
os.wait()
print("tried")

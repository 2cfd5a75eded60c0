"""The attacks: unrestricted Python, by area, each with the outcomes that count as contained at full isolation.

An outcome is ``value: TEXT`` (what ``step`` returned; ``result`` is what the statements set) or the name of the error
that the caller sees, a colon and its message.
"""

from typing import NamedTuple


class Attack(NamedTuple):
    """Statements of ``step`` and a regular expression that matches the outcome if it was contained."""

    area: str
    statements: str
    contained: str


PERMISSION = r"ProgramRaised: PermissionError: \[Errno 1\]"
NO_HANDLE = r"ProgramRaised: (PermissionError|OSError)"
TIMEOUT = "ProgramTimeout"
DIED = "ProgramDied"
FORGED = "ProtocolViolation"
LIBC = "libc = ctypes.CDLL(None, use_errno=True)\n"
PAGE = (
    LIBC + "page = mmap.mmap(-1, 4096)\naddress = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
)
FORGE = "wire = writable_descriptors()[0]\n"
ANSWER = "frame = msgpack.packb([0, ['forged', 1.0, True, False, {}]])\nframe = struct.pack('<I', len(frame)) + frame\n"


def _refused(area: str, **attacks: str) -> dict[str, Attack]:
    return {name.replace("_", " "): Attack(area, statements, PERMISSION) for name, statements in attacks.items()}


ATTACKS: dict[str, Attack] = {
    **_refused(
        "files",
        open_for_reading="open('/etc/passwd')",
        open_for_writing="open('/tmp/pwned', 'w')",
        open_own_memory="open('/proc/self/mem', 'r+b')",
        list_a_folder="os.listdir('/')",
        make_a_link="os.symlink('x', '/tmp/pwned-link')",
        make_a_folder="os.mkdir('/tmp/pwned-folder')",
    ),
    **_refused(
        "file names",
        stat="os.stat('/etc')",
        read_a_link="os.readlink('/proc/self/exe')",
        change_folder="os.chdir('/')",
    ),
    **_refused(
        "network",
        socket="socket.socket()",
        datagram_socket="socket.socket(type=socket.SOCK_DGRAM)",
        unix_socket="socket.socket(socket.AF_UNIX)",
        socket_pair="socket.socketpair()",
    ),
    **_refused(
        "processes",
        fork="if os.fork() == 0: os._exit(0)",
        fork_bomb="while True: os.fork()",
        execute="os.execv('/bin/true', ['true'])",
        spawn="os.posix_spawn('/bin/true', ['true'], {})",
    ),
    **_refused(
        "signals",
        kill_the_parent="os.kill(os.getppid(), 0)",
        kill_everything="os.kill(-1, 0)",
        stop_itself="os.kill(os.getpid(), signal.SIGSTOP)",
        kill_a_thread="syscall('tgkill', os.getppid(), os.getppid(), 0)",
        handle_of_a_process="syscall('pidfd_open', os.getppid(), 0)",
    ),
    **_refused(
        "ptrace",
        attach="syscall('ptrace', 16, os.getppid(), 0, 0)",
        read_the_memory_of_another="syscall('process_vm_readv', os.getppid(), 0, 0, 0, 0, 0)",
    ),
    **_refused(
        "shared memory",
        system_v="syscall('shmget', 0, 4096, 0o1777)",
        posix="syscall('mq_open', b'/x', 0o102, 0o600, 0)",
        memory_file="os.memfd_create('x')",
        secret_memory_file="syscall('memfd_secret', 0)",
    ),
    **_refused(
        "kernel surface",
        handle_by_name="syscall('name_to_handle_at', 0, 0, 0, 0, 0)",
        mount="syscall('mount', 0, 0, 0, 0, 0)",
        chroot="syscall('chroot', b'/tmp')",
        clone3="syscall('clone3', 0, 0)",
        io_uring="syscall('io_uring_setup', 1, 0)",
        userfaultfd="syscall('userfaultfd', 0)",
        bpf="syscall('bpf', 0, 0, 0)",
        perf_events="syscall('perf_event_open', 0, 0, 0, 0, 0)",
        namespaces="syscall('unshare', 0x10000000)",
        keys="syscall('keyctl', 0, 0, 0)",
        module="syscall('init_module', 0, 0, 0)",
        reboot="syscall('reboot', 0, 0, 0, 0)",
        ioctl="syscall('ioctl', writable_descriptors()[0], 0x5401, 0)",
        poison_a_page=PAGE + "if libc.madvise(address, 4096, 100): raise OSError(ctypes.get_errno(), 'madvise')",
    ),
    **_refused(
        "executable memory",
        map_it="mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
        make_it_so=PAGE + "if libc.mprotect(address, 4096, 7): raise OSError(ctypes.get_errno(), 'mprotect')",
        by_protection_key="syscall('pkey_mprotect', 0, 4096, 7, -1)",
        personality="syscall('personality', 0x0400000)",
    ),
    **_refused(
        "own limits",
        change_user="syscall('setuid', 0)",
        process_control="syscall('prctl', 38, 0, 0, 0, 0)",
        another_filter="syscall('seccomp', 1, 0, 0)",
    ),
    "raise a limit": Attack(
        "own limits", "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))", "ProgramRaised: ValueError: not allowed"
    ),
    "raise the limit of memory": Attack(
        "own limits", "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "ProgramRaised: ValueError: not allowed"
    ),
    "environment": Attack("caller", "result = 'SPADE_TEST_TOKEN' in os.environ", "value: False"),
    "environment of the zygote": Attack("caller", "result = open(f'/proc/{os.getppid()}/environ').read()", NO_HANDLE),
    "command line of the caller": Attack(
        "caller", "result = sys.argv and open('/proc/self/cmdline').read()", NO_HANDLE
    ),
    "inherited descriptors": Attack("descriptors", "result = len(writable_descriptors())", "value: 1$"),
    "duplicate": Attack("descriptors", "os.dup(writable_descriptors()[0])", NO_HANDLE),
    "pipes": Attack("descriptors", "while True: os.pipe()", NO_HANDLE),
    "pass one on": Attack("descriptors", "syscall('sendmsg', writable_descriptors()[0], 0, 0)", NO_HANDLE),
    "threads": Attack("exhaustion", "while True: _thread.start_new_thread(print, ())", "ProgramRaised: RuntimeError"),
    "memory": Attack(
        "exhaustion", "hoard = []\nwhile True: hoard.append(bytearray(8 << 20))", "ProgramRaised: MemoryError"
    ),
    "memory in one mapping": Attack("exhaustion", "mmap.mmap(-1, 1 << 33)", r"ProgramRaised: OSError: \[Errno 12\]"),
    "locked memory": Attack(
        "exhaustion", PAGE + "if libc.mlock(address, 4096): raise OSError(ctypes.get_errno(), 'mlock')", NO_HANDLE
    ),
    "disk": Attack(
        "exhaustion", "with open('/tmp/pwned', 'wb') as file: file.write(bytes(1 << 20))", f"{NO_HANDLE}|{DIED}"
    ),
    "loop": Attack("time", "while True: pass", TIMEOUT),
    "one long call into C": Attack("time", "sum(range(10**13))", TIMEOUT),
    "regular expression": Attack("time", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", TIMEOUT),
    "generator that will not close": Attack(
        "time",
        "def stubborn():\n    while True:\n        try: yield\n        except BaseException: pass\n"
        "kept = stubborn()\nnext(kept)\nkept.close()\nwhile True: pass",
        f"{TIMEOUT}|ProgramRaised: RuntimeError",
    ),
    "sleep": Attack("time", "import time\ntime.sleep(1000)", TIMEOUT),
    "signals switched off": Attack("time", "signal.signal(signal.SIGPROF, signal.SIG_IGN)\nwhile True: pass", TIMEOUT),
    "signals blocked": Attack(
        "time", "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass", TIMEOUT
    ),
    "every exception swallowed": Attack(
        "time", "while True:\n    try:\n        while True: pass\n    except BaseException: pass", TIMEOUT
    ),
    "loop in a finaliser": Attack(
        "time", "class Late:\n    def __del__(self):\n        while True: pass\nLate()\ngc.collect()", TIMEOUT
    ),
    "finaliser that never ends, left behind": Attack(
        "ending",
        "class Late:\n    def __del__(self):\n        while True: pass\nsys.late = Late()\nresult = 1",
        "value: 1$",
    ),
    "loop at exit": Attack(
        "ending", "def late():\n    while True: pass\natexit.register(late)\nresult = 1", "value: 1$"
    ),
    "loop at exit, taken": Attack(
        "ending", "atexit.register(lambda: [0 for _ in iter(int, 1)])\nsys.exit()", "ProgramRaised"
    ),
    "loop in the text of an exception": Attack(
        "time", "class Odd(Exception):\n    def __str__(self):\n        while True: pass\nraise Odd", TIMEOUT
    ),
    "exit": Attack("crash", "os._exit(0)", DIED),
    "segmentation fault": Attack("crash", "ctypes.string_at(0)", DIED),
    "stack overflow": Attack(
        "crash", "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", f"{DIED}|ProgramRaised|{TIMEOUT}"
    ),
    "nested C calls": Attack(
        "crash", "x = iter([1])\nfor _ in range(10**5): x = map(abs, x)\nnext(x)", f"{DIED}|{TIMEOUT}"
    ),
    "garbage on the wire": Attack("wire", FORGE + "os.write(wire, b'\\xff' * 64)\nos._exit(0)", FORGED),
    "an oversized frame": Attack("wire", FORGE + "os.write(wire, struct.pack('<I', 2**31))\nos._exit(0)", FORGED),
    "half a frame, then silence": Attack(
        "wire", FORGE + ANSWER + "os.write(wire, frame[:-2])\nwhile True: pass", f"{TIMEOUT}|{FORGED}"
    ),
    "half a frame, then death": Attack("wire", FORGE + ANSWER + "os.write(wire, frame[:-2])\nos._exit(0)", DIED),
    "an answer too many": Attack("truth", FORGE + ANSWER + "os.write(wire, frame * 2)\nos._exit(0)", FORGED),
    "an endless stream": Attack("wire", FORGE + "while True: os.write(wire, bytes(1 << 16))", FORGED),
    "a frame byte by byte": Attack(
        "wire",
        FORGE + "os.write(wire, struct.pack('<I', 60000))\n"
        "while True:\n    os.write(wire, b'\\x91')\n    sum(range(20000))",
        TIMEOUT,
    ),
    "a frame of lists in lists": Attack(
        "wire",
        FORGE + "os.write(wire, struct.pack('<I', 100000) + b'\\x91' * 100000)\nos._exit(0)",
        FORGED,
    ),
    "a header of a billion items": Attack(
        "wire", FORGE + "os.write(wire, struct.pack('<I', 5) + b'\\xdd' + b'\\x40' * 4)\nos._exit(0)", FORGED
    ),
    "values of other types": Attack(
        "wire",
        FORGE + "body = msgpack.packb([0, ['forged', 'much', 1, 0, []]])\n"
        "os.write(wire, struct.pack('<I', len(body)) + body)\nos._exit(0)",
        FORGED,
    ),
    "a closed wire": Attack("wire", FORGE + "os.close(wire)\nwhile True: pass", f"{DIED}|{TIMEOUT}"),
    "an answer of its own": Attack("truth", FORGE + ANSWER + "os.write(wire, frame)\nos._exit(0)", "ProtocolViolation"),
    "import": Attack("files", "import tabnanny", "ProgramRaised: (ModuleNotFoundError|PermissionError)"),
    "arithmetic": Attack("still works", "result = sum(range(1000))", "value: 499500$"),
    "memory within the limit": Attack("still works", "result = len(bytearray(32 << 20))", "value: 33554432$"),
}

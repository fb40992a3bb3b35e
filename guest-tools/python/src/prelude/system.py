"""The system of a script: files that it can read, clocks, variables and randomness."""
import _io
import _kitbag
import builtins
import errno
import io
import os
import posix
import stat as stat_module
import sys
import time

THROUGH_TOOLS = (
    "a script changes files by tools alone, such as `write_file(path=…, content=…)`, which the user "
    "turns on with `[toolsets] write = true`"
)
NO_PROCESSES = "a script starts no processes; call tools instead, help() lists them"

NOT_FOUND = errno.ENOENT

# Linux's numbers of errors, which scripts expect, in place of WASI's.
NUMBERS = {
    "EPERM": 1, "ENOENT": 2, "EIO": 5, "EBADF": 9, "EAGAIN": 11, "ENOMEM": 12, "EACCES": 13,
    "EBUSY": 16, "EEXIST": 17, "ENODEV": 19, "ENOTDIR": 20, "EISDIR": 21, "EINVAL": 22,
    "EMFILE": 24, "ENOSPC": 28, "ESPIPE": 29, "EROFS": 30, "EPIPE": 32, "ERANGE": 34,
    "ENAMETOOLONG": 36, "ENOSYS": 38, "ENOTEMPTY": 39, "ELOOP": 40, "ENOTSUP": 95,
}


def path_text(path):
    """Returns a path as a string."""
    return os.fsdecode(path)


def refused(path):
    """Returns the exception for an operation that would change a file."""
    return PermissionError(13, f"Permission denied: {path_text(path)!r}: {THROUGH_TOOLS}")


def explained(error, path, verb):
    """Returns an error of the system in the words of Python on Linux, with the reason."""
    path = path_text(path)
    name, number, message = _kitbag.problem(path, verb, error.errno or 0)
    if name == "PermissionError":
        return PermissionError(number, f"Permission denied: {path!r}: {message}")
    return getattr(builtins, name)(number, message, path)


def check_granted(path, verb):
    """Raises an exception for a path with `..` that leaves the granted directories.

    The system would report the attempt as well, and with another spelling.
    """
    if ".." in path_text(path) and not _kitbag.is_granted(path_text(path)):
        raise explained(OSError(NOT_FOUND, ""), path, verb)


def is_path(value):
    return isinstance(value, (str, bytes, os.PathLike))


def reading(function, verb):
    """Wraps a function of `posix` that reads, to explain its errors."""
    def wrapper(*args, **kwargs):
        path = args[0] if args else kwargs.get("path", ".")
        if is_path(path):
            check_granted(path, verb)
        try:
            return function(*args, **kwargs)
        except OSError as error:
            if not is_path(path) or error.errno is None:
                raise
            problem = explained(error, path, verb)
        raise problem
    return named(wrapper, function)


def changing(function):
    """Replaces a function of `posix` that would change a file."""
    def wrapper(*args, **kwargs):
        paths = [value for value in (*args, *kwargs.values()) if is_path(value)]
        raise refused(paths[0] if paths else "file")
    return named(wrapper, function)


def named(wrapper, function):
    wrapper.__name__ = wrapper.__qualname__ = function.__name__
    wrapper.__module__ = "posix"
    return wrapper


# Directories

class DirEntry:
    """An entry of a directory, as `os.scandir` returns it."""
    __slots__ = ("name", "path", "_kind")

    def __init__(self, name, path, kind):
        self.name, self.path, self._kind = name, path, kind

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks=True):
        if self._kind == "link" and follow_symlinks:
            return os.path.isdir(self.path)
        return self._kind == "directory"

    def is_file(self, *, follow_symlinks=True):
        if self._kind == "link" and follow_symlinks:
            return os.path.isfile(self.path)
        return self._kind == "file"

    def is_symlink(self):
        return self._kind == "link"

    def is_junction(self):
        return False

    def stat(self, *, follow_symlinks=True):
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def inode(self):
        return os.stat(self.path, follow_symlinks=False).st_ino


class Scan:
    """The result of `os.scandir`."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._entries = iter(())


def entries(path):
    path = os.fspath(path)
    found = _kitbag.entries(path_text(path))
    if isinstance(found, int):
        raise explained(OSError(found, ""), path, "listed")
    return path, found


def listdir(path="."):
    path, found = entries("." if path is None else path)
    names = [name for name, _ in found]
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def scandir(path="."):
    path, found = entries("." if path is None else path)
    if isinstance(path, bytes):
        found = [(os.fsencode(name), kind) for name, kind in found]
    return Scan([DirEntry(name, os.path.join(path, name), kind) for name, kind in found])


def mkdir(path, mode=0o777, *, dir_fd=None):
    if os.path.lexists(path):
        raise FileExistsError(17, "File exists", path_text(path))
    raise refused(path)


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    return os.path.exists(path) and not mode & os.W_OK and not (mode & os.X_OK and os.path.isfile(path))


# Files

def check_flags(path, flags):
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
        raise refused(path)


system_open = posix.open


def open_descriptor(path, flags, mode=0o777, *, dir_fd=None):
    check_flags(path, flags)
    try:
        return system_open(path, flags, mode, dir_fd=dir_fd)
    except OSError as error:
        problem = explained(error, path, "opened")
    raise problem


def write_descriptor(descriptor, data):
    """Writes to the output of the script, which is the only file that is open for writing."""
    if descriptor not in (1, 2):
        raise OSError(NUMBERS["EBADF"], "Bad file descriptor")
    _kitbag.write(bytes(data).decode("utf-8", "replace"))
    return len(data)


system_init = _io.FileIO.__init__


def init_file(self, file, mode="rb", closefd=True, opener=None):
    if not is_path(file):
        if isinstance(file, int) and set(mode) & set("wax+"):
            raise OSError(NUMBERS["EBADF"], "Bad file descriptor")
        return system_init(self, file, mode, closefd, opener)
    if set(mode) & set("wax+"):
        raise refused(file)
    check_granted(file, "opened")
    try:
        return system_init(self, file, mode, closefd, opener)
    except OSError as error:
        if error.errno is None:
            raise
        problem = explained(error, file, "opened")
    raise problem


system_open_file = _io.open


def open_file(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    if encoding in (None, "locale") and "b" not in mode:
        encoding = "utf-8"
        # An encoding is detected only where the script does not choose one.
        if errors is None and opener is None and is_path(file) and not set(mode) & set("wax+"):
            encoding, errors = _kitbag.encoding(path_text(file))
    return system_open_file(file, mode, buffering, encoding, errors, newline, closefd, opener)


open_file.__name__ = open_file.__qualname__ = "open"

READING = {"stat": "looked at", "lstat": "looked at", "readlink": "read", "chdir": "entered"}
CHANGING = (
    "chmod", "chown", "copy_file_range", "fchmod", "fchown", "ftruncate", "lchmod", "lchown", "link",
    "mkdirs", "mkfifo", "mknod", "posix_fallocate", "pwrite", "pwritev", "remove", "rename", "replace",
    "rmdir", "sendfile", "symlink", "truncate", "unlink", "utime", "writev",
)
STARTING = (
    "execv", "execve", "fork", "forkpty", "kill", "killpg", "posix_spawn", "posix_spawnp", "system",
    "wait", "wait3", "wait4", "waitpid",
)


def no_processes(*args, **kwargs):
    raise PermissionError(13, f"Permission denied: {NO_PROCESSES}")


def leave(status=0):
    raise SystemExit(status)


def abort():
    raise SystemExit("the script called os.abort()")


def replacements():
    """Returns the functions of `posix` that are replaced."""
    found = {
        "_exit": leave, "abort": abort, "access": access, "listdir": listdir, "mkdir": mkdir, "open": open_descriptor,
        "scandir": scandir, "write": write_descriptor,
    }
    for name, verb in READING.items():
        if hasattr(posix, name):
            found[name] = reading(getattr(posix, name), verb)
    for name in CHANGING:
        if hasattr(posix, name):
            found[name] = changing(getattr(posix, name))
    for name in STARTING:
        if hasattr(posix, name):
            found[name] = no_processes
    return found


def replace_functions():
    found = replacements()
    for module in (posix, os):
        for name, function in found.items():
            if hasattr(module, name):
                setattr(module, name, function)
    os.popen = os.system = no_processes
    for functions in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        functions.clear()
    os.supports_follow_symlinks.add(os.stat)
    builtins.open = io.open = _io.open = open_file
    _io.open_code = io.open_code = lambda path: open_file(path, "rb")
    _kitbag.replace_init(_io.FileIO, init_file)
    _kitbag.replace_os_error()
    for name, number in NUMBERS.items():
        setattr(errno, name, number)
        errno.errorcode[number] = name


# Clocks

system_gmtime, system_strftime = time.gmtime, time.strftime


def gmtime(seconds=None):
    fields = system_gmtime() if seconds is None else system_gmtime(seconds)
    year, month, day = fields[:3]
    weekday = (day_number(year, month, day) + 6) % 7
    return time.struct_time((*fields[:6], weekday, *fields[7:]))


def day_number(year, month, day):
    """Returns the days since the year 1, as `date.toordinal`."""
    before = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)[month - 1]
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 + before + (month > 2 and is_leap) + day


def strftime(format, fields=None):
    format = format.replace("%Z", "UTC").replace("%z", "+0000")
    return system_strftime(format, gmtime() if fields is None else fields)


def ctime(seconds=None):
    return time.asctime(gmtime(seconds))


def replace_clocks():
    time.gmtime = time.localtime = gmtime
    time.strftime, time.ctime = strftime, ctime
    time.tzname, time.timezone, time.altzone, time.daylight = ("UTC", "UTC"), 0, 0, 0
    time.tzset = lambda: None
    time.process_time = time.thread_time = time.perf_counter
    time.process_time_ns = time.thread_time_ns = time.perf_counter_ns


# The start of a call

def begin():
    """Takes the directory, the variables and the randomness of a call."""
    try:
        system_chdir(_kitbag.root() or "/")
    except OSError:
        # No directory is granted.
        pass
    variables = os.environ._data
    variables.clear()
    for name, value in _kitbag.environment().items():
        variables[os.fsencode(name)] = os.fsencode(value)
    random = sys.modules.get("random")
    if random is not None:
        random.seed()


system_chdir = posix.chdir
replace_functions()
replace_clocks()

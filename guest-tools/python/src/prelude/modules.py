"""Modules that a script cannot use, and changes of others."""
import _io
import _kitbag
import builtins
import io
import signal
import sys
import threading

TOOLS = "call tools instead; help() lists them"
WEB = "use the tool `fetch` if help() lists it"
ASYNC = "use `await asyncio.gather(f(…), g(…))`, which runs calls of tools concurrently"
PACKAGES = "no packages can be installed; use the standard library"
MEMORY = "a script changes no files itself; keep data in variables, or in `io.StringIO`"
TESTS = "use `unittest`, or `assert`"

# What to use instead of a module, by its name.
INSTEAD = {
    "_socket": WEB, "_thread": ASYNC, "multiprocessing": ASYNC, "threading": ASYNC,
    "subprocess": TOOLS, "pty": TOOLS, "signal": TOOLS, "sqlite3": "use dictionaries, or a tool",
    "ctypes": "there is no native code", "cffi": "there is no native code", "mmap": "use `open`",
    "aiohttp": WEB, "ftplib": WEB, "http.client": WEB, "http.server": WEB, "httpx": WEB, "imaplib": WEB,
    "poplib": WEB, "requests": WEB, "select": WEB, "selectors": WEB, "smtplib": WEB, "socket": WEB,
    "socketserver": WEB, "ssl": WEB, "telnetlib": WEB, "urllib.request": WEB, "urllib3": WEB,
    "webbrowser": WEB, "xmlrpc": WEB,
    "numpy": "use lists, `statistics` and `math`", "pandas": "use `csv`, `json` and dictionaries",
    "scipy": "use `statistics` and `math`", "sympy": "use `fractions` and `decimal`",
    "matplotlib": "print a table", "yaml": "use a tool that converts YAML, or `json`",
    "bs4": "use `html.parser`, or the tool `html_to_markdown` if help() lists it",
    "lxml": "use `xml.etree.ElementTree`", "dateutil": "use `datetime` and `zoneinfo`",
    "pytz": "use `zoneinfo`", "toml": "use `tomllib`", "regex": "use `re`",
    "curses": "print text", "readline": "pass values in `inputs`", "getpass": "pass values in `inputs`",
    "tkinter": "print text", "turtle": "print text", "pip": PACKAGES, "venv": PACKAGES,
    "ensurepip": PACKAGES, "pdb": "use `print`", "cProfile": "use `time.perf_counter`",
    "profile": "use `time.perf_counter`", "doctest": TESTS, "pytest": TESTS, "pydoc": "use `help(f)` and `f.__doc__`",
    "dbm": "use dictionaries", "shelve": "use dictionaries", "tarfile": "use a tool",
    "resource": "the limits are those of the call", "tempfile": MEMORY, "pwd": "there are no users",
    "grp": "there are no users", "termios": "there is no terminal", "tty": "there is no terminal",
}

system_import = builtins.__import__


def unavailable(name):
    """Returns the exception for a module that does not exist here."""
    top = name.partition(".")[0]
    instead = INSTEAD.get(name) or INSTEAD.get(top) or PACKAGES
    return ModuleNotFoundError(f"No module named {name!r}: {instead}", name=name)


def import_module(name, globals=None, locals=None, fromlist=(), level=0):
    """Imports a module for a script, or for a module that the script uses."""
    is_script = globals is not None and globals.get("__name__") == "__main__"
    if is_script and level == 0 and (name in INSTEAD or name.partition(".")[0] in INSTEAD):
        raise unavailable(name)
    try:
        return system_import(name, globals, locals, fromlist, level)
    except ModuleNotFoundError as error:
        if not is_script or level or error.name is None or error.msg != f"No module named {error.name!r}":
            raise
        problem = unavailable(error.name)
    raise problem


# Input and output

class Output(io.TextIOBase):
    """The output of a script."""
    encoding, errors, newlines, name, mode = "utf-8", "strict", None, "<stdout>", "w"
    write = _kitbag.write

    @property
    def buffer(self):
        return Buffer()

    def writable(self):
        return True

    def reconfigure(self, **_):
        pass


class Buffer(io.RawIOBase):
    """The output of a script, for bytes."""

    def write(self, data):
        _kitbag.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def writable(self):
        return True


def no_input(*_, **__):
    raise EOFError("a script has no keyboard and no standard input; pass values in `inputs`")


class Input(io.TextIOBase):
    """The standard input of a script, which has none."""
    encoding, errors, name, mode = "utf-8", "strict", "<stdin>", "r"
    read = readline = readlines = no_input

    def readable(self):
        return True

    def __next__(self):
        no_input()


no_input.__name__ = no_input.__qualname__ = "input"


def no_debugger(*_, **__):
    raise RuntimeError("a script has no debugger; use `print`")


no_debugger.__name__ = no_debugger.__qualname__ = "breakpoint"


def begin():
    """Sets the streams of a call."""
    sys.stdout = sys.__stdout__ = sys.stderr = sys.__stderr__ = Output()
    sys.stdin = sys.__stdin__ = Input()
    sys.argv = ["script.py"]
    sys.dont_write_bytecode = True


builtins.__import__ = _kitbag.importer(import_module)
for name in ("compile", "eval", "exec"):
    setattr(builtins, name, _kitbag.checked(getattr(builtins, name), name))
builtins.input = no_input
builtins.breakpoint = sys.breakpointhook = no_debugger
builtins.exit = builtins.quit = sys.exit


# Time zones

def zone_file(key):
    rules = _kitbag.zone(key)
    if rules is None:
        from zoneinfo import ZoneInfoNotFoundError
        raise ZoneInfoNotFoundError(f"No time zone found with key {key}")
    return io.BytesIO(rules)


def add_zones():
    import zoneinfo
    from zoneinfo import _common, _tzpath
    _tzpath.reset_tzpath(to=())
    _common.load_tzdata = zone_file
    zoneinfo.available_timezones = _tzpath.available_timezones = lambda: set(_kitbag.zones())


for name, number in (("SIGINT", 2), ("SIGTERM", 15), ("SIGKILL", 9), ("SIG_DFL", 0), ("SIG_IGN", 1)):
    if not hasattr(signal, name):
        setattr(signal, name, number)
# The library is in this component, and its directories do not exist.
sys.path.clear()
# There is one thread, so it owns every lock.
threading.Condition._is_owned = lambda self: True
add_zones()

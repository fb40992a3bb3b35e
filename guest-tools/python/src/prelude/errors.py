"""Exceptions of a script, as a model reads them."""
import _kitbag
import linecache
import traceback

FILE = "script.py"
AWAITABLE = ("awaitable", "can't be awaited", "can't be used in 'await'", "coroutine, a future")


def describe(error):
    """Returns the traceback of an exception with the lines of the script, and a hint."""
    # Lines are looked up after the frames of modules are removed: these have no files here.
    found = traceback.TracebackException.from_exception(error, lookup_lines=False)
    keep_lines_of_script(found, set())
    text = "".join(found.format()).rstrip()
    hint = hint_for(error)
    return text if hint is None else f"{text}\n{hint}"


def keep_lines_of_script(found, seen):
    """Removes the frames of modules from a traceback, and from those of its causes."""
    if id(found) in seen:
        return
    seen.add(id(found))
    if found.stack:
        found.stack[:] = [frame for frame in found.stack if frame.filename == FILE] or ()
        if not found.stack:
            found.stack = None
    for other in found.exceptions or ():
        keep_lines_of_script(other, seen)
    for name in ("__cause__", "__context__"):
        other = getattr(found, name)
        if other is not None:
            was_raised = bool(other.stack)
            keep_lines_of_script(other, seen)
            # The causes of errors in modules are of no use to a script.
            if was_raised and not other.stack:
                setattr(found, name, None)


def hint_for(error):
    """Returns the way out of an error, if there is an obvious one."""
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        near = _kitbag.nearest(error.name) if isinstance(error.name, str) else None
        if near is not None:
            return f"did you mean the tool `{near}`? help() lists all"
    elif isinstance(error, TypeError):
        if _kitbag.calls() and any(part in str(error) for part in AWAITABLE):
            return (
                "a call of a tool returns its result; directly in `await …` or `gather(…)`, or in a "
                "list that is gathered, it returns a future"
            )
    elif isinstance(error, MemoryError):
        return "work on a part of the data at a time"
    elif isinstance(error, RecursionError):
        return (
            "calls may be 1,000 deep, and about 200 through built-in functions and methods such as "
            "`__repr__`; use a loop, or a list of what is left to do"
        )
    return None


def remember(source):
    """Makes the lines of the script available to tracebacks."""
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)

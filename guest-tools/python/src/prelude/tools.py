"""Tools as functions, and the event loop that waits for them."""
import _kitbag
import asyncio
import builtins
import concurrent.futures
import inspect
import time
from asyncio import base_events, events, runners, tasks

# How often the loop runs tasks that are ready before it waits for a call, and for how long it
# sleeps while it waits for a call and for a timer.
BUSY_ROUNDS = 1000
NAP_SECONDS = 0.002


class Tool:
    """A tool, as a function."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __call__(self, /, *args, **kwargs):
        return _kitbag.call(self.__name__, args, kwargs)

    def __repr__(self):
        return f"<tool {self.__name__}>"

    def start(self, /, *args, **kwargs):
        """Starts a call, and returns its result as a future."""
        return Started(_kitbag.start(self.__name__, args, kwargs))


class Started:
    """The result of a call that runs."""

    def __init__(self, number):
        self._number = number
        self._future = None

    def __await__(self):
        if self._future is None:
            self._future = events.get_running_loop().wait_for_call(self._number)
        return self._future.__await__()

    def __repr__(self):
        return "<result of a call of a tool: await it>"


def start(function):
    """Returns what an awaited call of a function calls."""
    return function.start if isinstance(function, Tool) else function


class Loop(base_events.BaseEventLoop):
    """An event loop without sockets.

    It finishes calls in the order in which they were started, since a script that is run again
    after a question must continue in the same way.
    """

    def __init__(self):
        super().__init__()
        self._selector = self
        self._calls = {}
        self._busy = 0

    def wait_for_call(self, number):
        """Returns a future of the result of a call."""
        future = self._calls[number] = self.create_future()

        def forget(future):
            if future.cancelled():
                self._calls.pop(number, None)
                _kitbag.drop_call(number)

        future.add_done_callback(forget)
        return future

    def select(self, timeout):
        """Waits for the call that was started first, or for a timer."""
        if timeout == 0:
            self._busy += 1
            if self._calls and self._busy > BUSY_ROUNDS:
                self._finish()
            return ()
        self._busy = 0
        if timeout is None:
            if not self._calls:
                raise RuntimeError("all tasks wait, and nothing is left that could wake one")
            self._finish()
        elif not self._calls:
            time.sleep(timeout)
        else:
            end = self.time() + timeout
            while not _kitbag.has_ended(min(self._calls)):
                left = end - self.time()
                if left <= 0:
                    return ()
                time.sleep(min(NAP_SECONDS, left))
            self._finish()
        return ()

    def _finish(self):
        self._busy = 0
        number = min(self._calls)
        future = self._calls.pop(number)
        try:
            result = _kitbag.finish(number)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def create_task(self, coro, **kwargs):
        if not asyncio.iscoroutine(coro) and inspect.isawaitable(coro):
            coro = finished(coro)
        return super().create_task(coro, **kwargs)

    def run_in_executor(self, executor, func, *args):
        """Calls a function at once, since there are no threads."""
        if isinstance(func, Tool):
            return self.create_task(func.start(*args))
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass


class Pool(concurrent.futures.Executor):
    """A pool without threads, which calls functions at once."""

    def __init__(self, *_, **__):
        pass

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


async def finished(awaitable):
    return await awaitable


async def to_thread(func, /, *args, **kwargs):
    """Calls a function, or awaits a tool."""
    if isinstance(func, Tool):
        return await func.start(*args, **kwargs)
    return func(*args, **kwargs)


system_run = runners.run


def run(main, *, debug=None, loop_factory=None):
    """Runs a coroutine to its end, also where a loop runs already."""
    if not asyncio.iscoroutine(main) and inspect.isawaitable(main):
        main = finished(main)
    outer = events._get_running_loop()
    if outer is None:
        return system_run(main, debug=debug, loop_factory=loop_factory)
    task = asyncio.current_task(outer)
    tasks._leave_task(outer, task)
    events._set_running_loop(None)
    try:
        return system_run(main, debug=debug, loop_factory=loop_factory)
    finally:
        events._set_running_loop(outer)
        tasks._enter_task(outer, task)


def get_event_loop():
    """Returns the loop that runs, or one for `run_until_complete`."""
    global spare
    loop = events._get_running_loop()
    if loop is not None:
        return loop
    if spare is None or spare.is_closed():
        spare = Loop()
    return spare


spare = None


def new_event_loop():
    return Loop()


def help(subject=None, /):
    """Lists the tools, or describes one."""
    if subject is None:
        text = _kitbag.help()
    elif subject is help:
        text = "help() lists the tools, and help(tool) shows one.\n"
    elif isinstance(subject, Tool):
        text = _kitbag.help(subject.__name__)
    elif isinstance(subject, str):
        text = _kitbag.help(subject)
        if text is None:
            near = _kitbag.nearest(subject)
            meant = "" if near is None else f"; did you mean `{near}`?"
            raise LookupError(f"there is no tool `{subject}`{meant}")
    else:
        text = about(subject)
    _kitbag.show(text)


def about(subject):
    """Describes an object that is not a tool."""
    name = getattr(subject, "__name__", None) or type(subject).__name__
    try:
        name += str(inspect.signature(subject))
    except (TypeError, ValueError):
        pass
    doc = inspect.getdoc(subject)
    return "\n    ".join([name, *(doc or "").splitlines()]) + "\n"


asyncio.new_event_loop = events.new_event_loop = new_event_loop
asyncio.get_event_loop = events.get_event_loop = get_event_loop
asyncio.run = runners.run = run
asyncio.to_thread = asyncio.threads.to_thread = to_thread
concurrent.futures.ThreadPoolExecutor = concurrent.futures.ProcessPoolExecutor = Pool
builtins.help = help
builtins._kitbag_start = start

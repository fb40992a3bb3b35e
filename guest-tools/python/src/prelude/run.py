"""Runs the script of a call."""
import _kitbag
import _kitbag_errors as errors
import _kitbag_modules as modules
import _kitbag_system as system
import _kitbag_tools as tools
import builtins
import gc
import sys
import types

VALUE = "_kitbag_value"
COROUTINE = 0x80


def run(source, inputs):
    """Runs a script. Returns the text of its value and None, or None and the text of its error."""
    system.begin()
    modules.begin()
    errors.remember(source)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    scope = vars(module)
    scope["__builtins__"] = builtins
    scope["__file__"] = errors.FILE
    try:
        for name, value in inputs.items():
            if not name.isidentifier():
                raise SyntaxError(f"the input {name!r} is not a name of a variable")
            scope[name] = value
        names = []
        code = _kitbag.compile(source, names)
        for name in names:
            setattr(builtins, name, tools.Tool(name))
        result = eval(code, scope)
        if code.co_flags & COROUTINE:
            tools.run(result)
        value = scope.pop(VALUE, None)
        return None if value is None else text_of(value), None
    except SystemExit as exit:
        return ended(exit.code)
    except BaseException as error:
        return None, errors.describe(error)


def text_of(value):
    """Returns a value as JSON if all of it is data, otherwise as `repr()`."""
    text = _kitbag.json(value)
    return repr(value) if text is None else text


def ended(code):
    """Returns the result of a script that called `sys.exit`."""
    if code is None or code == 0:
        return None, None
    if isinstance(code, int):
        return None, f"the script ended with `sys.exit({code})`"
    return None, str(code)


gc.collect()
gc.freeze()

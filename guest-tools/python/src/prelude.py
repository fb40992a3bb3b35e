import ast, asyncio, builtins, io, json, linecache, sys, traceback, types
import _kitbag

class _Out(io.TextIOBase):
    def write(self, text):
        _kitbag.write(text)
        return len(text)
    def writable(self): return True
    def flush(self): pass

class Tool:
    def __init__(self, name): self.__name__ = name
    def __call__(self, *args, **kwargs):
        return _kitbag.call(self.__name__, json.dumps(kwargs))

FILE = "script.py"

def show(value):
    try: return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError): return repr(value)

def run(source, inputs):
    sys.stdout = sys.stderr = _Out()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    scope = module.__dict__
    scope["__builtins__"] = builtins
    scope.update(json.loads(inputs))
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    try:
        tree = ast.parse(source, FILE)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        value = None
        for part, mode in ((tree, "exec"), (last, "eval")):
            if part is None: continue
            code = compile(part, FILE, mode, flags=flags, dont_inherit=True)
            value = eval(code, scope)
            if isinstance(value, types.CoroutineType) and code.co_flags & 0x80:
                value = asyncio.run(value)
            if mode == "exec": value = None
        return True, (None if value is None else show(value))
    except BaseException as error:
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename != FILE: tb = tb.tb_next
        return False, "".join(traceback.format_exception(type(error), error, tb))

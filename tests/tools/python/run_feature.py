import ast, contextlib, io, warnings

warnings.simplefilter("ignore")


def run_feature(snippet):
    """Returns what a snippet prints, then the `repr` of its last expression."""
    scope = {"__name__": "__main__"}
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            tree = ast.parse(snippet)
            last = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body.pop().value)
            exec(compile(tree, "<feature>", "exec", dont_inherit=True), scope)
            if last:
                value = eval(compile(last, "<feature>", "eval", dont_inherit=True), scope)
                if value is not None:
                    print(repr(value))
        except BaseException as error:
            print(f"raised {type(error).__name__}: {error}")
    return output.getvalue().rstrip("\n")

"""Commands print in one place, which knows what a terminal may have: no other code writes to one."""

import ast

from integration_tests.structure.modules import modules

# Whatever writes to standard output or error, or reads a line behind a prompt.
WAYS = {
    "print",
    "input",
    "typer.echo",
    "typer.secho",
    "typer.prompt",
    "typer.confirm",
    "typer.style",
    "click.echo",
    "click.secho",
    "getpass.getpass",
    "getpass",
    "rich.print",
    "Console",
    "Progress",
    "os.write",
}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
METHODS = {"write", "writelines", "buffer", "fileno"}

PLACES = {
    "plugin.cli.printing": "the place",
    "extensions.openai_api.cli.chat_terminal": "its prompts, which its caller makes printable",
    "extensions.runtimes.keeper.host_process": "a model's own process, whose output is the server's log",
    "runtimes.host.failures": "a model's own process",
}


def prints(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in WAYS or called.endswith(".Console"):
                return True
        if (
            isinstance(node, ast.Attribute)
            and node.attr in METHODS
            and isinstance(node.value, ast.Attribute)
            and ast.unparse(node.value) in {f"sys.{stream}" for stream in STREAMS}
        ):
            return True
    return False


def test_only_these_modules_write_to_a_terminal() -> None:
    assert {name for name, file in modules().items() if prints(file.read_text("utf-8"))} == set(PLACES)


def test_every_way_to_write_is_found() -> None:
    ways = (
        "print('a')",
        "typer.echo('a', err=True)",
        "sys.stdout.write('a')",
        "sys.stderr.buffer.write(b'a')",
        "import_module('rich.console').Console().print('a')",
        "Console(stderr=True)",
        "input('a')",
    )
    assert [way for way in ways if not prints(way)] == []
    assert not prints("print_text('a')\nsys.stdout.isatty()\nsys.stdout.flush()")

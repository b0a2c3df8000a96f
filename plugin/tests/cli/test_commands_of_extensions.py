"""What extensions add to the program: commands, options of `serve`, and the command `extensions`."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.other_package import SWITCH, Install, declaring


def test_a_command_of_another_package_is_there_where_the_settings_name_it(run: Run, install: Install) -> None:
    install()
    assert run("greet").code == 2
    assert "greet" not in run("--help").stdout
    assert run("greet", **{SWITCH: "true"}).stdout == "hello\n"
    assert " greet " in run("--help", **{SWITCH: "true"}).stdout


@pytest.mark.parametrize(
    ("part", "arguments", "problem"),
    [
        ('commands=(Command("serve", "a:b", "c"),)', ["--help"], "a command serve, which is one of the program's own"),
        ('serve_options=(ServeOption("--port", "a", "b"),)', ["serve"], "an option --port, which `serve` has itself"),
    ],
)
def test_what_has_a_name_of_the_program_is_refused(
    run: Run, install: Install, part: str, arguments: list[str], problem: str
) -> None:
    install(code=declaring(part))
    ended = run(*arguments, **{SWITCH: "true"})
    assert ended.code == 2
    assert problem in ended.stderr


def test_the_command_line_may_name_the_file_that_names_it(run: Run, install: Install, tmp_path: Path) -> None:
    install()
    file = tmp_path / "config.yml"
    file.write_text("opensearch_ml_stream.extensions.greeting: true")
    assert "--word" not in run("serve", "--help").stdout
    for option in (["--config", str(file)], [f"--config={file}"]):
        assert "--word" in run("serve", *option, "--help").stdout


def test_the_listing_says_of_each_whether_it_is_on_and_of_which_package(run: Run, install: Install) -> None:
    install()
    install("v2", "acme_v2")

    def listed(**environment: str) -> set[str]:
        return {row for row in run("extensions", **environment).stdout.splitlines() if "acme" in row or "Greets" in row}

    shadowed = "v2\toff\tacme_v2 1.0\tNot used: one of ours has its name."
    unnamed = "Not loaded: to use it, set opensearch_ml_stream.extensions.greeting to true."
    assert listed() == {f"greeting\toff\tacme_greeting 1.0\t{unnamed}", shadowed}
    assert "acme_greeting" not in sys.modules
    assert listed(**{SWITCH: "false"}) == {"greeting\toff\tacme_greeting 1.0\tGreets.", shadowed}
    assert listed(**{SWITCH: "true"}) == {"greeting\ton\tacme_greeting 1.0\tGreets.", shadowed}

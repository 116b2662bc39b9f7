"""A command line run in this process: what it printed, or its one line of error."""

from evenhand.cli import run


def output(capsys, *arguments):
    """What a command that succeeds prints on stdout."""
    code = run(arguments)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def failure(capsys, *arguments):
    """The one line on stderr of a command that is refused."""
    code = run(arguments)
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err

"""What a shell completes: commands, options, names and files."""

import shutil
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

from evenhand.cli import command, run
from evenhand.cli.completion import SHELLS, VARIABLE


def complete(*words):
    """What is offered for the last word."""
    shell = ShellComplete(command, {}, "evenhand", VARIABLE)
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("meas",), ["measure"]),
        (("list", ""), ["metrics", "models", "networks", "prompts", "templates", "topics"]),
        (("list", "metrics", "wef"), ["wefat"]),
        (("audit", "--topic", "r"), ["race", "religion"]),
        (("audit", "--topic", "race,r"), ["race,religion"]),
        (("audit", "--skip", "vectors,p"), ["vectors,posterior", "vectors,predictions"]),
        (("audit", "--model", "mi"), ["mini"]),
        (("audit", "--vectors", "gl"), ["glove"]),
        (("audit", "--device", "cu"), ["cuda", "cuda:0"]),
        (("info", "gl"), ["glove"]),
        (("measure", "glove", "--metric", "mac,rn"), ["mac,rnd", "mac,rnsb"]),
        (("measure", "glove", "--weat", "1"), ["1", "10"]),
        (("measure", "mini", "--metric", "crow"), ["crows"]),
        (("classifier", "x.csv", "--metric", "tpr"), ["tpr-gap"]),
        (("lab", "fewshot", "run", "--network", "induc"), ["induction"]),
        (("lab", "fewshot", "run", "--mitigation", "neutralize+c"), ["neutralize+calibrate"]),
        (("lab", "fewshot", "run", "--data", "sim"), ["simulated"]),
        (("measure", "phrases", "mini", "--set", "mach"), ["machines"]),
        (("rewrite", "swap", "--kind", "pronoun,t"), ["pronoun,title"]),
        (("rewrite", "swap", "--ou"), ["--out"]),
        (
            ("lab", "posterior", "fit", "t.csv", "--family", "cross"),
            ["crossed-no-interaction", "crossed"],
        ),
        (("completion", "z"), ["zsh"]),
        (("no-such-command", "x"), []),
    ],
)
def test_names(words, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complete(*words) == expected


def test_files_by_their_endings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.toml", "my.vec", "model.gguf", "table.csv", ".hidden.csv", "notes.md"):
        (tmp_path / name).touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "age.toml").touch()
    assert complete("audit", "--topic", "m") == ["mine.toml", "more/"]
    assert complete("audit", "--topic", "gender,more/") == ["gender,more/age.toml"]
    assert complete("info", "m") == ["mini", "model.gguf", "more/", "my.vec"]
    assert complete("measure", "we") == ["weat", "wefat"]
    assert complete("measure", "weat", "--alt") == ["--alternative"]
    assert complete("odds", "") == ["more/", "table.csv"]
    assert complete("odds", ".h") == [".hidden.csv"]
    assert complete("odds", "nowhere/x") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell(shell, capsys):
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{VARIABLE}={shell}_complete" in script
    marks = {"bash": "compopt -o nospace", "zsh": 'compadd -U -S ""', "fish": "split -m1"}
    assert marks[shell] in script


def test_an_unknown_shell_is_an_error(capsys):
    assert run(["completion", "csh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_completion_loads_no_heavy_library():
    code = (
        "import sys; from click.shell_completion import ShellComplete; "
        "from evenhand.cli import command; "
        f"shell = ShellComplete(command, {{}}, 'evenhand', {VARIABLE!r}); "
        "shell.get_completions(['audit', '--topic'], ''); "
        "shell.get_completions(['model', 'measure', 'mini', '--metric'], ''); "
        "shell.get_completions(['masked', 'score', 'x', '--model'], ''); "
        "print([name for name in ('torch', 'transformers', 'pandas', 'sklearn', 'altair') "
        "if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script(tmp_path, capsys, monkeypatch):
    program = tmp_path / "evenhand"
    program.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from evenhand.cli import main; main()'\n"
    )
    program.chmod(0o755)
    assert run(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    lines = (
        f"source {script}",
        "COMP_WORDS=(evenhand audit --topic race,r)",
        "COMP_CWORD=3",
        f"_evenhand_completion {program}",
        'echo "${COMPREPLY[@]}"',
    )
    shown = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "race,religion\n"

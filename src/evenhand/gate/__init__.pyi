from .checking import GateResult, RuleResult, check
from .planning import GatePlan, RulePlan, plan
from .policy import Policy, Rule, draft_policy, read_policy
from .reading import Results, read_results

__all__ = [
    "GatePlan",
    "GateResult",
    "Policy",
    "Results",
    "Rule",
    "RulePlan",
    "RuleResult",
    "check",
    "draft_policy",
    "plan",
    "read_policy",
    "read_results",
]

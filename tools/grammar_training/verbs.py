"""The few words that training takes from a list, where text alone does not show what they are.

VERBS are those after which "her" is often an object although a noun follows, by what they take:
two objects ("gave her money"), an object and a bare verb ("saw her leave"), an object and what it
is called or found to be ("proved her right").
"""

from __future__ import annotations

_GROUPS = {
    "two": """
        give gives gave given giving; offer offers offered offering; sell sells sold selling;
        pay pays paid paying; send sends sent sending; bring brings brought bringing;
        show shows showed shown showing; teach teaches taught teaching; tell tells told telling;
        ask asks asked asking; wish wishes wished wishing; lend lends lent lending;
        hand hands handed handing; buy buys bought buying; owe owes owed owing;
        promise promises promised promising; grant grants granted granting;
        feed feeds fed feeding; serve serves served serving; write writes wrote written writing;
        read reads reading; provide provides provided providing; cost costs costing;
        save saves saved saving; deny denies denied denying; win wins won winning;
        earn earns earned earning; throw throws threw throwing; toss tosses tossed tossing;
        pass passes passed passing; order orders ordered ordering; cook cooks cooked cooking;
        bake bakes baked baking; forgive forgives forgave; spare spares spared;
        guarantee guarantees guaranteed; award awards awarded awarding;
        charge charges charged charging; fetch fetches fetched fetching; loan loans loaned;
        mail mails mailed; allow allows allowed allowing; leave leaves left leaving
    """,
    "verb": """
        make makes made making; let lets letting; help helps helped helping;
        have has had having; see sees saw seen seeing; hear hears heard hearing;
        watch watches watched watching; feel feels felt feeling; get gets got getting;
        notice notices noticed noticing; cause causes caused causing; bid bids bade
    """,
    "name": """
        call calls called calling; find finds found finding; keep keeps kept keeping;
        consider considers considered; think thinks thought; believe believes believed;
        prove proves proved proving; name names named naming; drive drives drove driving;
        render renders rendered; declare declares declared; take takes took taken taking;
        know knows knew known; do does did done doing; hope hopes hoped hoping
    """,
}

VERBS = {
    form: (forms.split()[0], group)
    for group, listed in _GROUPS.items()
    for forms in listed.split(";")
    for form in forms.split()
}
"""Form -> base form and group."""

_PARTICIPLES = """
    been had got gotten done gone seen come become made taken given said told found lost left
    kept heard known shown written read run won begun broken brought built bought caught chosen
    cost cut drawn dreamt driven drunk eaten fallen fed felt fought flown forbidden forgotten
    forgiven frozen grown hung hidden hit held hurt laid led learnt lent let lain lit meant met
    paid proven put quit ridden rung risen sold sent set sewn shaken shot shut sung sunk sat
    slept spoken spent spread sprung stood stolen stuck struck sworn swept swum taught torn
    thought thrown understood worn woken wept
"""
PARTICIPLES = frozenset(_PARTICIPLES.split())
"""Past participles that do not end in -ed."""

_ADVERBS = """
    not never always already just also ever only even still now often long since all both
    so far once
"""
ADVERBS = frozenset(_ADVERBS.split())
"""What may stand between have and its participle, beside words in -ly."""

_MINES = "the a an this that each every coal gold silver iron copper lead tin salt diamond land"
MINES = frozenset(_MINES.split())
"""Behind these, "mine" is a pit."""

"""Function words by what they do in a clause, for finding the verbs of a subject."""

from __future__ import annotations

__all__ = [
    "ADVERBIALS",
    "AGREEING",
    "EXISTENTIAL",
    "FRONTED",
    "TAGS",
    "TIMES",
    "UNCLEAR_PASTS",
    "word_set",
]


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(words.split())


AGREEING = {
    "is": "are", "was": "were", "has": "have", "does": "do",
    "isn't": "aren't", "wasn't": "weren't", "hasn't": "haven't", "doesn't": "don't",
    "isnt": "arent", "wasnt": "werent", "hasnt": "havent", "doesnt": "dont",
}  # fmt: skip
"""Auxiliaries in the third person singular, and what they are after `they`."""

# What each tag stands for:
#   N  subject pronoun other than third person singular      T  third person singular pronoun
#   R  relative or question word                             S  subordinating conjunction
#   C  coordinating conjunction                              A  adverb
#   M  modal verb                                            L  finite verb of a plural subject
#   D  determiner or possessive                              I  preposition
#   O  to                                                    E  past tense, never a participle
_WORDS = {
    "N": "i you we they y'all u ya yall ye these those both people folks "
    "i'm you're we're they're i've you've we've they've i'll you'll we'll they'll i'd you'd we'd "
    "they'd im ur youre theyre ive youve weve",
    "T": "it this someone somebody everyone everybody anyone anybody nobody something everything "
    "nothing anything one there here it's that's this's there's here's it'll that'll it'd "
    "everyone's somebody's someone's nobody's thats theres",
    "R": "who which that what whom whose whoever whatever whichever who's what's how why where "
    "when who'd who'll who've whos whats",
    "S": "if because cause cuz 'cause while since although though as before after until till "
    "unless whether than whenever wherever except like cos bc",
    "C": "and or but nor yet then & plus n or/and and/or",
    "A": "always never often sometimes usually just still also even ever already really actually "
    "probably maybe perhaps now again soon too not only simply almost nearly hardly barely "
    "scarcely rarely seldom once twice forever quite rather very well instead indeed however "
    "therefore thus hence otherwise meanwhile moreover besides nevertheless nonetheless anyway "
    "anyways somehow sometime someday today tonight tomorrow yesterday nowadays afterwards "
    "thereafter later first second last next further sure kinda sorta def totes prolly prob "
    "legit lowkey highkey deadass literally straight pretty damn fucking freaking friggin fuckin "
    "goddamn bloody friggen seriously both either neither alone together himself herself itself "
    "themself though altogether apparently far much more less most least likewise long thrice "
    "overall alike yes no yeah please uh um er hmm oh ah lol lmao tbh ngl fr imo imho rn btw "
    "omg wow hell ultimately formerly primarily basically constantly consistently currently "
    "genuinely honestly obviously clearly truly so right half hella mostly merely "
    "unfortunately sadly luckily eventually suddenly soon oft e'er ne'er",
    "M": "can could will would shall should may might must cannot can't couldn't won't wouldn't "
    "shan't shouldn't mayn't mightn't mustn't cant couldnt wont wouldnt shouldnt did didn't didnt "
    "had hadn't hadnt ought oughtn't needn't daren't gonna gotta better used ain't aint",
    "L": "am are were aren't weren't have haven't do don't arent werent havent dont",
    "D": "the a an my your his her their our its some any no every each all many much few several "
    "another other such two three four five six seven eight nine ten",
    "I": "of in on at by for with from into onto upon about over under between among through "
    "during without within against across along around behind beside beyond near off out up down "
    "per toward towards despite unlike via",
    "O": "to",
    "E": "went knew saw took gave wrote ate came became began drove rode rose spoke broke chose "
    "fell flew forgot froze grew hid threw wore tore shook stole swam sang drank rang sank drew "
    "blew woke bit swore arose overtook mistook withdrew underwent undertook",
}
TAGS = {word: tag for tag, words in _WORDS.items() for word in words.split()}
"""The tag of each function word."""

UNCLEAR_PASTS = word_set(
    "said made built told left found got lost bought brought kept thought felt held met paid read "
    "sat sent set slept sold spent stood taught heard put let cut hit hurt cost shut quit spread "
    "led fed fled won meant dealt dreamt burnt learnt spelt leapt lit fought caught sought ran "
    "come become run overcome been done gone seen taken given written eaten begun driven ridden "
    "spoken broken chosen fallen flown forgotten frozen grown hidden thrown worn torn shaken "
    "stolen sung drunk rung sunk drawn blown woken bitten sworn stuck struck swung hung dug spun "
    "bet bent lent laid lay lain swept wept crept shot slid split rid wed"
)
"""Irregular forms that are past tense or participle, or past tense or infinitive."""

FRONTED = word_set(
    "not only never so such nor neither seldom rarely hardly scarcely barely little no nowhere "
    "how why where when what who which whose whom than as"
)
"""Words that, at the head of a clause, put the verb before its subject."""

EXISTENTIAL = word_set("there here there's here's theres")

TIMES = word_set(
    "day night morning evening afternoon week weekend month year time summer winter spring "
    "hour minute second decade sunday monday tuesday wednesday thursday friday saturday moment"
)
"""Nouns that make an adverb of the determiner before them: every day, this time."""

_PHRASES = (
    "no longer, any longer, kind of, sort of, pretty much, at least, at most, at best, at worst, "
    "at times, at first, at last, at night, of course, in fact, in turn, in general, in "
    "particular, in theory, in return, in the end, in the meantime, as well, as usual, as always, "
    "by now, by contrast, by far, by chance, of all people, more or less, more often than not, "
    "all the time, all of a sudden, all day, all night, for some reason, for "
    "now, for example, for instance, for sure, for once, to be fair, to be honest, to this day, "
    "on the other hand, on occasion, once again, once in a while, a lot, low key, straight up, of "
    "late, so far, ever since, every time, each time, every day, every night, every morning, "
    "every week, every year, each day, one day, this time, these days, some days, damn well, "
    "hardly ever, rarely if ever, if anything, if ever, like never, like always, like totally, "
    "like literally, like really, like just, from time to time, now and then, day and night, over "
    "and over, again and again, one way or another, to my surprise, in a way, out of nowhere, god "
    "bless, for all i know, i think, i guess, i suppose, as a rule, as ever, by the way, without "
    "fail, with luck, in effect, in reality, in truth, as it happens, to some extent, all in all, "
    "first of all, after all, above all, most of the time, half the time, for good"
)


def _by_longest(phrases: str) -> dict[str, list[tuple[int, list[str]]]]:
    grouped: dict[str, list[tuple[int, list[str]]]] = {}
    for phrase in phrases.split(", "):
        words = phrase.split()
        longest = max(words, key=len)
        grouped.setdefault(longest, []).append((words.index(longest), words))
    return grouped


ADVERBIALS = _by_longest(_PHRASES)
"""Phrases that stand for an adverb: by their longest word, its place in them and their words."""

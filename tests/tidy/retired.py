"""The retired words of docs/glossary.md as expressions that find them, without ordinary English.

Sorted as the glossary's table, whose left cells are the names. PROSE is searched in comments,
sentences and pages, in lower case; IDENTIFIERS in C++ and in the names of its files. A word without
either is one that only a reader can judge.
"""
import re

PROSE = {
    "look (of a waiting thread)": [
        r"\b(a|the|this|last|next|first|two|these|equal) looks?\b(?!-| (into|up|at)\b)",
        r"\bthreads? (that )?looks?\b", r"\blooks? for (more|so)\b"],
    "looks give the core away": [r"\blooks? gives? the core", r"\bgiv(es?|ing) the cores? away"],
    "kept call, held call, kept back": [
        r"\b(kept|held) calls?\b", r"\bke(pt|eps?|eping) (it )?back\b"],
    "kept uploads": [r"\bkept (uploads?|cop(y|ies))\b"],
    "held copies": [r"\bheld cop(y|ies)\b"],
    "knock": [r"\bknock(s|ed|ing)?\b"],
    "door": [r"(?<!default\x20)\bdoors?\b(?!:)"],
    "places": [r"\bplaces of the log\b"],
    "tells, says, hears of": [
        r"\b(is|are|was|were|be|been|being) told\b(?! apart)", r"\btold so\b",
        r"\bhea(rs?|rd) of\b", r"\bthat (could|can) tell\b"],
    "ends (of work)": [
        r"\b(their|sees?|seen|these|for|of|streams'|work's) ends\b",
        r"\bends (leave|on which|that it has)\b"],
    "clear (memory)": [
        r"\bclear(s|ed|ing)? (every |the |of )?(chunks?|memory|bytes|gigabytes)\b",
        r"\b(is|be|being|was|were|are|and|that) cleared\b", r"\b(the|for|without) clearing\b"],
    "the way": [
        r"\bthe way (to (a|the|its|their)|of all)\b(?! next)", r"\bmeasuring the way\b"],
    "its like, the device's like": [r"\bits like\b", r"\w's like\b(?! (a|an|the)\b)",
                                    r"\bthe like of\b"],
    "words (of a report)": [r"\breport's words\b", r"\bin the words of\b"],
    "books": [r"\bbooks\b"],
    "`kMost…`": [],
    '"so many", "of before", "what of the above"': [
        r"\bso many\b", r"\bof before\b", r"\bwhat of (the|its|their|a)\b"],
    "`Session`, where there are several": [],
}

IDENTIFIERS = {
    "kept call, held call, kept back": r"\w*([Kk]ept|[Hh]eld)_?[Cc]alls?(?![a-z])\w*",
    "kept uploads": r"\w*([Kk]ept|[Kk]eeps?)_?[Uu]ploads?(?![a-z])\w*",
    "held copies": r"\w*[Hh]eld_?[Cc]op(y|ies)(?![a-z])\w*",
    "knock": r"\w*[Kk]nock\w*",
    "door": r"\w*(?<![a-z])Doors?(?![a-z])\w*",
    "places": r"\bPlaces\b",
    "books": r"\w*(Book|_books?|\bbooks)(?![a-z])\w*",
    "`kMost…`": r"\bkMost[A-Z]?\w*",
    "`Session`, where there are several": r"(?<=class )Session\b|(?<=struct )Session\b",
}

PROSE_PATTERNS = [(name, re.compile(pattern.replace(" ", r"\s+")))
                  for name, patterns in PROSE.items() for pattern in patterns]
IDENTIFIER_PATTERNS = [(name, re.compile(pattern)) for name, pattern in IDENTIFIERS.items()]

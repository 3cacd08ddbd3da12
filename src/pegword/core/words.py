"""Words of English that the analyser must know: those that say nothing, and those whose forms no stemmer finds."""

import re

# As they are typed without an apostrophe, and what the analyser leaves of those with one.
_CONTRACTIONS = """
    aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt neednt shant shouldnt wasnt werent wont
    wouldnt im ive youre youve youll youd hes shes theyre theyve theyll weve thats whats wheres whos hows heres theres
    lets cannot
"""

STOP_WORDS_ENGLISH = frozenset(
    f"""
    a about after all also am an and any are as at be because been before being but by can could did do does doing done
    for from get gets getting got gotten had has have having he her hers him his how i if in into is it its just me more
    most my no not of on or our out over she should so some such than that the their them then there these they this
    those to too up us very was we well were what when where which while who whom whose why will with would you your
    {_CONTRACTIONS}
    """.split()
)

# Stop words that in capitals are names: the country, the department, the organisation.
NAMES_IN_CAPITALS_ENGLISH = frozenset({"US", "IT", "WHO"})

_FORMS = """
    arise arose arisen|awake awoke awoken|bear borne born|beat beaten|become became|begin began begun|bend bent
    bid bade bidden|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred
    bring brought|build built|burn burnt|buy bought|catch caught|child children|choose chose chosen|cling clung
    come came|creep crept|deal dealt|die dying|dig dug|draw drew drawn|dream dreamt|drink drank drunk
    drive drove driven|dwell dwelt|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found
    flee fled|fling flung|fly flew flown|foot feet|forbid forbade forbidden|foresee foresaw foreseen
    forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|give gave given|go went gone goes
    goose geese|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known
    lay laid|lead led|leap leapt|learn learnt|leave left|lend lent|lie lying lain|light lit|lose lost|make made
    man men|mean meant|meet met|mislead misled|mistake mistook mistaken|mouse mice|outgrow outgrew outgrown
    overcome overcame|override overrode overridden|oversee oversaw overseen|overtake overtook overtaken
    overthrow overthrew overthrown|overwrite overwrote overwritten|ox oxen|pay paid|person people|prove proven
    rebuild rebuilt|redo redid redone|repay repaid|rewrite rewrote rewritten|ride rode ridden|ring rang rung
    rise risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone
    shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|slay slew slain|sleep slept
    slide slid|sling slung|smell smelt|sow sown|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun
    spit spat|spoil spoilt|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung
    stink stank stunk|stride strode|strike struck stricken|string strung|strive strove striven|swear swore sworn
    sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told
    think thought|thrive throve|throw threw thrown|tie tying|tooth teeth|tread trod trodden
    undergo underwent undergone|understand understood|undertake undertook undertaken|undo undid undone
    wake woke woken|wear wore worn|weave wove woven|weep wept|win won|withdraw withdrew withdrawn|withhold withheld
    withstand withstood|woman women|wring wrung|write wrote written|calf calves|elf elves|half halves|hoof hooves
    knife knives|leaf leaves|loaf loaves|scarf scarves|shelf shelves|thief thieves|wife wives|wolf wolves
    good better best|bad worse worst|alumnus alumni|analysis analyses|antenna antennae|appendix appendices
    cactus cacti|crisis crises|criterion criteria|datum data|diagnosis diagnoses|formula formulae|fungus fungi
    hypothesis hypotheses|index indices indexes|larva larvae|matrix matrices|nucleus nuclei|oasis oases
    parenthesis parentheses|phenomenon phenomena|radius radii|schema schemata|stimulus stimuli|synthesis syntheses
    thesis theses|vertex vertices
"""

IRREGULAR_ENGLISH = {
    form: base
    for base, *forms in (entry.split() for line in _FORMS.split("\n") for entry in line.split("|") if entry.strip())
    for form in forms
}

_SPELLINGS = dict(
    pair.split(":")
    for pair in """
    catalogu:catalog centr:center chequ:check defenc:defens dialogu:dialog fibr:fiber grey:gray jewelleri:jewelri
    licenc:licens litr:liter metr:meter mould:mold offenc:offens plough:plow practis:practic programm:program
    pyjama:pajama sceptic:skeptic theatr:theater tyre:tire
    """.split()
)
_OUR = re.compile(r"\A(arm|behavi|col|endeav|fav|flav|glam|harb|hon|hum|lab|neighb|od|parl|rig|rum|sav|tum|vap|vig)our")
_ISE = re.compile(r"(?<=\w{3})([iy])s\Z")


def american(stem: str) -> str:
    """The American spelling of an English *stem*: `colour` is color, `organis` is organiz, `centr` is center."""
    return _SPELLINGS.get(stem) or _ISE.sub(r"\1z", _OUR.sub(r"\1or", stem))

"""Words of English that the analyser must know: those that say nothing, and those whose forms no stemmer finds."""

STOP_WORDS_ENGLISH = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could did do does doing done
    for from get had has have having he her hers him his how i if in into is it its just me more most my no not of on or
    our out over she should so some such than that the their them then there these they this those to too up us very was
    we were what when where which while who whom whose why will with would you your
    im ive id youre dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt thats whats hes shes theyre
    weve theyve youve ill well youll lets
    """.split()
)

_FORMS = """
    arise arose arisen|awake awoke awoken|bear bore borne born|beat beaten|become became|begin began begun|bend bent
    bet bets|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought
    build built|burn burnt|buy bought|catch caught|child children|choose chose chosen|cling clung|come came
    creep crept|deal dealt|die died dying|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
    dwell dwelt|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung
    fly flew flown|foot feet|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven
    freeze froze frozen|give gave given|go went gone goes|goose geese|grind ground|grow grew grown|hang hung
    hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|leap leapt
    learn learnt|leave left|lend lent|lie lied lying lain|light lit|lose lost|make made|man men|mean meant|meet met
    mistake mistook mistaken|mouse mice|pay paid|person people|ride rode ridden|ring rang rung|rise rose risen
    run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone
    shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
    smell smelt|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spit spat|spoil spoilt
    spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|strike struck|strive strove striven
    swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn
    tell told|think thought|throw threw thrown|tooth teeth|understand understood|wake woke woken|wear wore worn
    weave wove woven|weep wept|win won|wind wound|wolf wolves|woman women|write wrote written|life lives|wife wives
    knife knives|leaf leaves|shelf shelves|half halves|loaf loaves|thief thieves|good better best|bad worse worst
    analysis analyses|crisis crises|criterion criteria|datum data|index indices indexes|matrix matrices
    vertex vertices|schema schemata|hypothesis hypotheses|diagnosis diagnoses|basis bases
"""

IRREGULAR_ENGLISH = {
    form: words[0]
    for words in (entry.split() for line in _FORMS.splitlines() for entry in line.split("|"))
    for form in words[1:]
}

"""Messages that call for no memory, made from parts by a seed: small talk, everyday requests, questions about programming.

Small talk is made of words that the list of common words knows as well, so it is the easy case; everyday requests are not.
"""

import random
from itertools import product

_OPENERS = "hi|hello there|hey|good morning|good evening|thanks a lot|thank you so much|perfect|ok great|alright|hmm|wow|sorry".split("|")
_REMARKS = """
    how are you today?|that was really helpful|let's get started|can you help me with something?|that makes sense to me|I have to go now
    I will be back in a minute|please try again|could you explain that once more?|can you make it shorter?|tell me a joke
    what do you think about it?|that is not what I meant|you are right|I changed my mind|let me think about that for a moment
    I am a bit tired today|what else can you do?|give me another example|please write it in simpler words|continue, please
    can we talk about something else?|is that the best you can do?|I like that idea|not now, maybe later|that's funny|how does that work?
    are you sure about that?|what would you suggest?|let's move on to the next point|never mind|I don't understand a word of it
    it is getting late here|see you tomorrow|say that again|which one is better?|why do you think so?|I need a minute to read this
""".replace("\n", "|").split("|")

_REQUESTS = """
    What will the weather be like in {city} on {day}?|Translate "where is the {object}" into {tongue}.|How do I cook {dish} for six?
    Write a haiku about a {object} in {city}.|Who won the {sport} final last year?|How far is {city} from the equator?
    My {object} is broken, can it be repaired?|Summarise the history of {city} in three sentences.|Is {dish} healthy?
    Convert 45 euros to the currency of {city}.|What is the {tongue} word for {object}?|Which {sport} rules changed recently?
    Remind me how {dish} is served in {city}.|Compare the {sport} teams of {city}.
""".replace("\n", "|").split("|")
_FILLERS = {
    "city": "Oslo Nairobi Lima Prague Hanoi Montreal Dakar Brisbane Krakow Santiago".split(),
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "object": "bicycle umbrella lantern kettle wallet ladder suitcase mirror pillow drawer".split(),
    "tongue": "Finnish Swahili Korean Hungarian Catalan Tamil Danish Greek".split(),
    "dish": "risotto ramen goulash paella falafel lasagne pierogi dumplings".split(),
    "sport": "rugby tennis handball volleyball cricket fencing rowing curling".split(),
}

_VERBS = "parse sort compile cache encrypt serialize mock deploy refactor debug benchmark lint stream validate batch".split()
_THINGS = """
    JSON file|binary tree|REST endpoint|foreign key|Docker image|regular expression|hash map|linked list|CSV export|websocket|SQL join
    unit test|race condition|memory leak|thread pool|virtual environment|stack trace|pull request|merge conflict|cron job|access token
""".replace("\n", "|").split("|")
_LANGUAGES = "Python Rust Go TypeScript Java Kotlin Haskell Postgres Kubernetes Terraform".split()
_QUESTIONS = (
    "How do I {verb} a {thing} in {language}?",
    "Why does {language} throw an exception when I {verb} the {thing}?",
    "What is the fastest way to {verb} a large {thing} with {language}?",
    "Which {language} library should I use to {verb} a {thing}?",
    "Write a {language} function that can {verb} every {thing} in a directory.",
    "My {thing} segfaults as soon as {language} tries to {verb} it, any idea?",
)


def small_talk(count: int, seed: int) -> list[str]:
    """*count* messages of talk with an assistant about nothing."""
    all_talk = [f"{opener}, {remark}" for opener, remark in product(_OPENERS, _trimmed(_REMARKS))]
    return random.Random(seed).sample(all_talk, count)


def everyday(count: int, seed: int) -> list[str]:
    """*count* requests to an assistant about the world at large."""
    chosen = random.Random(seed)
    requests: dict[str, None] = {}
    while len(requests) < count:
        fillers = {kind: chosen.choice(words) for kind, words in _FILLERS.items()}
        requests[chosen.choice(_trimmed(_REQUESTS)).format(**fillers)] = None
    return list(requests)


def programming(count: int, seed: int) -> list[str]:
    """*count* questions about programming."""
    parts = product(_QUESTIONS, _VERBS, _trimmed(_THINGS), _LANGUAGES)
    questions = [question.format(verb=verb, thing=thing, language=language) for question, verb, thing, language in parts]
    return random.Random(seed).sample(questions, count)


def _trimmed(parts: list[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]

"""How common words are in general English: what two texts share by such a word says little, whatever a store holds.

A store of a few hundred memories is too small to tell: there `good` may be as rare as `Lisbon`. Two lists, made by feel and
usage, not from a corpus; words in neither are rare.
"""

_VERY_COMMON = """
    able above across actually add again against ago agree ah aha already alright always amazing amount another
    anybody anyone anything anyway apologize appreciate around ask away awesome aww back bad become begin behind
    best bet better between big bit both bring bye call came case change cheers clarify clear clearly come confused
    congrats congratulations continue cool course cute day definitely different each early eh either elaborate else
    end enough even ever every everybody everyone everything exactly example exciting explain fabulous fact
    fantastic far feel few find fine first funny gee give glad go good goodbye gosh gotcha great guess guy ha haha
    hand happen hard hehe hello help here hey hi high hmm home honestly hope hour huh idea important indeed instead
    interesting joke keep kind know large last late later least leave less let life like likely little live lol long
    look lot love lovely main make man many matter may maybe mean mention mhm might mind minute moment month morning
    move much must nah name near need never new next nice night nobody nope nothing now number obviously often oh ok
    okay old once one only oof oops other ouch own part past people perfect perhaps person phew place play please
    point positive possible pretty probably problem proceed put question quick quickly quite rather ready real
    really reason repeat rephrase right same say second see seem sense set several show side simple simpler simply
    since small somebody someone something sometimes soon sorry sort specific start state stay still stop stuff
    suggest suggestion summarize super sure take talk tell thank thanks thing think though thought three through
    till time today together tomorrow tonight too top totally toward true try turn two type ugh uh uhm um umm under
    understand unfortunately until upon use usually want way week whatever while whoa whole within without wonder
    wonderful woo word work world worry wow wrong yay yea yeah year yep yes yesterday yet yup
"""

_COMMON = """
    accept according act action activity age air allow almost alone along answer appear area arrive art attention
    available baby base beautiful bed believe below beside beyond birthday black blue board body book born box boy
    break brother brown build building business busy buy car card care carry cause center certain chance check child
    choose city class clean close clothes coffee cold color common community company complete completely concern
    consider contain control conversation copy cost country couple cover create cup cut dad daily dark daughter dead
    deal dear death decide decision deep describe design detail develop die difference difficult dinner direct
    discuss dog door doubt down dream dress drink drive drop dry during easily easy eat effect effort eight email
    enjoy entire especially evening event excited expect experience eye face fail fair fall family fan fast father
    favorite fear fight figure fill final finally finish fire fish fit five fix floor flower fly focus follow food
    foot force forget form forward four free friend front fun further future game general get girl goal god gold
    grand green ground group grow growth guide hair half hall happy hate head health hear heart heavy hit hold hot
    hotel house however huge human hundred hurt husband image imagine immediately improve include increase
    information inside interest interested involve issue item job join just kid kill kitchen lady land language
    laugh law lead learn left leg letter level lie light limit line list listen literally local lose loud low luck
    lucky lunch machine magic major manage mark market marry max message middle mile million miss mistake modern mom
    money mother mountain mouth movie music natural nature nearly necessary neither news none nor normal normally
    north note notice offer office official open opinion order original otherwise outside page paint pair paper
    parent park particular particularly party pass pay per period personal phone photo pick picture piece plan plant
    plus power practice prefer prepare present press price process produce program project promise proud provide
    public pull purpose push quality quiet rain raise reach read realize receive recent recently recommend record
    red relationship relax remember remind remove report require rest result return rich ride ring river road rock
    role room round rule run sad safe sale save school sea search season seat section sell send serious seriously
    serve service seven shape share shoe shop short shot shout similar single sister sit site situation six size
    skill sky sleep slow slowly smart smile society soft solution solve son song sound south space speak special
    spend spot spring staff stage stand star step store story straight strange street strong student study subject
    success such sudden suddenly summer sun support suppose surprise sweet system table task taste teach teacher
    team ten term terrible test text themselves third thousand throughout throw thus tired title total touch tough
    town track travel treat tree trip trouble truth twice unless update upset usual value various version view
    village visit voice wait walk wall war warm wash watch water wear weather website weekend weird welcome west
    white wide wife wild win wind window winter wish woman wood worth write yellow young
"""

# How rare each is, from 0.0 to 1.0. A stem that stands for words of both lists counts as the commoner one.
COMMON_WORDS_ENGLISH: dict[str, float] = {**dict.fromkeys(_COMMON.split(), 0.5), **dict.fromkeys(_VERY_COMMON.split(), 0.0)}

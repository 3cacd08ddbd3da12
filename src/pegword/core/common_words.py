"""How common a word is in general English: what two texts share by such a word says little, whatever a store holds.

A store of a few hundred memories is too small to tell: there `good` may be as rare as `Lisbon`. Two plain lists, by feel
and usage rather than by a corpus; words in neither are rare.
"""

_VERY_COMMON = """
    able above across actually add again against ago already always amount another anybody anyone anything anyway around
    ask away back bad become begin behind best better between big bit both bring call came case change come course
    day definitely different each early either else end enough even ever every everybody everyone everything exactly
    example fact far feel few find first give go good great guess guy hand happen hard hello help here hey hi high home
    hope hour idea important instead keep kind know large last late later least leave less let life like likely little
    live long look lot love main make man many matter may maybe mean might mind minute moment month morning move much
    must name near need never new next nice night nobody nothing now number often oh ok okay old once one only other
    own part past people perhaps person place play please point possible pretty probably problem put question quite
    rather ready real really reason right same say second see seem set several show side simply since small somebody
    someone something sometimes soon sorry sort start state stay still stop stuff sure take talk tell thank thanks thing
    think though thought three through till time today together tomorrow tonight too top totally toward true try turn
    two type under understand until upon use usually want way week while whole within without wonder word work world
    worry wrong yeah year yes yesterday yet
"""

_COMMON = """
    accept according act action activity age agree air allow almost alone along amazing answer appear area arrive art
    attention available awesome baby base beautiful bed believe below beside beyond birthday black blue board body book
    born box boy break brother brown build building business busy buy car card care carry cause center certain chance
    check child choose city class clean clear clearly close clothes coffee cold color common community company complete
    completely concern consider contain continue control conversation cool copy cost country couple cover create cup cut
    cute dad daily dark daughter dead deal dear death decide decision deep describe design detail develop die difference
    difficult dinner direct discuss dog door doubt down dream dress drink drive drop dry during easily easy eat effect
    effort eight email enjoy entire especially event evening exciting excited expect experience explain eye face fail
    fair fall family fan fantastic fast father favorite fear fight figure fill final finally fine finish fire fish fit
    five fix floor flower fly focus follow food foot force forget form forward four free friend front fun funny further
    future game general get girl glad goal god gold grand green ground group grow growth guide hair half hall happy hate
    head health hear heart heavy hit hold hot hotel house however huge human hundred hurt husband idea image imagine
    immediately improve include increase indeed information inside interest interested interesting involve issue item
    job join just kid kill kitchen lady land language laugh law lead learn left leg letter level lie light limit line
    list listen literally local lose loud low luck lucky lunch machine magic major manage mark market marry max mention
    message middle mile million miss mistake modern mom money mother mountain mouth movie music natural nature nearly
    necessary neither news none nor normal normally north note notice obviously offer office official open opinion order
    original otherwise outside page paint pair paper parent park particular particularly party pass pay per perfect
    period personal phone photo pick picture piece plan plant plus power practice prefer prepare present press price
    process produce program project promise proud provide public pull purpose push quality quick quickly quiet rain raise
    reach read realize receive recent recently recommend record red relationship relax remember remind remove report
    require rest result return rich ride ring river road rock role room round rule run sad safe sale save school sea
    search season seat section sell send sense serious seriously serve service seven shape share shoe shop short shot
    shout similar simple single sister sit site situation six size skill sky sleep slow slowly smart smile society soft
    solution solve son song sound south space speak special specific spend spot spring staff stage stand star step store
    story straight strange street strong student study subject success such sudden suddenly suggest summer sun super
    support suppose surprise sweet system table task taste teach teacher team ten term terrible test text themselves
    third thousand throughout throw thus tired title total touch tough town track travel treat tree trip trouble truth
    twice understand unfortunately unless update upset usual value various version view village visit voice wait walk
    wall war warm wash watch water wear weather website weekend weird welcome west white wide wife wild win wind window
    winter wish woman wonderful wood worth wow write yellow young
"""

COMMON_WORDS_ENGLISH: dict[str, float] = {
    **dict.fromkeys(_COMMON.split(), 0.5),
    **dict.fromkeys(_VERY_COMMON.split(), 0.0),
}

"""Irregular forms of English words and their bases, which no suffix rule finds.

ROUGE-1.5.5 looks a word up in WordNet's exception lists before stemming it. Instead of those, this table has
the irregular verbs, plurals and comparatives of a school grammar: a base and its forms, then a semicolon. The
lists also have every form in -ied, -ier and -iest of a word in -y. Its base is not a stem (carried: carry,
but carry: carri), so such a form matches only itself, and counts as a different word from carry and carries.
"""

TABLE = """
be were been; arise arose arisen; awake awoke awoken; bear bore borne born; beat beaten; become became;
befall befell befallen; begin began begun; behold beheld; bend bent; beseech besought; bid bidden bade;
bind bound; bite bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build
built; burn burnt; buy bought; catch caught; choose chose chosen; cling clung; clothe clad; come came;
creep crept; deal dealt; die dying; do done; draw drew drawn; dream dreamt; drink drank drunk; drive drove
driven; dwell dwelt; eat eaten; fall fell fallen; feel felt; fight fought; find found; flee fled; fling
flung; fly flew flown; forbear forbore forborne; forbid forbade forbidden; foresee foresaw foreseen;
foretell foretold; forget forgot forgotten; forgive forgave forgiven; forgo forwent forgone; forsake
forsook forsaken; freeze froze frozen; get gotten; give gave given; go went gone goes; grind ground; grow
grew grown; hang hung; hear heard; hide hidden; hold held; keep kept; kneel knelt; know knew known; lay
laid; lean leant; leap leapt; learn learnt; leave left; lend lent; lie lain lying; lose lost; make made;
may might; mean meant; mislead misled; mistake mistook mistaken; misunderstand misunderstood; mow mown;
outdo outdid outdone; outgrow outgrew outgrown; overcome overcame; overdo overdid overdone; overgrow
overgrown; overhear overheard; override overrode overridden; oversee oversaw overseen; oversleep
overslept; overtake overtook overtaken; overthrow overthrew overthrown; panic panicked; partake partook
partaken; pay paid; plead pled; prove proven; rebuild rebuilt; redo redid redone; remake remade; rend
rent; repay repaid; retell retold; rethink rethought; rewind rewound; rewrite rewrote rewritten; ride rode
ridden; ring rang rung; rise rose risen; saw sawn; say said; see seen; seek sought; sell sold; send sent;
sew sewn; shake shook shaken; shave shaven; shine shone; shoe shod; shoot shot; show shown; shrink shrank
shrunk; sing sang sung; sink sank sunk sunken; slay slew slain; sleep slept; slide slid; sling slung;
smell smelt; smite smote smitten; sow sown; speak spoke spoken; speed sped; spell spelt; spend spent;
spill spilt; spin spun; spit spat; spoil spoilt; spring sprang sprung; stand stood; steal stole stolen;
stick stuck; sting stung; stink stank stunk; stride strode stridden; strike struck; string strung; strive
strove striven; swear swore sworn; sweep swept; swell swollen; swim swam swum; swing swung; take took
taken; teach taught; tear tore torn; tell told; think thought; thrive throve thriven; throw threw thrown;
tie tying; traffic trafficked trafficking; tread trod trodden; undergo underwent undergone; understand
understood; undertake undertook undertaken; underwrite underwrote underwritten; undo undid undone; unwind
unwound; uphold upheld; wake woke woken; wear wore worn; weave wove woven; weep wept; wind wound; withdraw
withdrew withdrawn; withhold withheld; withstand withstood; wring wrung; write wrote written;
alumnus alumni; analysis analyses; appendix appendices; bacillus bacilli; cactus cacti; calf calves; child
children; crisis crises; criterion criteria; curriculum curricula; datum data; diagnosis diagnoses; elf
elves; emphasis emphases; foot feet; fungus fungi; goose geese; grandchild grandchildren; half halves;
hoof hooves; hypothesis hypotheses; index indices; knife knives; larva larvae; leaf leaves; life lives;
loaf loaves; louse lice; matrix matrices; medium media; mouse mice; nebula nebulae; nucleus nuclei; oasis
oases; ox oxen; parenthesis parentheses; penny pence; phenomenon phenomena; radius radii; scarf scarves;
self selves; shelf shelves; spectrum spectra; stimulus stimuli; stratum strata; synthesis syntheses;
thesis theses; thief thieves; tooth teeth; vertebra vertebrae; vertex vertices; wharf wharves; wife wives;
wolf wolves; yourself yourselves;
bad worse worst; big bigger biggest; far farther further; fat fatter; good better best; hard harder
hardest; hot hotter hottest; sad sadder saddest; strong stronger strongest; thin thinner thinnest; wet
wetter wettest; young younger youngest
"""

ENTRIES = [entry.split() for entry in TABLE.split(";")]
BASE_OF = {form: base for base, *forms in ENTRIES for form in forms}
"""Irregular form -> base."""

IN_IE = frozenset({"died", "lied", "tied", "vied", "hied", "belied", "untied"})
"""Regular forms of verbs in -ie."""

COMPARED = """
angry bloody bulky busy chilly cloudy clumsy cosy costly cozy crazy crispy curly dainty deadly dirty dizzy
dreary drowsy dry dusty early easy empty fancy filthy flashy fluffy foggy friendly funny fussy fuzzy giddy
gloomy grassy greasy greedy grimy gritty grumpy guilty hairy handy happy hardy hasty hazy healthy hearty
heavy hefty hilly holy homely hungry icy itchy jolly juicy kindly lazy leafy lengthy likely lively lofty
lonely lovely lucky mealy merry messy mighty misty moody muddy murky nasty naughty needy noisy oily pretty
pricey puffy racy rainy ready risky rocky roomy rosy rowdy rusty salty sandy scanty scary seemly shabby
shadowy shady shaggy shaky shiny showy silky silly skinny sleazy sleepy slimy slippery smelly smoky snowy
sorry speedy spicy spooky steady steamy steely sticky stingy stormy stuffy sturdy sunny surly sweaty tasty
tawdry thirsty thrifty tidy timely tiny touchy tricky trusty ugly unhappy unlucky untidy unruly wavy
wealthy weary weedy weighty wily windy wiry witty woolly wordy worldly worthy yummy
"""
"""Adjectives and adverbs in -y whose comparative and superlative end in -ier and -iest."""
BASE_OF |= {word[:-1] + ending: word for word in COMPARED.split() for ending in ("ier", "iest")}


def base_of(word: str) -> str | None:
    """Return the base of an irregular form; None for other words, including the base itself."""
    if word.endswith("ied") and word not in IN_IE:
        return word[:-3] + "y"
    return BASE_OF.get(word)

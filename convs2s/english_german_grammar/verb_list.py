"""The verbs, most frequent first within each frame, in the notation of `parse_verb`."""

from convs2s.english_german_grammar.verbs import Verb, parse_verb

TABLE = """
sleep/slept/slept I person+animal schlafen schläft schlief geschlafen
work I person arbeiten
laugh I person lachen
begin/began/begun I event beginnen beginnt begann begonnen
arrive I person+transport an|kommen kommt kam gekommen +s
wait I person warten
sing/sang/sung I person+animal singen singt sang gesungen
work I device funktionieren +t
get_up/got/gotten I person auf|stehen steht stand gestanden +s
dance I person tanzen
start I event an|fangen fängt fing gefangen
swim/swam/swum I person+animal schwimmen schwimmt schwamm geschwommen +s
cry I person weinen
wake_up/woke/woken I person auf|wachen +s
disappear I person+animal+thing verschwinden verschwindet verschwand verschwunden +s
depart I transport ab|fahren fährt fuhr gefahren +s
take_place/took/taken I event statt|finden findet fand gefunden
fall_asleep/fell/fallen I person+animal ein|schlafen schläft schlief geschlafen +s
stop I transport+person an|halten hält hielt gehalten
end I event enden
return I person zurück|kommen kommt kam gekommen +s
smile I person lächeln
run/ran/run I person+animal laufen läuft lief gelaufen +s
bark I dog bellen bellt bellte gebellt
bloom I plant blühen
grow/grew/grown I plant wachsen wächst wuchs gewachsen +s
hurry I person beeilen +r
rest I person+animal aus|ruhen +r
cook I person kochen
leave/left/left I person ab|reisen +s
cough I person husten
whisper I person flüstern
snore I person schnarchen
play I person spielen
sneeze I person niesen
escape I animal+person entkommen entkommt entkam entkommen +s
stumble I person stolpern +s
tremble I person+animal zittern
yawn I person+animal gähnen
wither I plant verwelken +s
see/saw/seen T person>person+animal+thing+vehicle+building sehen sieht sah gesehen +t
have/had/had T person>animal+thing+vehicle+device+clothing+idea haben hat hatte gehabt +t
buy/bought/bought T person>thing+clothing+device+vehicle+food+document kaufen
read/read/read T person>document lesen liest las gelesen
find/found/found T person>thing+document+device+animal finden findet fand gefunden
visit T person>person+building besuchen
eat/ate/eaten T person>food+stuff essen isst aß gegessen
need T person>thing+device+vehicle+document brauchen +t
know/knew/known T person>person kennen kennt kannte gekannt +t
write/wrote/written T person>document schreiben schreibt schrieb geschrieben
drink/drank/drunk T person>drink trinken trinkt trank getrunken
call T person>person an|rufen ruft rief gerufen
open T person>openable öffnen
meet/met/met T person>person treffen trifft traf getroffen
understand/understood/understood T person>idea+document verstehen versteht verstand verstanden +t
love T person>person+animal+food lieben +t
sell/sold/sold T person>thing+vehicle+building+device verkaufen
look_for T person>person+animal+thing+document suchen
invite T person>person ein|laden lädt lud geladen
lose/lost/lost T person>thing+clothing+document verlieren verliert verlor verloren
close T person>openable schließen schließt schloss geschlossen
ask T person>person fragen
solve T person>problem lösen
carry T person>thing+openable+device tragen trägt trug getragen
pick_up T person>person+vehicle ab|holen
wear/wore/worn T person>clothing tragen trägt trug getragen
repair T person>device+vehicle reparieren
build/built/built T person>building bauen
hear/heard/heard T person>person+animal hören +t
clean T person>building+thing+vehicle reinigen
discuss T person>idea besprechen bespricht besprach besprochen
turn_on T person>device ein|schalten
forget/forgot/forgotten T person>idea+document+thing vergessen vergisst vergaß vergessen
watch T person>person+animal beobachten
prepare T person>event vor|bereiten
use T person>device+thing+document benutzen
turn_off T person>device aus|schalten
bring_along/brought/brought T person>person+food+thing mit|bringen bringt brachte gebracht
wash T person>clothing+vehicle waschen wäscht wusch gewaschen
order T person>food+drink bestellen
greet T person>person begrüßen
change T person>idea ändern
put_on/put/put T person>clothing an|ziehen zieht zog gezogen
take_off/took/taken T person>clothing aus|ziehen zieht zog gezogen
leave/left/left T person>building+city verlassen verlässt verließ verlassen
teach/taught/taught T person>person unterrichten
plan T person>event planen
paint T person>building+thing malen
bake T person>cake backen backt backte gebacken
cook T person>food kochen
translate T person>document übersetzen
sign T person>document unterschreiben unterschreibt unterschrieb unterschrieben
accept T person>idea an|nehmen nimmt nahm genommen
reject T person>idea ab|lehnen
suggest T person>idea vor|schlagen schlägt schlug geschlagen
feed/fed/fed T person>animal füttern
catch/caught/caught T person+animal>animal fangen fängt fing gefangen
chase T animal>animal jagen
throw_away/threw/thrown T person>thing+document+clothing weg|werfen wirft warf geworfen
cancel T person>event ab|sagen
organize T person>event organisieren
postpone T person>event verschieben verschiebt verschob verschoben
criticize T person>person+idea kritisieren
support T person>person+idea unterstützen
check T person>document+device+idea überprüfen
recognize T person>person erkennen erkennt erkannte erkannt
wake T person>person wecken
rent T person>building+vehicle mieten
renovate T person>building renovieren
destroy T person>building+vehicle zerstören
drive/drove/driven T person>vehicle fahren fährt fuhr gefahren
park T person>vehicle parken
borrow T person>thing+document+vehicle aus|leihen leiht lieh geliehen
return T person>thing+document zurück|geben gibt gab gegeben
hide/hid/hidden T person>thing+document verstecken
collect T person>thing sammeln
count T person>thing+animal zählen
admire T person>person+building+thing bewundern
describe T person>person+building+thing beschreiben beschreibt beschrieb beschrieben
photograph T person>person+building+animal fotografieren
miss T person>person vermissen +t
cut/cut/cut T person>food+stuff schneiden schneidet schnitt geschnitten
peel T person>fruit schälen
try T person>food+drink+stuff probieren
try_on T person>clothing an|probieren
pack T person>thing+clothing ein|packen
unpack T person>thing+clothing+openable aus|packen
lift T person>thing+openable hoch|heben hebt hob gehoben
hold/held/held T person>thing+document halten hält hielt gehalten
pull T person>openable+thing ziehen zieht zog gezogen
push T person>vehicle+openable schieben schiebt schob geschoben
break/broke/broken T person>thing+device zerbrechen zerbricht zerbrach zerbrochen
draw/drew/drawn T person>person+animal+building zeichnen
water T person>plant gießen gießt goss gegossen
plant T person>plant pflanzen
measure T person>thing+building messen misst maß gemessen
protect T person+animal>person+animal schützen
warn T person>person warnen
accompany T person>person begleiten
interrupt T person>person+event unterbrechen unterbricht unterbrach unterbrochen
lock T person>openable ab|schließen schließt schloss geschlossen
hug T person>person umarmen umarmt umarmte umarmt
surprise T person+idea>person überraschen
examine T person>person+document+thing untersuchen
inspect T person>building+vehicle besichtigen
print T person>document drucken
publish T person>document veröffentlichen veröffentlicht veröffentlichte veröffentlicht
copy T person>document kopieren
quote T person>person+document zitieren
refute T person>idea widerlegen widerlegt widerlegte widerlegt
stroke T person>animal streicheln
milk T person>cow melken melkt melkte gemolken
harvest T person>fruit ernten erntet erntete geerntet
taste T person>food+drink kosten
mend T person>clothing flicken
iron T person>clothing bügeln
polish T person>thing polieren
sharpen T person>knife schärfen
praise T person>person+idea loben
blame T person>person tadeln
imitate T person+animal>person+animal nach|ahmen
help D person>person helfen hilft half geholfen
thank D person>person danken
answer D person>person antworten
follow D person+animal>person+animal+vehicle folgen +s
listen_to D person>person zu|hören
trust D person>person vertrauen +t
congratulate D person>person gratulieren
belong_to D thing+vehicle+building+device>person gehören gehört gehörte gehört +t
contradict D person>person widersprechen widerspricht widersprach widersprochen
agree_with D person>person zu|stimmen
forgive/forgave/forgiven D person>person verzeihen verzeiht verzieh verziehen
serve D person>person dienen
obey D person+animal>person gehorchen
wave_to D person>person zu|winken
give/gave/given G person>thing+document+food+animal geben gibt gab gegeben
show/showed/shown G person>thing+document+building+device zeigen
send/sent/sent G person>document+thing schicken
bring/brought/brought G person>thing+food+document bringen bringt brachte gebracht
lend/lent/lent G person>thing+vehicle+document leihen leiht lieh geliehen
tell/told/told G person>story erzählen
offer G person>food+drink+thing an|bieten bietet bot geboten
sell/sold/sold G person>thing+vehicle verkaufen
hand G person>thing+document überreichen
promise G person>thing+document+animal versprechen verspricht versprach versprochen
explain E person>idea+document+device erklären
recommend E person>document+food+building empfehlen empfiehlt empfahl empfohlen
describe E person>building+person+thing beschreiben beschreibt beschrieb beschrieben
introduce E person>person+idea vor|stellen
dictate E person>document diktieren
present E person>document+idea präsentieren
wait_for P=for:auf:A person>person+vehicle+document warten
talk_about P=about:über:A person>person+idea+event sprechen spricht sprach gesprochen
think_of/thought/thought P=of:an:A person>person+idea+event denken denkt dachte gedacht
speak_with/spoke/spoken P=with:mit:D person>person sprechen spricht sprach gesprochen
play_with P=with:mit:D person+animal>person+animal+thing spielen
dream_of P=of:von:D person>building+vehicle+person träumen
look_forward_to P=to:auf:A person>event freuen +r
remember P=:an:A person>person+idea+event erinnern +r
laugh_about P=about:über:A person>person+idea lachen
ask_for P=for:um:A person>thing+document+food bitten bittet bat gebeten
work_with P=with:mit:D person>person+device zusammen|arbeiten
take_part_in/took/taken P=in:an:D person>event teil|nehmen nimmt nahm genommen
take_care_of/took/taken P=of:um:A person>person+animal kümmern +r
argue_with P=with:mit:D person>person streiten streitet stritt gestritten
complain_about P=about:über:A person>person+idea+device beschweren +r
apologize_for P=for:für:A person>idea entschuldigen +r
fight_for/fought/fought P=for:für:A person>idea kämpfen
report_on P=on:über:A person>event+person berichten
fall_in_love_with/fell/fallen P=with:in:A person>person verlieben +r
doubt P=:an:D person>idea zweifeln
insist_on P=on:auf:D person>idea bestehen besteht bestand bestanden
go/went/gone M person gehen geht ging gegangen +s
drive/drove/driven M person fahren fährt fuhr gefahren +s
run/ran/run M person+animal laufen läuft lief gelaufen +s
travel M person reisen +s
come/came/come M person kommen kommt kam gekommen +s
fly/flew/flown M person fliegen fliegt flog geflogen +s
hike M person wandern +s
return M person zurück|kehren +s
hurry M person eilen +s
ride/rode/ridden M person reiten reitet ritt geritten +s
swim/swam/swum M person+animal schwimmen schwimmt schwamm geschwommen +s
sneak M person+animal schleichen schleicht schlich geschlichen +s
flee/fled/fled M person+animal fliehen flieht floh geflohen +s
live L person wohnen +t
work L person arbeiten
stand/stood/stood L person+animal+vehicle+thing+openable stehen steht stand gestanden +t
sit/sat/sat L person+animal sitzen sitzt saß gesessen
wait L person warten
stay L person bleiben bleibt blieb geblieben +s
sleep/slept/slept L person+animal schlafen schläft schlief geschlafen
play L person+animal spielen
study L person studieren
lie/lay/lain L thing+clothing+document liegen liegt lag gelegen +t
hang/hung/hung L clothing+thing hängen hängt hing gehangen +t
stay_overnight L person übernachten übernachtet übernachtete übernachtet
disappear L person+animal verschwinden verschwindet verschwand verschwunden +s
land L aircraft landen +s
rest L person rasten
say/said/said S person sagen +t
think/thought/thought S person glauben +t
know/knew/known S person wissen weiß wusste gewusst +t
hope S person hoffen
believe S person glauben +t
hear/heard/heard S person hören +t
claim S person behaupten
explain S person erklären
fear S person fürchten +t
notice S person bemerken
report S person berichten
suspect S person vermuten +t
deny S person leugnen
emphasize S person betonen
announce S person verkünden
ask W person fragen
know/knew/known W person wissen weiß wusste gewusst +t
wonder W person fragen +r
check W person prüfen
try Z person versuchen
forget/forgot/forgotten Z person vergessen vergisst vergaß vergessen
begin/began/begun Z person beginnen beginnt begann begonnen
promise Z person versprechen verspricht versprach versprochen
decide Z person beschließen beschließt beschloss beschlossen
hope Z person hoffen
plan Z person planen
refuse Z person weigern +r
dare Z person wagen
offer Z person an|bieten bietet bot geboten
threaten Z person drohen
"""

BE = parse_verb("be/was/been C person sein ist war gewesen +s +t")
COST = parse_verb("cost/cost/cost C thing kosten +t")
WEIGH = parse_verb("weigh C thing wiegen wiegt wog gewogen +t")
HAVE = parse_verb("have/had/had C place haben hat hatte gehabt +t")
WEATHER = [parse_verb(f"{verb} I it {german}") for verb, german in (
    ("rain", "regnen"), ("snow", "schneien"), ("thunder", "donnern"), ("hail", "hageln"),
)]  # fmt: skip

ALL_VERBS = [parse_verb(row) for row in TABLE.strip().split("\n")]
VERBS: dict[str, list[Verb]] = {
    frame: [verb for verb in ALL_VERBS if verb.frame == frame] for frame in "ITDGEPMLSWZ"
}

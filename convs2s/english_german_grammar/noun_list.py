"""The nouns by semantic class, most frequent first, in the notation of `parse_noun`."""

from convs2s.english_german_grammar.drawing import listed
from convs2s.english_german_grammar.nouns import Modifier, Noun, parse_nouns

TABLES = {
    "person": """
    man/men Mann m ^er; woman/women Frau f en; child/children Kind n er; teacher Lehrer m =;
    friend Freund m e; boy Junge m n!; girl Mädchen n =; student Student m en!; neighbor Nachbar m n!;
    doctor Arzt m ^e; mother Mutter f ^; father Vater m ^; brother Bruder m ^; sister Schwester f n;
    colleague Kollege m n!; son Sohn m ^e; daughter Tochter f ^; guest Gast m ^e; boss Chef m s;
    worker Arbeiter m =; police_officer Polizist m en!; farmer Bauer m n!; baker Bäcker m =;
    writer Schriftsteller m =; journalist Journalist m en!; engineer Ingenieur m e; king König m e;
    queen Königin f nen; nurse Krankenschwester f n; lawyer Anwalt m ^e; judge Richter m =;
    mayor Bürgermeister m =; waiter Kellner m =; cook Koch m ^e; singer Sänger m =; painter Maler m =;
    customer Kunde m n!; seller Verkäufer m =; tourist Tourist m en!; uncle Onkel m =; aunt Tante f n;
    grandfather Großvater m ^; grandmother Großmutter f ^; cousin Cousin m s; player Spieler m =;
    soldier Soldat m en!; president Präsident m en!; minister Minister m =; scientist Wissenschaftler m =;
    driver Fahrer m =; pilot Pilot m en!; captain Kapitän m e; fisherman/fishermen Fischer m =;
    hunter Jäger m =; gardener Gärtner m =; carpenter Tischler m =; tailor Schneider m =;
    butcher Metzger m =; hairdresser Friseur m e; musician Musiker m =; poet Dichter m =;
    actor Schauspieler m =; dancer Tänzer m =; athlete Sportler m =; professor Professor m en;
    expert Experte m n!; witness Zeuge m n!; patient Patient m en!; visitor Besucher m =;
    owner Besitzer m =; director Direktor m en; manager Leiter m =; manager Geschäftsführer m =;
    secretary Sekretär m e; inhabitant Einwohner m =; citizen Bürger m =; hero/heroes Held m en!;
    prince Prinz m en!; princess Prinzessin f nen; knight Ritter m =; monk Mönch m e; shepherd Hirte m n!;
    blacksmith Schmied m e; miller Müller m =; clockmaker Uhrmacher m =; librarian Bibliothekar m e;
    electrician Elektriker m =; plumber Klempner m =; locksmith Schlosser m =; sailor Matrose m n!;
    firefighter Feuerwehrmann m Feuerwehrleute; architect Architekt m en!; translator Übersetzer m =;
    interpreter Dolmetscher m =; chemist Chemiker m =; physicist Physiker m =; biologist Biologe m n!;
    philosopher Philosoph m en!; composer Komponist m en!; conductor Dirigent m en!; violinist Geiger m =;
    pianist Pianist m en!; sculptor Bildhauer m =; beekeeper Imker m =; diver Taucher m =;
    mountaineer Bergsteiger m =; referee Schiedsrichter m =; trainer Trainer m =; goalkeeper Torwart m e;
    twin Zwilling m e; nephew Neffe m n!; niece Nichte f n; grandson Enkel m =; bride Braut f ^e;
    orphan Waise f n; pupil Schüler m =; apprentice Lehrling m e; beginner Anfänger m =; genius Genie n s;
    astronaut Astronaut m en!; detective Detektiv m e; inventor Erfinder m =; pharmacist Apotheker m =;
    dentist Zahnarzt m ^e; optician Optiker m =; mechanic Mechaniker m =; accountant Buchhalter m =""",
    "animal": """
    dog Hund m e; cat Katze f n; bird Vogel m ^; horse Pferd n e; cow Kuh f ^e; fish/fish Fisch m e;
    mouse/mice Maus f ^e; sheep/sheep Schaf n e; pig Schwein n e; chicken Huhn n ^er; duck Ente f n;
    goose/geese Gans f ^e; rabbit Kaninchen n =; bear Bär m en!; wolf/wolves Wolf m ^e; fox Fuchs m ^e;
    lion Löwe m n!; tiger Tiger m =; elephant Elefant m en!; monkey Affe m n!; goat Ziege f n;
    donkey Esel m =; snake Schlange f n; frog Frosch m ^e; bee Biene f n; spider Spinne f n; owl Eule f n;
    eagle Adler m =; raven Rabe m n!; swan Schwan m ^e; hedgehog Igel m =; squirrel Eichhörnchen n =;
    deer/deer Reh n e; hare Hase m n!; beaver Biber m =; badger Dachs m e; otter Otter m =;
    lynx Luchs m e; whale Wal m e; dolphin Delfin m e; seal Robbe f n; shark Hai m e; penguin Pinguin m e;
    giraffe Giraffe f n; camel Kamel n e; crocodile Krokodil n e; tortoise Schildkröte f n;
    butterfly Schmetterling m e; beetle Käfer m =; snail Schnecke f n; ant Ameise f n; stork Storch m ^e;
    crane Kranich m e; woodpecker Specht m e; pigeon Taube f n; sparrow Spatz m en!; parrot Papagei m en;
    peacock Pfau m en; zebra Zebra n s; mole Maulwurf m ^e; bat Fledermaus f ^e; lizard Eidechse f n;
    kangaroo Känguru n s; hamster Hamster m =""",
    "food": """
    apple Apfel m ^; egg Ei n er; potato/potatoes Kartoffel f n; cake Kuchen m =; soup Suppe f n;
    pear Birne f n; roll Brötchen n =; orange Orange f n; tomato/tomatoes Tomate f n; banana Banane f n;
    onion Zwiebel f n; cherry Kirsche f n; salad Salat m e; sausage Wurst f ^e; cookie Keks m e;
    lemon Zitrone f n; pizza Pizza f s; carrot Karotte f n; carrot Möhre f n; plum Pflaume f n;
    pancake Pfannkuchen m =; dumpling Knödel m =; grape Traube f n; nut Nuss f ^e; peach Pfirsich m e;
    cucumber Gurke f n; pumpkin Kürbis m se; mushroom Pilz m e; strawberry Erdbeere f n;
    raspberry Himbeere f n; apricot Aprikose f n; pretzel Brezel f n; omelet Omelett n s;
    melon Melone f n; bean Bohne f n; fig Feige f n; waffle Waffel f n; pineapple Ananas f =""",
    "drink": """
    coffee Kaffee m -; tea Tee m -; water Wasser n -; milk Milch f -; juice Saft m -; wine Wein m -;
    beer Bier n -; lemonade Limonade f -; cocoa Kakao m -; apple_juice Apfelsaft m -;
    orange_juice Orangensaft m -; mineral_water Mineralwasser n -""",
    "stuff": """
    bread Brot n -; meat Fleisch n -; cheese Käse m -; rice Reis m -; butter Butter f -; fruit Obst n -;
    sugar Zucker m -; salt Salz n -; honey Honig m -; ham Schinken m -; jam Marmelade f -;
    chocolate Schokolade f -; flour Mehl n -; mustard Senf m -; spinach Spinat m -; garlic Knoblauch m -;
    pepper Pfeffer m -; cabbage Kohl m -""",
    "document": """
    book Buch n ^er; letter Brief m e; newspaper Zeitung f en; text Text m e; report Bericht m e;
    story Geschichte f n; article Artikel m =; poem Gedicht n e; novel Roman m e; contract Vertrag m ^e;
    magazine Zeitschrift f en; message Nachricht f en; list Liste f n; document Dokument n e;
    diary Tagebuch n ^er; recipe Rezept n e; speech Rede f n; invitation Einladung f en;
    postcard Postkarte f n; essay Aufsatz m ^e; certificate Zeugnis n se; manual Anleitung f en;
    fairy_tale Märchen n =; manuscript Manuskript n e; dictionary Wörterbuch n ^er;
    brochure Broschüre f n; riddle Rätsel n =; biography Biografie f n; chronicle Chronik f en;
    ballad Ballade f n; fable Fabel f n""",
    "thing": """
    picture Bild n er; bag Tasche f n; key Schlüssel m =; table Tisch m e; chair Stuhl m ^e;
    ball Ball m ^e; gift Geschenk n e; cup Tasse f n; glass Glas n ^er; plate Teller m =;
    knife/knives Messer n =; bottle Flasche f n; map Karte f n; flower Blume f n; bed Bett n en;
    stone Stein m e; ticket Fahrkarte f n; suitcase Koffer m =; pen Stift m e; toy Spielzeug n e;
    spoon Löffel m =; fork Gabel f n; basket Korb m ^e; umbrella Regenschirm m e; mirror Spiegel m =;
    photo Foto n s; ring Ring m e; guitar Gitarre f n; piano Klavier n e; violin Geige f n; sofa Sofa n s;
    shelf/shelves Regal n e; carpet Teppich m e; pot Topf m ^e; pan Pfanne f n; bucket Eimer m =;
    hammer Hammer m ^; ladder Leiter f n; rope Seil n e; candle Kerze f n; brush Pinsel m =;
    pillow Kissen n =; blanket Decke f n; towel Handtuch n ^er; wallet Geldbeutel m =; coin Münze f n;
    flag Fahne f n; tool Werkzeug n e; wheel Rad n ^er; tent Zelt n e; drum Trommel f n; flute Flöte f n;
    trumpet Trompete f n; puppet Puppe f n; kite Drachen m =; bowl Schüssel f n; jug Krug m ^e;
    vase Vase f n; needle Nadel f n; saw Säge f n; axe/axes Axt f ^e; shovel Schaufel f n;
    broom Besen m =; nail Nagel m ^; screw Schraube f n; board Brett n er; stool Hocker m =;
    bench Bank f ^e; sack Sack m ^e; barrel Fass n ^er; anchor Anker m =; oar Ruder n =;
    compass Kompass m e; telescope Fernrohr n e; sword Schwert n er; shield Schild m e; crown Krone f n;
    necklace Halskette f n; bracelet Armband n ^er; comb Kamm m ^e; sponge Schwamm m ^e;
    stamp Briefmarke f n; envelope Umschlag m ^e; notebook Heft n e; eraser Radiergummi m s;
    ruler Lineal n e; statue Statue f n; jewel Juwel n en; treasure Schatz m ^e; feather Feder f n;
    snow_shovel Schneeschaufel f n; hourglass Sanduhr f en; lantern Laterne f n; cradle Wiege f n""",
    "openable": """
    door Tür f en; window Fenster n =; box Kiste f n; cupboard Schrank m ^e; gate Tor n e;
    drawer Schublade f n; package Paket n e; can Dose f n; chest Truhe f n; curtain Vorhang m ^e;
    shutter Fensterladen m ^; trapdoor Falltür f en; lock Schloss n ^er; safe Tresor m e""",
    "device": """
    lamp Lampe f n; computer Computer m =; machine Maschine f n; phone Telefon n e; clock Uhr f en;
    radio Radio n s; camera Kamera f s; television Fernseher m =; printer Drucker m =; oven Ofen m ^;
    washing_machine Waschmaschine f n; heater Heizung f en; refrigerator Kühlschrank m ^e;
    dishwasher Geschirrspüler m =; vacuum_cleaner Staubsauger m =; engine Motor m en; fan Ventilator m en;
    pump Pumpe f n; drill Bohrer m =; alarm_clock Wecker m =; projector Projektor m en;
    calculator Taschenrechner m =; microwave Mikrowelle f n; toaster Toaster m =;
    loudspeaker Lautsprecher m =; screen Bildschirm m e; keyboard Tastatur f en;
    sewing_machine Nähmaschine f n""",
    "clothing": """
    coat Mantel m ^; hat Hut m ^e; shirt Hemd n en; dress Kleid n er; jacket Jacke f n; shoe Schuh m e;
    sweater Pullover m =; skirt Rock m ^e; scarf/scarves Schal m s; tie Krawatte f n; glove Handschuh m e;
    boot Stiefel m =; cap Mütze f n; suit Anzug m ^e; belt Gürtel m =; blouse Bluse f n; sock Socke f n;
    apron Schürze f n; uniform Uniform f en; vest Weste f n; raincoat Regenmantel m ^;
    slipper Pantoffel m n; sandal Sandale f n; bathrobe Bademantel m ^; costume Kostüm n e;
    helmet Helm m e""",
    "vehicle": """
    car Auto n s; train Zug m ^e; bus Bus m se; bicycle Fahrrad n ^er; ship Schiff n e; boat Boot n e;
    car Wagen m =; truck Lastwagen m =; taxi Taxi n s; airplane Flugzeug n e; tram Straßenbahn f en;
    motorcycle Motorrad n ^er; tractor Traktor m en; ferry Fähre f n; helicopter Hubschrauber m =;
    sailboat Segelboot n e; carriage Kutsche f n; sled Schlitten m =; balloon Ballon m s;
    ambulance Krankenwagen m =; submarine U-Boot n e; canoe Kanu n s; rocket Rakete f n""",
    "building": """
    house Haus n ^er; school Schule f n; church Kirche f n; museum Museum n Museen;
    hospital Krankenhaus n ^er; hotel Hotel n s; restaurant Restaurant n s; factory Fabrik f en;
    library Bibliothek f en; theater Theater n =; office Büro n s; apartment Wohnung f en;
    kitchen Küche f n; room Zimmer n =; castle Burg f en; tower Turm m ^e; bakery Bäckerei f en;
    store Geschäft n e; bank Bank f en; pharmacy Apotheke f n; prison Gefängnis n se; hall Halle f n;
    bedroom Schlafzimmer n =; cellar Keller m =; barn Scheune f n; garage Garage f n; cathedral Dom m e;
    monastery Kloster n ^; palace Palast m ^e; hut Hütte f n; stable Stall m ^e; mill Mühle f n;
    brewery Brauerei f en; workshop Werkstatt f ^en; bookstore Buchhandlung f en; café Café n s;
    inn Gasthaus n ^er; laboratory Labor n s; embassy Botschaft f en; greenhouse Gewächshaus n ^er;
    lighthouse Leuchtturm m ^e; chapel Kapelle f n; cottage Häuschen n =; studio Atelier n s;
    pavilion Pavillon m s; town_hall Rathaus n ^er; courthouse Gerichtsgebäude n =;
    warehouse Lagerhaus n ^er; tunnel Tunnel m =""",
    "place": """
    city Stadt f ^e; garden Garten m ^; village Dorf n ^er; forest Wald m ^er; park Park m s;
    country Land n ^er; street Straße f n; valley Tal n ^er; region Region f en; harbor Hafen m ^;
    desert Wüste f n; zoo Zoo m s; suburb Vorort m e; capital Hauptstadt f ^e; courtyard Hof m ^e;
    cave Höhle f n; vineyard Weinberg m e; district Viertel n =; swamp Sumpf m ^e; jungle Dschungel m =;
    gorge Schlucht f en; alley Gasse f n""",
    "spot": """
    station Bahnhof m ^e; river Fluss m ^e; lake See m n; beach Strand m ^e; bridge Brücke f n;
    airport Flughafen m ^; border Grenze f n; coast Küste f n; bus_stop Haltestelle f n; well Brunnen m =;
    intersection Kreuzung f en; campfire Lagerfeuer n =; fence Zaun m ^e; shore Ufer n =; wall Mauer f n;
    canal Kanal m ^e; waterfall Wasserfall m ^e; pond Teich m e; traffic_light Ampel f n""",
    "surface": """
    market Markt m ^e; square Platz m ^e; meadow Wiese f n; field Feld n er; mountain Berg m e;
    island Insel f n; hill Hügel m =; roof Dach n ^er; playground Spielplatz m ^e; balcony Balkon m e;
    stage Bühne f n; terrace Terrasse f n; cemetery Friedhof m ^e; parking_lot Parkplatz m ^e;
    farm Bauernhof m ^e; peak Gipfel m =; glacier Gletscher m =; pasture Weide f n; platform Bahnsteig m e""",
    "plant": """
    tree Baum m ^e; rose Rose f n; bush Busch m ^e; oak Eiche f n; tulip Tulpe f n;
    apple_tree Apfelbaum m ^e; fir Tanne f n; birch Birke f n; linden Linde f n;
    sunflower Sonnenblume f n; lily Lilie f n; carnation Nelke f n; willow Weide f n; beech Buche f n;
    maple Ahorn m e; orchid Orchidee f n; cactus/cacti Kaktus m Kakteen; palm Palme f n;
    violet Veilchen n =; thistle Distel f n; hedge Hecke f n; daisy Gänseblümchen n =""",
    "event": """
    meeting Sitzung f en; party Feier f n; concert Konzert n e; film Film m e; journey Reise f n;
    game Spiel n e; course Kurs m e; lesson Unterrichtsstunde f n; wedding Hochzeit f en;
    exhibition Ausstellung f en; exam Prüfung f en; conference Konferenz f en; trip Ausflug m ^e;
    festival Fest n e; election Wahl f en; competition Wettbewerb m e; play Theaterstück n e;
    lecture Vortrag m ^e; race Rennen n =; performance Aufführung f en;
    birthday_party Geburtstagsfeier f n; opera Oper f n; auction Auktion f en; ceremony Zeremonie f n;
    interview Interview n s; rehearsal Probe f n; parade Umzug m ^e; tournament Turnier n e;
    workshop Seminar n e; funeral Beerdigung f en; strike Streik m s""",
    "idea": """
    question Frage f n; problem Problem n e; plan Plan m ^e; idea Idee f n; answer Antwort f en;
    decision Entscheidung f en; mistake Fehler m =; suggestion Vorschlag m ^e; task Aufgabe f n;
    project Projekt n e; solution Lösung f en; offer Angebot n e; opinion Meinung f en; reason Grund m ^e;
    law Gesetz n e; rule Regel f n; result Ergebnis n se; change Änderung f en; goal Ziel n e;
    dream Traum m ^e; theory Theorie f n; method Methode f n; request Bitte f n; secret Geheimnis n se;
    advantage Vorteil m e; danger Gefahr f en; promise Versprechen n =; proof Beweis m e;
    discovery Entdeckung f en; invention Erfindung f en; tradition Tradition f en; reform Reform f en;
    experiment Experiment n e; budget Haushalt m e; strategy Strategie f n; custom Brauch m ^e;
    complaint Beschwerde f n; proposal Antrag m ^e; hypothesis/hypotheses Hypothese f n;
    agreement Abkommen n =; assumption Annahme f n; obstacle Hindernis n se; conflict Konflikt m e;
    concept Begriff m e""",
}

MODIFIERS = """
    city Stadt; school Schul; kitchen Küchen; garden Garten; winter Winter; summer Sommer;
    family Familien; work Arbeits; music Musik; coffee Kaffee; village Dorf; forest Wald; police Polizei;
    computer Computer; company Firmen; university Universitäts; church Kirchen; hotel Hotel;
    street Straßen; sports Sport; history Geschichts; art Kunst; science Wissenschafts; language Sprach;
    energy Energie; water Wasser; mountain Berg; island Insel; river Fluss; beach Strand; harbor Hafen;
    airport Flughafen; tea Tee; restaurant Restaurant; hospital Krankenhaus; library Bibliotheks;
    theater Theater; museum Museums; football Fußball; tennis Tennis; farm Hof; government Regierungs;
    tax Steuer; research Forschungs; security Sicherheits; health Gesundheits; weather Wetter;
    nature Natur; night Nacht; morning Morgen; evening Abend; holiday Urlaubs; travel Reise; youth Jugend;
    education Bildungs; culture Kultur; paper Papier; leather Leder; metal Metall; silver Silber;
    gold Gold; glass Glas; wood Holz; silk Seiden; iron Eisen; autumn Herbst; spring Frühlings;
    sea Meeres; castle Burg; factory Fabrik; prison Gefängnis; railway Eisenbahn; traffic Verkehrs;
    newspaper Zeitungs; radio Radio; film Film; opera Opern; dance Tanz; chess Schach; math Mathematik;
    chemistry Chemie; space Weltraum; moon Mond; sun Sonnen; star Sternen; wind Wind; snow Schnee;
    rain Regen; ice Eis; fire Feuer; peace Friedens; freedom Freiheits; economy Wirtschafts; market Markt;
    money Geld; bank Bank; insurance Versicherungs; election Wahl; court Gerichts; monastery Kloster;
    vineyard Weinberg; marble Marmor; copper Kupfer; velvet Samt; desert Wüsten; jungle Dschungel;
    student Studenten; tourist Touristen; animal Tier; plant Pflanzen; flower Blumen; apple Apfel;
    cherry Kirsch; honey Honig; bicycle Fahrrad; car Auto; ship Schiffs"""

# Classes whose nouns head new compounds. People come from a list of roles, because "school uncle" is odd.
HEADS = ("thing", "openable", "device", "clothing", "document", "idea", "event")
ROLES = listed(
    "teacher boss worker lawyer judge cook singer painter customer seller minister expert visitor "
    "owner director manager player trainer guest gardener engineer scientist"
)

NOUNS: dict[str, list[Noun]] = {kind: parse_nouns(table, kind) for kind, table in TABLES.items()}
COMPOUND_MODIFIERS = [Modifier(*entry.split()) for entry in MODIFIERS.split(";")]

SUBSETS = {
    "dog": "dog", "cow": "cow goat sheep", "city": "city country village island",
    "cake": "cake roll pizza cookie",
    "transport": "train bus ship airplane tram ferry", "aircraft": "airplane helicopter balloon rocket",
    "problem": "problem task riddle conflict", "story": "story fairy_tale secret dream riddle",
    "knife": "knife axe saw scissors",
    "fruit": "apple pear orange potato tomato cherry plum carrot onion peach",
}  # fmt: skip
"""Small classes for selective verbs, by their English words."""

ALL_NOUNS = [noun for nouns in NOUNS.values() for noun in nouns]
for kind, words in SUBSETS.items():
    wanted = words.split()
    NOUNS[kind] = [
        noun for nouns in list(NOUNS.values()) for noun in nouns if "_".join(noun.english[0]) in wanted
    ]

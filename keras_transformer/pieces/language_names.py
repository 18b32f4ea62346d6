"""What languages are called in English, by their codes of ISO 639-1."""

from keras_transformer.pieces.languages import short_code

NAMES = """
aa:Afar ab:Abkhazian ae:Avestan af:Afrikaans ak:Akan am:Amharic an:Aragonese ar:Arabic as:Assamese av:Avaric ay:Aymara
az:Azerbaijani ba:Bashkir be:Belarusian bg:Bulgarian bi:Bislama bm:Bambara bn:Bengali bo:Tibetan br:Breton bs:Bosnian
ca:Catalan ce:Chechen ch:Chamorro co:Corsican cr:Cree cs:Czech cu:Church_Slavonic cv:Chuvash cy:Welsh da:Danish
de:German dv:Divehi dz:Dzongkha ee:Ewe el:Greek en:English eo:Esperanto es:Spanish et:Estonian eu:Basque fa:Persian
ff:Fulah fi:Finnish fj:Fijian fo:Faroese fr:French fy:Western_Frisian ga:Irish gd:Scottish_Gaelic gl:Galician gn:Guarani
gu:Gujarati gv:Manx ha:Hausa he:Hebrew hi:Hindi ho:Hiri_Motu hr:Croatian ht:Haitian_Creole hu:Hungarian hy:Armenian
hz:Herero ia:Interlingua id:Indonesian ie:Interlingue ig:Igbo ii:Nuosu ik:Inupiaq io:Ido is:Icelandic it:Italian
iu:Inuktitut ja:Japanese jv:Javanese ka:Georgian kg:Kongo ki:Kikuyu kj:Kuanyama kk:Kazakh kl:Greenlandic km:Khmer
kn:Kannada ko:Korean kr:Kanuri ks:Kashmiri ku:Kurdish kv:Komi kw:Cornish ky:Kyrgyz la:Latin lb:Luxembourgish lg:Ganda
li:Limburgish ln:Lingala lo:Lao lt:Lithuanian lu:Luba-Katanga lv:Latvian mg:Malagasy mh:Marshallese mi:Maori
mk:Macedonian ml:Malayalam mn:Mongolian mr:Marathi ms:Malay mt:Maltese my:Burmese na:Nauru nb:Norwegian_Bokmål
nd:North_Ndebele ne:Nepali ng:Ndonga nl:Dutch nn:Norwegian_Nynorsk no:Norwegian nr:South_Ndebele nv:Navajo ny:Chichewa
oc:Occitan oj:Ojibwa om:Oromo or:Odia os:Ossetian pa:Punjabi pi:Pali pl:Polish ps:Pashto pt:Portuguese qu:Quechua
rm:Romansh rn:Rundi ro:Romanian ru:Russian rw:Kinyarwanda sa:Sanskrit sc:Sardinian sd:Sindhi se:Northern_Sami sg:Sango
sh:Serbo-Croatian si:Sinhala sk:Slovak sl:Slovenian sm:Samoan sn:Shona so:Somali sq:Albanian sr:Serbian ss:Swati
st:Southern_Sotho su:Sundanese sv:Swedish sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai ti:Tigrinya tk:Turkmen
tl:Tagalog tn:Tswana to:Tongan tr:Turkish ts:Tsonga tt:Tatar tw:Twi ty:Tahitian ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek
ve:Venda vi:Vietnamese vo:Volapük wa:Walloon wo:Wolof xh:Xhosa yi:Yiddish yo:Yoruba za:Zhuang zh:Chinese zu:Zulu
"""
NAME_OF = {code: name.replace("_", " ") for code, name in (row.split(":") for row in NAMES.split())}


def name_of(language: str) -> str:
    """Return what the language of a code is called, with its variant: "Chinese (Hans)"; the code if it is not known."""
    name = NAME_OF.get(short_code(language))
    variant = " ".join(language.replace("_", "-").split("-")[1:])
    return language if name is None else f"{name} ({variant})" if variant else name

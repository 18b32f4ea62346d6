"""What the code of a language tells about its text: how BLEU finds words in it, and which other codes mean the same."""

import logging
import re
from collections.abc import Iterable

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.scripts import UNSPACED_CHARACTER

log = logging.getLogger("keras_transformer")

USUAL_TOKENIZER = "13a"  # of sacreBLEU: words between spaces, punctuation alone
CHINESE, CHARACTERS = "zh", "char"  # of sacreBLEU
# Codes of ISO 639-1, 639-2 and 639-3. Of Japanese, sacreBLEU's own choice, "ja-mecab", needs further packages.
LANGUAGES = dict.fromkeys("zh zho chi cmn yue wuu hak gan hsn cdo cjy czh lzh nan".split(), CHINESE) | dict.fromkeys(
    "ja jpn th tha nod lo lao km khm my mya bur shn mnw bo bod tib dz dzo".split(), CHARACTERS
)
# Codes of ISO 15924. A script decides before the language: zh-Latn, which is Pinyin, has spaces.
SCRIPTS = dict.fromkeys("hans hant hani".split(), CHINESE) | dict.fromkeys(
    "jpan hira kana hrkt thai laoo khmr mymr tibt lana".split(), CHARACTERS
)
JAPANESE = ("ja", "jpn")  # by characters, in any script but Latin
# Codes of ISO 639-3, and those of 639-2 and of its individual languages that data sets use, by the code of ISO 639-1.
LONG_CODES = """
aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara,arb as:asm av:ava ay:aym az:aze,azj ba:bak be:bel bg:bul bi:bis
bm:bam bn:ben bo:bod,tib br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:ces,cze cu:chu cv:chv cy:cym,wel da:dan
de:deu,ger dv:div dz:dzo ee:ewe el:ell,gre en:eng eo:epo es:spa et:est,ekk eu:eus,baq fa:fas,per,pes,prs ff:ful fi:fin
fj:fij fo:fao fr:fra,fre fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv ha:hau he:heb hi:hin ho:hmo hr:hrv ht:hat
hu:hun hy:hye,arm hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk io:ido is:isl,ice it:ita iu:iku ja:jpn jv:jav
ka:kat,geo kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm kn:kan ko:kor kr:kau ks:kas ku:kur,kmr kv:kom kw:cor ky:kir la:lat
lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit lu:lub lv:lav,lvs mg:mlg,plt mh:mah mi:mri,mao mk:mkd,mac ml:mal mn:mon,khk
mr:mar ms:msa,may,zsm mt:mlt my:mya,bur na:nau nb:nob nd:nde ne:nep,npi ng:ndo nl:nld,dut nn:nno no:nor nr:nbl nv:nav
ny:nya oc:oci oj:oji om:orm,gaz or:ori,ory os:oss pa:pan pi:pli pl:pol ps:pus,pbt pt:por qu:que,quy rm:roh rn:run
ro:ron,rum ru:rus rw:kin sa:san sc:srd sd:snd se:sme sg:sag sh:hbs si:sin sk:slk,slo sl:slv sm:smo sn:sna so:som
sq:sqi,alb,als sr:srp ss:ssw st:sot su:sun sv:swe sw:swa,swh ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn
to:ton tr:tur ts:tso tt:tat tw:twi ty:tah ug:uig uk:ukr ur:urd uz:uzb,uzn ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho
yi:yid,ydd yo:yor za:zha zh:zho,chi,cmn zu:zul
"""
SHORT_CODES = {
    long: short for short, codes in (row.split(":") for row in LONG_CODES.split()) for long in codes.split(",")
}
CODE = re.compile(r"[a-z]{2,3}([-_][a-z0-9]{1,8})*", re.IGNORECASE)
OF_MOSES = {"tet": "tdt"}  # codes of its own
FEWEST_UNSPACED = 0.5  # of the characters of a text that is warned of


def tokenizer_of(language: str) -> str:
    """Return how sacreBLEU finds the words of a language: "zh", "char" or "13a".

    `language` is a code of two or three letters, which a script and a country may follow: "de", "zh-TW", "cmn_Hans".
    """
    code, *subtags = re.split("[-_]", language.lower())
    scripts = [subtag for subtag in subtags if len(subtag) == 4 and subtag.isalpha()]
    if not scripts:
        return LANGUAGES.get(code, USUAL_TOKENIZER)
    tokenizer = SCRIPTS.get(scripts[0], USUAL_TOKENIZER)
    return CHARACTERS if tokenizer == CHINESE and code in JAPANESE else tokenizer


def short_code(language: str) -> str:
    """Return the code of ISO 639-1, if the language has one: "de" for "DE", "deu", "ger", "de-AT" and "deu_Latn"."""
    code = re.split("[-_]", language.lower())[0]
    return SHORT_CODES.get(code, code)


def moses_code(language: str) -> str:
    """Return the code by which Moses knows a language: see `short_code`."""
    code = short_code(language)
    return OF_MOSES.get(code, code)


def check_code(language: str) -> None:
    """Raises ConfigError if this is no code of a language, such as its name."""
    if not isinstance(language, str) or not CODE.fullmatch(language):
        raise ConfigError(f"The language is {language!r:.60}: give its code of ISO 639, such as de or deu.")


def warn_of_unspaced(references: Iterable[str], language: str) -> None:
    """Log a warning if the references are in a script without spaces and the language's code does not tell."""
    if tokenizer_of(language) != USUAL_TOKENIZER:
        return
    text = "".join("".join(references).split())
    share = len(UNSPACED_CHARACTER.findall(text)) / max(len(text), 1)
    if share >= FEWEST_UNSPACED:
        log.warning(
            "%.0f per cent of the references' characters are of a script without spaces, but BLEU takes what stands "
            "between spaces as words, since the target language is %r: give its code, such as zh, ja or tha, as "
            "data.target_language",
            100 * share,
            language,
        )

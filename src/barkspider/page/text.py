"""The text of a page as people read it, and the language it is in."""

from __future__ import annotations

import re

from turbohtml import unescape
from turbohtml.detect import LanguageDetection
from turbohtml.detect import detect_language as detect

# Viúva Negra leaves out strings of more than 30 characters without a space before it classifies a text
# (section 4.5).
_LONGEST_WORD = 30
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1}}}")
# Scripts that put no spaces between words, from Thai to Khmer and east of that: there a long string is a sentence.
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7af\uf900-\ufaff\uff00-\uffef]")
_SAMPLE = 20_000  # characters that tell a language; more cost time and change nothing
_SURE = LanguageDetection(threshold=0.1)
# ISO 639-3 as the detector gives it, to the shorter ISO 639-1 of `lang` attributes, where there is one.
_CODES = (
    "afr:af aka:ak amh:am ara:ar aze:az bel:be ben:bn bul:bg cat:ca ces:cs cmn:zh cym:cy dan:da deu:de"
    " ell:el eng:en epo:eo est:et eus:eu fas:fa fin:fi fra:fr gle:ga glg:gl guj:gu hau:ha heb:he hin:hi"
    " hrv:hr hun:hu hye:hy ibo:ig ind:id isl:is ita:it jav:jv jpn:ja kan:kn kat:ka kaz:kk khm:km kin:rw"
    " kor:ko kur:ku lao:lo lat:la lav:lv lit:lt mal:ml mar:mr mkd:mk mlg:mg mya:my nep:ne nld:nl nno:nn"
    " nob:nb nor:no ori:or ory:or pan:pa pes:fa pol:pl por:pt ron:ro run:rn rus:ru sin:si slk:sk slv:sl"
    " sna:sn som:so spa:es sqi:sq srp:sr swa:sw swe:sv tam:ta tel:te tgl:tl tha:th tuk:tk tur:tr uig:ug"
    " ukr:uk urd:ur uzb:uz vie:vi yid:yi yor:yo zho:zh zul:zu"
)
_TAG = re.compile(r"\s*+([A-Za-z]{2,3})(?![A-Za-z])")
_SHORT = dict(pair.split(":") for pair in _CODES.split())


def clean_text(plain: bytes) -> str:
    """Text from the scanner's bytes: references resolved, white space single, long unbroken strings left out.

    >>> clean_text(b" caf&eacute;  au\\tlait \\n\\n" + b"x" * 31 + b" end")
    'café au lait\\nend'
    """
    text = plain.decode("utf-8", "ignore")
    if "&" in text:
        text = unescape(text)
    lines = []
    long_words = _LONG_WORD.search(text) is not None
    for line in text.split("\n"):
        words = line.split()
        if long_words:
            words = [word for word in words if len(word) <= _LONGEST_WORD or _SPACELESS.search(word)]
        if words:
            lines.append(" ".join(words))
    return "\n".join(lines)


def primary_language(declared: str) -> str:
    """The language of a declaration, without regions and further languages.

    >>> primary_language(" pt-BR, en"), primary_language("EN_us"), primary_language("{{lang}}")
    ('pt', 'en', '')
    """
    tag = _TAG.match(declared)
    code = tag[1].lower() if tag else ""
    return _SHORT.get(code, code)


def detect_language(text: str) -> str:
    """The language of a text as a code such as `pt`, or nothing when it cannot be told.

    >>> detect_language("O gato está em cima da mesa e o cão dorme no jardim, porque está cansado.")
    'pt'
    >>> detect_language("12:30")
    ''
    """
    code = detect(text[:_SAMPLE], _SURE).language or ""
    return _SHORT.get(code, code)

"""Texts and pairs of ids that are easily cut, folded or mixed up."""

TEXTS = [
    "plain",
    "Zoë Grüße naïve",
    "cafe\u0301 decomposed",
    "שלום עולם",
    "مرحبا بالعالم ١٢٣",
    "\u202eright to left override\u202c",
    "日本語テキスト",
    "한글 \u1112\u1161\u11ab",
    "नमस्ते दुनिया",
    "🛒📦🚚",
    "👩\u200d👩\u200d👧\u200d👦 🇩🇪 👍🏽",
    "Z\u0337\u0322a\u0335\u0321l\u0334g\u0338o\u0336",
    "zero\u200bwidth\ufeff",
    "\U0010ffff\ufffd\u2028\u00a0",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "İıIi ßẞ ﬁ Ǆǅǆ",
    "back\\slash \"quotes\" 'single' `tick` $1 %s {} <&>;--",
    "tab\tnewline\ncarriage\rescape\x1b[31m",
]

# Two different ids each, though a collation, a normal form or a trim would make them one.
PAIRS = [
    ("qD329Bz", "qd329bz"),
    ("caf\u00e9", "cafe\u0301"),
    ("cafe", "caf\u00e9"),
    ("straße", "strasse"),
    ("ﬁ", "fi"),
    ("İ", "i\u0307"),
    ("١", "1"),
    ("a\u200bb", "ab"),
    ("end", "end "),
    ("tab\tbed", "tab bed"),
    ("A", "\u0391"),
    ("%41", "A"),
]


def fill(text, size):
    """`text`, cut or padded to exactly `size` bytes of UTF-8."""
    cut = text.encode()[:size].decode(errors="ignore")
    return cut + "." * (size - len(cut.encode()))

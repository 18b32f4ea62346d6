"""Four German references, their translations, one of them exact, and other translations, of which one is better."""

REFERENCES = [
    "Ein Mann hält ein Schild, auf dem steht: „Hallo!“",
    "Zwei Hunde laufen über die Wiese.",
    "Das Kind spielt mit einem roten Ball im Garten.",
    "Eine Frau in einem T-Shirt kocht.",
]
TRANSLATIONS = [
    "Ein Mann hält ein Schild, auf dem Hallo steht.",
    "zwei Hunde laufen über eine Wiese.",
    "Das Kind spielt mit einem roten Ball im Garten.",
    "Eine Frau in einem roten T-Shirt kocht.",
]
OTHERS = [TRANSLATIONS[0], "Zwei Hunde laufen", "Kind", "Eine Frau in einem T-Shirt kocht."]

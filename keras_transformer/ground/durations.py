"""Seconds as people read them."""


def duration(seconds: float) -> str:
    """3725 -> "1 h 02 min"; 65 -> "1 min 05 s"; 9 -> "9 s"."""
    seconds = int(round(seconds))
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"

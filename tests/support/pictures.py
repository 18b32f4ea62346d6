"""The pictures of the page in docs/pictures: `python -m tests.support.pictures URL SENTENCE`, with a server at URL."""

import pathlib
import sys

from PIL import Image

from tests.support.browser import DESK, chromium, visit
from tests.support.places import ROOT

SHAPES = {  # by name: colours, window, pixels per point, and where the picture ends
    "page_light": ("light", DESK, 1.5, "#programs"),
    "page_top": ("light", DESK, 1.5, "#attention"),
    "page_dark": ("dark", DESK, 1.5, "#programs"),
    "page_phone": ("light", {"width": 390, "height": 844}, 2, "#attention"),
}
FOLDER = ROOT / "docs" / "pictures"


def take(url: str, sentence: str, folder: pathlib.Path) -> None:
    """Write the pictures; the cell of the heat map that is pointed at is the one with the most weight."""
    with chromium() as browser:
        for name, (scheme, window, scale, end) in SHAPES.items():
            with visit(browser, url, viewport=window, color_scheme=scheme, device_scale_factor=scale) as page:
                page.set_default_timeout(120_000)
                for _ in range(2):  # a first answer takes longer than those that a reader of the page will see
                    page.reload()
                    page.fill("#sentence", sentence)
                    page.locator("#beam-tree .node").first.wait_for()
                page.locator("#sentence").blur()
                cells = page.locator(".heat td[aria-label]")
                names = cells.evaluate_all("all => all.map(cell => cell.ariaLabel)")
                cells.nth(max(range(len(names)), key=lambda n: float(names[n].split(": ")[1]))).hover()
                page.wait_for_timeout(500)
                height = page.locator(end).bounding_box()["y"] + page.evaluate("window.scrollY")
                path = folder / f"{name}.png"
                clip = {"x": 0, "y": 0, "width": window["width"], "height": height}
                page.screenshot(path=path, full_page=True, clip=clip)
                with_palette(Image.open(path).convert("RGB")).save(path, optimize=True)


def with_palette(image: Image.Image) -> Image.Image:
    """Return an image of 256 colours, a third of the bytes: the most frequent ones, and means of all."""
    frequent = sorted(image.getcolors(1 << 24), reverse=True)[:180]
    means = image.quantize(256 - len(frequent)).getpalette()[: 3 * (256 - len(frequent))]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in frequent for part in colour] + means)
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    take(*sys.argv[1:], FOLDER)

"""The page of the demonstration: one file of HTML with everything in it, and the pictures as SVG."""
import base64
import os
import sys
from html import escape

import fashion

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from plot import Plot

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: color-mix(in srgb, currentcolor 8%, transparent); padding: .6rem; overflow-x: auto; margin: .3rem 0; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #8886; vertical-align: top; }
td { white-space: nowrap; }
td code { font-size: 13px; white-space: normal; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; }
.time, .rows { opacity: .75; font-size: 14px; }
"""
# colour-blind safe, after Okabe and Ito
REFRESHED, FIRST_MODEL = "refreshed model", "first model, kept"
LINE_STYLES = {REFRESHED: ("#0072b2", ""), FIRST_MODEL: ("#d55e00", "4 3")}
FOUND, OTHER = "#0072b2", "#cccccc"


class Page:
    def __init__(self, directory):
        self.directory = directory
        self.parts = []
        self.log = None

    def section(self, title, text):
        """Starts a section; returns the list to which its statements are added: (statement, seconds, the head and some rows)."""
        self.flush()
        self.parts.append(f"<h2>{escape(title)}</h2>\n<p>{escape(text)}</p>")
        self.log = []
        return self.log

    def flush(self):
        """Statements appear where the next thing is added to the page."""
        for statement, seconds, rows in self.log or []:
            shown = "".join("\n" + " | ".join(row) for row in rows if any(row))
            self.parts.append(f'<pre><code>{escape(statement)}</code></pre><div class="time">{seconds:.2f} s</div>')
            if shown:
                self.parts.append(f'<pre class="rows">{escape(shown.strip())}</pre>')
        if self.log:
            self.log.clear()

    def paragraph(self, text):
        self.flush()
        self.parts.append(f"<p>{escape(text)}</p>")

    def table(self, head, lines):
        self.flush()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        rows = "".join("<tr>" + "".join(f"<td><code>{escape(cell)}</code></td>" if "SELECT" in cell else f"<td>{escape(cell)}</td>" for cell in line) + "</tr>\n"
                       for line in lines)
        self.parts.append(f"<table><tr>{cells}</tr>\n{rows}</table>")

    def svg(self, text, caption):
        self.flush()
        self.parts.append(f"<figure>{text}<figcaption>{escape(caption)}</figcaption></figure>")

    def file(self, name, text):
        """Writes a picture to a file of its own."""
        with open(os.path.join(self.directory, name), "w") as file:
            print(text, file=file)

    def write(self, name, version):
        self.flush()
        with open(os.path.join(self.directory, name), "w") as file:
            print(f'''<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>unifdiag: a demonstration</title><style>{STYLE}</style></head>
<body>
<h1>unifdiag: a demonstration</h1>
<p>Search, near duplicates, and codes that stay fresh, on one table of pictures. Times are those of this run, on {escape(version.split(",")[0])}; those of searches are
medians with everything in memory.</p>''', *self.parts, "</body>\n</html>", sep="\n", file=file)


class Pictures:
    """Places pictures of the data set on an SVG."""
    SIZE = 44

    def __init__(self, width, height):
        self.pixels, self.classes = fashion.images(), fashion.labels()
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def class_of(self, picture):
        return fashion.CLASSES[self.classes[picture - 1]]

    def text(self, x, y, text, bold=False):
        weight = "bold" if bold else "normal"
        self.parts.append(f'<text x="{x}" y="{y}" font-weight="{weight}">{escape(text)}</text>')

    def place(self, x, y, picture, colour):
        data = base64.b64encode(fashion.png(self.pixels[picture - 1])).decode()
        size = self.SIZE
        self.parts.append(f'<g><title>{self.class_of(picture)}, picture {picture}</title><rect x="{x}" y="{y}" width="{size}" height="{size}" fill="{colour}"/>'
                          f'<image x="{x + 3}" y="{y + 3}" width="{size - 6}" height="{size - 6}" href="data:image/png;base64,{data}"/></g>')

    def frame(self, x, y, colour, text):
        """What a frame of that colour means."""
        self.parts.append(f'<rect x="{x + 1.5}" y="{y + 1.5}" width="11" height="11" fill="none" stroke="{colour}" stroke-width="3"/>')
        self.text(x + 20, y + 11, text)

    def svg(self):
        return "\n".join(self.parts + ["</svg>"])


def sheet(kinds, truth, count=len(fashion.CLASSES)):
    """For a query of each of the first classes, a line for each kind of search: a name, and the ids found for each query."""
    classes = fashion.labels()
    one_of_each = {}
    for query in truth:
        one_of_each.setdefault(classes[query - 1], query)
    queries = [one_of_each[label] for label in sorted(one_of_each)[:count]]
    step = Pictures.SIZE + 2
    block = len(kinds) * step + 12
    left = 2 * step + 160
    pictures = Pictures(left + 10 * step + 10, 30 + len(queries) * block)
    pictures.text(10, 18, "query", bold=True)
    pictures.text(left, 18, "the ten nearest, in order", bold=True)
    pictures.frame(left + 190, 7, FOUND, "among the true ten")
    pictures.frame(left + 340, 7, OTHER, "not among them")
    for i, query in enumerate(queries):
        top = 28 + i * block
        pictures.place(10, top, query, OTHER)
        pictures.text(10, top + Pictures.SIZE + 14, pictures.class_of(query))
        for line, (name, found) in enumerate(kinds):
            y = top + line * step
            same = len(set(found[query]) & set(truth[query]))
            pictures.text(step + 40, y + 20, name)
            pictures.text(step + 40, y + 36, f"{same} of {len(truth[query])} true" if found is not truth else "")
            for column, picture in enumerate(found[query][:10]):
                pictures.place(left + column * step, y, picture, FOUND if picture in truth[query] else OTHER)
    return pictures.svg()


def pairs(found):
    """Two pictures each, bits and pixels between them."""
    step = Pictures.SIZE + 2
    width = 2 * step + 90
    pictures = Pictures(10 + 4 * width, 10 + (len(found) + 3) // 4 * (step + 8))
    for i, (a, b, bits, distance) in enumerate(found):
        x, y = 10 + i % 4 * width, 10 + i // 4 * (step + 8)
        pictures.place(x, y, a, OTHER)
        pictures.place(x + step, y, b, OTHER)
        pictures.text(x + 2 * step + 4, y + 14, pictures.class_of(a))
        pictures.text(x + 2 * step + 4, y + 28, f"{bits} bit{'' if bits == '1' else 's'}")
        pictures.text(x + 2 * step + 4, y + 42, f"distance {distance}")
    return pictures.svg()


def lines_plot(title, x_label, y_label, lines, change):
    points = next(iter(lines.values()))
    plot = Plot(title, x_label, y_label, [x for x, _ in points], [y for each in lines.values() for _, y in each], LINE_STYLES, linear=True)
    plot.upright(change, "rows of another kind from here on")
    for name, each in lines.items():
        plot.add(name, each)
    return plot.svg()

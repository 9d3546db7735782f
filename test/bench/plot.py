"""Plots as SVG: lines or points over an x axis, with a legend.  White behind, so that they can be read on any page."""
import math
from xml.sax.saxutils import escape

OTHER_STYLE = ("#117733", "2 2")


class Plot:
    WIDTH, HEIGHT = 760, 400
    LEFT, RIGHT, TOP, BOTTOM = 64, 220, 36, 52

    def __init__(self, title, x_label, y_label, ticks, values, styles, linear=False):
        """Styles are a colour and dashes for each name; the x axis is logarithmic unless it is linear."""
        self.ticks, self.styles = ticks, styles
        self.scale = float if linear else math.log
        span = max(values) - min(values)
        step = next(step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if span / step <= 8 or step == 0.2)
        # whole steps, with some room at both ends
        self.lowest = max(math.floor(min(values) / step - 0.2), 0) * step
        self.highest = math.ceil(max(values) / step + 0.2) * step
        if max(values) <= 1:
            self.highest = min(self.highest, 1)
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.WIDTH} {self.HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{self.WIDTH}" height="{self.HEIGHT}" fill="#ffffff"/>',
            f'<text x="{self.LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
            f'<text x="{(self.LEFT + self.WIDTH - self.RIGHT) / 2}" y="{self.HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
            f'<text x="16" y="{self.HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {self.HEIGHT / 2})">{escape(y_label)}</text>']
        for tick in ticks:
            x = self.x(tick)
            self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.TOP}" y2="{self.HEIGHT - self.BOTTOM}" stroke="#e0e0e0"/>')
            self.parts.append(f'<text x="{x:.1f}" y="{self.HEIGHT - self.BOTTOM + 18}" text-anchor="middle">{tick:.10g}</text>')
        for i in range(round(self.lowest / step), round(self.highest / step) + 1):
            y = self.y(i * step)
            self.parts.append(f'<line x1="{self.LEFT}" x2="{self.WIDTH - self.RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e0e0e0"/>')
            self.parts.append(f'<text x="{self.LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{i * step:.{3 if step < 0.01 else 2}f}</text>')
        self.legend = []

    def x(self, value):
        first, last = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        return self.LEFT + (self.scale(value) - first) / (last - first) * (self.WIDTH - self.LEFT - self.RIGHT)

    def y(self, value):
        share = (value - self.lowest) / (self.highest - self.lowest)
        return self.HEIGHT - self.BOTTOM - share * (self.HEIGHT - self.TOP - self.BOTTOM)

    def style(self, name):
        return self.styles.get(name, OTHER_STYLE)

    def mark(self, x, y, name):
        colour, dashes = self.style(name)
        fill = "#ffffff" if dashes else colour
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="2"/>')

    def add(self, name, points):
        colour, dashes = self.style(name)
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        if len(points) > 1:
            self.parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
        for x, y in points:
            self.mark(self.x(x), self.y(y), name)
        self.legend.append((points[-1][1], name))

    def upright(self, value, text):
        """A vertical line that marks a place."""
        x = self.x(value)
        self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.TOP}" y2="{self.HEIGHT - self.BOTTOM}" stroke="#000000" stroke-dasharray="2 3"/>')
        self.parts.append(f'<text x="{x + 6:.1f}" y="{self.HEIGHT - self.BOTTOM - 8}">{escape(text)}</text>')

    def svg(self):
        for i, (_, name) in enumerate(sorted(self.legend, reverse=True)):
            colour, dashes = self.style(name)
            x, y = self.WIDTH - self.RIGHT + 16, self.TOP + 12 + 20 * i
            self.parts.append(f'<line x1="{x}" x2="{x + 28}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
            self.mark(x + 14, y, name)
            self.parts.append(f'<text x="{x + 36}" y="{y + 4}">{escape(name)}</text>')
        return "\n".join(self.parts + ["</svg>"])


def write_lines(path, title, x_label, y_label, ticks, lines, styles, linear=False):
    """A line, or a point, for each name: a list of places (x, y)."""
    plot = Plot(title, x_label, y_label, ticks, [y for points in lines.values() for _, y in points], styles, linear)
    for name, points in lines.items():
        plot.add(name, points)
    with open(path, "w") as file:
        print(plot.svg(), file=file)

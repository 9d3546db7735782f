"""The evaluation's report: a Markdown table and SVG plots of all results."""
import json
import os
import statistics

import plot

# colour-blind safe, after Okabe and Ito, and dashes to tell neighbours apart
STYLES = {
    "opast+unifdiag": ("#0072b2", ""),
    "opast+unifdiag, paper": ("#0072b2", "4 3"),
    "opast+neighbour": ("#d55e00", ""),
    "opast+itq": ("#009e73", ""),
    "opast+isohash": ("#cc79a7", ""),
    "opast+random": ("#e69f00", ""),
    "opast+none": ("#e69f00", "4 3"),
    "osh+random": ("#56b4e9", ""),
    "lsh": ("#777777", ""),
    "hadamard": ("#777777", "4 3"),
    "offline PCA": ("#000000", "1 3"),
    "offline ITQ": ("#882255", "6 3"),
}
PLOT_BITS = 32
SHARES = (2, 5, 10, 25, 50, 100)


def order(method):
    known = list(STYLES)
    return (known.index(method) if method in known else len(known), method)


class Results:
    def __init__(self, lines):
        self.lines = lines
        self.data = lines[0]["data"]
        self.bits = sorted({line["bits"] for line in lines})
        self.methods = sorted({line["method"] for line in lines}, key=order)
        self.partitions = len({line["partition"] for line in lines})

    def values(self, method, bits, value):
        """One for each partition; value is a function of a result, which may lack it."""
        found = []
        for line in self.lines:
            if line["method"] == method and line["bits"] == bits:
                try:
                    found.append(value(line))
                except KeyError:
                    pass
        return found

    def mean(self, method, bits, value):
        found = self.values(method, bits, value)
        return statistics.mean(found) if found else None


def final(line):
    return line["map"]["100"]


def with_deviation(values):
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


def percent(value, digits=1):
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def table(results):
    yield f"## {results.data}, mAP and recall after all rows"
    yield ""
    yield f"Mean and standard deviation of {results.partitions} random partitions; the model hashes all rows again (protocol a)."
    yield "Recall: the share of the 10 nearest rows that are among the 100 nearest by code."
    yield ""
    yield "| method | " + " | ".join(f"{bits} bits, mAP | recall" for bits in results.bits) + " |"
    yield "|---|" + "---:|---:|" * len(results.bits)
    for method in results.methods:
        cells = []
        for bits in results.bits:
            recall = results.mean(method, bits, lambda line: line["recall"])
            cells.append(with_deviation(results.values(method, bits, final)))
            cells.append("–" if recall is None else f"{recall:.3f}")
        yield f"| {method} | " + " | ".join(cells) + " |"
    for bits in results.bits:
        yield ""
        yield f"## {results.data}, {bits} bits, along the stream"
        yield ""
        yield ("| method | mAP at 2 % | 5 % | 10 % | 25 % | 50 % | 100 % | codes kept as made (b) | b / a | 10 % / 100 % "
               "| bits changed | after the first tenth | learning, µs a row (processor) |")
        yield "|---|" + "---:|" * 12
        for method in results.methods:
            shares = [results.mean(method, bits, lambda line: line["map"][share]) for share in map(str, SHARES)]
            kept = results.mean(method, bits, lambda line: line["arrival"])
            took = results.mean(method, bits, lambda line: line["microseconds"])
            cells = ["–" if value is None else f"{value:.3f}" for value in shares + [kept]]
            cells.append(percent(kept / shares[5] if kept and shares[5] else None))
            cells.append(percent(shares[2] / shares[5] if shares[2] and shares[5] else None))
            cells.append(percent(results.mean(method, bits, lambda line: line["changed"]), 2))
            cells.append(percent(results.mean(method, bits, lambda line: line["changed_late"]), 2))
            cells.append("–" if took is None else f"{took:.1f}")
            yield f"| {method} | " + " | ".join(cells) + " |"


def plot_lines(path, title, x_label, ticks, lines):
    """A line, or a point, for each method: a list of places (x, y)."""
    plot.write_lines(path, title, x_label, "mAP", ticks, lines, STYLES)


def plot_all(results, directory):
    bits = PLOT_BITS if PLOT_BITS in results.bits else results.bits[-1]
    title = f"{results.data}, {bits} bits"
    at_end = {method: results.mean(method, bits, final) for method in results.methods}
    at_end = {method: value for method, value in at_end.items() if value is not None}

    def along_the_stream(method):
        points = [(share, results.mean(method, bits, lambda line: line["map"][str(share)])) for share in SHARES]
        points = [point for point in points if point[1] is not None]
        # what was learnt from all rows at once is a level to compare with
        return points if len(points) > 1 else [(SHARES[0], at_end[method]), (SHARES[-1], at_end[method])]

    plot_lines(os.path.join(directory, "map_rows.svg"), title, "rows seen, % of the stream", SHARES,
               {method: along_the_stream(method) for method in at_end})

    took = {method: results.mean(method, bits, lambda line: line["microseconds"]) for method in at_end}
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
             if tick * 2.5 > min(took.values()) and tick / 2.5 < max(took.values())]
    plot_lines(os.path.join(directory, "map_time.svg"), title, "learning, µs of the processor a row, reading the row included", ticks,
               {method: [(took[method], at_end[method])] for method in at_end})

    if len(results.bits) > 1:
        lines = {method: [(b, results.mean(method, b, final)) for b in results.bits] for method in results.methods}
        plot_lines(os.path.join(directory, "map_bits.svg"), results.data, "bits", results.bits,
                   {method: [point for point in points if point[1] is not None] for method, points in lines.items()})


def report(path, directory):
    with open(path) as file:
        results = Results([json.loads(line) for line in file])
    with open(os.path.join(directory, "eval.md"), "w") as file:
        print("\n".join(table(results)), file=file)
    plot_all(results, directory)

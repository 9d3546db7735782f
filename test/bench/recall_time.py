"""Recall against time: a plot for each data set, of the benchmark's figures.

usage: recall_time.py FIGURES DIRECTORY

FIGURES is a file of JSON lines: data, method (an index and its options), recall, milliseconds.
"""
import json
import os
import re
import sys

import plot

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#56b4e9", "#e69f00", "#cc79a7")
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def main(path, directory):
    with open(path) as file:
        figures = [json.loads(line) for line in file]
    for data in dict.fromkeys(figure["data"] for figure in figures):
        some = [figure for figure in figures if figure["data"] == data]
        times = [figure["milliseconds"] for figure in some]
        ticks = [tick for tick in TICKS if tick * 2.5 > min(times) and tick / 2.5 < max(times)]
        methods = list(dict.fromkeys(figure["method"] for figure in some))
        # ours is drawn through, others are dashed
        styles = {method: (COLOURS[i % len(COLOURS)], "" if method.startswith("sketch") else "4 3") for i, method in enumerate(methods)}
        lines = {method: sorted(((figure["milliseconds"], figure["recall"]) for figure in some if figure["method"] == method), key=lambda point: point[1])
                 for method in methods}
        name = re.sub(r"[^a-z0-9]+", "_", data.lower()).strip("_")
        plot.write_lines(os.path.join(directory, f"recall_time_{name}.svg"), f"Recall against time: {data}", "milliseconds a search, median",
                         "recall of the 10 nearest", ticks, lines, styles)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

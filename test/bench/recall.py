"""Recall of codes by their length and by the number of candidates.

usage: recall.py PICTURES BITS...

It finds the server as psql does, and leaves recall.md and recall_bits.svg in the directory $OUTPUT.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "demo"))
import fashion
import plot
from server import codes, load, psql

QUERIES = 200
NEAREST = 10
CANDIDATES = (10, 50, 100, 200, 500)
STYLES = {f"{count} candidates": style for count, style in zip(CANDIDATES, (
    ("#777777", ""), ("#e69f00", ""), ("#009e73", ""), ("#56b4e9", ""), ("#0072b2", "")))}


def recall(made, truth):
    """For each number of candidates; the queries' codes are the last ones."""
    rows, queries = made[:-QUERIES], made[-QUERIES:]
    places = []
    for query, near in zip(queries, truth):
        distances = np.unpackbits(rows ^ query, axis=1).sum(axis=1, dtype=np.int32)
        # ties are as good as any order of them: the mean place among rows of the same distance
        counts = np.bincount(distances, minlength=8 * made.shape[1] + 1)
        before = np.cumsum(counts) - counts
        places.append(before[distances[near]] + (counts[distances[near]] - 1) / 2)
    return [float((np.array(places) < count).mean()) for count in CANDIDATES]


def main(pictures, *lengths):
    pictures, lengths = int(pictures), [int(bits) for bits in lengths]
    pixels, labels = fashion.images(), fashion.labels()
    queries = fashion.queries_of_each_class(labels, QUERIES)
    numbers = np.concatenate([np.arange(pictures), queries])
    truth = fashion.nearest_to(pixels[:pictures].astype(np.float32), pixels[queries].astype(np.float32), NEAREST)
    psql("CREATE EXTENSION IF NOT EXISTS unifdiag", "CREATE UNLOGGED TABLE recall (id int, v real[])")
    load("recall", [np.arange(len(numbers))], pixels[numbers])
    found = {}
    for bits in lengths:
        made = codes(f"""SELECT string_agg(sketcher_hash(model, v)::bytea, '' ORDER BY id)
            FROM recall, (SELECT sketcher_agg(v, {bits} ORDER BY id) AS model FROM recall WHERE id < {pictures}) m""", len(numbers))
        found[bits] = recall(made, truth)
        print(f"{bits} bits: done", file=sys.stderr)
    output = os.environ["OUTPUT"]
    with open(os.path.join(output, "recall.md"), "w") as file:
        print(f"Share of the true {NEAREST} nearest of {pictures} pictures among the nearest codes, {QUERIES} queries:\n", file=file)
        print("| bits | " + " | ".join(f"{count} candidates" for count in CANDIDATES) + " |", file=file)
        print("|---:|" + "---:|" * len(CANDIDATES), file=file)
        for bits in lengths:
            print(f"| {bits} | " + " | ".join(f"{share:.3f}" for share in found[bits]) + " |", file=file)
    plot.write_lines(os.path.join(output, "recall_bits.svg"), f"Fashion-MNIST, {pictures} pictures", "bits", f"recall of the {NEAREST} nearest", lengths,
                     {f"{count} candidates": [(bits, found[bits][i]) for bits in lengths] for i, count in enumerate(CANDIDATES)}, STYLES)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

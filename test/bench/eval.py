"""The part of the evaluation that is not the server's: drawing rows, scoring codes, reporting.

usage: eval.py draw WORK PARTITION [DATA]        binary COPY rows (id, v) to standard output; the last are queries
       eval.py score WORK PARTITION BITS METHOD  a result (JSON) for the codes in WORK, to standard output
       eval.py references WORK PARTITION BITS    the same for learners that see all rows at once
       eval.py report RESULTS DIRECTORY          eval.md and plots of all results

A neighbour of a query is a row within the mean distance of the queries' 50th nearest rows.  The
score is the mean average precision of ranking all rows by Hamming distance; among rows of equal
distance every order is as likely, and the precision is what is expected then.
"""
import json
import os
import sys
import time

# the libraries look at these when they are loaded
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "demo"))
import copy_rows
import eval_plots
import fashion

ROWS = 60000
QUERIES = 1000
NEIGHBOUR = 50
SHARES = (2, 5, 10, 25, 50, 100)

# a larger sketch than ours, which has twice as many rows as bits
OSH_ROWS = 200
OSH_CHUNKS = 100


def read_vectors(path):
    if path is None:
        return fashion.images().astype(np.float32)
    if path.endswith(".npy"):
        return np.load(path).astype(np.float32)
    if path.endswith(".fvecs"):
        dims = int(np.fromfile(path, np.int32, 1)[0])
        return np.fromfile(path, np.float32).reshape(-1, dims + 1)[:, 1:].copy()
    sys.exit(f"{path}: neither .npy nor .fvecs")


def near_rows(rows, queries):
    """For each query the rows within the mean distance of the queries' 50th neighbours."""
    squares = (rows.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
    distances = np.empty((len(queries), len(rows)), np.float32)
    for first in range(0, len(queries), 100):
        some = queries[first:first + 100]
        products = some @ rows.T
        distances[first:first + 100] = np.sqrt(np.maximum(squares - 2 * products + (some ** 2).sum(axis=1)[:, None], 0))
    radius = np.partition(distances, NEIGHBOUR - 1, axis=1)[:, NEIGHBOUR - 1].mean()
    return [np.nonzero(line <= radius)[0] for line in distances]


def draw(work, partition, path=None):
    vectors = read_vectors(path)
    order = np.random.default_rng(int(partition)).permutation(len(vectors))[:ROWS]
    vectors = np.ascontiguousarray(vectors[order])
    queries = min(QUERIES, len(vectors) // 10) // (3 if os.environ.get("EVAL_QUICK") else 1)
    rows = len(vectors) - queries
    near = near_rows(vectors[:rows], vectors[rows:])
    np.save(os.path.join(work, "vectors.npy"), vectors)
    np.savez(os.path.join(work, "near.npz"), rows=rows, near=np.concatenate(near), ends=np.cumsum([len(n) for n in near]))
    with open(os.path.join(work, "sizes"), "w") as file:
        print(rows, queries, vectors.shape[1], file=file)
    with open(os.path.join(work, "name"), "w") as file:
        print(os.path.basename(path) if path else "Fashion-MNIST", file=file)
    copy_rows.write_rows(sys.stdout.buffer, [np.arange(1, len(vectors) + 1)], vectors)


class Truth:
    def __init__(self, work):
        stored = np.load(os.path.join(work, "near.npz"))
        self.rows = int(stored["rows"])
        self.near = np.split(stored["near"], stored["ends"])[:-1]
        self.harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, self.rows + 1))])

    def average_precision(self, counts, hits):
        """By distance: how many rows there are, and how many of them are near."""
        before, hits_before = np.cumsum(counts) - counts, np.cumsum(hits) - hits
        used = hits > 0
        counts, hits, before, hits_before = counts[used], hits[used], before[used], hits_before[used]
        # over places k = 1..counts of a tie: sum of 1/(before + k), and of (k - 1)/(before + k)
        first = self.harmonic[before + counts] - self.harmonic[before]
        second = counts - (before + 1) * first
        others = (hits - 1) / np.maximum(counts - 1, 1)
        return (hits / counts * ((hits_before + 1) * first + others * second)).sum() / hits.sum()

    def score(self, codes):
        """Codes as an array of 0 and 1, rows and then queries."""
        bits = codes.shape[1]
        signs = codes.astype(np.float32) * 2 - 1
        scores = []
        for first in range(self.rows, len(codes), 100):
            # sums of plus and minus one are exact
            distances = (signs[first:first + 100] @ signs[:self.rows].T * -0.5 + 0.5 * bits).astype(np.intp)
            for i, line in enumerate(distances, start=first - self.rows):
                if len(self.near[i]) > 0:
                    scores.append(self.average_precision(np.bincount(line, minlength=bits + 1),
                                                         np.bincount(line[self.near[i]], minlength=bits + 1)))
        return float(np.mean(scores))


def read_codes(path, bits):
    with open(path) as file:
        data = np.frombuffer(bytes.fromhex(file.read().strip()), np.uint8)
    return np.unpackbits(data.reshape(-1, (bits + 7) // 8), axis=1)[:, :bits]


def print_result(work, partition, bits, method, **values):
    with open(os.path.join(work, "name")) as file:
        name = file.read().strip()
    print(json.dumps(dict(data=name, partition=int(partition), bits=bits, method=method, **values)))


def score(work, partition, bits, method):
    bits = int(bits)
    truth = Truth(work)
    codes = {share: read_codes(path, bits) for share in SHARES if os.path.exists(path := os.path.join(work, str(share)))}
    arrival = read_codes(os.path.join(work, "arrival"), bits)
    with open(os.path.join(work, "seconds")) as file:
        seconds = {int(share): float(took) for share, took in map(str.split, file)}
    tenth = truth.rows // 10
    print_result(work, partition, bits, method,
                 map={str(share): truth.score(codes[share]) for share in codes},
                 arrival=truth.score(arrival),
                 changed=float((arrival[:truth.rows] != codes[100][:truth.rows]).mean()),
                 changed_late=float((arrival[tenth:truth.rows] != codes[100][tenth:truth.rows]).mean()),
                 microseconds=sum(seconds.values()) / truth.rows * 1e6)


def principal_components(rows, bits):
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = (rows - mean).astype(np.float32)
    _, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    return vectors.T[::-1][:bits], mean


def frequent_directions(rows, bits):
    """OSH with a sketch of OSH_ROWS rows, in OSH_CHUNKS chunks, and a random rotation."""
    mean, seen, sketch = np.zeros(rows.shape[1]), 0, np.zeros((0, rows.shape[1]))
    for chunk in np.array_split(rows.astype(np.float64), OSH_CHUNKS):
        total = seen + len(chunk)
        # the chunk about its own mean, and the way between the means
        way = np.sqrt(seen * len(chunk) / total) * (chunk.mean(axis=0) - mean)
        parts = np.vstack([chunk - chunk.mean(axis=0), way])
        mean, seen = mean + (chunk.mean(axis=0) - mean) * len(chunk) / total, total
        for part in np.array_split(parts, max(1, 2 * len(parts) // OSH_ROWS)):
            _, values, vectors = np.linalg.svd(np.vstack([sketch, part]), full_matrices=False)
            half = OSH_ROWS // 2
            squares = values ** 2 - (values[half] ** 2 if len(values) > half else 0.0)
            sketch = np.sqrt(np.maximum(squares, 0.0))[:half, None] * vectors[:half]
    _, _, vectors = np.linalg.svd(sketch, full_matrices=False)
    rotation, _ = np.linalg.qr(np.random.default_rng(bits).standard_normal((bits, bits)))
    return rotation @ vectors[:bits], mean


def references(work, partition, bits):
    bits = int(bits)
    truth = Truth(work)
    vectors = np.load(os.path.join(work, "vectors.npy"))
    rows = vectors[:truth.rows]

    def report(name, learn):
        start = time.perf_counter()
        hashed = learn()
        took = time.perf_counter() - start
        print_result(work, partition, bits, name, map={"100": truth.score(hashed(vectors))}, microseconds=took / truth.rows * 1e6)

    def linear(learn):
        def learnt():
            matrix, mean = learn(rows, bits)
            return lambda x: (x - mean) @ matrix.T >= 0
        return learnt

    def itq():
        import faiss
        faiss.omp_set_num_threads(1)
        transform = faiss.ITQTransform(rows.shape[1], bits, True)
        transform.max_train_per_dim = len(rows) // rows.shape[1] + 1
        transform.train(rows)
        return lambda x: transform.apply(x) >= 0

    report("offline PCA", linear(principal_components))
    report("offline ITQ (FAISS)", itq)
    if rows.shape[1] >= OSH_ROWS and bits <= OSH_ROWS // 2:
        report(f"OSH, {OSH_ROWS} rows, {OSH_CHUNKS} chunks", linear(frequent_directions))


def main(arguments):
    commands = {"draw": draw, "score": score, "references": references, "report": eval_plots.report}
    if not arguments or arguments[0] not in commands:
        sys.exit(__doc__)
    commands[arguments[0]](*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])

"""The part of the evaluation that is not the server's: drawing rows, scoring codes, reporting.

usage: eval.py draw WORK PARTITION [DATA]        binary COPY rows (id, v) to standard output; the last are queries
       eval.py score WORK PARTITION BITS METHOD SHARE...
                                                 a result (JSON) for the codes in WORK, to standard output
       eval.py references WORK PARTITION BITS... the same for learners of others
       eval.py report RESULTS DIRECTORY          eval.md and plots of all results

A neighbour of a query is a row within the mean distance of the queries' 50th nearest rows.  The
score is the mean average precision of ranking all rows by Hamming distance; among rows of equal
distance every order is as likely, and the precision is what is expected then.  Beside it stands
the recall: the share of the 10 nearest rows that are among the 100 nearest by code.
"""
import ctypes
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
NEAREST = 10
CANDIDATES = 100

# a larger sketch than ours, which has twice as many rows as bits
OSH_ROWS = 200
OSH_CHUNKS = 100

# as its authors take
ITQ_ITERATIONS = 50


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
    """For each query the rows within the mean distance of the queries' 50th neighbours, and the nearest."""
    squares = (rows.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
    distances = np.empty((len(queries), len(rows)), np.float32)
    for first in range(0, len(queries), 100):
        some = queries[first:first + 100]
        products = some @ rows.T
        distances[first:first + 100] = np.sqrt(np.maximum(squares - 2 * products + (some ** 2).sum(axis=1)[:, None], 0))
    radius = np.partition(distances, NEIGHBOUR - 1, axis=1)[:, NEIGHBOUR - 1].mean()
    return [np.nonzero(line <= radius)[0] for line in distances], np.argpartition(distances, NEAREST - 1, axis=1)[:, :NEAREST]


def draw(work, partition, path=None):
    vectors = read_vectors(path)
    order = np.random.default_rng(int(partition)).permutation(len(vectors))[:ROWS]
    vectors = np.ascontiguousarray(vectors[order])
    queries = min(QUERIES, len(vectors) // 10) // (3 if os.environ.get("EVAL_QUICK") else 1)
    rows = len(vectors) - queries
    near, nearest = near_rows(vectors[:rows], vectors[rows:])
    np.save(os.path.join(work, "vectors.npy"), vectors)
    np.savez(os.path.join(work, "near.npz"), rows=rows, near=np.concatenate(near), ends=np.cumsum([len(n) for n in near]), nearest=nearest)
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
        self.nearest = stored["nearest"]
        self.library = ctypes.CDLL(os.path.join(work, "distances.so"))
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

    def distances(self, codes, query, bits):
        counts = np.zeros(bits + 1, np.int64)
        self.library.count_distances(codes.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(codes)), ctypes.c_size_t(codes.shape[1]),
                                     query.ctypes.data_as(ctypes.c_void_p), counts.ctypes.data_as(ctypes.c_void_p))
        return counts

    @staticmethod
    def words(packed, bits):
        """Codes as bytes become words."""
        words = np.zeros((len(packed), (bits + 63) // 64 * 8), np.uint8)
        words[:, :packed.shape[1]] = packed
        return words.view(np.uint64)

    def recall(self, packed, bits):
        """The expected share of the nearest rows among the candidates, ties in any order."""
        codes = self.words(packed, bits)
        shares = []
        for query, nearest in zip(codes[self.rows:], self.nearest):
            counts = self.distances(codes[:self.rows], query, bits)
            last = np.searchsorted(np.cumsum(counts), min(CANDIDATES, self.rows))
            place = (CANDIDATES - counts[:last].sum()) / counts[last]
            found = self.distances(codes[nearest], query, bits)
            shares.append((found[:last].sum() + min(place, 1.0) * found[last]) / NEAREST)
        return float(np.mean(shares))

    def score(self, packed, bits):
        """Codes as bytes, rows and then queries."""
        codes = self.words(packed, bits)
        return float(np.mean([self.average_precision(self.distances(codes[:self.rows], query, bits), self.distances(codes[near], query, bits))
                              for query, near in zip(codes[self.rows:], self.near) if len(near) > 0]))


def read_codes(path, bits, columns):
    """Codes by column, as bytes: the server writes all of a row, one after the other."""
    with open(path) as file:
        data = np.frombuffer(bytes.fromhex(file.read().strip()), np.uint8)
    return [np.ascontiguousarray(column) for column in data.reshape(-1, columns, (bits + 7) // 8).transpose(1, 0, 2)]


def print_result(work, partition, bits, method, **values):
    with open(os.path.join(work, "name")) as file:
        name = file.read().strip()
    print(json.dumps(dict(data=name, partition=int(partition), bits=bits, method=method, **values)))


def share_changed(before, after, bits):
    return float(np.unpackbits(before ^ after, axis=1)[:, :bits].mean())


def score(work, partition, bits, method, *shares):
    bits = int(bits)
    truth = Truth(work)
    *codes, arrival = read_codes(os.path.join(work, "codes"), bits, len(shares) + 1)
    codes = dict(zip(shares, codes))
    final = codes["100"]
    # the queries are no part of the stream
    arrival[truth.rows:] = final[truth.rows:]
    with open(os.path.join(work, "seconds")) as file:
        seconds = sum(float(line.split()[1]) for line in file)
    tenth = truth.rows // 10
    print_result(work, partition, bits, method,
                 map={share: truth.score(codes[share], bits) for share in shares},
                 recall=truth.recall(final, bits),
                 arrival=truth.score(arrival, bits),
                 changed=share_changed(arrival[:truth.rows], final[:truth.rows], bits),
                 changed_late=share_changed(arrival[tenth:truth.rows], final[tenth:truth.rows], bits),
                 microseconds=seconds / truth.rows * 1e6)


def principal_components(rows):
    """All of them, the first in the first row, and the mean."""
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = (rows - mean).astype(np.float32)
    _, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    return vectors.T[::-1], mean


def shrink(stack):
    """The principal directions of the rows, half as many as the sketch has, less the variance of the next."""
    squares, left = np.linalg.eigh(stack @ stack.T)
    squares, left = squares[::-1], left[:, ::-1]
    half = OSH_ROWS // 2
    used = squares[:half] > 1e-12 * squares[0]
    directions = (left[:, :half][:, used].T @ stack) / np.sqrt(squares[:half][used])[:, None]
    least = squares[half] if len(squares) > half else 0.0
    return np.sqrt(np.maximum(squares[:half][used] - least, 0.0))[:, None] * directions


def frequent_directions(rows):
    """OSH with a sketch of OSH_ROWS rows, in OSH_CHUNKS chunks: its directions, and the mean."""
    mean, seen, sketch = np.zeros(rows.shape[1]), 0, np.zeros((0, rows.shape[1]))
    for chunk in np.array_split(rows.astype(np.float64), OSH_CHUNKS):
        total = seen + len(chunk)
        # the chunk about its own mean, and the way between the means
        way = np.sqrt(seen * len(chunk) / total) * (chunk.mean(axis=0) - mean)
        parts = np.vstack([chunk - chunk.mean(axis=0), way])
        mean, seen = mean + (chunk.mean(axis=0) - mean) * len(chunk) / total, total
        for part in np.array_split(parts, max(1, 2 * len(parts) // OSH_ROWS)):
            sketch = shrink(np.vstack([sketch, part]))
    return np.linalg.svd(sketch, full_matrices=False)[2], mean


def random_rotation(bits):
    return np.linalg.qr(np.random.default_rng(bits).standard_normal((bits, bits)))[0]


def iterative_quantisation(projected):
    """The rotation by ITQ over all rows.  FAISS's differs: it makes all vectors equally long first."""
    rotation = random_rotation(projected.shape[1]).astype(np.float32)
    for _ in range(ITQ_ITERATIONS):
        signs = np.where(projected @ rotation >= 0, np.float32(1), np.float32(-1))
        left, _, right = np.linalg.svd((projected.T @ signs).astype(np.float64))
        rotation = (left @ right).astype(np.float32)
    return rotation


def references(work, partition, *lengths):
    truth = Truth(work)
    vectors = np.load(os.path.join(work, "vectors.npy"))
    rows = vectors[:truth.rows]
    lengths = [bits for bits in map(int, lengths) if bits <= rows.shape[1]]

    def measure(learn, *arguments):
        start = time.process_time()
        learnt = learn(*arguments)
        return learnt, (time.process_time() - start) / truth.rows * 1e6

    def report(name, bits, projected, microseconds):
        packed = np.packbits(projected >= 0, axis=1)
        print_result(work, partition, bits, name, map={"100": truth.score(packed, bits)}, recall=truth.recall(packed, bits), microseconds=microseconds)

    # one decomposition serves all lengths
    (components, mean), took = measure(principal_components, rows)
    for bits in lengths:
        report("offline PCA", bits, (vectors - mean) @ components[:bits].T, took)
    for bits in lengths:
        projected = ((vectors - mean) @ components[:bits].T).astype(np.float32)
        rotation, more = measure(iterative_quantisation, projected[:truth.rows])
        report("offline ITQ", bits, projected @ rotation, took + more)
    if rows.shape[1] >= OSH_ROWS:
        (directions, mean), took = measure(frequent_directions, rows)
        for bits in lengths:
            if bits <= len(directions):
                report(f"OSH, {OSH_ROWS} rows, {OSH_CHUNKS} chunks", bits, (vectors - mean) @ (random_rotation(bits) @ directions[:bits]).T, took)


def main(arguments):
    commands = {"draw": draw, "score": score, "references": references, "report": eval_plots.report}
    if not arguments or arguments[0] not in commands:
        sys.exit(__doc__)
    commands[arguments[0]](*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])

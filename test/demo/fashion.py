"""Fashion-MNIST: rows for COPY, exact neighbours, pictures.

usage: fashion.py rows                 binary COPY rows (id, label, pixels) to standard output
       fashion.py recall NEIGHBOURS    recall of a CSV of (query, neighbour, rank)

Pictures 1 to 60000 are the training set, 60001 to 70000 the test set.
"""
import csv
import functools
import gzip
import struct
import sys
import zlib

import numpy as np

import copy_rows

DIRECTORY = "/usr/share/datasets/fashion-mnist/"
SIDE = 28
TRAINING = 60000
VECTORS_AT_ONCE = 32
CLASSES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")


def read_idx(name, header):
    with gzip.open(DIRECTORY + name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


@functools.cache
def images():
    parts = [read_idx(part + "-images-idx3-ubyte.gz", 16) for part in ("train", "t10k")]
    return np.concatenate(parts).reshape(-1, SIDE * SIDE)


@functools.cache
def labels():
    return np.concatenate([read_idx(part + "-labels-idx1-ubyte.gz", 8) for part in ("train", "t10k")])


def read_neighbours(path):
    """The ids found for each query, nearest first."""
    found = {}
    with open(path, newline="") as file:
        for query, neighbour, _ in sorted(csv.reader(file), key=lambda line: int(line[2])):
            found.setdefault(int(query), []).append(int(neighbour))
    return found


def smallest(values, count):
    """Numbers of the smallest values, the smallest first; of equal ones the first."""
    limit = np.partition(values, count - 1)[count - 1]
    some = np.nonzero(values <= limit)[0]
    return some[np.argsort(values[some], kind="stable")][:count]


def nearest_to(rows, vectors, count):
    """For each of the vectors the numbers of the rows nearest to it by Euclidean distance, nearest first."""
    squares = (rows ** 2).sum(axis=1)
    found = []
    # a product reads all rows: one for several vectors, but not for so many that it becomes large
    for first in range(0, len(vectors), VECTORS_AT_ONCE):
        products = np.asarray(vectors[first:first + VECTORS_AT_ONCE]) @ rows.T
        found += [smallest(squares - 2 * each, count) for each in products]
    return found


def nearest_rows(rows, queries, count):
    """The same for vectors that are rows themselves, which are not their own neighbours."""
    found = nearest_to(rows, rows[queries], count + 1)
    return [near[near != query][:count] for query, near in zip(queries, found)]


def true_neighbours(queries, count, rows=TRAINING):
    """The ids of the first so many pictures that are nearest to each query, by the queries' ids."""
    pixels = images().astype(np.float32)
    queries = list(queries)
    found = nearest_to(pixels[:rows], [pixels[query - 1] for query in queries], count)
    return {query: (near + 1).tolist() for query, near in zip(queries, found)}


def queries_of_each_class(classes, count):
    """Numbers of pictures of the test set, as many of each class as of every other."""
    each = [TRAINING + np.nonzero(classes[TRAINING:] == label)[0][:count // len(CLASSES)] for label in range(len(CLASSES))]
    return np.sort(np.concatenate(each))


def print_recall(found):
    truth = true_neighbours(found, 10)
    for candidates in (10, 100):
        recall = np.mean([len(set(found[query][:candidates]) & set(truth[query])) / 10 for query in found])
        print(f"  true 10 nearest pictures among the {candidates:3d} nearest codes: {recall:.3f}")
    classes = labels()
    agree = np.mean([[classes[n - 1] == classes[query - 1] for n in found[query][:10]] for query in found])
    print(f"  nearest 10 codes of the query's own class: {agree:.3f}")


def png(picture):
    """The bytes of a PNG file of a picture, dark on white."""
    lines = np.hstack([np.zeros((SIDE, 1), np.uint8), 255 - picture.reshape(SIDE, SIDE)])

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b""))


def main(arguments):
    if arguments == ["rows"]:
        pixels = images()
        copy_rows.write_rows(sys.stdout.buffer, [np.arange(1, len(pixels) + 1), labels()], pixels)
    elif len(arguments) == 2 and arguments[0] == "recall":
        print_recall(read_neighbours(arguments[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

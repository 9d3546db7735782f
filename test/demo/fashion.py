"""Fashion-MNIST for the demonstration: rows for COPY, exact neighbours, the contact sheet.

usage: fashion.py rows                       binary COPY rows (id, label, pixels) to standard output
       fashion.py recall NEIGHBOURS          recall of a CSV of (query, neighbour, rank)
       fashion.py sheet NEIGHBOURS PICTURE   a PNG of queries, their neighbours by code, the true ones

Pictures 1 to 60000 are the training set, 60001 to 70000 the test set.
"""
import csv
import gzip
import struct
import sys
import zlib

import numpy as np

import copy_rows

DIRECTORY = "/usr/share/datasets/fashion-mnist/"
SIDE = 28
TRAINING = 60000


def read_idx(name, header):
    with gzip.open(DIRECTORY + name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def images():
    parts = [read_idx(part + "-images-idx3-ubyte.gz", 16) for part in ("train", "t10k")]
    return np.concatenate(parts).reshape(-1, SIDE * SIDE)


def labels():
    return np.concatenate([read_idx(part + "-labels-idx1-ubyte.gz", 8) for part in ("train", "t10k")])


def read_neighbours(path):
    """The ids found for each query, nearest first."""
    found = {}
    with open(path, newline="") as file:
        for query, neighbour, _ in sorted(csv.reader(file), key=lambda line: int(line[2])):
            found.setdefault(int(query), []).append(int(neighbour))
    return found


def true_neighbours(queries, count):
    """The ids of the training pictures nearest to each query by Euclidean distance."""
    pixels = images().astype(np.float32)
    training = pixels[:TRAINING]
    squares = (training ** 2).sum(axis=1)
    nearest = {}
    for query in queries:
        order = np.argsort(squares - 2 * (training @ pixels[query - 1]), kind="stable")
        nearest[query] = (order[:count] + 1).tolist()
    return nearest


def print_recall(found):
    truth = true_neighbours(found, 10)
    for candidates in (10, 100):
        recall = np.mean([len(set(found[query][:candidates]) & set(truth[query])) / 10 for query in found])
        print(f"  true 10 nearest pictures among the {candidates:3d} nearest codes: {recall:.3f}")
    classes = labels()
    agree = np.mean([[classes[n - 1] == classes[query - 1] for n in found[query][:10]] for query in found])
    print(f"  nearest 10 codes of the query's own class: {agree:.3f}")


def write_png(path, picture):
    height, width, _ = picture.shape
    lines = np.hstack([np.zeros((height, 1), np.uint8), picture.reshape(height, width * 3)])

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n"
                   + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b""))


def write_sheet(found, path):
    """A row a query: the query, ten neighbours by code, ten true ones.

    The frame of a neighbour is green if it is of the query's class, and red if not.
    """
    pixels, classes = images(), labels()
    one_of_each = {}
    for query in found:
        one_of_each.setdefault(classes[query - 1], query)
    queries = [one_of_each[label] for label in sorted(one_of_each)]
    truth = true_neighbours(queries, 10)
    scale, frame, gap, space = 2, 3, 2, 24
    cell = SIDE * scale + 2 * frame + gap
    sheet = np.full((len(queries) * cell + gap, 21 * cell + 2 * space + gap, 3), 255, np.uint8)

    def place(row, column, picture, colour):
        top = gap + row * cell
        left = gap + column * cell + (space if column > 0 else 0) + (space if column > 10 else 0)
        size = SIDE * scale + 2 * frame
        sheet[top:top + size, left:left + size] = colour
        large = np.kron(255 - pixels[picture - 1].reshape(SIDE, SIDE), np.ones((scale, scale), np.uint8))
        sheet[top + frame:top + size - frame, left + frame:left + size - frame] = large[:, :, None]

    for row, query in enumerate(queries):
        place(row, 0, query, (90, 90, 90))
        for column, neighbour in enumerate(found[query][:10] + truth[query], start=1):
            same = classes[neighbour - 1] == classes[query - 1]
            place(row, column, neighbour, (60, 160, 75) if same else (205, 65, 55))
    write_png(path, sheet)


def main(arguments):
    if arguments == ["rows"]:
        pixels = images()
        copy_rows.write_rows(sys.stdout.buffer, [np.arange(1, len(pixels) + 1), labels()], pixels)
    elif len(arguments) == 2 and arguments[0] == "recall":
        print_recall(read_neighbours(arguments[1]))
    elif len(arguments) == 3 and arguments[0] == "sheet":
        write_sheet(read_neighbours(arguments[1]), arguments[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Codes for the benchmark of searching: raw files, and rows in COPY's binary format.

usage: codes.py random COUNT BITS FILE       random codes
       codes.py fashion COUNT BITS FILE      codes of images: Fashion-MNIST, shifted by some pixels;
                                             the model (mean, basis, rotation) comes from stdin
       codes.py rows BITS FILE               the codes of a file as rows (id, code)
       codes.py faiss BITS FILE              milliseconds of a search for 10 by FAISS, one thread
"""
import json
import pathlib
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "demo"))
import fashion

BATCH = 500000


def shifted_images(count):
    """Images of Fashion-MNIST, each shifted in every direction by up to three pixels, or more if that is not enough."""
    images = fashion.images().reshape(-1, 28, 28)
    reach = 3
    while (2 * reach + 1) ** 2 * len(images) < count:
        reach += 1
    made = 0
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            if made >= count:
                return
            batch = numpy.roll(images, (down, right), axis=(1, 2)).reshape(-1, 784)[: count - made]
            made += len(batch)
            yield batch.astype(numpy.float32)


def write_fashion(count, path):
    model = json.load(sys.stdin)
    mean = numpy.array(model["mean"], numpy.float32)
    projection = numpy.array(model["rotation"], numpy.float32) @ numpy.array(model["basis"], numpy.float32)
    with open(path, "wb") as file:
        for batch in shifted_images(count):
            file.write(numpy.packbits((batch - mean) @ projection.T >= 0, axis=1).tobytes())


def write_rows(bits, path):
    size = bits // 8
    codes = numpy.memmap(path, numpy.uint8, "r").reshape(-1, size)
    row = numpy.dtype([("fields", ">i2"), ("id_size", ">i4"), ("id", ">i4"), ("code_size", ">i4"),
                       ("bits", ">i4"), ("code", numpy.uint8, (size,))])
    out = sys.stdout.buffer
    out.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
    for start in range(0, len(codes), BATCH):
        batch = codes[start : start + BATCH]
        rows = numpy.empty(len(batch), row)
        rows["fields"], rows["id_size"], rows["code_size"], rows["bits"] = 2, 4, size + 4, bits
        rows["id"] = numpy.arange(start + 1, start + len(batch) + 1)
        rows["code"] = batch
        out.write(rows.tobytes())
    out.write(b"\xff\xff")


def time_faiss(bits, path):
    import faiss
    faiss.omp_set_num_threads(1)
    codes = numpy.fromfile(path, numpy.uint8).reshape(-1, bits // 8)
    index = faiss.IndexBinaryFlat(bits)
    index.add(codes)
    best = float("inf")
    for k in range(15):
        query = codes[k * 997 : k * 997 + 1]
        start = time.perf_counter()
        index.search(query, 10)
        best = min(best, time.perf_counter() - start)
    print(best * 1000)


def main():
    command, *arguments = sys.argv[1:]
    if command == "random":
        count, bits, path = int(arguments[0]), int(arguments[1]), arguments[2]
        generator = numpy.random.default_rng(20180415)
        with open(path, "wb") as file:
            for start in range(0, count, BATCH):
                file.write(generator.bytes(min(BATCH, count - start) * bits // 8))
    elif command == "fashion":
        write_fashion(int(arguments[0]), arguments[2])
    elif command == "rows":
        write_rows(int(arguments[0]), arguments[1])
    elif command == "faiss":
        time_faiss(int(arguments[0]), arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

"""Rows of PostgreSQL's binary COPY: integer columns, and after them one of type real[].

usage: copy_rows.py ROWS DIMS   random rows (id, v) to standard output, always the same
"""
import struct
import sys

import numpy as np

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
END = struct.pack(">h", -1)
FLOAT4_OID = 700
ROWS_AT_A_TIME = 1000


def row_type(integers, dims):
    """A row as it travels: each column is preceded by its length, as is each element."""
    return np.dtype([
        ("fields", ">i2"),
        ("integers", [("length", ">i4"), ("value", ">i4")], (integers,)),
        ("array_length", ">i4"), ("dimensions", ">i4"), ("has_null", ">i4"), ("type", ">i4"),
        ("size", ">i4"), ("lower", ">i4"),
        ("elements", [("length", ">i4"), ("value", ">f4")], (dims,))])


def write_rows(out, integers, matrix):
    """Writes a row for each row of the matrix; integers is a list of columns."""
    count, dims = matrix.shape
    rows = np.zeros(ROWS_AT_A_TIME, row_type(len(integers), dims))
    rows["fields"] = len(integers) + 1
    rows["integers"]["length"] = 4
    rows["array_length"] = 20 + 8 * dims
    rows["dimensions"] = 1
    rows["type"] = FLOAT4_OID
    rows["size"] = dims
    rows["lower"] = 1
    rows["elements"]["length"] = 4
    out.write(HEADER)
    for first in range(0, count, ROWS_AT_A_TIME):
        part = slice(first, min(first + ROWS_AT_A_TIME, count))
        filled = rows[:part.stop - first]
        for i, column in enumerate(integers):
            filled["integers"]["value"][:, i] = column[part]
        filled["elements"]["value"] = matrix[part]
        out.write(filled.tobytes())
    out.write(END)


def read_rows(file):
    """The matrix of rows that were written like this."""
    data = file.read()
    fields, = struct.unpack_from(">h", data, len(HEADER))
    size_offset = len(HEADER) + row_type(fields - 1, 0).fields["size"][1]
    dims, = struct.unpack_from(">i", data, size_offset)
    row = row_type(fields - 1, dims)
    count = (len(data) - len(HEADER) - len(END)) // row.itemsize
    return np.frombuffer(data, row, count, len(HEADER))["elements"]["value"].astype(np.float32)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    count, dims = map(int, arguments)
    matrix = np.random.default_rng(dims).standard_normal((count, dims), np.float32)
    write_rows(sys.stdout.buffer, [np.arange(1, count + 1)], matrix)


if __name__ == "__main__":
    main(sys.argv[1:])

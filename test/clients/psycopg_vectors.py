"""Codes of the vector [1,2,3,4] by psycopg 3, passed in all ways that people pass it: a line for each."""
import numpy
import psycopg


# psycopg knows no arrays of numpy
class ArrayDumper(psycopg.adapt.Dumper):
    oid = psycopg.adapters.types["float4"].array_oid

    def dump(self, array):
        return ("{" + ",".join(map(str, array.tolist())) + "}").encode()


vector = [1.0, 2.0, 3.0, 4.0]
with psycopg.connect("") as connection:
    connection.adapters.register_dumper(numpy.ndarray, ArrayDumper)
    for name, value in {"list of floats": vector, "list of integers": [1, 2, 3, 4], "numpy list": numpy.array(vector, dtype=numpy.float32).tolist(),
                        "numpy float32": numpy.array(vector, dtype=numpy.float32), "numpy float64": numpy.array(vector), "numpy int64": numpy.array([1, 2, 3, 4]),
                        "string": str(vector), "array string": "{1,2,3,4}"}.items():
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            code = cursor.execute("SELECT sketcher_hash('items_code_model', %s)::text", (value,)).fetchone()[0]
            print(f"psycopg, {name}{', binary' if binary else ''}: {code}")
    # prepared by the driver
    for _ in range(2):
        code = connection.execute("SELECT sketcher_hash('items_code_model', %s)::text", (vector,), prepare=True).fetchone()[0]
    print(f"psycopg, prepared: {code}")

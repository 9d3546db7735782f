"""Codes of the vector [1,2,3,4] by psycopg2, passed in all ways that people pass it: a line for each."""
import numpy
import psycopg2
from psycopg2.extensions import adapt, register_adapter

# psycopg2 knows no arrays of numpy
register_adapter(numpy.ndarray, lambda array: adapt(array.tolist()))

vector = [1.0, 2.0, 3.0, 4.0]
connection = psycopg2.connect("")
cursor = connection.cursor()
for name, value in {"list of floats": vector, "list of integers": [1, 2, 3, 4], "numpy list": numpy.array(vector, dtype=numpy.float32).tolist(),
                    "numpy float32": numpy.array(vector, dtype=numpy.float32), "numpy float64": numpy.array(vector), "numpy int64": numpy.array([1, 2, 3, 4]),
                    "string": str(vector), "array string": "{1,2,3,4}"}.items():
    cursor.execute("SELECT sketcher_hash('items_code_model', %s)", (value,))
    print(f"psycopg2, {name}: {cursor.fetchone()[0]}")

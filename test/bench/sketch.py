"""What the sketch index costs beside a search, on Fashion-MNIST.

usage: sketch.py

It finds the server as psql does, and leaves sketch.md in the directory $OUTPUT.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

# the libraries look at these when they are loaded
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import fashion
from server import SEARCHES, load, psql, recall, searches, value

QUERIES = 200
CONNECTIONS = 20
CLIENTS = 8
SECONDS = int(os.environ.get("INSERT_SECONDS", "10"))
DIMS = 784
ALL = "SELECT id, v FROM queries ORDER BY id"
SEARCH = "SELECT id FROM {} ORDER BY v <-> $1{} LIMIT 10"


def seconds_of(*statements):
    start = time.perf_counter()
    psql("SET max_parallel_workers_per_gather = 0", *statements)
    return time.perf_counter() - start


def create_table(name, column, storage, pgvector):
    """The same rows in another column type or storage."""
    psql(f"CREATE TABLE {name} (id int, v {column})", f"ALTER TABLE {name} ALTER v SET STORAGE {storage}",
         # a slice is a new array: others would be stored as compressed as they were
         f"INSERT INTO {name} SELECT id, v[:]::{column} FROM items", f"VACUUM (FREEZE, ANALYZE) {name}")
    return SEARCH.format(name, "::vector" if pgvector else "")


def storages(truth, has_pgvector):
    """A search by type and storage of the vectors; building beside reading the column."""
    kinds = [("real[]", storage) for storage in ("EXTENDED", "EXTERNAL", "PLAIN")]
    if has_pgvector:
        kinds += [(f"vector({DIMS})", storage) for storage in ("EXTERNAL", "PLAIN")]
    yield "| column | storage | median of a search | recall of the 10 nearest | reading the column | build | bytes of a row |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for number, (column, storage) in enumerate(kinds):
        name = f"stored_{number}"
        pgvector = column != "real[]"
        statement = create_table(name, column, storage, pgvector)
        norm = "sum(vector_dims(v))" if pgvector else "sum(v[1])"
        read = min(seconds_of(f"SELECT {norm} FROM {name}") for _ in range(3))
        build = min(seconds_of(f"DROP INDEX IF EXISTS {name}_v", f"CREATE INDEX {name}_v ON {name} USING sketch (v)") for _ in range(3))
        found, took = searches(statement, ALL, *(["LOAD 'vector'"] if pgvector else []))
        size = int(value(f"SELECT pg_relation_size('{name}_v')"))
        yield (f"| {column} | {storage} | {took:.2f} ms | {recall(found, truth):.3f} | {read:.2f} s | {build:.2f} s ({build / read:.1f} times) "
               f"| {size / int(value(f'SELECT count(*) FROM {name}')):.1f} |")
        if number > 0:
            psql(f"DROP TABLE {name}")


def first_search():
    """Milliseconds that the first and the third search of a connection take, by the server's clock: medians."""
    times = []
    statement = "SELECT count(*) FROM (SELECT id FROM stored_0 ORDER BY v <-> (SELECT v FROM queries LIMIT 1) LIMIT 10) q"
    for _ in range(CONNECTIONS):
        clock = "SELECT extract(epoch FROM clock_timestamp()) * 1000"
        # what any first statement of a connection has to read is not ours
        rows = psql("SELECT count(*) FROM (SELECT id FROM queries ORDER BY v <-> (SELECT v FROM queries LIMIT 1) LIMIT 10) q",
                    clock, statement, clock, statement, clock, statement, clock)
        stamps = [float(row[0]) for row in rows[1::2]]
        times.append((stamps[1] - stamps[0], stamps[3] - stamps[2]))
    first, third = (statistics.median(column) for column in zip(*times))
    yield f"The first search of a connection takes {first:.1f} ms, the third {third:.1f}."


def insert_rate(table, source):
    """Rows that several clients insert in a second, each row in a transaction of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"\\set id random(1, 60000)\nINSERT INTO {table} SELECT id, v FROM {source} WHERE id = :id;\n")
        script.flush()
        out = subprocess.run(["pgbench", "-n", "-c", str(CLIENTS), "-j", "2", "-T", str(SECONDS), "-M", "prepared", "-f", script.name],
                             capture_output=True, text=True, check=True).stdout
    return float(next(line for line in out.splitlines() if line.startswith("tps")).split()[2])


def inserts(has_pgvector):
    psql("CREATE UNIQUE INDEX items_id ON items (id)")
    kinds = [("no index", "real[]", "items", None), ("sketch", "real[]", "items", "USING sketch (v)")]
    if has_pgvector:
        psql(f"CREATE TABLE items_vector AS SELECT id, v::vector({DIMS}) AS v FROM items", "CREATE UNIQUE INDEX items_vector_id ON items_vector (id)")
        kinds += [("no index", f"vector({DIMS})", "items_vector", None), ("sketch", f"vector({DIMS})", "items_vector", "USING sketch (v)"),
                  ("HNSW", f"vector({DIMS})", "items_vector", "USING hnsw (v vector_l2_ops)")]
    yield f"| index | column | rows a second, {CLIENTS} clients, one row a transaction | of the rate without an index |"
    yield "|---|---|---:|---:|"
    bare = {}
    for name, column, source, index in kinds:
        psql("DROP TABLE IF EXISTS target", f"CREATE TABLE target AS SELECT id, v FROM {source} WHERE id <= 10000")
        if index:
            psql(f"CREATE INDEX ON target {index}")
        rate = insert_rate("target", source)
        bare.setdefault(column, rate)
        yield f"| {name} | {column} | {rate:.0f} | {rate / bare[column]:.0%} |"


def main():
    has_pgvector = value("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") != "0"
    psql("CREATE EXTENSION IF NOT EXISTS unifdiag")
    if has_pgvector:
        psql("CREATE EXTENSION IF NOT EXISTS vector", "CREATE EXTENSION IF NOT EXISTS unifdiag_pgvector")
    else:
        print("vector, HNSW: skipped, need pgvector", file=sys.stderr)
    vectors = fashion.images().astype(np.float32).reshape(-1, DIMS)
    vectors = np.ascontiguousarray(vectors[np.random.default_rng(1).permutation(len(vectors))])
    rows = len(vectors) - QUERIES
    ids = np.arange(1, len(vectors) + 1)
    truth = {rows + 1 + i: (near + 1).tolist() for i, near in enumerate(fashion.nearest_to(vectors[:rows], vectors[rows:], 10))}
    psql("DROP TABLE IF EXISTS items, queries, items_vector", "CREATE TABLE items (id int, v real[])", "CREATE TABLE queries (LIKE items)", SEARCHES)
    load("items", [ids[:rows]], vectors[:rows])
    load("queries", [ids[rows:]], vectors[rows:])
    psql("VACUUM (FREEZE, ANALYZE) items")
    with open(os.path.join(os.environ["OUTPUT"], "sketch.md"), "w") as file:
        for part in (storages(truth, has_pgvector), first_search(), inserts(has_pgvector)):
            print(*part, "", sep="\n", file=file)


if __name__ == "__main__":
    main()

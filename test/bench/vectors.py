"""The sketch index beside HNSW and the exact scan.

usage: vectors.py [FILE...]    vectors of .npy or .fvecs files, or of Fashion-MNIST; pictures:COUNT are
                               its pictures, each shifted by some pixels, to make so many of them

It finds the server as psql does, and leaves vectors.md, bits.md and vectors.jsonl in the directory $OUTPUT.
"""
import json
import os
import statistics
import sys
import time

# the libraries look at these when they are loaded
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import codes
import eval as evaluation
import fashion
from server import SEARCHES, load, psql, recall, searches, value

QUERIES = 200
EXACT_QUERIES = 10
PASSES = 3
ALL = "SELECT id, v FROM queries ORDER BY id"
RECALLS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
ASKED = (0.9, 0.95, 0.99)
BITS = (64, 128, 256, 512)
EF_SEARCH = (10, 20, 40, 100, 200, 400)


class Search:
    """A way to search, and what its passes have shown."""
    def __init__(self, method, setting, statement, queries=ALL, settings=(), build=None, index=None):
        self.method, self.setting, self.statement, self.queries, self.settings = method, setting, statement, queries, settings
        self.build, self.index = build, index
        self.medians = []

    def run(self):
        self.found, took = searches(self.statement, self.queries, *self.settings)
        self.medians.append(took)

    def figures(self, data, truth):
        size = value(f"SELECT pg_size_pretty(pg_relation_size('{self.index}'))") if self.index else ""
        return dict(data=data, method=self.method, setting=self.setting, recall=recall(self.found, truth),
                    milliseconds=statistics.median(self.medians), build=self.build, size=size)


class FaissSearch(Search):
    """FAISS's HNSW on one thread, in this process: without a server, so that its times are less than they would be there."""
    def __init__(self, graph, ef_search, first, queries, build):
        super().__init__("FAISS HNSWFlat", f"ef_search {ef_search}", None, build=build)
        self.graph, self.ef_search, self.first, self.vectors = graph, ef_search, first, queries

    def run(self):
        self.graph.hnsw.efSearch = self.ef_search
        taken, self.found = [], {}
        for i, query in enumerate(self.vectors):
            start = time.perf_counter()
            _, near = self.graph.search(query[None], 10)
            taken.append((time.perf_counter() - start) * 1000)
            self.found[self.first + i] = (near[0] + 1).tolist()
        self.medians.append(statistics.median(taken))


def faiss_searches(vectors, rows):
    """What takes pgvector's place where it is missing."""
    import faiss
    faiss.omp_set_num_threads(1)
    start = time.perf_counter()
    graph = faiss.IndexHNSWFlat(vectors.shape[1], 16)
    graph.hnsw.efConstruction = 64
    graph.add(vectors[:rows])
    build = time.perf_counter() - start
    return [FaissSearch(graph, ef_search, rows + 1, vectors[rows:], build) for ef_search in EF_SEARCH]


def create(statement):
    """How many seconds it takes to make an index."""
    start = time.perf_counter()
    psql("SET maintenance_work_mem = '8GB'", "SET max_parallel_maintenance_workers = 0", statement)
    return time.perf_counter() - start


def rows_fetched(index):
    """How often an index was searched, and rows fetched from the table for it, so far."""
    return [int(each) for each in psql(f"SELECT idx_scan, idx_tup_fetch FROM pg_stat_user_indexes WHERE indexrelname = '{index}'")[0]]


def by_bits(data, dims, truth):
    """The recall that is asked for and what is found, with codes of several lengths."""
    for bits in sorted({each for each in BITS if each < dims} | {min(dims, 256)}):
        build = create(f"CREATE INDEX items_bits ON items USING sketch (v) WITH (bits = {bits})")
        size = int(value("SELECT pg_relation_size('items_bits')"))
        for share in ASKED:
            psql("SELECT pg_stat_reset()")
            search = Search("sketch", f"{bits} bits", "SELECT id FROM items ORDER BY v <-> $1 LIMIT 10", settings=[f"SET unifdiag.recall = {share}"], build=build)
            search.run()
            scans, fetched = rows_fetched("items_bits")
            yield (f"| {data} | {bits} | {size / (1 << 20):.1f} MB | {share} | {recall(search.found, truth):.3f} | {fetched / max(scans, 1):.0f} "
                   f"| {search.medians[0]:.2f} ms |")
        psql("DROP INDEX items_bits")


def read_vectors(path):
    if path and path.startswith("pictures:"):
        return np.concatenate(list(codes.shifted_images(int(path.split(":")[1]))))
    return evaluation.read_vectors(path)


def compare(path, table):
    vectors = read_vectors(path)
    vectors = np.ascontiguousarray(vectors[np.random.default_rng(1).permutation(len(vectors))])
    rows = len(vectors) - QUERIES
    data = f"{os.path.basename(path).split('.')[0].split(':')[0] if path else 'Fashion-MNIST'}, {rows} x {vectors.shape[1]}"
    ids = np.arange(1, len(vectors) + 1)
    truth = {rows + 1 + i: (near + 1).tolist() for i, near in enumerate(fashion.nearest_to(vectors[:rows], vectors[rows:], 10))}
    psql("DROP TABLE IF EXISTS items, queries, items_vector", "CREATE TABLE items (id int, v real[])", "CREATE TABLE queries (LIKE items)", SEARCHES)
    load("items", [ids[:rows]], vectors[:rows])
    load("queries", [ids[rows:]], vectors[rows:])
    psql("VACUUM (FREEZE, ANALYZE) items")
    statement = "SELECT id FROM items ORDER BY v <-> $1 LIMIT 10"
    exact = Search("exact scan", "", statement, f"{ALL} LIMIT {EXACT_QUERIES}")
    exact.run()
    table.extend(by_bits(data, vectors.shape[1], truth))
    build = create("CREATE INDEX items_v ON items USING sketch (v)")
    others = [Search("sketch", f"recall {share}", statement, settings=[f"SET unifdiag.recall = {share}"], build=build, index="items_v")
              for share in RECALLS]
    if value("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") != "0":
        psql("CREATE EXTENSION IF NOT EXISTS vector", f"CREATE TABLE items_vector AS SELECT id, v::vector({vectors.shape[1]}) AS v FROM items",
             "VACUUM (FREEZE, ANALYZE) items_vector")
        build = create("CREATE INDEX items_hnsw ON items_vector USING hnsw (v vector_l2_ops)")
        statement = "SELECT id FROM items_vector ORDER BY v <-> $1::vector LIMIT 10"
        others += [Search("HNSW", f"ef_search {ef_search}", statement, settings=["LOAD 'vector'", f"SET hnsw.ef_search = {ef_search}"],
                          build=build, index="items_hnsw") for ef_search in EF_SEARCH]
    else:
        others += faiss_searches(vectors, rows)
    # they take turns, so that whatever else the machine does hits them all
    for _ in range(PASSES):
        for each in others:
            each.run()
    return [each.figures(data, truth) for each in [exact] + others]


def main(*paths):
    psql("CREATE EXTENSION IF NOT EXISTS unifdiag")
    table = []
    figures = [figure for path in paths or [None] for figure in compare(path, table)]
    output = os.environ["OUTPUT"]
    with open(os.path.join(output, "bits.md"), "w") as file:
        print("| vectors | bits | size | recall asked for | recall of the 10 nearest | vectors fetched | median of a search |\n|---|---:|---:|---:|---:|---:|---:|",
              *table, sep="\n", file=file)
    with open(os.path.join(output, "vectors.jsonl"), "w") as file:
        for figure in figures:
            # the exact scan is a hundred times slower than all else, and no part of a plot
            if figure["method"] != "exact scan":
                print(json.dumps(figure), file=file)
    with open(os.path.join(output, "vectors.md"), "w") as file:
        print("| vectors | index | setting | recall of the 10 nearest | median of a search | build | size |\n|---|---|---|---:|---:|---:|---:|", file=file)
        for f in figures:
            build = f"{f['build']:.1f} s" if f["build"] else ""
            print(f"| {f['data']} | {f['method']} | {f['setting']} | {f['recall']:.3f} | {f['milliseconds']:.2f} ms | {build} | {f['size']} |", file=file)


if __name__ == "__main__":
    main(*sys.argv[1:])

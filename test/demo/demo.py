"""The demonstration: runs statements, shows them with what they take and give, and writes a page of it.

It finds the server as psql does, and leaves demo.html, neighbours.svg and stream.svg in the directory $OUTPUT.
"""
import os
import threading
import time

# threads of the library wait for each other where others work, too; it looks at this when it is loaded
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import fashion
import page
from server import SEARCHES, codes, load, psql, recall, searches, value

PICTURES = min(int(os.environ.get("DEMO_PICTURES", fashion.TRAINING)), fashion.TRAINING)
QUERIES = 40
EXACT_QUERIES = 10
CODE_BITS = 256
RADIUS = 12
# the stream: pieces of it, of which the first half has only these classes, and the second half only the others
PIECES = 8
PIECE = PICTURES // 20
EARLY_CLASSES = (0, 2, 3, 4, 6)
STREAM_BITS = 64
CANDIDATES = 100
STREAM_QUERIES = 100
ROWS_SHOWN = 5


class Progress:
    """Dots on the terminal while something lasts, and then how long it took."""
    def __init__(self, title):
        self.title = title

    def __enter__(self):
        print(self.title, end=" ", flush=True)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.show)
        self.start = time.perf_counter()
        self.thread.start()
        return self

    def show(self):
        while not self.ended.wait(1):
            print(".", end="", flush=True)

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start
        self.ended.set()
        self.thread.join()
        print(f" {self.seconds:.1f} s", flush=True)


def run(statement, log):
    """Runs a statement that a user would type, and notes it with its time; returns its rows."""
    print(f"\n{statement};")
    with Progress("--") as progress:
        rows = psql(statement, head=True)
    for row in rows[:ROWS_SHOWN + 1]:
        print("   " + " | ".join(row))
    log.append((statement + ";", progress.seconds, rows[:ROWS_SHOWN + 1]))
    return rows[1:]


def search_all(title, statement, count, *settings):
    with Progress(title):
        return searches(statement, f"SELECT id, pixels FROM queries ORDER BY id LIMIT {count}", *settings)


def search(report):
    log = report.section("Search", "For a picture that is not in the table, the ten nearest by the Euclidean distance of their pixels. "
                         "The sketch index returns rows in the order of their true distance. It finds at least the share of the true "
                         "neighbours that one asks for, 0.99 by default. Codes alone are smaller and coarser.")
    run("CREATE INDEX images_pixels ON images USING sketch (pixels)", log)
    run(f"SELECT sketcher_attach('images', 'pixels', 'code', {CODE_BITS})", log)
    run("CREATE INDEX images_code ON images USING hamming (code)", log)
    with Progress("VACUUM ANALYZE"):
        psql("VACUUM ANALYZE images")
    by_vector = "SELECT id FROM images ORDER BY pixels <-> $1 LIMIT 10"
    by_code = "SELECT id FROM images ORDER BY code <~> (SELECT sketcher_hash('images_code_model', $1)) LIMIT 10"
    print()
    exact, exact_time = search_all("exact scan", by_vector, EXACT_QUERIES, "SET enable_indexscan = off")
    kinds = [("exact scan", by_vector, "", exact_time)]
    found = {"exact scan": exact}
    for title, statement, setting in [("sketch index", by_vector, ""), ("sketch index, recall 0.9", by_vector, "SET unifdiag.recall = 0.9"),
                                      ("hamming index, codes alone", by_code, "")]:
        found[title], took = search_all(title, statement, QUERIES, *([setting] if setting else []))
        kinds.append((title, statement, setting, took))
    with Progress("true neighbours"):
        truth = fashion.true_neighbours(found["sketch index"], 10, PICTURES)
    sizes = {"exact scan": "pg_total_relation_size('images')", "sketch index": "pg_relation_size('images_pixels')",
             "sketch index, recall 0.9": "pg_relation_size('images_pixels')", "hamming index, codes alone": "pg_relation_size('images_code')"}
    lines = []
    for title, statement, setting, took in kinds:
        share = recall(found[title], truth)
        size = value(f"SELECT pg_size_pretty({sizes[title]})")
        lines.append((title, (setting + "; " if setting else "") + statement, f"{took:.2f} ms", f"{share:.3f}", size))
        print(f"  {title:28s} {took:8.2f} ms   recall {share:.3f}   {size}")
    report.table(("", "statement", "median time", "recall of the 10 nearest", "size"), lines)
    shown = [("by code", found["hamming index, codes alone"]), ("by sketch index", found["sketch index"]), ("true", truth)]
    report.svg(page.sheet(shown, truth), "Ten queries, one of each class, and their ten nearest: by code, by the sketch index, and the true ones.")
    report.file("neighbours.svg", page.sheet(shown, truth, 4))


def near_duplicates(report):
    log = report.section("Near duplicates", f"Pairs of pictures whose codes of {CODE_BITS} bits differ in at most {RADIUS} bits, and the groups that these pairs form. "
                         "The last statement sorts the pairs by the distance of their pixels.")
    rows = run(f"SELECT count(*) FROM hamming_pairs('images_code', {RADIUS})", log)
    run(f"""SELECT size, count(*) AS groups
FROM (SELECT count(*) AS size FROM hamming_clusters('images_code', {RADIUS}) GROUP BY cluster) c GROUP BY size ORDER BY size LIMIT 5""", log)
    pairs = run(f"""SELECT a.id AS a, b.id AS b, distance AS bits, round((a.pixels <-> b.pixels)::numeric) AS pixels
FROM hamming_pairs('images_code', {RADIUS}) p JOIN images a ON a.ctid = p.a JOIN images b ON b.ctid = p.b
ORDER BY a.pixels <-> b.pixels, a.id LIMIT 12""", log)
    if int(rows[0][0]) > 0:
        report.svg(page.pairs([(int(a), int(b), bits, pixels) for a, b, bits, pixels in pairs]),
                   "The nearest of the pairs: bits in which their codes differ, and the Euclidean distance of their pixels.")


def code_recall(codes, queries, near):
    """The share of the true nearest rows among the CANDIDATES nearest codes."""
    found = []
    for query, truth in zip(queries, near):
        distances = np.unpackbits(codes ^ codes[query], axis=1).sum(axis=1)
        distances[query] = STREAM_BITS + 1
        found.append(np.isin(truth, fashion.smallest(distances, CANDIDATES)).mean())
    return float(np.mean(found))


def stream(report, labels, pixels):
    log = report.section("A stream that changes", "The first rows are clothes for the upper body. Then come trousers, dresses, shoes and bags. "
                         f"Each row has a code of {STREAM_BITS} bits. One model has learnt the first {PIECE} rows only. The other one is refreshed as rows come. "
                         f"Recall is the share of the true 10 nearest that are among the {CANDIDATES} nearest codes, for queries among the newest rows.")
    early = np.isin(labels[:PICTURES], EARLY_CLASSES)
    order = np.concatenate([np.nonzero(early)[0][:PIECE * PIECES // 2], np.nonzero(~early)[0][:PIECE * PIECES // 2]])
    psql("CREATE TABLE stream (LIKE images INCLUDING STORAGE)", "ALTER TABLE stream DROP code")
    lines = {page.FIRST_MODEL: [], page.REFRESHED: []}

    def insert(piece):
        ids = np.arange(piece * PIECE, (piece + 1) * PIECE)
        load("stream (id, label, pixels)", [ids, labels[order[ids]]], pixels[order[ids]])

    def measure(piece, *columns):
        """Recall by the codes in each of the columns, for queries among the newest rows."""
        rows = (piece + 1) * PIECE
        queries = np.random.default_rng(piece).choice(np.arange(piece * PIECE, rows), STREAM_QUERIES, replace=False)
        near = fashion.nearest_rows(pixels[order[:rows]].astype(np.float32), queries, 10)
        return [code_recall(codes(f"SELECT string_agg({column}::bytea, '' ORDER BY id) FROM stream", rows), queries, near) for column in columns]

    with Progress(f"rows 1 to {PIECE}"):
        insert(0)
    run(f"SELECT sketcher_attach('stream', 'pixels', 'code', {STREAM_BITS}, auto_refresh => NULL)", log)
    psql("CREATE TABLE first AS SELECT published AS model FROM stream_code_model")
    for piece in range(PIECES):
        if piece > 0:
            with Progress(f"rows {piece * PIECE + 1} to {(piece + 1) * PIECE}"):
                insert(piece)
                # learns, and publishes nothing
                psql("CALL sketcher_refresh('stream', 'code', min_drift => 1)")
        if piece == PIECES // 2:
            print("\nThe rows are of another kind now.")
            drift = run("SELECT round(sketcher_drift(published, learning)::numeric, 3) AS drift FROM stream_code_model", log)
            with Progress("recall"):
                before, = measure(piece, "code")
            run("CALL sketcher_refresh('stream', 'code', min_drift => 0.05)", log)
        elif piece > 0:
            with Progress("refresh"):
                psql("CALL sketcher_refresh('stream', 'code', min_drift => 0.05)")
        with Progress(f"recall after {(piece + 1) * PIECE} rows"):
            for line, share in zip(lines.values(), measure(piece, "sketcher_hash((SELECT model FROM first), pixels)", "code")):
                line.append(((piece + 1) * PIECE, share))
    after = lines[page.REFRESHED][PIECES // 2][1]
    text = f"After the change the drift was {drift[0][0]}. Recall was {before:.3f} before the refresh and {after:.3f} after it."
    print(text)
    report.paragraph(text)
    plot = page.lines_plot("Codes of a stream whose rows change", "rows so far", f"recall of the 10 nearest, {CANDIDATES} candidates", lines,
                           change=PIECE * PIECES // 2)
    report.svg(plot, "Recall along the stream. The dotted line shows where rows of another kind begin.")
    report.file("stream.svg", plot)


def main():
    output = os.environ["OUTPUT"]
    with Progress("reading the pictures"):
        pixels, labels = fashion.images(), fashion.labels()
    report = page.Page(output)
    log = report.section("Data", f"{PICTURES} pictures of clothes, each a vector of 784 numbers: Fashion-MNIST's training set. {QUERIES} pictures of its test set are the queries.")
    print("== Load")
    run("CREATE EXTENSION unifdiag", log)
    run("CREATE TABLE images (id int PRIMARY KEY, label int, pixels real[])", log)
    # compressing takes longer than all the rest
    run("ALTER TABLE images ALTER pixels SET STORAGE EXTERNAL", log)
    psql("CREATE TABLE queries (LIKE images)", SEARCHES)
    with Progress(f"{PICTURES} pictures"):
        load("images", [np.arange(1, PICTURES + 1), labels[:PICTURES]], pixels[:PICTURES])
        some = fashion.queries_of_each_class(labels, QUERIES)
        load("queries", [some + 1, labels[some]], pixels[some])
    print("\n== Search")
    search(report)
    print("\n== Near duplicates")
    near_duplicates(report)
    print("\n== A stream that changes")
    stream(report, labels, pixels)
    report.write("demo.html", value("SELECT version()"))
    print("""
test/output/demo.html shows all this, with pictures; open it in a browser.

To use it in a PostgreSQL of yours:

    make && sudo make install                     for the server of pg_config
    psql -c 'CREATE EXTENSION unifdiag'           in each database

This demonstration left no server behind. If you have none yet, on Debian:

    sudo pg_createcluster --start 15 main         with the version that is installed""".replace("15", value("SHOW server_version_num")[:2]))


if __name__ == "__main__":
    main()

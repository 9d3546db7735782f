"""How long other learners take for the rows that arrive, on one core.

usage: peers.py DATA    reads binary COPY rows (copy_rows.py) from standard input, and writes
                        COPY rows (data, learner, microseconds a row) to standard output

The rows are in memory, as float32, before a clock starts.
"""
import os
import sys
import time

# the libraries look at these when they are loaded
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import faiss
from sklearn.decomposition import IncrementalPCA

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "demo"))
import copy_rows

BITS = 64

# what IncrementalPCA is fastest with: more rows make its decompositions larger, fewer more
PCA_BATCH = 2 * BITS

# every batch takes as long as the one before; so many suffice to tell how long
PCA_ROWS = 100 * PCA_BATCH


def incremental_pca(rows):
    IncrementalPCA(n_components=BITS, batch_size=PCA_BATCH).fit(rows)


def itq(rows):
    """PCA and then ITQ; left to itself it would look at a sample of the rows only."""
    count, dims = rows.shape
    transform = faiss.ITQTransform(dims, BITS, True)
    transform.max_train_per_dim = count // dims + 1
    transform.train(rows)


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    faiss.omp_set_num_threads(1)
    rows = copy_rows.read_rows(sys.stdin.buffer)
    for name, learn, sample in (("pca", incremental_pca, rows[:PCA_ROWS]), ("itq", itq, rows)):
        start = time.perf_counter()
        learn(sample)
        microseconds = (time.perf_counter() - start) * 1e6 / len(sample)
        print(arguments[0], name, microseconds, sep="\t")


if __name__ == "__main__":
    main(sys.argv[1:])

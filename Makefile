# unifdiag, a PostgreSQL extension.
#
# all, install, installcheck, clean   as in any PGXS extension, for the server of PG_CONFIG
# test, test-versions, demo, bench, eval, soak, fuzz, lint, sanitize, dist, deb
#                                     install what they lack; use throwaway servers of their own
#                                     and leave nothing running

EXTENSION = unifdiag unifdiag_pgvector
MODULE_big = unifdiag
DATA = $(wildcard sql/*--*.sql)
DOCS = README.md $(wildcard doc/*.md)

OBJS = \
	src/unifdiag.o \
	src/code/ball.o \
	src/code/bithash.o \
	src/code/bithash_bits.o \
	src/code/bithash_cast.o \
	src/code/bithash_compare.o \
	src/code/code_type.o \
	src/code/distance.o \
	src/code/kernel_avx2.o \
	src/code/kernel_avx512.o \
	src/code/kernel_neon.o \
	src/code/kernel_portable.o \
	src/code/kernels.o \
	src/code/selectivity.o \
	src/code/sketch_kernel_avx2.o \
	src/code/sketch_kernel_avx512.o \
	src/code/sketch_kernel_neon.o \
	src/code/sketch_kernel_portable.o \
	src/code/sketch_kernels.o \
	src/code/vector_distance.o \
	src/code/vector_kernel_avx2.o \
	src/code/vector_kernel_avx512.o \
	src/code/vector_kernel_neon.o \
	src/code/vector_kernel_portable.o \
	src/code/vector_kernels.o \
	src/index/code_groups.o \
	src/index/code_store.o \
	src/index/components.o \
	src/index/hamming_build.o \
	src/index/hamming_check.o \
	src/index/compact.o \
	src/index/flat_build.o \
	src/index/flat_check.o \
	src/index/flat_scan.o \
	src/index/hamming_clusters.o \
	src/index/hamming_cost.o \
	src/index/hamming_found.o \
	src/index/hamming_handler.o \
	src/index/hamming_index_only.o \
	src/index/hamming_join.o \
	src/index/hamming_nearest.o \
	src/index/hamming_pairs.o \
	src/index/hamming_rows.o \
	src/index/insert.o \
	src/index/join_plan.o \
	src/index/log.o \
	src/index/nearest.o \
	src/index/page.o \
	src/index/page_stream.o \
	src/index/page_writer.o \
	src/index/passes.o \
	src/index/prefetch.o \
	src/index/recent.o \
	src/index/hamming_scan.o \
	src/index/hamming_search.o \
	src/index/sketch_build.o \
	src/index/sketch_check.o \
	src/index/sketch_cost.o \
	src/index/sketch_handler.o \
	src/index/sketch_insert.o \
	src/index/sketch_introduce.o \
	src/index/sketch_learn.o \
	src/index/sketch_model.o \
	src/index/sketch_queue.o \
	src/index/sketch_recall.o \
	src/index/sketch_rows.o \
	src/index/sketch_scan.o \
	src/index/sketch_search.o \
	src/index/sketch_vacuum.o \
	src/index/sketch_validate.o \
	src/index/sketch_vector.o \
	src/index/vacuum.o \
	src/index/hamming_validate.o \
	src/index/visit.o \
	src/math/basis.o \
	src/math/diagonal.o \
	src/math/directions.o \
	src/math/drift.o \
	src/math/linalg.o \
	src/math/merge.o \
	src/math/methods.o \
	src/math/model.o \
	src/math/moments.o \
	src/math/neighbours.o \
	src/math/projector.o \
	src/math/random.o \
	src/math/recent_rows.o \
	src/math/rotation_isohash.o \
	src/math/rotation_itq.o \
	src/math/rotation_neighbour.o \
	src/math/rotation_none.o \
	src/math/rotation_random.o \
	src/math/rotation_unifdiag.o \
	src/math/rows.o \
	src/math/sketch.o \
	src/math/sketch_calibrate.o \
	src/math/sketch_encode.o \
	src/math/sketch_quantise.o \
	src/math/sketch_query.o \
	src/math/tracker_hadamard.o \
	src/math/tracker_lsh.o \
	src/math/tracker_opast.o \
	src/math/tracker_osh.o \
	src/model/hash_plan.o \
	src/model/memory.o \
	src/model/sketcher.o \
	src/model/sketcher_accessors.o \
	src/model/sketcher_aggregate.o \
	src/model/sketcher_check.o \
	src/model/sketcher_format.o \
	src/model/sketcher_io.o \
	src/model/sketcher_learn.o \
	src/model/sketcher_options.o \
	src/table/attach.o \
	src/table/columns.o \
	src/table/learn.o \
	src/table/model_table.o \
	src/table/recall.o \
	src/table/refresh.o \
	src/table/sql.o \
	src/table/trigger.o \
	src/table/walk.o \
	src/table/worker.o \
	src/vector_argument.o \
	src/vectors.o

REGRESS = \
	extension \
	bithash \
	bithash_bits \
	bithash_cast \
	bithash_order \
	distance \
	selectivity \
	hash_plan \
	vector_argument \
	vector_distance \
	hamming \
	hamming_index_only \
	hamming_types \
	hamming_joins \
	hamming_oracle \
	sketch \
	sketch_oracle \
	sketcher \
	sketcher_errors \
	sketcher_state \
	recall \
	table \
	table_errors
REGRESS_OPTS = --load-extension=unifdiag

ISOLATION = \
	build_scan \
	index_only_vacuum \
	insert_scan \
	insert_vacuum \
	length_vacuum \
	sketch_learn \
	vacuum_scan
ISOLATION_OPTS = --inputdir=test --load-extension=unifdiag

TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

EXTRA_CLEAN = dist test/output test/unit/build

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
SERVER_HEADERS := $(wildcard $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)/postgres.h)

# the commands below need no PGXS to start: they install it if it is not there
all:
export PG_CONFIG OLD_PG_CONFIG

.PHONY: test test-versions fuzz dist deb demo bench eval soak lint sanitize

# OLD_PG_CONFIG=/path/to/pg_config is the server that pg_upgrade upgrades from, if not the same one
test:
	test/setup $@
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING test/sandbox test/suite

# PG_CONFIGS="/path/to/pg_config …" names servers; without, all of Debian's that are installed
test-versions:
	test/versions $(PG_CONFIGS)

demo:
	test/setup $@
	test/sandbox test/demo/run

# searching is about codes in memory, also ten million of them
bench:
	test/setup $@
	test/sandbox test/bench/run
	SHARED_BUFFERS=2GB test/sandbox test/bench/searching
	SHARED_BUFFERS=2GB test/sandbox test/bench/joins
	SHARED_BUFFERS=2GB test/sandbox test/bench/vectors
	SHARED_BUFFERS=2GB test/sandbox test/bench/sketch

# EVAL_DATA=file.npy or file.fvecs evaluates on other vectors
eval:
	test/setup $@
	test/sandbox test/bench/eval
	test/sandbox test/bench/recall

# the tests of crashes, replicas and concurrency, for both indexes and for tables, for many minutes instead
# of seconds; that of cancelling with the largest models; and all others with nothing cached
soak:
	test/setup test
	UNIFDIAG_BITS=2048 $(MAKE) -C test/unit check TESTS=test_cancel PROVE_FLAGS=-v
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING DISCARD_CACHES=1 test/sandbox test/suite
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING UNIFDIAG_KILLS=100 UNIFDIAG_SECONDS=300 \
		TESTS='test/t/01[1236]*.pl test/t/02[123]*.pl test/t/031*.pl test/t/048*.pl' test/sandbox test/suite

# dist/unifdiag-1.0.0.zip, for PGXN: what is committed, without what is not for users
dist:
	test/dist

# dist/postgresql-NN-unifdiag_*.deb, for each server that the Debian at hand has
deb:
	test/setup $@
	test/deb

# garbage for every function, input and page, seeded by UNIFDIAG_SEED, for some minutes
fuzz:
	test/setup test
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING UNIFDIAG_FUZZ=20 UNIFDIAG_FORGED=20000 \
		TESTS='test/t/004*.pl test/t/050*.pl' test/sandbox test/suite

lint:
	test/setup $@
	test/lint

sanitize:
	test/setup $@
	$(MAKE) -C test/unit sanitize

ifneq ($(SERVER_HEADERS),)
include $(PGXS)

# a folder of our own: other extensions have a README, too
docmoduledir := extension/unifdiag

# PGXS installs documents by their names, but would remove them by their paths
uninstall: uninstall-docs
.PHONY: uninstall-docs
uninstall-docs:
	rm -rf '$(DESTDIR)$(docdir)/$(docmoduledir)'
else
all install installcheck clean:
	@echo "$(PG_CONFIG) knows no PostgreSQL server development files." >&2
	@echo "Install them (Debian: postgresql-server-dev-all), or set PG_CONFIG." >&2
	@false
endif

# a header changed: compile all again, it takes seconds
$(OBJS): $(wildcard src/*.h src/*/*.h)

# unifdiag, a PostgreSQL extension.
#
# all, install, installcheck, clean   as in any PGXS extension, for the server of PG_CONFIG
# test, demo, bench, eval, soak, lint, sanitize
#                                     install what they lack; use throwaway servers of their own
#                                     and leave nothing running

EXTENSION = unifdiag
MODULE_big = unifdiag
DATA = $(wildcard sql/*--*.sql)

OBJS = \
	src/unifdiag.o \
	src/code/ball.o \
	src/code/bithash.o \
	src/code/bithash_cast.o \
	src/code/bithash_compare.o \
	src/code/distance.o \
	src/code/kernel_avx2.o \
	src/code/kernel_avx512.o \
	src/code/kernel_neon.o \
	src/code/kernel_portable.o \
	src/code/kernels.o \
	src/code/selectivity.o \
	src/code/vector_distance.o \
	src/code/vector_kernel_avx2.o \
	src/code/vector_kernel_avx512.o \
	src/code/vector_kernel_neon.o \
	src/code/vector_kernel_portable.o \
	src/code/vector_kernels.o \
	src/index/build.o \
	src/index/check.o \
	src/index/compact.o \
	src/index/cost.o \
	src/index/found.o \
	src/index/handler.o \
	src/index/index_only.o \
	src/index/insert.o \
	src/index/log.o \
	src/index/nearest.o \
	src/index/page.o \
	src/index/page_stream.o \
	src/index/page_writer.o \
	src/index/prefetch.o \
	src/index/recent.o \
	src/index/scan.o \
	src/index/search.o \
	src/index/vacuum.o \
	src/index/validate.o \
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
	src/math/rotation_isohash.o \
	src/math/rotation_itq.o \
	src/math/rotation_neighbour.o \
	src/math/rotation_none.o \
	src/math/rotation_random.o \
	src/math/rotation_unifdiag.o \
	src/math/rows.o \
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
	src/table/refresh.o \
	src/table/sql.o \
	src/table/trigger.o \
	src/table/walk.o \
	src/table/worker.o \
	src/vectors.o

REGRESS = \
	extension \
	bithash \
	bithash_cast \
	bithash_order \
	distance \
	selectivity \
	vector_distance \
	hamming \
	hamming_index_only \
	hamming_oracle \
	sketcher \
	sketcher_errors \
	sketcher_state \
	table \
	table_errors
REGRESS_OPTS = --load-extension=$(EXTENSION)

ISOLATION = \
	build_scan \
	index_only_vacuum \
	insert_scan \
	insert_vacuum \
	length_vacuum \
	vacuum_scan
ISOLATION_OPTS = --inputdir=test --load-extension=$(EXTENSION)

EXTRA_CLEAN = test/output test/unit/build

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
SERVER_HEADERS := $(wildcard $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)/postgres.h)

# the commands below need no PGXS to start: they install it if it is not there
all:
export PG_CONFIG

.PHONY: test demo bench eval soak lint sanitize

test:
	test/setup $@
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING test/sandbox test/suite

demo:
	test/setup $@
	test/sandbox test/demo/run

# searching is about codes in memory, also ten million of them
bench:
	test/setup $@
	test/sandbox test/bench/run
	SHARED_BUFFERS=2GB test/sandbox test/bench/searching

# EVAL_DATA=file.npy or file.fvecs evaluates on other vectors
eval:
	test/setup $@
	test/sandbox test/bench/eval

# the tests of crashes, replicas and concurrency for many minutes instead of seconds; and all others
# with nothing cached
soak:
	test/setup test
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING DISCARD_CACHES=1 test/sandbox test/suite
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING UNIFDIAG_KILLS=100 UNIFDIAG_SECONDS=300 \
		TESTS='test/t/011*.pl test/t/012*.pl test/t/013*.pl' test/sandbox test/suite

lint:
	test/setup $@
	test/lint

sanitize:
	test/setup $@
	$(MAKE) -C test/unit sanitize

ifneq ($(SERVER_HEADERS),)
include $(PGXS)
else
all install installcheck clean:
	@echo "$(PG_CONFIG) knows no PostgreSQL server development files." >&2
	@echo "Install them (Debian: postgresql-server-dev-all), or set PG_CONFIG." >&2
	@false
endif

# a header changed: compile all again, it takes seconds
$(OBJS): $(wildcard src/*.h src/*/*.h)

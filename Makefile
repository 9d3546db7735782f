# unifdiag, a PostgreSQL extension.
#
# all, install, installcheck, clean   as in any PGXS extension, for the server of PG_CONFIG
# test, demo, bench, lint, sanitize   install what they lack; test and demo use a throwaway
#                                     server of their own and leave nothing running

EXTENSION = unifdiag
MODULE_big = unifdiag
DATA = $(wildcard sql/*--*.sql)

OBJS = \
	src/unifdiag.o \
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
	src/model/drift.o \
	src/model/linalg.o \
	src/model/memory.o \
	src/model/merge.o \
	src/model/model.o \
	src/model/random.o \
	src/model/rotation_none.o \
	src/model/rotation_random.o \
	src/model/rotation_unifdiag.o \
	src/model/rotations.o \
	src/model/sketcher.o \
	src/model/sketcher_format.o \
	src/model/sketcher_io.o \
	src/model/sketcher_learn.o \
	src/model/sketcher_use.o \
	src/model/tracker_opast.o \
	src/model/trackers.o \
	src/table/attach.o \
	src/table/attachment.o \
	src/table/collect.o \
	src/table/column.o \
	src/table/fold.o \
	src/table/link.o \
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
	sketcher \
	sketcher_errors \
	table \
	table_errors
REGRESS_OPTS = --load-extension=$(EXTENSION)

EXTRA_CLEAN = test/output test/unit/build

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
SERVER_HEADERS := $(wildcard $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)/postgres.h)

# the commands below need no PGXS to start: they install it if it is not there
all:
export PG_CONFIG

.PHONY: test demo bench lint sanitize

test:
	test/setup $@
	BUILD_FLAGS=-DUSE_ASSERT_CHECKING test/sandbox test/suite

demo:
	test/setup $@
	test/sandbox test/demo/run

bench:
	test/setup $@
	test/sandbox test/bench/run

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

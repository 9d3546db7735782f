-- The sketch index: what it does, what it refuses.
SET enable_seqscan = off;
SET jit = off;
-- vectors in clusters, always the same
CREATE FUNCTION noise(i int, k int) RETURNS real LANGUAGE sql IMMUTABLE AS
	$$ SELECT (('x' || substr(md5(i || '-' || k), 1, 8))::bit(32)::int / 2147483648.0)::real $$;
CREATE FUNCTION vec(i int, dims int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
	$$ SELECT array_agg((4 * noise(-(i % 23), k) + noise(i, k))::real ORDER BY k) FROM generate_series(1, dims) k $$;

CREATE TABLE items (id int, v real[]);
INSERT INTO items SELECT i, CASE WHEN i % 100 > 0 THEN vec(i, 16) END FROM generate_series(1, 3000) i;
CREATE INDEX items_v ON items USING sketch (v);
VACUUM ANALYZE items;
SELECT version, bits, dims, rows, nulls, unsketched, learnt BETWEEN 160 AND 500 AS learnt, round(explained::numeric, 1) AS explained, round(explained_now::numeric, 1) AS explained_now, bytes > 8192 AS bytes FROM sketch_info('items_v');
SELECT sketch_check('items_v');
SELECT sketch_recall('items_v') > 0.95 AS recall;
-- a plan without what server versions name differently
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line !~ '^ *InitPlan|->  Result$|Disabled: ' THEN
			RETURN NEXT regexp_replace(line, '\$0|\(InitPlan [a-z_0-9]+\)\.col1', 'query');
		END IF;
	END LOOP;
END $$;
SELECT plan($$SELECT id FROM items ORDER BY v <-> (SELECT vec(7, 16)) LIMIT 3$$);
SELECT id, round((v <-> vec(7, 16))::numeric, 3) AS distance FROM items ORDER BY v <-> vec(7, 16) LIMIT 3;
-- NULLs come last, each row once
SELECT count(*), count(DISTINCT id), min(n) FILTER (WHERE v IS NULL) AS first_null FROM (SELECT id, v, row_number() OVER () AS n FROM (SELECT id, v FROM items ORDER BY v <-> vec(7, 16)) q) q;
-- by a distance from NULL, in any order
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM items ORDER BY v <-> NULL) q;
-- the planner takes it for few rows
RESET enable_seqscan;
SELECT plan($$SELECT id FROM items ORDER BY v <-> (SELECT vec(7, 16)) LIMIT 3$$);
SELECT plan($$SELECT id FROM items ORDER BY v <-> (SELECT vec(7, 16))$$);
SET unifdiag.recall = 1;
SELECT plan($$SELECT id FROM items ORDER BY v <-> (SELECT vec(7, 16)) LIMIT 3$$);
RESET unifdiag.recall;
-- an operator that is not the index's
SELECT plan($$SELECT id FROM items ORDER BY v <=> (SELECT vec(7, 16)) LIMIT 3$$);
SET enable_seqscan = off;
-- a statement that asks for no column
SELECT plan($$SELECT count(*) FROM items$$);
SELECT count(*) FROM items;
DELETE FROM items WHERE id % 10 = 5;
SELECT count(*) FROM items;
VACUUM items;
SELECT count(*) FROM items;
SELECT sketch_check('items_v');
-- filters, cursors, rescans
SELECT id FROM items WHERE id % 50 = 7 ORDER BY v <-> vec(7, 16) LIMIT 4;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items ORDER BY v <-> vec(7, 16);
FETCH 2 FROM c;
FETCH 2 FROM c;
CLOSE c;
COMMIT;
SELECT q, id FROM (VALUES (7), (NULL), (20), (7)) AS questions (q), LATERAL (SELECT id FROM items WHERE q IS NOT NULL ORDER BY v <-> vec(q, 16) LIMIT 2) a;
PREPARE nearest (real[]) AS SELECT id FROM items ORDER BY v <-> $1 LIMIT 2;
EXECUTE nearest (vec(7, 16));
SET plan_cache_mode = force_generic_plan;
EXECUTE nearest (vec(20, 16));
DEALLOCATE nearest;
RESET plan_cache_mode;
-- by two distances: of rows with equal vectors the second decides nothing, of others the first
INSERT INTO items SELECT 5000 + i, vec(7, 16) FROM generate_series(1, 3) i;
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM items ORDER BY v <-> vec(7, 16), v <-> vec(20, 16) LIMIT 5) q;
SELECT id FROM items ORDER BY v <-> NULL, v <-> vec(20, 16) LIMIT 2;

-- cosine distance and inner product
CREATE INDEX items_cosine ON items USING sketch (v real_cosine_ops);
CREATE INDEX items_ip ON items USING sketch (v real_ip_ops) WITH (bits = 16);
INSERT INTO items VALUES (9001, array_fill(0::real, ARRAY[16])), (9002, NULL);
SELECT bits FROM sketch_info('items_ip');
SELECT plan($$SELECT id FROM items ORDER BY v <=> (SELECT vec(7, 16)) LIMIT 3$$);
SELECT id, round((v <=> vec(20, 16))::numeric, 4) AS distance FROM items ORDER BY v <=> vec(20, 16) LIMIT 3;
SELECT plan($$SELECT id FROM items ORDER BY v <#> (SELECT vec(7, 16)) LIMIT 3$$);
SELECT id, round((v <#> vec(7, 16))::numeric, 2) AS distance FROM items ORDER BY v <#> vec(7, 16) LIMIT 3;
-- a vector without direction comes last, before NULLs
SELECT id, v <=> vec(7, 16) AS distance FROM items ORDER BY v <=> vec(7, 16) OFFSET (SELECT count(v) - 1 FROM items) LIMIT 1;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM items ORDER BY v <=> array_fill(0::real, ARRAY[16])) q;
SELECT sketch_check('items_cosine'), sketch_check('items_ip');
DROP TABLE items;

-- an index that is made before its rows
CREATE TABLE later (id int, v real[]) WITH (autovacuum_enabled = off);
CREATE INDEX later_v ON later USING sketch (v) WITH (bits = 32);
SELECT bits, dims, rows, unsketched, learnt, explained FROM sketch_info('later_v');
SELECT id FROM later ORDER BY v <-> vec(7, 40) LIMIT 2;
INSERT INTO later SELECT i, vec(i, 40) FROM generate_series(1, 200) i;
SELECT bits, dims, rows, unsketched, learnt, explained FROM sketch_info('later_v');
SELECT id FROM later ORDER BY v <-> vec(7, 40) LIMIT 2;
SELECT sketch_check('later_v');
INSERT INTO later SELECT i, vec(i, 40) FROM generate_series(201, 1500) i;
SELECT bits, dims, rows, unsketched, learnt > 320 AS learnt, explained > 0.8 AS explained, explained_now > 0.8 AS explained_now FROM sketch_info('later_v');
SELECT id FROM later ORDER BY v <-> vec(7, 40) LIMIT 2;
SELECT sketch_check('later_v');
SELECT sketch_recall('later_v', 10, 50) > 0.95 AS recall;
-- without rows everything is forgotten
DELETE FROM later;
VACUUM (INDEX_CLEANUP on) later;
SELECT bits, dims, rows, unsketched, learnt FROM sketch_info('later_v');
INSERT INTO later SELECT i, vec(i, 24) FROM generate_series(1, 1000) i;
SELECT bits, dims, rows, unsketched, learnt > 240 AS learnt FROM sketch_info('later_v');
SELECT id FROM later ORDER BY v <-> vec(7, 24) LIMIT 2;
SELECT sketch_check('later_v');
-- rows enough, but on one page: VACUUM learns
TRUNCATE later;
INSERT INTO later SELECT i, vec(i, 8) FROM generate_series(1, 150) i;
SELECT bits, dims, rows, unsketched FROM sketch_info('later_v');
VACUUM later;
SELECT bits, dims, rows, unsketched FROM sketch_info('later_v');
SELECT sketch_check('later_v');
-- rows of a transaction that is rolled back
BEGIN;
INSERT INTO later SELECT i, vec(i, 8) FROM generate_series(151, 3000) i;
ROLLBACK;
SELECT count(*) FROM (SELECT id FROM later ORDER BY v <-> vec(7, 8)) q;
VACUUM later;
SELECT rows FROM sketch_info('later_v');
SELECT sketch_check('later_v');
DROP TABLE later;

-- what a statement inserts leaves nothing in its memory, with a model and without; i is of a row
CREATE FUNCTION note_memory(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i IN (100, 400, 2000, 3000) THEN
		PERFORM set_config('test.memory_' || i, (SELECT sum(used_bytes)::text FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'), false);
	END IF;
	RETURN i;
END $$;
CREATE TABLE later (v real[]);
CREATE INDEX later_v ON later USING sketch (v real_cosine_ops) WITH (bits = 64);
INSERT INTO later SELECT vec(note_memory(i), 100) FROM generate_series(1, 3000) i;
SELECT unsketched, learnt > 640 AS learnt FROM sketch_info('later_v');
SELECT current_setting('test.memory_400')::int - current_setting('test.memory_100')::int < 30000 AS without_model,
	current_setting('test.memory_3000')::int - current_setting('test.memory_2000')::int < 100000 AS with_model;
DROP TABLE later;
DROP FUNCTION note_memory;

-- partial, on expressions, of partitions, unlogged, temporary
CREATE TABLE parts (id int, v double precision[], kind int) PARTITION BY LIST (kind);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES IN (0);
CREATE UNLOGGED TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts SELECT i, vec(i, 12), i % 2 FROM generate_series(1, 1000) i;
CREATE INDEX parts_v ON parts USING sketch ((v::real[])) WHERE id > 20;
ANALYZE parts;
SELECT plan($$SELECT id FROM parts WHERE id > 20 ORDER BY v::real[] <-> (SELECT vec(27, 12)) LIMIT 3$$);
SELECT id FROM parts WHERE id > 20 ORDER BY v::real[] <-> vec(27, 12) LIMIT 3;
INSERT INTO parts SELECT i, vec(i, 12), i % 2 FROM generate_series(1001, 1500) i;
SELECT count(*) FROM (SELECT id FROM parts WHERE id > 20 ORDER BY v::real[] <-> vec(27, 12)) q;
SELECT sketch_check(indexrelid) FROM pg_index WHERE indrelid IN ('parts_0'::regclass, 'parts_1'::regclass);
SELECT sketch_recall(indexrelid, 5, 20) > 0.9 FROM pg_index WHERE indrelid IN ('parts_0'::regclass, 'parts_1'::regclass);
SELECT sketch_info('parts_v');
REINDEX TABLE parts;
SELECT sketch_check(indexrelid) FROM pg_index WHERE indrelid IN ('parts_0'::regclass, 'parts_1'::regclass);
DROP TABLE parts;
CREATE TEMPORARY TABLE mine AS SELECT i AS id, vec(i, 12) AS v FROM generate_series(1, 500) i;
CREATE INDEX mine_v ON mine USING sketch (v);
SELECT id FROM mine ORDER BY v <-> vec(27, 12) LIMIT 1;
SELECT sketch_check('mine_v');
DROP TABLE mine;

-- what it refuses
CREATE TABLE bad (id int, v real[], d double precision[]);
CREATE INDEX ON bad USING sketch (v) WITH (bits = -1);
CREATE INDEX ON bad USING sketch (v) WITH (bits = 16001);
CREATE INDEX ON bad USING sketch (v) WITH (colour = 1);
CREATE INDEX ON bad USING sketch (v, v);
CREATE INDEX ON bad USING sketch (d);
CREATE INDEX bad_d ON bad USING sketch ((d::real[]));
EXPLAIN (COSTS off) SELECT id FROM bad ORDER BY d::real[] <-> '{1,2,3}' LIMIT 1;
DROP INDEX bad_d;
CREATE UNIQUE INDEX ON bad USING sketch (v);
CREATE INDEX bad_v ON bad USING sketch (v);
INSERT INTO bad (v) VALUES ('{1,2,3}');
INSERT INTO bad (v) VALUES ('{1,2}');
INSERT INTO bad (v) VALUES ('{1,NaN,3}');
INSERT INTO bad (v) VALUES ('{1,2,-Infinity}');
INSERT INTO bad (v) VALUES ('{1,NULL,3}');
INSERT INTO bad (v) VALUES ('{{1,2,3}}');
INSERT INTO bad (v) VALUES ('{}');
SELECT v FROM bad ORDER BY v <-> '{1,2}';
SELECT v FROM bad ORDER BY v <-> '{1,2,NaN}';
DROP INDEX bad_v;
INSERT INTO bad (v) VALUES ('{1,2}');
CREATE INDEX bad_v ON bad USING sketch (v);
DELETE FROM bad WHERE v = '{1,2}';
CREATE INDEX bad_v ON bad USING sketch (v);
SELECT v FROM bad ORDER BY v <-> '{1,2,4}';
ALTER TABLE bad ALTER v TYPE double precision[];
ALTER TABLE bad ALTER v TYPE text;
SELECT sketch_recall('bad_v', 0);
SELECT sketch_recall('bad_v', 10, 0);
SELECT sketch_recall('bad_v');
CREATE INDEX bad_id ON bad (id);
SELECT sketch_info('bad_id');
SELECT sketch_check('bad');
SET unifdiag.recall = 1.1;
DROP TABLE bad;
CREATE OPERATOR CLASS wrong_ops FOR TYPE real[] USING sketch AS OPERATOR 1 = (anyarray, anyarray), OPERATOR 3 <#> (real[], real[]) FOR ORDER BY float_ops;
CREATE OPERATOR CLASS other_ops FOR TYPE text USING sketch AS FUNCTION 1 md5(text);
SELECT opcname, amvalidate(oid) FROM pg_opclass WHERE opcname IN ('wrong_ops', 'other_ops') ORDER BY 1;
DROP OPERATOR FAMILY wrong_ops USING sketch;
DROP OPERATOR FAMILY other_ops USING sketch;
-- which CREATE OPERATOR CLASS does not let through
BEGIN;
UPDATE pg_opclass SET opckeytype = 'bigint'::regtype WHERE opcname = 'real_l2_ops';
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'real_l2_ops';
ROLLBACK;

-- whoever counts rows does not run what the owner has written
CREATE FUNCTION told(v real[]) RETURNS real[] LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE WARNING 'the expression has run'; RETURN v; END $$;
CREATE TABLE owned AS SELECT vec(i, 4) AS v FROM generate_series(1, 20) i;
SET client_min_messages = error;
CREATE INDEX owned_told ON owned USING sketch (told(v));
RESET client_min_messages;
VACUUM owned;
SET enable_seqscan = off;
SELECT plan($$SELECT count(*) FROM owned$$);
SELECT count(*) FROM owned;
DELETE FROM owned WHERE ctid = '(0,7)';
SELECT count(*) FROM owned;
RESET enable_seqscan;
DROP TABLE owned;
DROP FUNCTION told;

-- who may ask
CREATE ROLE sketch_reader;
CREATE TABLE owned AS SELECT vec(i, 4) AS v FROM generate_series(1, 100) i;
CREATE INDEX owned_v ON owned USING sketch (v);
SET ROLE sketch_reader;
SELECT sketch_info('owned_v');
SELECT sketch_recall('owned_v');
SELECT sketch_check('owned_v');
RESET ROLE;
GRANT SELECT ON owned TO sketch_reader;
SET ROLE sketch_reader;
SELECT rows FROM sketch_info('owned_v');
SELECT sketch_recall('owned_v', 3, 10) > 0.9;
SELECT sketch_check('owned_v');
RESET ROLE;
-- what the owner's function calls by its bare name is not for the reader to say
CREATE FUNCTION longer(v real[]) RETURNS real[] LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v || v[1] * 2; END $$;
CREATE INDEX owned_longer ON owned USING sketch (longer(v));
CREATE SCHEMA sketch_hostile AUTHORIZATION sketch_reader;
GRANT USAGE ON SCHEMA sketch_hostile TO public;
SET ROLE sketch_reader;
CREATE FUNCTION sketch_hostile.times(real, integer) RETURNS real LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile code runs'; END $$;
CREATE OPERATOR sketch_hostile.* (LEFTARG = real, RIGHTARG = integer, FUNCTION = sketch_hostile.times);
SET search_path = sketch_hostile, pg_catalog, public;
SELECT rows FROM sketch_info('owned_longer');
SELECT sketch_recall('owned_longer', 3, 10) > 0.9;
RESET search_path;
RESET ROLE;
DROP OPERATOR sketch_hostile.* (real, integer);
DROP FUNCTION sketch_hostile.times;
DROP SCHEMA sketch_hostile;
-- rows of another kind than those that were learnt: they are found, if not as fast
CREATE TABLE kinds (v real[]);
INSERT INTO kinds SELECT ARRAY(SELECT (CASE WHEN k <= 32 THEN 2 ELSE .4 END * hashint4(i * 1000 + k) / 2147483648.0)::real FROM generate_series(1, 256) k)
FROM generate_series(1, 3000) i;
CREATE INDEX kinds_v ON kinds USING sketch (v) WITH (bits = 32);
SELECT sketch_recall('kinds_v') >= 0.98 AS as_asked, unsketched FROM sketch_info('kinds_v');
INSERT INTO kinds
SELECT ARRAY(SELECT (CASE WHEN k > 128 THEN hashint4(c * 1000 + k) / 2147483648.0 ELSE 0 END + .05 * hashint4(c * 99991 + j * 1000 + k) / 2147483648.0)::real
	FROM generate_series(1, 256) k)
FROM generate_series(1, 50) c, generate_series(1, 20) j;
SELECT sketch_recall('kinds_v') >= 0.98 AS as_asked, unsketched, explained_now < 0.1 AS another_kind FROM sketch_info('kinds_v');
REINDEX INDEX kinds_v;
SELECT sketch_recall('kinds_v') >= 0.98 AS as_asked, unsketched FROM sketch_info('kinds_v');
DROP TABLE kinds;

-- rows next to the mean
CREATE TABLE narrow AS SELECT ARRAY[hashint4(i) / 2147483648.0]::real[] AS v FROM generate_series(1, 5000) i;
CREATE INDEX narrow_v ON narrow USING sketch (v);
SELECT sketch_check('narrow_v');
DROP TABLE narrow;

DROP TABLE owned;
DROP FUNCTION longer;
DROP ROLE sketch_reader;
DROP FUNCTION vec, noise, plan;

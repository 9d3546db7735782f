-- the hamming index: what it is used for, what it refuses, and where it can be
SET client_min_messages = warning;

CREATE FUNCTION code(i bigint, bits int DEFAULT 64) RETURNS bithash LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT left((('x' || md5(i::text || '.0'))::bit(128))::text, bits)::public.bithash $$;

CREATE TABLE items (id int PRIMARY KEY, label int, code bithash(64));
INSERT INTO items SELECT i, i % 10, code(i) FROM generate_series(1, 20000) i;
INSERT INTO items SELECT i, i % 10, NULL FROM generate_series(20001, 20003) i;
CREATE INDEX items_code ON items USING hamming (code);
VACUUM ANALYZE items;
SELECT version, bits, codes, nulls, round(fill::numeric, 1) AS fill, pages <= 20003 * 14 * 1.05 / current_setting('block_size')::int + 2 AS small
FROM hamming_info('items_code');
SELECT hamming_check('items_code');

-- the planner takes it for the nearest few and for small radii, and leaves it for many
EXPLAIN (COSTS off) SELECT id FROM items ORDER BY code <~> code(1) LIMIT 10;
EXPLAIN (COSTS off) SELECT id FROM items WHERE label = 3 ORDER BY code <~> code(1) LIMIT 10;
EXPLAIN (COSTS off) SELECT id FROM items WHERE hamming_within(code, code(1), 6);
EXPLAIN (COSTS off) SELECT id FROM items WHERE hamming_within(code(1), code, 6) AND id < 5000;
EXPLAIN (COSTS off) SELECT id FROM items ORDER BY code <~> code(1);
EXPLAIN (COSTS off) SELECT id FROM items WHERE hamming_within(code, code(1), 40);
EXPLAIN (COSTS off) SELECT a.id, b.id FROM items a JOIN items b ON hamming_within(a.code, b.code, 2) AND a.id < b.id;
EXPLAIN (COSTS off) SELECT a.id, near.id FROM items a, LATERAL (SELECT id FROM items b ORDER BY a.code <~> b.code LIMIT 3) near WHERE a.id <= 5;
-- only ascending, which for distances nobody wants otherwise
EXPLAIN (COSTS off) SELECT id FROM items ORDER BY code <~> code(1) DESC LIMIT 10;

-- nearest codes, with NULL codes last
SELECT id, code <~> code(17) AS distance FROM items ORDER BY code <~> code(17) LIMIT 3;
SELECT id, code <~> code(17) AS distance FROM items ORDER BY code <~> code(17) OFFSET 19999;
SELECT count(*), min(id) FROM items WHERE hamming_within(code, code(17), 6);
-- in a prepared statement, with a plan for any query
SET plan_cache_mode = force_generic_plan;
PREPARE nearest(bithash, int) AS SELECT id FROM items ORDER BY code <~> $1 LIMIT $2;
PREPARE near(bithash, int) AS SELECT id FROM items WHERE hamming_within(code, $1, $2);
EXPLAIN (COSTS off) EXECUTE nearest(code(3), 2);
EXECUTE nearest(code(3), 1);
EXECUTE near(code(3), 3);
EXECUTE near(NULL, 3);
EXECUTE near(code(3), NULL);
EXECUTE near(code(3), -1);
SELECT count(*) FROM (SELECT id FROM items ORDER BY code <~> (SELECT NULL::bithash)) AS all_of_them;
RESET plan_cache_mode;
-- in a cursor, forward
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items ORDER BY code <~> code(5);
FETCH 1 FROM c;
MOVE 5000 FROM c;
COMMIT;
-- for each row of another table
SELECT a.id, near.id FROM items a, LATERAL (SELECT id FROM items b ORDER BY a.code <~> b.code LIMIT 1) near WHERE a.id <= 3 ORDER BY 1;
-- by two distances: the second breaks ties of the first
SET enable_sort = off;
EXPLAIN (COSTS off) SELECT id FROM items ORDER BY code <~> code(1), code <~> code(2) LIMIT 50;
SELECT array_agg(d) = (SELECT array_agg(d) FROM (SELECT (code <~> code(1), code <~> code(2)) AS d FROM items ORDER BY 1 LIMIT 50) hand) AS same
FROM (SELECT (code <~> code(1), code <~> code(2)) AS d FROM items ORDER BY code <~> code(1), code <~> code(2) LIMIT 50) q;
RESET enable_sort;
-- combined with another index
SET enable_indexscan = off;
EXPLAIN (COSTS off) SELECT count(*) FROM items WHERE hamming_within(code, code(1), 22) AND id < 2000;
SELECT count(*) FROM items WHERE hamming_within(code, code(1), 22) AND id < 2000;
SET enable_bitmapscan = off;
SELECT count(*) FROM items WHERE hamming_within(code, code(1), 22) AND id < 2000;
RESET enable_indexscan;
RESET enable_bitmapscan;
-- as the operator that the condition becomes
SELECT id FROM items WHERE code <@ hamming_ball(code(9), 3);
SELECT '(0101,2)'::hamming_ball, '0111'::bithash <@ '(0101,1)'::hamming_ball AS inside, '0011'::bithash <@ '(0101,1)' AS outside;

-- what cannot be
SELECT id FROM items ORDER BY code <~> B'0101' LIMIT 1;
SELECT id FROM items WHERE hamming_within(code, B'0101', 1);
SELECT '(0101,x)'::hamming_ball;
SELECT '0101,1'::hamming_ball;
SELECT '(0121,1)'::hamming_ball;
CREATE INDEX ON items USING hamming (id);
CREATE INDEX ON items USING hamming (code, code);
CREATE UNIQUE INDEX ON items USING hamming (code);
CREATE INDEX ON items USING hamming (code) WITH (fillfactor = 50);
SELECT hamming_check('items');
SELECT hamming_check('items_pkey');
SELECT * FROM hamming_info('items_pkey');
-- codes of several lengths have no place in one index
CREATE TABLE mixed (code bithash);
INSERT INTO mixed VALUES ('0101'), ('01010');
CREATE INDEX ON mixed USING hamming (code);
DELETE FROM mixed WHERE length(code) = 5;
CREATE INDEX mixed_code ON mixed USING hamming (code);
INSERT INTO mixed VALUES ('01010');
TRUNCATE mixed;
SELECT bits, codes FROM hamming_info('mixed_code');
INSERT INTO mixed VALUES (NULL), ('01010');
SELECT bits, codes, nulls FROM hamming_info('mixed_code');
SELECT code FROM mixed ORDER BY code <~> '01011';
-- they have a length as long as there is one, also of a row that is dead; VACUUM forgets it with the last
DELETE FROM mixed WHERE code IS NOT NULL;
INSERT INTO mixed VALUES ('0101');
VACUUM (INDEX_CLEANUP on) mixed;
SELECT bits, codes, nulls FROM hamming_info('mixed_code');
BEGIN;
INSERT INTO mixed VALUES ('010101');
ROLLBACK;
INSERT INTO mixed VALUES ('0101');
VACUUM (INDEX_CLEANUP on) mixed;
INSERT INTO mixed VALUES ('0101'), ('0111');
SELECT bits, codes, nulls FROM hamming_info('mixed_code');
SELECT code FROM mixed ORDER BY code <~> '0110';
SELECT hamming_check('mixed_code');
-- but not if the column has it
CREATE TABLE declared (code bithash(4));
CREATE INDEX declared_code ON declared USING hamming (code);
INSERT INTO declared VALUES ('0101');
DELETE FROM declared;
VACUUM (INDEX_CLEANUP on) declared;
SELECT bits, codes FROM hamming_info('declared_code');
-- until the type gives it no more, which does not build the index anew
SELECT pg_relation_filenode('declared_code') AS filenode \gset
ALTER TABLE declared ALTER code TYPE bithash;
SELECT pg_relation_filenode('declared_code') = :filenode AS same_file, bits FROM hamming_info('declared_code');
VACUUM (INDEX_CLEANUP on) declared;
INSERT INTO declared VALUES ('01010');
SELECT bits, codes FROM hamming_info('declared_code');
DROP TABLE declared;

-- only a table's owner may have its index checked, and only who may read a column see how many rows there are
CREATE ROLE regress_hamming_other;
SET ROLE regress_hamming_other;
SELECT codes FROM hamming_info('items_code');
RESET ROLE;
GRANT SELECT (label) ON items TO regress_hamming_other;
SET ROLE regress_hamming_other;
SELECT hamming_check('items_code');
SELECT codes FROM hamming_info('items_code');
RESET ROLE;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
SET ROLE regress_hamming_other;
SELECT codes FROM hamming_info('items_code');
RESET ROLE;
ALTER TABLE items DISABLE ROW LEVEL SECURITY;
REVOKE ALL (label) ON items FROM regress_hamming_other;
DROP ROLE regress_hamming_other;

-- a broken operator class is told from a good one
CREATE OPERATOR FAMILY broken_ops USING hamming;
CREATE OPERATOR CLASS broken_ops FOR TYPE bithash USING hamming FAMILY broken_ops AS OPERATOR 1 =;
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'broken_ops';
DROP OPERATOR FAMILY broken_ops USING hamming CASCADE;
-- which CREATE OPERATOR CLASS does not let through
CREATE OPERATOR CLASS stored_ops FOR TYPE bithash USING hamming FAMILY bithash_hamming_ops AS STORAGE bigint;
BEGIN;
UPDATE pg_opclass SET opckeytype = 'bigint'::regtype WHERE opcname = 'bithash_hamming_ops';
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'bithash_hamming_ops';
ROLLBACK;

-- updates that do not change the code are HOT: nothing new in the index
CREATE TABLE hot (id int, n int, code bithash(64)) WITH (fillfactor = 50);
INSERT INTO hot SELECT i, 0, code(i) FROM generate_series(1, 500) i;
CREATE INDEX hot_code ON hot USING hamming (code);
UPDATE hot SET n = n + 1;
SELECT codes FROM hamming_info('hot_code');
SELECT id, n FROM hot ORDER BY code <~> code(77) LIMIT 1;
UPDATE hot SET code = code(id + 1000) WHERE id = 77;
SELECT id, n FROM hot ORDER BY code <~> code(1077) LIMIT 1;
SELECT hamming_check('hot_code');

-- everywhere an index can be
CREATE INDEX CONCURRENTLY items_again ON items USING hamming (code);
REINDEX INDEX CONCURRENTLY items_again;
SELECT hamming_check('items_again');
DROP INDEX items_again;
CLUSTER items USING items_pkey;
VACUUM FULL items;
SELECT hamming_check('items_code');
SELECT id FROM items ORDER BY code <~> code(123) LIMIT 1;
-- of some rows, and of an expression
CREATE INDEX items_some ON items USING hamming (code) WHERE label = 3;
CREATE INDEX items_expression ON items USING hamming ((code(id, 128)));
ANALYZE items;
EXPLAIN (COSTS off) SELECT id FROM items WHERE label = 3 ORDER BY code <~> code(1) LIMIT 10;
EXPLAIN (COSTS off) SELECT id FROM items ORDER BY code(id, 128) <~> code(55, 128) LIMIT 1;
SELECT id FROM items ORDER BY code(id, 128) <~> code(55, 128) LIMIT 1;
SELECT bits, codes, nulls FROM hamming_info('items_expression');
SELECT bits, codes, nulls FROM hamming_info('items_some');
SELECT hamming_check('items_some'), hamming_check('items_expression');
DROP INDEX items_some, items_expression;
-- of a partitioned table
CREATE TABLE parts (id int, code bithash(64)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (3000);
CREATE INDEX parts_code ON parts USING hamming (code);
INSERT INTO parts SELECT i, code(i) FROM generate_series(0, 2999) i;
VACUUM ANALYZE parts;
EXPLAIN (COSTS off) SELECT id FROM parts ORDER BY code <~> code(1500) LIMIT 2;
SELECT id FROM parts ORDER BY code <~> code(1500) LIMIT 1;
SELECT hamming_check('parts_code');
SELECT hamming_check(i.indexrelid) FROM pg_index i WHERE indrelid IN ('parts_1'::regclass, 'parts_2'::regclass);
-- of temporary and unlogged tables
CREATE TEMPORARY TABLE gone AS SELECT i AS id, code(i) AS code FROM generate_series(1, 2000) i;
CREATE INDEX gone_code ON gone USING hamming (code);
DELETE FROM gone WHERE id <= 500;
VACUUM ANALYZE gone;
SELECT id FROM gone ORDER BY code <~> code(777) LIMIT 1;
SELECT hamming_check('gone_code');
CREATE UNLOGGED TABLE unlogged AS SELECT i AS id, code(i) AS code FROM generate_series(1, 2000) i;
CREATE INDEX unlogged_code ON unlogged USING hamming (code);
INSERT INTO unlogged SELECT i, code(i) FROM generate_series(2001, 3000) i;
SELECT id FROM unlogged ORDER BY code <~> code(2777) LIMIT 1;
SELECT hamming_check('unlogged_code');
ALTER TABLE unlogged SET LOGGED;
SELECT hamming_check('unlogged_code');

-- VACUUM removes entries, fills gaps, and ends the index earlier; what is behind the end is used again
CREATE FUNCTION pages(index regclass) RETURNS bigint LANGUAGE sql AS
	$$ SELECT pages FROM public.hamming_info(index) $$;
CREATE FUNCTION file_pages(index regclass) RETURNS bigint LANGUAGE sql AS
	$$ SELECT pg_relation_size(index) / current_setting('block_size')::int $$;
CREATE TABLE shrinking AS SELECT i AS id, CASE WHEN i % 20 <> 0 THEN code(i) END AS code FROM generate_series(1, 20000) i;
CREATE INDEX shrinking_code ON shrinking USING hamming (code);
SELECT pages('shrinking_code') AS fresh \gset
DELETE FROM shrinking WHERE id % 10 <> 0;
VACUUM shrinking;
SELECT codes, nulls FROM hamming_info('shrinking_code');
SELECT hamming_check('shrinking_code');
SELECT pages('shrinking_code') <= :fresh / 8 AS small;
SELECT pages + free_pages = file_pages('shrinking_code') AS all_pages, file_pages('shrinking_code') = :fresh AS not_cut FROM hamming_info('shrinking_code');
SELECT id FROM shrinking ORDER BY code <~> code(10010) LIMIT 1;
INSERT INTO shrinking SELECT i, CASE WHEN i % 20 <> 0 THEN code(i) END FROM generate_series(1, 20000) i WHERE i % 10 <> 0;
SELECT hamming_check('shrinking_code');
SELECT pages('shrinking_code') <= :fresh * 1.3 AS as_before, file_pages('shrinking_code') <= :fresh * 1.3 AS no_larger;
-- also when rows go and come in several rounds
DO $$ BEGIN
	FOR i IN 1..5 LOOP
		DELETE FROM shrinking WHERE id % 5 = i - 1;
		INSERT INTO shrinking SELECT i * 100000 + k, code(i * 100000 + k) FROM generate_series(1, 4000) k;
	END LOOP;
END $$;
VACUUM shrinking;
INSERT INTO shrinking SELECT i, code(i) FROM generate_series(1, 20000) i;
SELECT hamming_check('shrinking_code');
SELECT pages('shrinking_code') <= :fresh * 40000 / 20000 * 1.3 AS small;
DELETE FROM shrinking;
VACUUM shrinking;
SELECT pages('shrinking_code'), codes, nulls FROM hamming_info('shrinking_code');

-- a partial index is taken where it has few rows, and not where it has most
CREATE TABLE kinds AS SELECT i AS id, i % 100 AS kind, code(i) AS code, ARRAY[i, i % 7, i % 11, 1]::real[] AS v, repeat('x', 400) AS rest FROM generate_series(1, 20000) i;
CREATE INDEX kinds_code ON kinds USING hamming (code) WHERE kind = 7;
CREATE INDEX kinds_v ON kinds USING sketch (v) WHERE kind = 7;
VACUUM ANALYZE kinds;
EXPLAIN (COSTS off) SELECT id FROM kinds WHERE kind = 7 ORDER BY code <~> code(1) LIMIT 150;
EXPLAIN (COSTS off) SELECT id FROM kinds WHERE kind = 7 ORDER BY v <-> ARRAY[1, 1, 1, 1]::real[] LIMIT 20;
DROP TABLE kinds;

DROP TABLE items, mixed, hot, parts, gone, unlogged, shrinking;
DROP FUNCTION code, pages, file_pages;

-- index-only scans: what the index returns by itself equals what the table has
SET client_min_messages = warning;

-- a query that needs no column is planned as an index-only scan of any index that needs no condition
CREATE TABLE wide (id int, code bithash(64), note text) WITH (autovacuum_enabled = off);
INSERT INTO wide SELECT i, ('x' || left(md5(i::text), 16))::bit(64)::bithash, repeat('wide ', 300) FROM generate_series(1, 1000) i;
CREATE INDEX wide_code ON wide USING hamming (code);
VACUUM ANALYZE wide;
EXPLAIN (COSTS off) SELECT count(*) FROM wide;
SELECT count(*) FROM wide;
EXPLAIN (COSTS off) SELECT code <~> repeat('01', 32)::bithash FROM wide ORDER BY code <~> repeat('01', 32)::bithash LIMIT 3;
SELECT code, code <~> repeat('01', 32)::bithash AS distance FROM wide ORDER BY code <~> repeat('01', 32)::bithash LIMIT 3;
-- of an expression the index has the value as well, but the planner does not know that
CREATE INDEX wide_expression ON wide USING hamming (((~ code::bit(64))::bithash));
DROP INDEX wide_code;
SELECT count(*) FROM wide;
DROP TABLE wide;

CREATE FUNCTION random_code(n int) RETURNS bithash LANGUAGE sql VOLATILE AS
	$$ SELECT left(string_agg((('x' || md5(random()::text))::bit(128))::text, ''), n)::bithash FROM generate_series(0, (n - 1) / 128) $$;

-- a query's rows, by the index alone or without any index
CREATE FUNCTION answer(query text, by_index bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := '';
	line text;
	result text;
BEGIN
	PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_sort', (NOT by_index)::text, true),
		set_config('enable_indexscan', by_index::text, true), set_config('enable_indexonlyscan', by_index::text, true),
		set_config('enable_bitmapscan', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		plan := plan || line;
	END LOOP;
	IF (plan LIKE '%Index Only Scan using codes_code_idx%') <> by_index THEN
		RAISE 'wrong plan: %', plan;
	END IF;
	EXECUTE format('SELECT md5(string_agg(q::text, '' '')) FROM (%s) q', query) INTO result;
	RETURN coalesce(result, 'none');
END $$;
-- the same query both ways: it has no other columns than the order depends on, so ties do not show
CREATE FUNCTION compare(query text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF answer(query, true) <> answer(query, false) THEN
		RAISE 'not equal: %', left(query, 500);
	END IF;
END $$;

CREATE FUNCTION compare_all(n int, rows int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	a text := quote_literal(random_code(n));
	b text := quote_literal(random_code(n));
	r int := greatest(n / 2 - (sqrt(n) / 2)::int, 0);
BEGIN
	PERFORM compare(query) FROM (VALUES
		('SELECT count(*) FROM codes'),
		('SELECT code IS NULL, count(*) FROM codes GROUP BY 1 ORDER BY 1'),
		('SELECT array_agg(code ORDER BY code) FROM codes'),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> %1$s', a)),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> %1$s LIMIT 7', a)),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> %1$s OFFSET %s', a, rows / 2)),
		('SELECT count(code), count(*) FROM (SELECT code FROM codes ORDER BY code <~> (SELECT NULL::bithash)) q'),
		-- the second distance breaks ties of the first
		(format('SELECT code <~> %s, code <~> %s FROM codes ORDER BY code <~> %1$s, code <~> %2$s', a, b)),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> (SELECT NULL::bithash), code <~> %1$s', b)),
		(format('SELECT code <~> %s, code <~> %s FROM codes ORDER BY code <~> %1$s, code <~> %2$s, code <~> (SELECT NULL::bithash) LIMIT 11', b, a)),
		(format('SELECT count(*), array_agg(code ORDER BY code) FROM codes WHERE hamming_within(code, %s, %s)', a, r)),
		(format('SELECT code <~> %s FROM codes WHERE hamming_within(code, %s, %s) AND code <> %s ORDER BY code <~> %1$s', a, b, r, a)),
		-- scanned again for each row of another table
		(format('SELECT near.* FROM (VALUES (%s::bithash), (%s), (NULL), (%1$s)) AS q (code), LATERAL (SELECT code <~> q.code FROM codes ORDER BY code <~> q.code LIMIT 5) near', a, b))) AS queries (query);
END $$;

CREATE FUNCTION run(n int, rows int, declared bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE codes (id int, code %s, note text) WITH (autovacuum_enabled = off)', CASE WHEN declared THEN format('bithash(%s)', n) ELSE 'bithash' END);
	CREATE INDEX ON codes USING hamming (code);
	PERFORM compare_all(n, rows);
	INSERT INTO codes SELECT i, CASE WHEN random() < 0.9 THEN random_code(n) END, repeat('wide', 20) FROM generate_series(1, rows) i;
	PERFORM compare_all(n, rows);
END $$;
CREATE FUNCTION change(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	-- some pages stay all-visible, and others have rows that are not seen any more, not seen yet, or moved
	DELETE FROM codes WHERE id < 100 AND id % 3 = 0;
	UPDATE codes SET code = random_code(n) WHERE id BETWEEN 200 AND 220;
	UPDATE codes SET note = 'changed' WHERE id BETWEEN 300 AND 320;
	BEGIN
		INSERT INTO codes SELECT i, random_code(n) FROM generate_series(1, 50) i;
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
	END;
END $$;

SELECT setseed(0.15);
\set n 1
\set rows 1500
\set declared true
SELECT run(:n, :rows, :declared);
VACUUM codes;
SELECT compare_all(:n, :rows);
SELECT change(:n);
SELECT compare_all(:n, :rows);
DROP TABLE codes;
\set n 64
\set declared false
SELECT run(:n, :rows, :declared);
VACUUM codes;
SELECT compare_all(:n, :rows);
SELECT change(:n);
SELECT compare_all(:n, :rows);
-- a cursor sees what it saw when it was opened
SET enable_seqscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c CURSOR FOR SELECT code FROM codes ORDER BY code <~> repeat('01', 32)::bithash;
MOVE 1 FROM c;
SELECT count(*) AS rows FROM codes \gset
DELETE FROM codes WHERE id % 2 = 0;
MOVE ALL FROM c;
SELECT count(*) < :rows AS fewer FROM codes;
ROLLBACK;
-- in little memory
SET work_mem = '64kB';
SELECT compare_all(:n, :rows);
RESET ALL;
SET client_min_messages = warning;
DROP TABLE codes;
\set n 513
\set rows 800
\set declared true
SELECT run(:n, :rows, :declared);
VACUUM codes;
SELECT change(:n);
SELECT compare_all(:n, :rows);
DROP TABLE codes;
-- codes that are stored out of line
\set n 64000
\set rows 60
\set declared false
SELECT run(:n, :rows, :declared);
VACUUM codes;
SET work_mem = '64kB';
SELECT compare_all(:n, :rows);
RESET work_mem;
DROP TABLE codes;

DROP FUNCTION run, change, compare_all, compare, answer, random_code;

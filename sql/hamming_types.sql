-- codes in columns of type bit, bit varying and bigint: distances and indexes
SET client_min_messages = warning;

-- which function or operator literals and columns come to
SELECT B'0101' <~> B'0110' AS bits, B'0101' <~> '0110' AS literal, B'0101'::varbit <~> '0110' AS varying,
	B'0101' <~> '0110'::bithash AS code, pg_typeof(B'0101' <~> B'0110');
SELECT 7::bigint <~> 4::bigint AS numbers, 7::bigint <~> 4 AS integer_query, 7::bigint <~> '4' AS literal, 0::bigint <~> -1 AS all_bits,
	(-9223372036854775808)::bigint <~> 0 AS sign, pg_typeof(7::bigint <~> 4);
SELECT hamming_distance('0101', '0110') AS literals, hamming_distance(B'0101', B'0110') AS bits, hamming_distance('', '') AS nothing;
SELECT hamming_within('xFF', 'x0F', 4) AS literals, hamming_within(B'0101', '0110', 1) AS bits, hamming_within(B'0101'::varbit, B'0100'::varbit, 1) AS varying,
	hamming_within(7::bigint, 4, 2) AS numbers, hamming_within(7::bigint, 4, 1) AS beyond, hamming_within(7, 4, 10000000000) AS huge, hamming_within(7::bigint, 7, -1) AS negative,
	hamming_within(7::bigint, NULL, 1) AS unknown;
SELECT hamming_within(B'0101', '0111'::bithash, 1) AS bit_and_code, hamming_within('0101', '0111'::bithash, 1) AS literal_and_code,
	hamming_within('0101'::bithash, '0111', 0) AS code_and_literal, hamming_within('0101'::bithash, B'0111', 0) AS code_and_bit, hamming_within(B'0101'::varbit, '0101', 0) AS varying_and_literal;
SELECT B'0101' <@ hamming_ball(B'0100', 1) AS inside, 7::bigint <@ hamming_ball(5::bigint, 0) AS outside, hamming_ball(5::bigint, -10000000000) AS empty,
	hamming_ball('0101', 1) AS literal;
-- what has no distance
SELECT B'0101' <~> B'01';
SELECT hamming_distance('0101', '01');
SELECT hamming_within(B'0101', B'01', 1);
SELECT hamming_ball(B''::varbit, 1);
\set VERBOSITY terse
SELECT 7::bigint <~> B'0101';
SELECT '0101' <~> '0110';
\set VERBOSITY default

CREATE FUNCTION random_bits(n int) RETURNS bit varying LANGUAGE sql VOLATILE AS
	$$ SELECT left(string_agg((('x' || md5(random()::text))::bit(128))::text, ''), n)::bit varying FROM generate_series(0, (n - 1) / 128) $$;

-- a query's rows by the index alone, by the index and the table if it searches, and without the index
CREATE FUNCTION answer(query text, node text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := '';
	line text;
	result text;
BEGIN
	PERFORM set_config('enable_seqscan', (node = 'Seq Scan')::text, true), set_config('enable_sort', (node = 'Seq Scan')::text, true),
		set_config('enable_indexscan', (node <> 'Seq Scan')::text, true), set_config('enable_indexonlyscan', (node = 'Index Only Scan')::text, true),
		set_config('enable_bitmapscan', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		plan := plan || line;
	END LOOP;
	IF strpos(plan, node) = 0 THEN
		RAISE 'no %: %', node, plan;
	END IF;
	EXECUTE format('SELECT md5(string_agg(q::text, '' '')) FROM (%s) q', query) INTO result;
	RETURN coalesce(result, 'none');
END $$;
CREATE FUNCTION compare(query text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF answer(query, 'Index Only Scan') <> answer(query, 'Seq Scan')
		OR (query ~ '<~>|hamming_' AND answer(query, 'Index Scan') <> answer(query, 'Seq Scan')) THEN
		RAISE 'not equal: %', left(query, 500);
	END IF;
END $$;
-- the type's operators against counting ones of core's exclusive or, by index and without
CREATE FUNCTION compare_all(type text, a text, b text, radius int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	ones text := CASE WHEN type = 'bigint' THEN 'bit_count((code # %1$s::bigint)::bit(64))' ELSE 'bit_count(code # %1$s::' || type || ')' END;
	wrong bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM codes WHERE code <~> %1$s <> ' || ones || ' OR hamming_within(code, %1$s, %2$s) <> (' || ones || ' <= %2$s)',
		a, radius) INTO wrong;
	IF wrong > 0 THEN
		RAISE '% wrong distances', wrong;
	END IF;
	PERFORM compare(query) FROM (VALUES
		('SELECT code IS NULL, count(*), min(pg_typeof(code)::text) FROM codes GROUP BY 1 ORDER BY 1'),
		('SELECT array_agg(code ORDER BY code) FROM codes'),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> %1$s', a)),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> %1$s OFFSET 50 LIMIT 100', a)),
		(format('SELECT code <~> %s, code <~> %s FROM codes ORDER BY code <~> %1$s, code <~> %2$s', a, b)),
		(format('SELECT code <~> %s FROM codes ORDER BY code <~> (SELECT NULL::%s), code <~> %1$s', b, CASE WHEN type = 'bigint' THEN type ELSE 'bithash' END)),
		(format('SELECT count(*), array_agg(code ORDER BY code) FROM codes WHERE hamming_within(code, %s, %s)', a, radius)),
		(CASE WHEN type <> 'bigint' THEN format('SELECT count(*), array_agg(code ORDER BY code) FROM codes WHERE hamming_within(code, %s::bithash, %s)', a, radius) END),
		(format('SELECT count(*) FROM codes WHERE hamming_within(code, %s, %s) AND hamming_within(%s, code, %2$s)', a, radius, b)),
		(format('SELECT count(*) FROM codes WHERE code <@ hamming_ball(%s::%s, %s)', a, type, radius)),
		(format('SELECT code <~> %s FROM codes WHERE hamming_within(code, %s, %s) AND code <> %1$s ORDER BY code <~> %1$s', a, b, radius))) AS queries (query) WHERE query IS NOT NULL;
END $$;
CREATE FUNCTION change(maker text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM codes WHERE id % 7 = 0;
	EXECUTE format('UPDATE codes SET code = %s WHERE id BETWEEN 200 AND 220', maker);
	EXECUTE format('INSERT INTO codes SELECT i, %s FROM generate_series(2001, 2100) i', maker);
END $$;

SELECT setseed(0.25);
CREATE TABLE codes (id int, code bit(100)) WITH (autovacuum_enabled = off);
INSERT INTO codes SELECT i, CASE WHEN random() < 0.95 THEN random_bits(100) END FROM generate_series(1, 1500) i;
CREATE INDEX codes_code ON codes USING hamming (code);
VACUUM ANALYZE codes;
SELECT bits, codes + nulls AS entries FROM hamming_info('codes_code');
SELECT compare_all('bit(100)', quote_literal(random_bits(100)), quote_literal(random_bits(100)), 43);
SELECT change('random_bits(100)');
SELECT compare_all('bit(100)', quote_literal(random_bits(100)), quote_literal(random_bits(100)), 43);
SELECT hamming_check('codes_code');
-- queries of all types that it takes, prepared and as a join
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT id FROM codes ORDER BY code <~> repeat('01', 50)::bit(100) LIMIT 1;
EXPLAIN (COSTS off) SELECT id FROM codes ORDER BY code <~> repeat('01', 50)::bithash LIMIT 1;
DO $$ DECLARE line text; BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) SELECT count(*) FROM codes a JOIN codes b ON hamming_within(a.code, b.code, 3) AND a.id < b.id' LOOP
		-- newer servers tell what was disabled
		IF line !~ 'Disabled: ' THEN RAISE INFO '%', line; END IF;
	END LOOP;
END $$;
-- with a code of type bithash on the right, by an index of either column
CREATE TABLE hashes AS SELECT id, code::bithash FROM codes;
CREATE INDEX ON hashes USING hamming (code);
EXPLAIN (COSTS off) SELECT id FROM codes WHERE hamming_within(code, repeat('01', 50)::bithash, 20);
EXPLAIN (COSTS off) SELECT id FROM hashes WHERE hamming_within(repeat('01', 50)::bit(100), code, 20);
SELECT hashes.id FROM codes, hashes WHERE codes.id = 1000 AND hamming_within(codes.code, hashes.code, 0);
DROP TABLE hashes;
PREPARE nearest AS SELECT id FROM codes ORDER BY code <~> $1 LIMIT 1;
SELECT code AS query, id AS answer FROM codes WHERE id = 1000 \gset
EXECUTE nearest(:'query');
SET plan_cache_mode = force_generic_plan;
EXECUTE nearest(:'query');
EXPLAIN (COSTS off) EXECUTE nearest(:'query');
RESET ALL;
SET client_min_messages = warning;
DEALLOCATE nearest;
DROP TABLE codes;

-- an empty one is no code, also where none has told the length yet
CREATE TABLE codes (id int, code bit varying) WITH (autovacuum_enabled = off);
CREATE INDEX codes_code ON codes USING hamming (code);
INSERT INTO codes VALUES (1, '');
INSERT INTO codes VALUES (2, '101');
INSERT INTO codes VALUES (3, '');
SELECT hamming_check('codes_code'), codes, bits FROM hamming_info('codes_code');
DROP TABLE codes;

-- of bit varying, whose codes have one length
CREATE TABLE codes (id int, code bit varying(80)) WITH (autovacuum_enabled = off);
CREATE INDEX codes_code ON codes USING hamming (code bit_hamming_ops);
SELECT bits FROM hamming_info('codes_code');
INSERT INTO codes SELECT i, CASE WHEN random() < 0.95 THEN random_bits(70) END FROM generate_series(1, 1500) i;
VACUUM ANALYZE codes;
SELECT bits, codes + nulls AS entries FROM hamming_info('codes_code');
SELECT compare_all('bit varying', quote_literal(random_bits(70)), quote_literal(random_bits(70)), 29);
SELECT change('random_bits(70)');
SELECT compare_all('bit varying', quote_literal(random_bits(70)), quote_literal(random_bits(70)), 29);
SELECT hamming_check('codes_code');
INSERT INTO codes VALUES (0, B'0101');
INSERT INTO codes VALUES (0, B'');
DROP INDEX codes_code;
INSERT INTO codes VALUES (0, B'');
CREATE INDEX ON codes USING hamming (code);
DELETE FROM codes WHERE id = 0;
INSERT INTO codes VALUES (0, B'0101');
CREATE INDEX ON codes USING hamming (code);
-- statistics of an odd column are no reason not to plan
ANALYZE codes;
EXPLAIN (COSTS off) SELECT FROM codes WHERE hamming_within(code, B'0101', 2);
DROP TABLE codes;

-- of bigint
CREATE TABLE codes (id int, code bigint) WITH (autovacuum_enabled = off);
CREATE INDEX codes_code ON codes USING hamming (code);
SELECT bits FROM hamming_info('codes_code');
INSERT INTO codes SELECT i, CASE WHEN random() < 0.95 THEN random_bits(64)::bit(64)::bigint END FROM generate_series(1, 1500) i;
VACUUM ANALYZE codes;
SELECT bits, codes + nulls AS entries FROM hamming_info('codes_code');
SELECT compare_all('bigint', (random_bits(64)::bit(64)::bigint)::text, (random_bits(64)::bit(64)::bigint)::text, 26);
SELECT change('random_bits(64)::bit(64)::bigint');
SELECT compare_all('bigint', '0', '-1', 26);
SELECT hamming_check('codes_code');
DROP INDEX codes_code;
CREATE INDEX codes_code ON codes USING hamming (code);
SELECT compare_all('bigint', '''-9223372036854775808''', '7', 26);
SELECT hamming_check('codes_code');
-- a radius beyond 32 bits
SET enable_seqscan = off;
SELECT count(*) = (SELECT count(code) FROM codes) AS all_of_them FROM codes WHERE hamming_within(code, 0, 3000000000);
RESET enable_seqscan;
DROP TABLE codes;

-- what a statement inserts leaves nothing in its memory; i is of a row, and comes back
CREATE FUNCTION note_memory(i int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF i % 9000 = 1000 THEN
		PERFORM set_config('test.memory_' || i, (SELECT sum(used_bytes)::text FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'), false);
	END IF;
	RETURN i;
END $$;
CREATE TABLE codes (code bigint);
CREATE INDEX codes_code ON codes USING hamming (code);
INSERT INTO codes SELECT note_memory(i) FROM generate_series(1, 10000) i;
SELECT current_setting('test.memory_10000')::int - current_setting('test.memory_1000')::int < 100000 AS little;
DROP TABLE codes;
DROP FUNCTION note_memory;

-- how many rows the planner expects
CREATE FUNCTION expected_rows(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
CREATE TABLE common AS
SELECT CASE WHEN i <= 700 THEN -1 ELSE i END::bigint AS number, CASE WHEN i <= 700 THEN B'11111111' ELSE B'00000000' END AS bits FROM generate_series(1, 1000) i;
SELECT expected_rows('SELECT FROM common WHERE hamming_within(number, -4, 10)') BETWEEN 1 AND 1000 AS not_analyzed;
ANALYZE common;
SELECT expected_rows('SELECT FROM common WHERE hamming_within(number, -4, 2)') BETWEEN 650 AND 750 AS numbers,
	expected_rows('SELECT FROM common WHERE hamming_within(bits, B''11111100'', 2)') BETWEEN 650 AND 750 AS bits,
	expected_rows('SELECT FROM common WHERE hamming_within(bits, B''11111100'', 1)') <= 10 AS none;
DROP TABLE common;
DROP FUNCTION expected_rows;

-- of domains and expressions
CREATE DOMAIN phash AS bigint CHECK (value <> 0);
CREATE DOMAIN flags AS bit(8);
CREATE TABLE codes (id int, code phash, flags flags);
INSERT INTO codes SELECT i, i, i::bit(8) FROM generate_series(1, 200) i;
CREATE INDEX codes_code ON codes USING hamming (code);
CREATE INDEX codes_flags ON codes USING hamming (flags);
CREATE INDEX codes_expression ON codes USING hamming ((code::bigint::bit(16)));
SELECT (hamming_info(index)).bits FROM unnest(ARRAY['codes_code', 'codes_flags', 'codes_expression']::regclass[]) index;
SET enable_seqscan = off;
SELECT id FROM codes ORDER BY code <~> 77 LIMIT 1;
SELECT id FROM codes ORDER BY flags <~> 77::bit(8) LIMIT 1;
SELECT id FROM codes ORDER BY code::bigint::bit(16) <~> 77::bit(16) LIMIT 1;
RESET enable_seqscan;
SELECT hamming_check('codes_code'), hamming_check('codes_flags'), hamming_check('codes_expression');
DROP TABLE codes;
DROP DOMAIN phash, flags;
-- of lengths that a code cannot have
CREATE TABLE codes (code bit(64001));
CREATE INDEX ON codes USING hamming (code);
ALTER TABLE codes ALTER code TYPE bit(64000);
CREATE INDEX codes_code ON codes USING hamming (code);
INSERT INTO codes VALUES (repeat('10', 32000)::bit(64000)), (repeat('1', 64000)::bit(64000));
SELECT code <~> repeat('1', 64000)::bit(64000) AS distance FROM codes ORDER BY 1;
SELECT hamming_check('codes_code');
DROP TABLE codes;

DROP FUNCTION answer, compare, compare_all, change, random_bits;

-- how many rows the planner expects of hamming_within

CREATE FUNCTION expected_rows(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Plan Rows';
END $$;

-- codes of 64 bits around 20 centres, each bit flipped with probability 1/8
SELECT setseed(0.5);
CREATE TABLE clustered AS
SELECT i AS id, (SELECT string_agg(CASE WHEN random() < 0.125 THEN 1 - get_bit(centre, k) ELSE get_bit(centre, k) END::text, '' ORDER BY k)
	FROM generate_series(0, 63) k)::bithash(64) AS code
FROM (SELECT i, substr(('x' || md5((i % 20)::text))::bithash::text, 1, 64)::bithash AS centre
	FROM generate_series(1, 4000) i) t;

-- not analysed: fair coins, hardly any row within a small radius, half of them within 32
SELECT expected_rows('SELECT FROM clustered WHERE hamming_within(code, repeat(''0'', 64)::bithash, 5)') AS few,
	expected_rows('SELECT FROM clustered WHERE hamming_within(code, repeat(''0'', 64)::bithash, 64)')
	> expected_rows('SELECT FROM clustered') * 0.9 AS all;

ANALYZE clustered;

-- within a factor of four from a query in a cluster, at radii that catch some and many
SELECT radius, expected / actual BETWEEN 0.25 AND 4 AS near
FROM unnest(ARRAY[16, 20, 26, 32, 40]) radius,
	LATERAL (SELECT count(*) AS actual FROM clustered WHERE hamming_within(code, (SELECT code FROM clustered WHERE id = 7), radius)) a,
	LATERAL expected_rows(format('SELECT FROM clustered WHERE hamming_within(code, %L, %s)', (SELECT code FROM clustered WHERE id = 7), radius)) expected;

-- as a join, and with a query that is not known when planning
SELECT radius, expected / actual BETWEEN 0.25 AND 4 AS near
FROM unnest(ARRAY[16, 24, 32]) radius,
	LATERAL (SELECT count(*) AS actual FROM clustered a JOIN clustered b ON hamming_within(a.code, b.code, radius) WHERE a.id <= 200) a,
	LATERAL expected_rows(format('SELECT FROM clustered a JOIN clustered b ON hamming_within(a.code, b.code, %s) WHERE a.id <= 200', radius)) expected;
SELECT expected_rows('SELECT FROM clustered WHERE hamming_within(code, (SELECT code FROM clustered LIMIT 1), 20)') BETWEEN 50 AND 800 AS like_a_member;

-- NULLs never match, common codes do as often as they are there
INSERT INTO clustered SELECT i, NULL FROM generate_series(4001, 8000) i;
INSERT INTO clustered SELECT i, repeat('1', 64)::bithash FROM generate_series(8001, 10000) i;
ANALYZE clustered;
SELECT expected_rows('SELECT FROM clustered WHERE hamming_within(code, repeat(''1'', 64)::bithash, 3)') BETWEEN 1800 AND 2200 AS common,
	expected_rows('SELECT FROM clustered WHERE hamming_within(code, repeat(''1'', 64)::bithash, 64)') BETWEEN 5500 AND 6500 AS not_null,
	expected_rows('SELECT FROM clustered WHERE hamming_within(code, NULL, 64)') AS null_query,
	expected_rows('SELECT FROM clustered WHERE hamming_within(code, repeat(''1'', 64)::bithash, -1)') AS negative;

-- a query of another length is an error when run, not when planned
SELECT expected_rows('SELECT FROM clustered WHERE hamming_within(code, ''0101'', 3)') AS none;
SELECT count(*) FROM clustered WHERE hamming_within(code, '0101', 3);

-- generic plans of prepared statements
SET plan_cache_mode = force_generic_plan;
PREPARE near(bithash, int) AS SELECT count(*) FROM clustered WHERE hamming_within(code, $1, $2);
EXECUTE near(repeat('1', 64)::bithash, 0);
DEALLOCATE near;
RESET plan_cache_mode;

-- equality has statistics like any type's
SELECT expected_rows('SELECT FROM clustered WHERE code = repeat(''1'', 64)::bithash') BETWEEN 1800 AND 2200 AS common;

-- a column whose codes are all equal, and one of codes too long for statistics
CREATE TABLE equal_codes AS SELECT 'xFF'::bithash AS code FROM generate_series(1, 1000);
CREATE TABLE long_codes AS SELECT repeat('01', 10000)::bithash(20000) AS code FROM generate_series(1, 50);
ANALYZE equal_codes, long_codes;
SELECT expected_rows('SELECT FROM equal_codes WHERE hamming_within(code, ''xFE'', 1)') AS all_equal,
	expected_rows('SELECT FROM equal_codes WHERE hamming_within(code, ''xFC'', 1)') AS none,
	expected_rows('SELECT FROM long_codes WHERE hamming_within(code, repeat(''10'', 10000)::bithash, 9000)') AS long_none,
	expected_rows('SELECT FROM long_codes WHERE hamming_within(code, repeat(''10'', 10000)::bithash, 11000)') AS long_all;
DROP TABLE clustered, equal_codes, long_codes;
DROP FUNCTION expected_rows;

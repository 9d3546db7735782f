-- the index against a sequential scan with a sort: rows, order and ties, at every length
SET client_min_messages = warning;

-- a code of n random bits; or, one time in two, one that is near to a given one
CREATE FUNCTION random_code(n int, near bithash DEFAULT NULL) RETURNS bithash LANGUAGE plpgsql AS $$
DECLARE
	bits text;
BEGIN
	IF near IS NOT NULL AND random() < 0.5 THEN
		bits := near::text;
		FOR i IN 1..(random() * 3)::int LOOP
			bits := overlay(bits PLACING (random() < 0.5)::int::text FROM 1 + (random() * (n - 1))::int);
		END LOOP;
		RETURN bits::bithash;
	END IF;
	SELECT string_agg((('x' || md5(random()::text))::bit(128))::text, '') INTO bits FROM generate_series(0, (n - 1) / 128);
	RETURN left(bits, n)::bithash;
END $$;

-- a query's rows, by an index or without any
CREATE FUNCTION answer(query text, by_index bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := '';
	line text;
	result text;
BEGIN
	PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_sort', (NOT by_index)::text, true),
		set_config('enable_indexscan', by_index::text, true), set_config('enable_indexonlyscan', by_index::text, true), set_config('enable_bitmapscan', by_index::text, true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		plan := plan || line;
	END LOOP;
	IF (plan LIKE '%codes_code_idx%') <> by_index THEN
		RAISE 'wrong plan: %', plan;
	END IF;
	EXECUTE format('SELECT string_agg(q::text, '' '') FROM (%s) q', query) INTO result;
	RETURN coalesce(result, 'none');
END $$;

-- the same query both ways; without the index ties are broken by hand
CREATE FUNCTION compare(query text, hand text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	found text := answer(query, true);
	expected text := answer(hand, false);
BEGIN
	IF found <> expected THEN
		RAISE 'by index: %, by hand: %, query: %', left(found, 500), left(expected, 500), left(query, 500);
	END IF;
END $$;

CREATE FUNCTION compare_all(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	rows int := (SELECT count(*) FROM codes);
	q text;
	radius int;
	order_by text;
	suffix text;
	filter text;
BEGIN
	FOR i IN 1..6 LOOP
		q := format(CASE i % 2 WHEN 0 THEN '%L::bithash' ELSE '(SELECT %L::bithash)' END, coalesce((SELECT random_code(n, code) FROM codes WHERE code IS NOT NULL ORDER BY random() LIMIT 1), random_code(n)));
		IF i = 6 THEN
			q := '(SELECT NULL::bithash)';
		END IF;
		order_by := format('ORDER BY code <~> %s', q);
		filter := (ARRAY['', 'WHERE id % 97 = 3', 'WHERE id = 7', 'WHERE false IS DISTINCT FROM (id > 0)'])[1 + i % 4];
		suffix := (ARRAY['', 'LIMIT 10', 'LIMIT 1', format('LIMIT 5 OFFSET %s', rows / 2), format('OFFSET %s', greatest(rows - 3, 0))])[1 + i % 5];
		PERFORM compare(
			format('SELECT ctid, code <~> %s FROM codes %s %s %s', q, filter, order_by, suffix),
			format('SELECT ctid, code <~> %s FROM codes %s %s, ctid %s', q, filter, order_by, suffix));
		radius := CASE WHEN i = 5 THEN -1 WHEN random() < 0.5 THEN random() * 3 ELSE random() * n / 2 END;
		-- conditions, alone, with another, and with an order
		PERFORM compare(
			format('SELECT ctid FROM codes WHERE hamming_within(code, %s, %s) ORDER BY code <~> %1$s', q, radius),
			format('SELECT ctid FROM codes WHERE hamming_within(code, %s, %s) ORDER BY code <~> %1$s, ctid', q, radius));
		PERFORM compare(
			format('SELECT count(*), max(id) FROM codes WHERE hamming_within(%s, code, %s)', q, radius),
			format('SELECT count(*), max(id) FROM codes WHERE hamming_within(%s, code, %s)', q, radius));
	END LOOP;
	-- two conditions and an order, each with a code of its own
	SELECT string_agg(format('%L', random_code(n)), ',') INTO q FROM generate_series(1, 3);
	FOR suffix IN VALUES ('LIMIT 20'), ('') LOOP
		PERFORM compare(replace(query, ', ctid', ''), query)
		FROM (SELECT format('SELECT ctid FROM codes WHERE hamming_within(code, %s, %s) AND hamming_within(code, %s, %s) ORDER BY code <~> %s, ctid %s',
			split_part(q, ',', 1), n / 2, split_part(q, ',', 2), n / 2 + 1, split_part(q, ',', 3), suffix) AS query) AS made;
	END LOOP;
END $$;

CREATE FUNCTION run(n int, rows int, declared bool) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS codes;
	EXECUTE format('CREATE TABLE codes (id int, code %s)', CASE WHEN declared THEN format('bithash(%s)', n) ELSE 'bithash' END);
	-- no update is HOT then: the index has the TID with which a HOT chain starts, and ties go by that
	CREATE INDEX ON codes ((-id));
	-- empty, and with nothing but NULLs
	CREATE INDEX ON codes USING hamming (code);
	PERFORM compare_all(n);
	INSERT INTO codes SELECT i, NULL FROM generate_series(1, 5) i;
	PERFORM compare_all(n);
	-- inserted one by one
	INSERT INTO codes SELECT i, CASE WHEN random() < 0.95 THEN random_code(n) END FROM generate_series(1, rows / 4) i;
	PERFORM compare_all(n);
	-- built, then inserted, updated and deleted in the same transaction
	DROP INDEX codes_code_idx;
	INSERT INTO codes SELECT i, CASE WHEN random() < 0.95 THEN random_code(n) END FROM generate_series(1, rows / 2) i;
	CREATE INDEX ON codes USING hamming (code);
	INSERT INTO codes SELECT i, random_code(n, (SELECT code FROM codes WHERE code IS NOT NULL LIMIT 1)) FROM generate_series(1, rows / 4) i;
	UPDATE codes SET id = -id WHERE random() < 0.1;
	UPDATE codes SET code = random_code(n) WHERE random() < 0.1;
	DELETE FROM codes WHERE random() < 0.2;
	PERFORM compare_all(n);
	PERFORM hamming_check('codes_code_idx');
	RETURN format('%s bits: equal', n);
END $$;

SELECT setseed(0.20180415);
SELECT run(n, rows, n % 2 = 0) FROM (VALUES (1, 2000), (7, 3000), (8, 2000), (63, 3000), (64, 3000), (65, 3000),
	(127, 2000), (128, 2000), (256, 2000), (511, 600), (512, 600), (513, 600), (1024, 300), (64000, 10)) AS cases (n, rows);

-- all codes equal, more than a pass keeps: ties are broken by TID
CREATE FUNCTION run_equal(rows int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS codes;
	CREATE TABLE codes AS SELECT i AS id, '0101101'::bithash AS code FROM generate_series(1, rows) i;
	CREATE INDEX ON codes USING hamming (code);
	CREATE INDEX ON codes ((-id));
	UPDATE codes SET id = -id WHERE id % 5 = 0;
	PERFORM compare(query, query || ', ctid')
	FROM (VALUES ('SELECT ctid FROM codes ORDER BY code <~> ''0101100''::bithash'),
		('SELECT ctid FROM codes ORDER BY code <~> (SELECT NULL::bithash)'),
		('SELECT ctid FROM codes WHERE hamming_within(code, ''0101100''::bithash, 1) ORDER BY code <~> ''1111111''::bithash')) AS queries (query);
	RETURN 'equal';
END $$;
SET work_mem = '64kB';
SELECT run_equal(30000);
RESET work_mem;

-- an index so large that a sample of it tells how far to look: a fair sample, and one of nothing but near codes
CREATE FUNCTION padded_code() RETURNS bithash LANGUAGE sql AS $$ SELECT ((random() * 16777215)::int::bit(24) || repeat('01', 52)::bit(104))::bithash $$;
CREATE FUNCTION run_large(rows int, near int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	q bithash := padded_code();
BEGIN
	DROP TABLE IF EXISTS codes;
	CREATE TABLE codes AS SELECT i AS id, CASE WHEN i <= near THEN q WHEN i % 1000 > 0 THEN padded_code() END AS code
		FROM generate_series(1, rows) i;
	CREATE INDEX ON codes USING hamming (code);
	PERFORM compare(replace(query, ', ctid ', ' '), query)
	FROM (SELECT format('SELECT ctid, code <~> %L FROM codes %s ORDER BY code <~> %1$L, ctid %3$s', center, filter, suffix) AS query
		FROM (VALUES (q), (padded_code()), ((~ q::bit(128))::bithash)) AS centers (center),
			(VALUES ('', 'LIMIT 10'), ('', 'LIMIT 3000 OFFSET 500'), ('WHERE id % 50000 = 7', 'LIMIT 2'),
				(format('WHERE hamming_within(code, %L, 9)', padded_code()), 'LIMIT 1500'), ('WHERE id > 300', 'LIMIT 20000'),
				-- so near that one word tells of most codes
				(format('WHERE hamming_within(code, %L, 3)', q), '')) AS cases (filter, suffix)) AS made;
	RETURN 'equal';
END $$;
SELECT setseed(0.2);
SELECT run_large(200000, 0), run_large(200000, 600);

-- at kernels' mercy: all of them give the same answers
SELECT setseed(0.1);
SET unifdiag.kernel = portable;
SELECT run(256, 1000, true);
RESET unifdiag.kernel;
-- without what the server does not mean for extensions
SET unifdiag.private_interfaces = off;
SELECT run(64, 2000, false);
SELECT run_large(100000, 0);
RESET unifdiag.private_interfaces;

DROP TABLE codes;
DROP FUNCTION run, run_equal, run_large, padded_code, compare_all, compare, answer, random_code;

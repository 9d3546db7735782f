-- Hamming distance

SELECT '0101'::bithash <~> '0101' AS same, '0101'::bithash <~> '0110' AS two, '0000'::bithash <~> '1111' AS four;
SELECT hamming_distance('xFF'::bithash, 'x0F'), hamming_distance(NULL, 'x0F'::bithash), 'xFF'::bithash <~> NULL AS null_query;
SELECT hamming_within('0101'::bithash, '0110', 2) AS within, hamming_within('0101'::bithash, '0110', 1) AS beyond,
	hamming_within('0101'::bithash, '0101', 0) AS same, hamming_within('0101'::bithash, '0101', -1) AS negative,
	hamming_within('0101'::bithash, '0101', NULL) AS unknown;

-- against counting the ones of the exclusive or, at every length from 1 to 600 and the
-- largest, with every kernel that the machine has
CREATE TABLE pairs AS
SELECT n, substr(a, 1, n)::bithash AS a, substr(b, 1, n)::bithash AS b
FROM (SELECT string_agg(('x' || md5('a' || i))::bithash::text, '') AS a,
		string_agg(('x' || md5('b' || i))::bithash::text, '') AS b
	FROM generate_series(1, 500) i) t,
	(SELECT generate_series(1, 600) UNION ALL SELECT 64000 UNION ALL SELECT 63999) l(n);
CREATE TABLE disagreements (kernel text, n int, distance int, ones int);
CREATE FUNCTION try_kernels() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE kernel text;
BEGIN
	FOREACH kernel IN ARRAY ARRAY['auto', 'portable', 'avx2', 'avx512', 'neon'] LOOP
		BEGIN
			PERFORM set_config('unifdiag.kernel', kernel, false);
		EXCEPTION WHEN invalid_parameter_value THEN
			CONTINUE;			-- of another architecture, or beyond this CPU
		END;
		INSERT INTO disagreements
		SELECT kernel, n, a <~> b, bit_count(a::bit varying # b::bit varying) FROM pairs
		WHERE a <~> b <> bit_count(a::bit varying # b::bit varying);
		IF kernel IN ('auto', 'portable') THEN
			RETURN NEXT kernel;
		END IF;
	END LOOP;
	RESET unifdiag.kernel;
END $$;
SELECT count(*) AS pairs, min(n), max(n) FROM pairs;
SELECT try_kernels();
SELECT * FROM disagreements;
DROP FUNCTION try_kernels;
DROP TABLE pairs, disagreements;

-- the setting is hidden, and refuses what is no kernel
SELECT count(*) FROM pg_settings WHERE name = 'unifdiag.kernel';
SHOW unifdiag.kernel;
\set VERBOSITY terse
SET unifdiag.kernel = 'abacus';
\set VERBOSITY default
SET unifdiag.kernel = 'portable';
SELECT 'xFF'::bithash <~> 'x0F' AS distance;
RESET unifdiag.kernel;

-- nearest codes, and pairs of near codes
CREATE TEMPORARY TABLE items AS
SELECT i AS id, substr(('x' || md5((i / 2)::text))::bithash::text, 1, 64)::bithash(64) AS code FROM generate_series(1, 1000) i;
SELECT id, code <~> (SELECT code FROM items WHERE id = 500) AS distance FROM items ORDER BY 2, 1 LIMIT 5;
SELECT count(*) FROM items a JOIN items b ON a.id < b.id AND hamming_within(a.code, b.code, 2);

-- different lengths
SELECT '0101'::bithash <~> '01011';
SELECT hamming_distance('1'::bithash, 'xFF');
SELECT hamming_within('x0000'::bithash, 'xFF', 100);

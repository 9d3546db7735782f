-- models that a connection keeps ready for hashing: always the one that is meant, and no more of it than that takes
CREATE TABLE vectors AS SELECT i AS id, ARRAY(SELECT sin(i * k + k * k) FROM generate_series(1, 64) k)::real[] AS v FROM generate_series(1, 300) i;
CREATE FUNCTION learn(bits int, dims int, part int) RETURNS sketcher LANGUAGE sql AS
	'SELECT sketcher_agg(v[1:dims], bits ORDER BY id) FROM vectors WHERE id % 3 = part';

-- what codes there are by the model of a table; an error if they are not those of its model as a value of its own
CREATE FUNCTION codes(dims int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text;
	expected text;
BEGIN
	SELECT string_agg(sketcher_hash('items_code_model', v[1:dims])::text, ' ' ORDER BY id) FROM vectors INTO found;
	EXECUTE 'SELECT string_agg(sketcher_hash((SELECT published::text::sketcher FROM items_code_model), v[1:$1])::text, '' '' ORDER BY id) FROM vectors' USING dims INTO expected;
	IF found <> expected THEN
		RAISE 'codes of another model';
	END IF;
	RETURN md5(found);
END $$;
CREATE FUNCTION attach(bits int, dims int, part int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE items AS SELECT v[1:dims] AS v, NULL::bithash AS code FROM vectors WHERE id % 3 = part;
	PERFORM sketcher_attach('items', 'v', 'code', bits, auto_refresh => NULL);
END $$;
CREATE FUNCTION detach() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sketcher_detach('items', 'code');
	DROP TABLE items;
END $$;
-- a change that is rolled back, another one in its place, and a table that is made anew under the old name
CREATE FUNCTION run(n int, d int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	first text;
	second text;
	third text;
	fourth text;
	in_row boolean;
BEGIN
	PERFORM attach(n, d, 0);
	first := codes(d);
	BEGIN
		UPDATE items_code_model SET published = learn(n, d, 1);
		second := codes(d);
		RAISE 'rolled back';
	EXCEPTION WHEN raise_exception THEN
		ASSERT SQLERRM = 'rolled back', SQLERRM;
	END;
	ASSERT codes(d) = first;
	UPDATE items_code_model SET published = learn(n, d, 2);
	third := codes(d);
	PERFORM detach();
	PERFORM attach(n, d, 1);
	fourth := codes(d);
	SELECT pg_relation_size(reltoastrelid) = 0 FROM pg_class WHERE oid = 'items_code_model'::regclass INTO in_row;
	PERFORM detach();
	RETURN format('%s models%s', (SELECT count(DISTINCT c) FROM unnest(ARRAY[first, second, third, fourth]) AS c), CASE WHEN in_row THEN ' in the row' END);
END $$;
SELECT run(1, 3), run(12, 16), run(32, 64);
-- by whole transactions
SELECT attach(32, 64, 0);
SELECT codes(64) AS first \gset
BEGIN;
UPDATE items_code_model SET published = learn(32, 64, 1);
SELECT codes(64) <> :'first' AS changed;
ROLLBACK;
SELECT codes(64) = :'first' AS as_before;
BEGIN;
UPDATE items_code_model SET published = learn(32, 64, 2);
SELECT codes(64) <> :'first' AS changed;
SAVEPOINT one;
UPDATE items_code_model SET published = learn(32, 64, 1);
SELECT codes(64) <> :'first' AS changed;
ROLLBACK TO one;
SELECT codes(64) <> :'first' AS changed;
SELECT detach();
SELECT attach(32, 64, 1);
SELECT codes(64) <> :'first' AS changed;
ROLLBACK;
SELECT codes(64) = :'first' AS as_before;
SELECT detach();

-- two models that differ in their means only, with the same checksum: the difference is that of CRC-32C's polynomial
CREATE TABLE models AS SELECT sketcher_agg(ARRAY[i], 1) AS model FROM generate_series(1, 3) AS i;
CREATE FUNCTION other_mean(model sketcher) RETURNS sketcher LANGUAGE plpgsql AS $$
DECLARE
	bytes bytea := decode(model::text, 'base64');
	difference int[] := ARRAY[241, 118, 236, 5, 1];
BEGIN
	FOR i IN 1..5 LOOP
		bytes := set_byte(bytes, 90 + i, get_byte(bytes, 90 + i) # difference[i]);
	END LOOP;
	RETURN translate(encode(bytes, 'base64'), E'\n', '')::sketcher;
END $$;
INSERT INTO models SELECT other_mean(model) FROM models;
SELECT count(DISTINCT sketcher_mean(model)) AS means, count(DISTINCT sketcher_hash(model, between)) AS codes
FROM models, (SELECT ARRAY[avg(m[1])] AS between FROM (SELECT sketcher_mean(model) AS m FROM models) AS t) AS t;

-- memory: neither what only learning takes, nor many large models
TRUNCATE models;
INSERT INTO models SELECT sketcher_agg(ARRAY(SELECT sin(i * k) FROM generate_series(1, 300) k), 256) FROM generate_series(1, 10) i;
\c -
CREATE FUNCTION kept() RETURNS bigint LANGUAGE sql AS $$ SELECT coalesce(sum(total_bytes), 0)::bigint FROM pg_backend_memory_contexts WHERE name = 'unifdiag hash plan' $$;
SELECT kept();
SELECT count(sketcher_hash(model, array_fill(1, ARRAY[300]))) FROM models;
SELECT kept() BETWEEN 256 * 300 * 6 AND 256 * 300 * 8 AS without_what_learns;
TRUNCATE models;
INSERT INTO models SELECT sketcher_add(sketcher_new(4000, 500, 'lsh', 'none', seed => i), array_fill(1, ARRAY[4000])) FROM generate_series(1, 4) i;
SELECT count(sketcher_hash(model, array_fill(2, ARRAY[4000]))) FROM models;
SELECT kept() BETWEEN 1 * 500 * 4000 * 6 AND 3 * 500 * 4000 * 6 AS bounded;

DROP TABLE vectors, models;
DROP FUNCTION learn, codes, attach, detach, run, other_mean, kept;

-- joins of codes: pairs, clusters and many queries at once, against plain SQL
SET client_min_messages = warning;

-- a code of n random bits; or one that differs from a given one in at most three
CREATE FUNCTION random_code(n int, near bithash DEFAULT NULL) RETURNS bithash LANGUAGE plpgsql AS $$
DECLARE
	bits text := near::text;
BEGIN
	IF bits IS NULL THEN
		SELECT string_agg((('x' || md5(random()::text))::bit(128))::text, '') INTO bits FROM generate_series(0, (n - 1) / 128);
		RETURN left(bits, n)::bithash;
	END IF;
	FOR i IN 1..(random() * 3)::int LOOP
		bits := overlay(bits PLACING (random() < 0.5)::int::text FROM 1 + (random() * (n - 1))::int);
	END LOOP;
	RETURN bits::bithash;
END $$;

-- rows with random codes, near ones, duplicates and NULLs; some updated in place, some deleted, some rolled back
CREATE FUNCTION fill(target text, n int, rows int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	code bithash;
	before bithash;
	kind float8;
BEGIN
	EXECUTE format('DROP TABLE IF EXISTS %I', target);
	EXECUTE format('CREATE TABLE %I (id int, code bithash(%s), note text) WITH (fillfactor = 60, autovacuum_enabled = off)', target, n);
	EXECUTE format('CREATE INDEX %I ON %I USING hamming (code)', target || '_code', target);
	FOR i IN 1..rows LOOP
		kind := random();
		code := CASE WHEN kind < 0.05 THEN NULL WHEN kind < 0.15 THEN before WHEN kind < 0.55 THEN random_code(n, before) ELSE random_code(n) END;
		before := coalesce(code, before);
		EXECUTE format('INSERT INTO %I VALUES ($1, $2)', target) USING i, code;
	END LOOP;
	BEGIN
		EXECUTE format('INSERT INTO %I SELECT -id, code FROM %1$I LIMIT 50', target);
		RAISE 'rolled back';
	EXCEPTION WHEN raise_exception THEN
		NULL;
	END;
	EXECUTE format('UPDATE %I SET note = ''hot'' WHERE id %% 5 = 0', target);
	EXECUTE format('UPDATE %I SET note = ''again'' WHERE id %% 10 = 0', target);
	EXECUTE format('UPDATE %I SET code = random_code(%s, code) WHERE id %% 31 = 0', target, n);
	EXECUTE format('DELETE FROM %I WHERE id %% 7 = 0', target);
END $$;

-- rows of two queries that are in only one of them
CREATE FUNCTION difference(one text, other text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	wrong text;
	number bigint;
	found bigint;
BEGIN
	EXECUTE format('WITH a AS MATERIALIZED (%s), b AS MATERIALIZED (%s) SELECT (SELECT count(*) FROM a), count(*), left(string_agg(d::text, '' ''), 500) FROM ((SELECT ''only by function'', * FROM (SELECT * FROM a EXCEPT ALL SELECT * FROM b) x) UNION ALL (SELECT ''only by SQL'', * FROM (SELECT * FROM b EXCEPT ALL SELECT * FROM a) x)) d',
		one, other) INTO found, number, wrong;
	IF number > 0 THEN
		RAISE '% wrong: % (%)', number, wrong, left(one, 200);
	END IF;
	RETURN CASE WHEN found > 0 THEN 'some' ELSE 'none' END;
END $$;

-- connected components by plain SQL: labels spread until nothing changes
CREATE FUNCTION components(source text, radius int) RETURNS TABLE (member tid, cluster tid) LANGUAGE plpgsql AS $$
DECLARE
	changed bigint;
BEGIN
	DROP TABLE IF EXISTS edges, labels;
	EXECUTE format('CREATE TEMPORARY TABLE edges AS SELECT x.ctid AS p, y.ctid AS q FROM %I x JOIN %1$I y ON x.ctid <> y.ctid AND hamming_distance(x.code, y.code) <= %s', source, radius);
	CREATE TEMPORARY TABLE labels AS SELECT DISTINCT p AS place, p AS label FROM edges;
	LOOP
		UPDATE labels l SET label = m.least FROM (SELECT p, min(o.label) AS least FROM edges JOIN labels o ON o.place = q GROUP BY p) m
			WHERE m.p = l.place AND m.least < l.label;
		GET DIAGNOSTICS changed = ROW_COUNT;
		EXIT WHEN changed = 0;
	END LOOP;
	RETURN QUERY SELECT place, label FROM labels;
END $$;

CREATE FUNCTION run(n int, rows int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
	queries text;
	r int;
	k int;
BEGIN
	PERFORM fill('one', n, rows), fill('two', n, rows / 2);
	FOR r IN SELECT DISTINCT least(x, n + 1) FROM unnest(ARRAY[0, 1, 3, 6, n / 8, n / 3]) x WHERE x < 10 OR rows < 500 LOOP
		result := difference(format('SELECT * FROM hamming_pairs(''one_code'', %s)', r),
			format('SELECT x.ctid, y.ctid, hamming_distance(x.code, y.code) FROM one x JOIN one y ON x.ctid < y.ctid AND hamming_distance(x.code, y.code) <= %s', r));
		PERFORM difference(format('SELECT * FROM hamming_pairs(''one_code'', ''two_code'', %s)', r),
			format('SELECT x.ctid, y.ctid, hamming_distance(x.code, y.code) FROM one x JOIN two y ON hamming_distance(x.code, y.code) <= %s', r));
		PERFORM difference(format('SELECT * FROM hamming_clusters(''two_code'', %s)', r), format('SELECT * FROM components(''two'', %s)', r));
	END LOOP;
	-- distances of the nearest, and that each neighbour is a row at that distance
	SELECT format('ARRAY[%s]::bithash[]', string_agg(format('%L', random_code(n, CASE WHEN random() < 0.5 THEN code END)), ',')) INTO queries
		FROM (SELECT code FROM one WHERE code IS NOT NULL ORDER BY id LIMIT 5) q;
	FOR k IN SELECT unnest(ARRAY[1, 10, rows, 2000000000]) LOOP
		PERFORM difference(format('SELECT query, distance FROM hamming_nearest(''one_code'', %s, %s)', queries, k),
			format('SELECT q.number::int, near.distance FROM unnest(%s) WITH ORDINALITY AS q (code, number), LATERAL (SELECT hamming_distance(one.code, q.code) AS distance FROM one WHERE one.code IS NOT NULL ORDER BY 1 LIMIT %s) near', queries, k));
		PERFORM difference(format('SELECT * FROM hamming_nearest(''one_code'', %s, %s)', queries, k),
			format('SELECT near.query, one.ctid, hamming_distance(one.code, (%s)[near.query]) FROM one JOIN (SELECT DISTINCT * FROM hamming_nearest(''one_code'', %1$s, %s)) near ON near.neighbour = one.ctid', queries, k));
	END LOOP;
	RETURN format('%s bits: equal, %s', n, result);
END $$;

SELECT setseed(0.18);
SELECT run(n, 300) FROM unnest(ARRAY[1, 8, 13, 32, 63, 64, 65, 100, 128, 200, 256, 300]) AS n;
-- beyond memory: blocks in temporary files, several passes for the nearest
SET work_mem = '64kB';
SELECT run(64, 1500), run(256, 1000), run(300, 800);
RESET work_mem;
SET unifdiag.kernel = portable;
SET unifdiag.private_interfaces = off;
SELECT run(100, 400);
RESET unifdiag.kernel;
RESET unifdiag.private_interfaces;
-- very long codes
SELECT run(64000, 12);

-- so many rows that parts of the codes decide; in SQL, codes within the radius agree in one of its parts
CREATE FUNCTION run_large(r int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	parts text;
BEGIN
	SELECT string_agg(format('SELECT x.ctid, y.ctid, hamming_distance(x.code, y.code) FROM large x JOIN large y ON x.ctid < y.ctid AND substring(x.bits, %1$s, %2$s) = substring(y.bits, %1$s, %2$s) AND hamming_distance(x.code, y.code) <= %3$s',
		1 + i * (64 / (r + 1)), 64 / (r + 1), r), ' UNION ') INTO parts FROM generate_series(0, r) i;
	RETURN format('radius %s: %s', r, difference(format('SELECT * FROM hamming_pairs(''large_code'', %s)', r), parts));
END $$;
CREATE TABLE large AS SELECT i AS id, ('x' || md5(i::text))::bit(64) AS bits FROM generate_series(1, 10000) i;
INSERT INTO large SELECT id + 10000, bits # (1::bigint << id % 63)::bit(64) # (5::bigint << id % 61)::bit(64) # (1::bigint << id % 59)::bit(64) # (1::bigint << id % 53)::bit(64) FROM large WHERE id <= 500;
ALTER TABLE large ADD code bithash(64);
UPDATE large SET code = bits::bithash;
CREATE INDEX large_code ON large USING hamming (code);
ANALYZE large;
SELECT run_large(r) FROM unnest(ARRAY[0, 1, 2, 3, 5, 7]) AS r;
SET work_mem = '64kB';
SELECT run_large(r) FROM unnest(ARRAY[0, 3, 5]) AS r;
RESET work_mem;
-- clusters whose numbers are in a file, too
SELECT count(*), count(DISTINCT cluster), sum((cluster <= member)::int) FROM hamming_clusters('large_code', 5);
SET work_mem = '64kB';
SELECT count(*), count(DISTINCT cluster), sum((cluster <= member)::int) FROM hamming_clusters('large_code', 5);
RESET work_mem;
-- so many queries that they do not take part in one pass
SELECT count(*), count(DISTINCT query), sum(distance) FROM hamming_nearest('large_code', (SELECT array_agg(code ORDER BY id) FROM large WHERE id <= 2500), 1);

-- equal codes: clusters take no quadratic time, and pairs can be cancelled
CREATE TABLE equal_codes AS SELECT '0101101001011010'::bithash AS code FROM generate_series(1, 300000);
CREATE INDEX equal_code ON equal_codes USING hamming (code);
SELECT count(*), count(DISTINCT cluster) FROM hamming_clusters('equal_code', 2);
SET statement_timeout = '300ms';
SELECT count(*) FROM hamming_pairs('equal_code', 2);
RESET statement_timeout;
SELECT DISTINCT query, distance, count(*) FROM hamming_nearest('equal_code', ARRAY['0101101001011011'::bithash, '0101101001011010'], 5000) GROUP BY 1, 2 ORDER BY 1;

-- back to the rows: also to those whose last version is not where the index points to
CREATE TABLE items (id int, code bithash(8), note text) WITH (fillfactor = 50);
CREATE INDEX items_code ON items USING hamming (code);
INSERT INTO items VALUES (1, '00000000'), (2, '00000001'), (3, '11111111'), (4, '11110000'), (5, NULL);
UPDATE items SET note = 'updated' WHERE id IN (1, 3);
SELECT a.id, b.id, distance FROM hamming_pairs('items_code', 1) AS p JOIN items AS a ON a.ctid = p.a JOIN items AS b ON b.ctid = p.b;
SELECT member.id, first.id AS cluster FROM hamming_clusters('items_code', 4) AS c JOIN items AS member ON member.ctid = c.member
	JOIN items AS first ON first.ctid = c.cluster ORDER BY 1;
SELECT query, items.id, distance FROM hamming_nearest('items_code', ARRAY['00000011', '11111110']::bithash[], 2) AS n JOIN items ON items.ctid = neighbour ORDER BY 1, 3;
-- of one statement's snapshot: not what it inserts itself
WITH new AS (INSERT INTO items VALUES (6, '00000000') RETURNING id) SELECT (SELECT count(*) FROM new), (SELECT count(*) FROM hamming_pairs('items_code', 8));
SELECT count(*) FROM hamming_pairs('items_code', 8);
-- with itself as another table: every row with every row
SELECT count(*) FROM hamming_pairs('items_code', 'items_code', 0);

-- columns of other types
CREATE TABLE hashes (id bigint, bits bit(64));
INSERT INTO hashes SELECT h, h::bit(64) FROM unnest(ARRAY[1, 3, -1, -2, NULL]::bigint[]) AS h;
CREATE INDEX hashes_id ON hashes USING hamming (id);
CREATE INDEX hashes_bits ON hashes USING hamming (bits);
SELECT x.id, y.id, distance FROM hamming_pairs('hashes_id', 1) AS p JOIN hashes AS x ON x.ctid = a JOIN hashes AS y ON y.ctid = b ORDER BY 1;
SELECT count(*) FROM hamming_pairs('hashes_id', 'hashes_bits', 0) WHERE a = b;
SELECT id, distance FROM hamming_nearest('hashes_id', ARRAY[7::bit(64)::bithash], 2) JOIN hashes ON hashes.ctid = neighbour ORDER BY 2;

-- nothing to find
CREATE TABLE empty (code bithash);
CREATE INDEX empty_code ON empty USING hamming (code);
SELECT * FROM hamming_pairs('empty_code', 3);
SELECT * FROM hamming_pairs('empty_code', 'items_code', 3);
SELECT * FROM hamming_clusters('empty_code', 3);
SELECT * FROM hamming_nearest('empty_code', ARRAY['0101']::bithash[], 3);
SELECT * FROM hamming_nearest('items_code', '{}', 3);
SELECT * FROM hamming_pairs(NULL, 3);
SELECT * FROM hamming_nearest('items_code', NULL, 3);

-- errors
SELECT * FROM hamming_pairs('items_code', -1);
SELECT * FROM hamming_pairs('items_code', 'items_code', -1);
SELECT * FROM hamming_clusters('items_code', -1);
SELECT count(*) FROM hamming_pairs('items_code', 2147483647);
SELECT * FROM hamming_pairs('items_code', 'large_code', 3);
SELECT * FROM hamming_nearest('items_code', ARRAY['0101']::bithash[], 3);
SELECT * FROM hamming_nearest('items_code', ARRAY['00000000', NULL]::bithash[], 3);
SELECT * FROM hamming_nearest('items_code', ARRAY[['00000000'], ['00000001']]::bithash[], 3);
SELECT * FROM hamming_nearest('items_code', ARRAY['00000000']::bithash[], 0);
SELECT * FROM hamming_pairs('items', 3);
CREATE INDEX items_id ON items (id);
SELECT * FROM hamming_pairs('items_id', 3);
SELECT hamming_pairs('items_code', 1) IS NULL LIMIT 1;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'items_code'::regclass;
SELECT * FROM hamming_pairs('items_code', 3);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'items_code'::regclass;

-- rights: who may read the column; of an expression or a partial index, the table
CREATE INDEX items_expression ON items USING hamming ((CASE WHEN id > 2 THEN code END));
CREATE INDEX items_partial ON items USING hamming (code) WHERE id > 2;
CREATE ROLE regress_joins_user;
SET ROLE regress_joins_user;
SELECT * FROM hamming_pairs('items_code', 1);
RESET ROLE;
GRANT SELECT (id) ON items TO regress_joins_user;
SET ROLE regress_joins_user;
SELECT * FROM hamming_clusters('items_code', 1);
RESET ROLE;
GRANT SELECT (code) ON items TO regress_joins_user;
SET ROLE regress_joins_user;
SELECT distance FROM hamming_pairs('items_code', 1) ORDER BY 1;
SELECT distance FROM hamming_nearest('items_code', ARRAY['00000000']::bithash[], 1);
SELECT * FROM hamming_pairs('items_partial', 1);
SELECT * FROM hamming_pairs('items_expression', 1);
SELECT * FROM hamming_pairs('items_code', 'large_code', 1);
RESET ROLE;
GRANT SELECT ON items TO regress_joins_user;
SET ROLE regress_joins_user;
SELECT distance FROM hamming_pairs('items_partial', 4) ORDER BY 1;
RESET ROLE;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
SET ROLE regress_joins_user;
SELECT * FROM hamming_pairs('items_code', 1);
SELECT * FROM hamming_clusters('items_code', 1);
SELECT * FROM hamming_nearest('items_code', ARRAY['00000000']::bithash[], 1);
RESET ROLE;
-- not the owner, unless it is forced
SELECT count(*) FROM hamming_pairs('items_code', 1);
REVOKE ALL ON items FROM regress_joins_user;
DROP ROLE regress_joins_user;

DROP TABLE one, two, large, equal_codes, items, hashes, empty;
DROP FUNCTION run, run_large, difference, components, fill, random_code;

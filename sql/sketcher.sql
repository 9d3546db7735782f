-- the sketcher type and its functions, on 3000 vectors of 24 dimensions

SELECT setseed(0.25);
-- eight directions of falling variance, noise, and a mean that is not zero
CREATE TABLE vectors AS
SELECT i AS id, (SELECT array_agg((10 + k + factors[1 + k % 8] * 8.0 / (1 + k % 8) + random())::real ORDER BY k)
	FROM generate_series(0, 23) k) AS v
FROM (SELECT i, ARRAY(SELECT random() + random() + random() - 1.5 FROM generate_series(1, 8) WHERE i = i) AS factors
	FROM generate_series(1, 3000) i) t;

-- a new model
SELECT * FROM sketcher_info(sketcher_new(24, 8));
SELECT tracker, rotation, stable, center, forgetting, seed
FROM sketcher_info(sketcher_new(24, 8, rotation => 'random', stable => false, center => false, forgetting => 0.99, seed => -7));

-- learning
CREATE TABLE models AS SELECT sketcher_agg(v, 8 ORDER BY id) AS model FROM vectors;
SELECT dims, bits, rows, tracker, rotation, stable, center, round(explained_variance::numeric, 2) AS explained, bytes
FROM models, sketcher_info(model);
SELECT array_dims(sketcher_mean(model)) AS mean, array_dims(sketcher_basis(model)) AS basis,
	array_dims(sketcher_rotation(model)) AS rotation, array_dims(sketcher_covariance(model)) AS covariance
FROM models;

-- the mean is the mean
SELECT max(abs(m - a)) < 1e-4 AS mean
FROM models, unnest(sketcher_mean(model)) WITH ORDINALITY AS t(m, k),
	LATERAL (SELECT avg(v[k]) AS a FROM vectors) u;
CREATE FUNCTION product(matrix real[], vector real[]) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg(y ORDER BY i) FROM (SELECT i, sum(matrix[i][j] * vector[j])::real AS y
		FROM generate_series(1, array_length(matrix, 1)) i, generate_series(1, array_length(matrix, 2)) j GROUP BY i) t $$;
CREATE FUNCTION difference(a real[], b real[]) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg(x - y ORDER BY k) FROM unnest(a, b) WITH ORDINALITY AS t(x, y, k) $$;

-- the code is the signs of rotation x basis x (v - mean), by the accessors alone
SELECT count(*) AS codes, sum(code <~> by_hand) AS differing_bits
FROM (SELECT sketcher_hash(model, v) AS code,
		(SELECT string_agg((y >= 0)::int::text, '' ORDER BY k)
			FROM unnest(product(rotation, product(basis, difference(v, mean)))) WITH ORDINALITY AS t(y, k))::bithash AS by_hand
	FROM (SELECT model, sketcher_mean(model) AS mean, sketcher_basis(model) AS basis, sketcher_rotation(model) AS rotation
		FROM models OFFSET 0) m, vectors WHERE id <= 300) t;

-- near vectors have near codes: the nearest of 100 by distance are nearer by code than the others
SELECT avg(CASE WHEN rank <= 10 THEN hamming END) < avg(CASE WHEN rank > 50 THEN hamming END) * 0.7 AS near
FROM (SELECT sketcher_hash(model, a.v) <~> sketcher_hash(model, b.v) AS hamming,
		row_number() OVER (PARTITION BY a.id ORDER BY (SELECT sum((x - y) ^ 2) FROM unnest(a.v, b.v) AS t(x, y))) AS rank
	FROM models, vectors a, vectors b WHERE a.id <= 20 AND b.id BETWEEN 101 AND 200) t;

-- text and binary forms; stored and back
SELECT model::text::sketcher::text = model::text AS text_same, length(sketcher_send(model)) + 4 = (sketcher_info(model)).bytes AS bytes_same FROM models;
SELECT length(sketcher_new(24, 8)::text) AS length_of_empty;

-- double precision, all ways to learn the same rows, and NULLs skipped
CREATE TABLE ways AS
SELECT 'agg' AS way, sketcher_agg(v, 8 ORDER BY id) AS model FROM vectors
UNION ALL SELECT 'double precision', sketcher_agg(v::float8[], 8 ORDER BY id) FROM vectors
UNION ALL SELECT 'learn', sketcher_learn(sketcher_new(24, 8), v ORDER BY id) FROM vectors
UNION ALL SELECT 'learn double precision', sketcher_learn(sketcher_new(24, 8), v::float8[] ORDER BY id) FROM vectors
UNION ALL SELECT 'half stored, half later', sketcher_learn(half::text::sketcher, v ORDER BY id)
	FROM vectors, (SELECT sketcher_agg(v, 8 ORDER BY id) AS half FROM vectors WHERE id <= 1500) h WHERE id > 1500
UNION ALL SELECT 'with NULLs', sketcher_agg(v, 8 ORDER BY id, v IS NULL) FROM (SELECT * FROM vectors UNION ALL SELECT id, NULL FROM vectors) n;
SELECT way, (sketcher_info(model)).rows, (SELECT avg(sketcher_hash(w.model, v) <~> sketcher_hash(m.model, v)) < 0.01 FROM models m, vectors) AS same_codes
FROM ways w ORDER BY way;
DO $$
DECLARE model sketcher := sketcher_new(24, 8); vector real[];
BEGIN
	FOR vector IN SELECT v FROM vectors WHERE id <= 200 ORDER BY id LOOP
		model := sketcher_add(model, vector);
	END LOOP;
	RAISE NOTICE '% rows, the same codes but for rounding: %', (sketcher_info(model)).rows,
		(SELECT sum(sketcher_hash(model, v) <~> sketcher_hash(whole, v)) < 10
		FROM vectors, (SELECT sketcher_agg(v, 8 ORDER BY id) AS whole FROM vectors WHERE id <= 200) w WHERE id <= 200);
END $$;
SELECT sketcher_agg(v, 8) IS NULL AS no_rows FROM vectors WHERE id < 0;
SELECT sketcher_agg(NULL::real[], 8) IS NULL AS only_nulls FROM vectors;
SELECT (sketcher_info(sketcher_learn(model, NULL::real[]))).rows AS nothing_new FROM models, vectors;
SELECT sketcher_hash(model, NULL::real[]) IS NULL AS null_vector, sketcher_hash(NULL::sketcher, ARRAY[1]::real[]) IS NULL AS null_model FROM models;

-- in a window: row t's code by the model of the rows before t, exactly
SELECT count(*) FILTER (WHERE code IS NULL) AS without_code, max(id) FILTER (WHERE code IS NULL) AS last_without
FROM (SELECT id, sketcher_stream(v, 8) OVER (ORDER BY id) AS code FROM vectors) t;
SELECT t, streamed = (SELECT sketcher_hash(sketcher_agg(b.v, 8 ORDER BY b.id), a.v) FROM vectors b WHERE b.id < t) AS same
FROM (SELECT id AS t, v, sketcher_stream(v, 8) OVER (ORDER BY id) AS streamed FROM vectors) a
WHERE t IN (9, 10, 50, 333, 3000) ORDER BY t;
SELECT count(*) AS codes, sum(a <~> b) AS differing_bits
FROM (SELECT sketcher_stream(v, 8) OVER w AS a, sketcher_stream(sketcher_new(24, 8), v::float8[]) OVER w AS b FROM vectors WINDOW w AS (ORDER BY id)) t
WHERE a IS NOT NULL;

-- merging: nothing is lost, order does not matter
CREATE TABLE parts AS SELECT id % 4 AS part, sketcher_agg(v, 8 ORDER BY id) AS model FROM vectors GROUP BY 1;
SELECT rows, round(explained_variance::numeric, 2) AS explained FROM sketcher_info((SELECT sketcher_merge(model ORDER BY part) FROM parts));
SELECT sum(sketcher_hash(ab, v) <~> sketcher_hash(ba, v)) <= 24 AS commutative
FROM vectors, (SELECT sketcher_merge(a.model, b.model) AS ab, sketcher_merge(b.model, a.model) AS ba
	FROM parts a, parts b WHERE a.part = 0 AND b.part = 1 OFFSET 0) m;
SELECT (sketcher_info(sketcher_merge(model, sketcher_new(24, 8)))).rows FROM models;
SELECT sketcher_merge(NULL::sketcher) IS NULL AS nothing;

-- drift
SELECT sketcher_drift(model, model) < 0.001 AS none, sketcher_drift(early, model) BETWEEN 0.005 AND 0.3 AS some
FROM models, (SELECT sketcher_agg(v, 8 ORDER BY id) AS early FROM vectors WHERE id <= 100) e;

-- parallel plans: partial aggregates, and the starting model counted once
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Aggregate' THEN RETURN NEXT trim(regexp_replace(line, '->', '')); END IF;
	END LOOP;
END $$;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
SELECT plan_of('SELECT sketcher_agg(v, 8) FROM vectors');
SELECT plan_of('SELECT sketcher_learn(sketcher_new(24, 8), v) FROM vectors');
SELECT rows, round(explained_variance::numeric, 2) AS explained FROM sketcher_info((SELECT sketcher_agg(v, 8) FROM vectors));
SELECT rows, round(explained_variance::numeric, 2) AS explained
FROM sketcher_info((SELECT sketcher_learn((SELECT model FROM models), v) FROM vectors));
SELECT count(*) AS hashed_in_parallel FROM (SELECT sketcher_hash((SELECT model FROM models), v) FROM vectors) t;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET max_parallel_workers_per_gather;

-- a prepared statement's parameter, and models that change from row to row
PREPARE hash(sketcher) AS SELECT sum(bit_count(sketcher_hash($1, v))) AS ones FROM vectors;
SELECT sum(bit_count(sketcher_hash(model, v))) AS ones FROM vectors, models \gset expected_
SELECT model AS model FROM models \gset
EXECUTE hash(:'model') \gset
SELECT :ones = :expected_ones AS same;
SELECT part, sum(sketcher_hash(model, v) <~> (SELECT sketcher_hash(p.model, v) FROM parts p WHERE p.part = parts.part)) AS differ
FROM vectors, parts WHERE id <= 10 GROUP BY part ORDER BY part;

-- other rotations
SELECT rotation, (SELECT bool_or(r[i][j] <> (i = j)::int) FROM generate_series(1, 8) i, generate_series(1, 8) j) AS rotates,
	(SELECT max(abs((SELECT sum(r[i][k] * r[j][k]) FROM generate_series(1, 8) k) - (i = j)::int)) < 1e-5
		FROM generate_series(1, 8) i, generate_series(1, 8) j) AS orthogonal
FROM unnest(ARRAY['unifdiag', 'random', 'none', 'isohash', 'itq', 'neighbour']) rotation,
	LATERAL (SELECT sketcher_rotation(sketcher_learn(sketcher_new(24, 8, rotation => rotation), v)) AS r FROM vectors) m;
SELECT sum(sketcher_hash(a, v) <~> sketcher_hash(b, v)) = 0 AS same_seed, sum(sketcher_hash(a, v) <~> sketcher_hash(c, v)) > 0 AS other_seed
FROM vectors, (SELECT sketcher_learn(sketcher_new(24, 8, rotation => 'random', seed => 1), v ORDER BY id) AS a,
		sketcher_learn(sketcher_new(24, 8, rotation => 'random', seed => 1), v ORDER BY id) AS b,
		sketcher_learn(sketcher_new(24, 8, rotation => 'random', seed => 2), v ORDER BY id) AS c FROM vectors) m;

-- all trackers and rotations that go together: what was said above of the default holds for them
CREATE TABLE methods AS
SELECT tracker, rotation, sketcher_learn(sketcher_new(24, 8, tracker => tracker, rotation => rotation, seed => 3), v ORDER BY id) AS model
FROM vectors, (SELECT tracker, rotation FROM unnest(ARRAY['opast', 'osh']) tracker, unnest(ARRAY['unifdiag', 'isohash', 'itq', 'neighbour', 'random', 'none']) rotation
	UNION ALL SELECT tracker, 'none' FROM unnest(ARRAY['lsh', 'hadamard']) tracker) t
GROUP BY tracker, rotation;
SELECT tracker, rotation, rows, bytes, explained_variance > CASE WHEN tracker IN ('lsh', 'hadamard') THEN 0.3 ELSE 0.9 END AS explained,
	balance < CASE WHEN rotation IN ('unifdiag', 'isohash') OR tracker IN ('lsh', 'hadamard') THEN 0.06 ELSE 8 END AS balanced,
	model::text::sketcher::text = model::text AS same_text,
	sketcher_drift(model, model) < 0.001 AS no_drift
FROM (SELECT model, (sketcher_info(model)).* FROM methods OFFSET 0) t ORDER BY tracker, rotation;
-- codes are the signs of rotation x basis x (v - mean), also of models that went through text in the middle
SELECT tracker, rotation, sum(code <~> by_hand) AS differing_bits, sum(sketcher_hash(continued, v) <~> code) <= 8 AS continues
FROM (SELECT tracker, rotation, v, continued, sketcher_hash(model, v) AS code,
		(SELECT string_agg((y >= 0)::int::text, '' ORDER BY k)
			FROM unnest(product(r, product(b, difference(v, m)))) WITH ORDINALITY AS t(y, k))::bithash AS by_hand
	FROM (SELECT tracker, rotation, model, sketcher_mean(model) AS m, sketcher_basis(model) AS b, sketcher_rotation(model) AS r,
			(SELECT sketcher_learn(first_part::text::sketcher, v ORDER BY id)
				FROM vectors, (SELECT sketcher_learn(sketcher_new(24, 8, tracker => tracker, rotation => rotation, seed => 3), v ORDER BY id) AS first_part
					FROM vectors WHERE id <= 1003) p WHERE id > 1003) AS continued
		FROM methods OFFSET 0) m, vectors WHERE id <= 100) t
GROUP BY tracker, rotation ORDER BY tracker, rotation;
-- in a window, and merged
SELECT tracker, rotation, streamed = (SELECT sketcher_hash(sketcher_learn(sketcher_new(24, 8, tracker => tracker, rotation => rotation, seed => 3), b.v ORDER BY b.id), a.v)
	FROM vectors b WHERE b.id < a.id) AS same
FROM (SELECT tracker, rotation, id, v, sketcher_stream(sketcher_new(24, 8, tracker => tracker, rotation => rotation, seed => 3), v) OVER (PARTITION BY tracker, rotation ORDER BY id) AS streamed
	FROM vectors, methods WHERE id <= 333) a
WHERE id = 333 ORDER BY tracker, rotation;
SELECT tracker, rotation, (sketcher_info(sketcher_merge(part ORDER BY number))).rows,
	length(sketcher_hash(sketcher_merge(part ORDER BY number), (SELECT v FROM vectors WHERE id = 1))) AS bits
FROM (SELECT tracker, rotation, id % 4 AS number, sketcher_learn(sketcher_new(24, 8, tracker => tracker, rotation => rotation, seed => 3), v ORDER BY id) AS part
	FROM vectors, methods GROUP BY 1, 2, 3) parts
GROUP BY tracker, rotation ORDER BY tracker, rotation;
-- normalized: as if every vector were scaled to length 1 beforehand; zeros stay zeros
CREATE FUNCTION unit(v real[]) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg(CASE WHEN length > 0 THEN (x / length)::real ELSE x END ORDER BY k)
	FROM unnest(v) WITH ORDINALITY AS t(x, k), (SELECT sqrt(sum(x::float8 * x)) AS length FROM unnest(v) x) l $$;
CREATE TABLE normalized AS
SELECT sketcher_learn(sketcher_new(24, 8, "normalize" => true), v ORDER BY id) AS model, sketcher_learn(sketcher_new(24, 8), unit(v) ORDER BY id) AS by_hand,
	sketcher_learn(sketcher_new(24, 8, "normalize" => true), v::float8[] ORDER BY id) AS doubles FROM vectors;
SELECT max(abs(a - b)) < 1e-6 AS same_mean FROM normalized, unnest(sketcher_mean(model), sketcher_mean(by_hand)) t(a, b);
SELECT sum(sketcher_hash(model, v) <~> sketcher_hash(by_hand, unit(v))) <= 3 AS same_codes, sum(sketcher_hash(model, v) <~> sketcher_hash(doubles, v)) AS doubles,
	sum(sketcher_hash(model, v) <~> sketcher_hash(model, (SELECT array_agg(x * 1024 ORDER BY k) FROM unnest(v) WITH ORDINALITY AS t(x, k)))) AS longer,
	sum(sketcher_hash(model, v) <~> sketcher_hash(model::text::sketcher, v)) AS stored FROM normalized, vectors WHERE id <= 300;
SELECT sketcher_hash(model, array_fill(0::real, ARRAY[24])) <~> sketcher_hash(by_hand, array_fill(0::real, ARRAY[24])) AS zeros FROM normalized;
SELECT sum(a <~> b) <= 3 AS same_stream FROM (SELECT sketcher_stream(sketcher_new(24, 8, "normalize" => true), v) OVER w AS a,
		sketcher_stream(unit(v), 8) OVER w AS b FROM vectors WHERE id <= 300 WINDOW w AS (ORDER BY id)) t;
SELECT sum(code <~> sketcher_hash(m, v)) AS add FROM vectors,
	(SELECT sketcher_add(sketcher_add(sketcher_new(24, 8, "normalize" => true), a.v), b.v) AS m,
		sketcher_learn(sketcher_new(24, 8), unit(c.v) ORDER BY c.id) AS n FROM vectors a, vectors b, vectors c WHERE a.id = 1 AND b.id = 2 AND c.id <= 2 GROUP BY a.v, b.v OFFSET 0) m,
	LATERAL (SELECT sketcher_hash(n, unit(v)) AS code) c WHERE id <= 2;
-- the largest models of each kind of random directions
SELECT (sketcher_info(sketcher_add(sketcher_new(16000, 16000, tracker => 'hadamard', rotation => 'none'), array_fill(1::real, ARRAY[16000])))).bytes;

-- elements that differ by orders of magnitude: the basis stays orthonormal, and what is written can be read
CREATE TABLE scales AS
SELECT s AS seed, n, sketcher_agg(ARRAY(SELECT (10.0 ^ ((k * 4 + s) % 7 - 3) * sin(i * k * k + s * 1000))::real FROM generate_series(1, 24) k), 16 ORDER BY i) AS model
FROM generate_series(1, 25) s, (VALUES (17), (20), (40), (250)) l(n), generate_series(1, n) i
GROUP BY s, n;
SELECT count(model::text::sketcher) AS readable,
	max((SELECT max(abs(product - (i = j)::int)) FROM (
		SELECT a.i, b.i AS j, sum(a.x::float8 * b.x) AS product
		FROM (SELECT (e - 1) / 24 AS i, (e - 1) % 24 AS k, x FROM unnest(sketcher_basis(model)) WITH ORDINALITY u(x, e)) a
		JOIN (SELECT (e - 1) / 24 AS i, (e - 1) % 24 AS k, x FROM unnest(sketcher_basis(model)) WITH ORDINALITY u(x, e)) b USING (k)
		GROUP BY 1, 2) p)) < 1e-4 AS orthonormal
FROM scales;
DROP TABLE scales;
-- rows equal to the mean are rows, by which others are forgotten
SELECT rows, round(explained_variance::numeric, 3) AS explained
FROM sketcher_info((SELECT sketcher_learn(sketcher_new(4, 2, center => false, forgetting => 0.99), CASE WHEN i % 2 = 0 THEN '{0,0,0,0}' ELSE '{1,1,0,0}' END::real[] ORDER BY i)
	FROM generate_series(1, 100) i)::text::sketcher);
-- next to nothing is remembered
SELECT rows FROM sketcher_info((SELECT sketcher_learn(sketcher_new(16000, 1, forgetting => 3e-16, tracker => 'lsh', rotation => 'none'), v ORDER BY id)
	FROM (VALUES (1, array_fill(0::real, ARRAY[16000])), (2, array_fill(1e-15::real, ARRAY[16000])), (3, array_fill(1e30::real, ARRAY[16000]))) t(id, v))::text::sketcher);
-- of a vector that is longer by many orders than those before, the direction counts
SELECT sketcher_hash(m, '{1,2,3,4}') = sketcher_hash(m, '{0.001,0.002,0.003,0.004}') AS same_direction
FROM (SELECT sketcher_learn(sketcher_new(4, 4, tracker => 'hadamard', rotation => 'none', seed => 1), v ORDER BY v) AS m
	FROM (VALUES ('{0,0,0,0}'::real[]), ('{1e-40,0,0,0}')) t(v)) m;
SELECT sketcher_stream(v, 1) OVER (ORDER BY id) AS code
FROM (VALUES (1, '{0,0}'::real[]), (2, '{1e-40,0}'), (3, '{-1,-1}'), (4, '{-1e-40,0}')) t(id, v);
-- two models that differ in their directions only: merged in either order they are the same
SELECT sketcher_basis(sketcher_merge(a, b)) = sketcher_basis(sketcher_merge(b, a)) AS same_basis
FROM (SELECT sketcher_agg(v, 1) AS a FROM (VALUES ('{1,0}'::real[]), ('{-1,0}')) t(v)) a, (SELECT sketcher_agg(v, 1) AS b FROM (VALUES ('{0,1}'::real[]), ('{0,-1}')) t(v)) b;

DROP TABLE vectors, models, ways, parts, methods, normalized;
DROP FUNCTION product, difference, plan_of, unit;

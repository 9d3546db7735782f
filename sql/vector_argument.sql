-- vectors without casts: whatever is a vector, and literals and parameters without a type

CREATE TABLE vectors AS SELECT i AS id, ARRAY(SELECT (10 * sin(i * k))::int::real FROM generate_series(1, 8) k) AS v FROM generate_series(1, 300) i;
CREATE TABLE models AS SELECT sketcher_agg(v, 4 ORDER BY id) AS model FROM vectors;
ALTER TABLE vectors ADD code bithash(4);
SELECT sketcher_attach('vectors', 'v', 'code', 4, auto_refresh => NULL);

-- the same code from all of them
CREATE DOMAIN embedding AS real[] CHECK (array_length(value, 1) = 8);
SELECT count(*) AS vectors,
	count(*) FILTER (WHERE sketcher_hash(model, v::double precision[]) IS DISTINCT FROM c) AS double_precision,
	count(*) FILTER (WHERE sketcher_hash(model, v::numeric[]) IS DISTINCT FROM c) AS numeric,
	count(*) FILTER (WHERE sketcher_hash(model, v::int[]) IS DISTINCT FROM c) AS int,
	count(*) FILTER (WHERE sketcher_hash(model, v::smallint[]) IS DISTINCT FROM c) AS smallint,
	count(*) FILTER (WHERE sketcher_hash(model, v::bigint[]) IS DISTINCT FROM c) AS bigint,
	count(*) FILTER (WHERE sketcher_hash(model, v::embedding) IS DISTINCT FROM c) AS domain,
	count(*) FILTER (WHERE sketcher_hash(model, v::text) IS DISTINCT FROM c) AS text,
	count(*) FILTER (WHERE sketcher_hash(model, translate(v::text, '{}', '[]')) IS DISTINCT FROM c) AS brackets,
	count(*) FILTER (WHERE sketcher_hash(model, v::text::varchar) IS DISTINCT FROM c) AS varchar
FROM vectors, models, LATERAL (SELECT sketcher_hash(model, v) AS c) AS hash;
-- with a model table, named in all ways
SELECT count(*) AS vectors,
	count(*) FILTER (WHERE sketcher_hash('vectors_code_model', v::numeric[]) IS DISTINCT FROM code) AS literal,
	count(*) FILTER (WHERE sketcher_hash('vectors_code_model'::regclass, v::int[]) IS DISTINCT FROM code) AS regclass,
	count(*) FILTER (WHERE sketcher_hash('vectors_code_model'::regclass::oid, v) IS DISTINCT FROM code) AS oid,
	count(*) FILTER (WHERE sketcher_hash('public.vectors_code_model', v::text) IS DISTINCT FROM code) AS qualified,
	count(*) FILTER (WHERE sketcher_hash('public.vectors_code_model'::text, v::double precision[]) IS DISTINCT FROM code) AS text
FROM vectors;
SELECT sketcher_hash(model, '{1,2,3,4,5,6,7,8}') = sketcher_hash(model, ARRAY[1,2,3,4,5,6,7,8]) AS literal,
	sketcher_hash(model, '[1,2,3,4,5,6,7,8]') = sketcher_hash(model, ARRAY[1,2,3,4,5,6,7,8]) AS brackets,
	sketcher_hash(model, E' [ 1e0, 2.0,3, 4 ,5,6,7,8 ]\n') = sketcher_hash(model, ARRAY[1,2,3,4,5,6,7,8.0]) AS blanks,
	sketcher_hash(model, '{"1","2","3","4","5","6","7","8"}') = sketcher_hash(model, ARRAY[1,2,3,4,5,6,7,8.0]) AS quoted,
	sketcher_hash('vectors_code_model', '[1,2,3,4,5,6,7,8]') = sketcher_hash('vectors_code_model', ARRAY[1,2,3,4,5,6,7,8]) AS both_literals,
	sketcher_hash(model, NULL) IS NULL AS null_vector, sketcher_hash(NULL, '[1]') IS NULL AS null_model
FROM models;
-- prepared, with parameters that have no type, and with plans for any of them
SET plan_cache_mode = force_generic_plan;
PREPARE hash AS SELECT sketcher_hash('vectors_code_model', $1) = sketcher_hash(model, '{1,2,3,4,5,6,7,8}') AS same FROM models;
EXECUTE hash('{1,2,3,4,5,6,7,8}');
EXECUTE hash('[1,2,3,4,5,6,7,8]');
PREPARE hash_numeric(numeric[]) AS SELECT sketcher_hash('vectors_code_model', $1) = sketcher_hash(model, '{1,2,3,4,5,6,7,8}') AS same FROM models;
EXECUTE hash_numeric(ARRAY[1,2,3,4,5,6,7,8]);
PREPARE nearest AS SELECT count(*) FROM (SELECT id FROM vectors ORDER BY code <~> (SELECT sketcher_hash('vectors_code_model', $1)) LIMIT 5) near;
EXECUTE nearest('[1,2,3,4,5,6,7,8]');
DEALLOCATE ALL;
RESET plan_cache_mode;
-- in a sub-select the code is made once, and else for each row that is returned as well
CREATE INDEX ON vectors USING hamming (code);
SET enable_seqscan = off;
SET track_functions = 'all';
BEGIN;
SELECT count(*) FROM (SELECT id FROM vectors ORDER BY code <~> (SELECT sketcher_hash('vectors_code_model', '[1,2,3,4,5,6,7,8]')) LIMIT 20) near;
SELECT sum(calls) AS calls FROM pg_stat_xact_user_functions WHERE funcname = 'sketcher_hash';
COMMIT;
RESET track_functions;
RESET enable_seqscan;
-- in PL/pgSQL, in an index and in a generated column
DO $$ DECLARE v numeric[] := ARRAY[1,2,3,4,5,6,7,8]; BEGIN
	IF sketcher_hash('vectors_code_model', v) IS DISTINCT FROM sketcher_hash('vectors_code_model', '[1,2,3,4,5,6,7,8]') THEN
		RAISE 'not the same';
	END IF;
END $$;
-- constants and variables, which are known when the statement is planned
SELECT model FROM models \gset
SELECT sketcher_hash(:'model'::sketcher, ARRAY[1,2,3,4,5,6,7,8]) = sketcher_hash(:'model'::sketcher, '[1,2,3,4,5,6,7,8]') AS int,
	sketcher_hash(:'model'::sketcher, ARRAY[1,2,3,4,5,6,7,8.0]) = sketcher_hash(:'model'::sketcher, '[1,2,3,4,5,6,7,8]') AS numeric,
	sketcher_hash(:'model'::sketcher, '{1,2,3,4,5,6,7,8}'::embedding) = sketcher_hash(:'model'::sketcher, '[1,2,3,4,5,6,7,8]') AS domain;
DO $$ DECLARE
	model sketcher := (SELECT model FROM models);
	code bithash := sketcher_hash(model, '[1,2,3,4,5,6,7,8]');
	numbers numeric[] := ARRAY[1,2,3,4,5,6,7,8];
	ints int[] := numbers;
	written text := '[1,2,3,4,5,6,7,8]';
	made bithash;
BEGIN
	FOR i IN 1..10 LOOP
		SELECT sketcher_hash(model, numbers) INTO made;
		ASSERT made = code;
		SELECT sketcher_hash(model, ints) INTO made;
		ASSERT made = code;
		SELECT sketcher_hash(model, written) INTO made;
		ASSERT made = code;
		made := sketcher_hash(model, ints);
		ASSERT made = code;
	END LOOP;
END $$;
-- a cast runs with the caller's rights
CREATE TYPE pair AS (a real, b real);
CREATE FUNCTION pair_vector_of(pair) RETURNS real[] LANGUAGE sql IMMUTABLE AS 'SELECT ARRAY[$1.a, $1.b, 3, 4, 5, 6, 7, 8]';
CREATE CAST (pair AS real[]) WITH FUNCTION pair_vector_of(pair);
SELECT sketcher_hash(:'model'::sketcher, ROW(1, 2)::pair) = sketcher_hash(:'model'::sketcher, '[1,2,3,4,5,6,7,8]') AS pair;
REVOKE EXECUTE ON FUNCTION pair_vector_of FROM public;
CREATE ROLE regress_vectors_user;
SET ROLE regress_vectors_user;
SELECT sketcher_hash(:'model'::sketcher, ROW(1, 2)::pair);
RESET ROLE;
DROP ROLE regress_vectors_user;
CREATE OR REPLACE FUNCTION pair_vector_of(pair) RETURNS real[] LANGUAGE sql IMMUTABLE AS 'SELECT NULL::real[]';
SELECT sketcher_hash(:'model'::sketcher, ROW(1, 2)::pair);
DROP CAST (pair AS real[]);
DROP FUNCTION pair_vector_of;
DROP TYPE pair;
CREATE FUNCTION model() RETURNS sketcher LANGUAGE sql IMMUTABLE AS 'SELECT model FROM public.models';
CREATE TABLE made (n int[], code bithash GENERATED ALWAYS AS (sketcher_hash(model(), n)) STORED);
CREATE INDEX ON made USING hamming (sketcher_hash(model(), n));
INSERT INTO made SELECT v::int[] FROM vectors;
SELECT count(*) FILTER (WHERE made.code IS DISTINCT FROM vectors.code) AS wrong FROM made JOIN vectors ON made.n = vectors.v::int[];

-- learning, from each type in aggregates and windows; the same model from all
SELECT sketcher_agg(v, 4 ORDER BY id)::text AS learnt, sketcher_learn(sketcher_new(8, 4, seed => 3), v ORDER BY id)::text AS taught FROM vectors \gset
SELECT sketcher_agg(v::double precision[], 4 ORDER BY id)::text = :'learnt' AS double_precision,
	sketcher_agg(v::numeric[], 4 ORDER BY id)::text = :'learnt' AS numeric,
	sketcher_agg(v::int[], 4 ORDER BY id)::text = :'learnt' AS int,
	sketcher_agg(v::embedding, 4 ORDER BY id)::text = :'learnt' AS domain,
	sketcher_agg(v::text, 4 ORDER BY id)::text = :'learnt' AS text,
	sketcher_agg(translate(v::text, '{}', '[]'), 4 ORDER BY id)::text = :'learnt' AS brackets
FROM vectors;
SELECT sketcher_learn(m, v::double precision[] ORDER BY id)::text = :'taught' AS double_precision,
	sketcher_learn(m, v::numeric[] ORDER BY id)::text = :'taught' AS numeric,
	sketcher_learn(m, v::int[] ORDER BY id)::text = :'taught' AS int,
	sketcher_learn(m, v::text ORDER BY id)::text = :'taught' AS text
FROM vectors, sketcher_new(8, 4, seed => 3) AS m;
SELECT count(code), count(*) FILTER (WHERE code IS DISTINCT FROM a OR code IS DISTINCT FROM b OR code IS DISTINCT FROM c OR code IS DISTINCT FROM d) AS wrong,
	count(*) FILTER (WHERE e IS DISTINCT FROM f OR e IS DISTINCT FROM g OR e IS DISTINCT FROM h) AS wrong_by_model
FROM (SELECT sketcher_stream(v, 4) OVER w AS code, sketcher_stream(v::double precision[], 4) OVER w AS a, sketcher_stream(v::numeric[], 4) OVER w AS b,
		sketcher_stream(v::int[], 4) OVER w AS c, sketcher_stream(v::text, 4) OVER w AS d, sketcher_stream(model, v) OVER w AS e,
		sketcher_stream(model, v::numeric[]) OVER w AS f, sketcher_stream(model, v::int[]) OVER w AS g, sketcher_stream(model, v::text) OVER w AS h
	FROM vectors, models WINDOW w AS (ORDER BY id)) AS t;
SELECT (sketcher_info(sketcher_agg('[1,2,3]', 2))).dims, (sketcher_info(sketcher_agg('{1,2,3}', 2))).rows, (sketcher_info(sketcher_agg(ARRAY[1,2,3], 2))).rows,
	(sketcher_info(sketcher_agg(ARRAY[1,2.5,3], 2))).rows, sketcher_agg(NULL, 2) IS NULL AS nothing,
	(sketcher_info(sketcher_learn(:'model'::sketcher, '[1,2,3,4,5,6,7,8]'))).rows AS taught;
SELECT bool_and(sketcher_add(model, a)::text = sketcher_add(model, ARRAY[1,2,3,4,5,6,7,8]::real[])::text) AS double_precision,
	bool_and(sketcher_add(model, ARRAY[1,2,3,4,5,6,7,8])::text = sketcher_add(model, ARRAY[1,2,3,4,5,6,7,8]::real[])::text) AS int,
	bool_and(sketcher_add(model, ARRAY[1,2,3,4,5,6,7,8.0])::text = sketcher_add(model, ARRAY[1,2,3,4,5,6,7,8]::real[])::text) AS numeric,
	bool_and(sketcher_add(model, '[1,2,3,4,5,6,7,8]')::text = sketcher_add(model, ARRAY[1,2,3,4,5,6,7,8]::real[])::text) AS literal,
	bool_and((sketcher_info(sketcher_add(:'model'::sketcher, ARRAY[1,2,3,4,5,6,7,8]))).rows = 301) AS constants
FROM models, (VALUES (ARRAY[1,2,3,4,5,6,7,8]::double precision[])) AS t (a);
PREPARE learn AS SELECT (sketcher_info(sketcher_agg($1, 2))).rows, (sketcher_info(sketcher_add(:'model', $2))).rows;
EXECUTE learn('[1,2,3]', '{1,2,3,4,5,6,7,8}');
DEALLOCATE learn;
-- in parallel
CREATE TABLE typed AS SELECT v AS r, v::double precision[] AS d, v::numeric[] AS n, v::int[] AS i, v::text AS t FROM vectors;
ANALYZE typed;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
EXPLAIN (COSTS off) SELECT sketcher_agg(n, 4), sketcher_learn(sketcher_new(8, 4), i) FROM typed;
SELECT (sketcher_info(sketcher_agg(r, 4))).rows AS real, (sketcher_info(sketcher_agg(d, 4))).rows AS double_precision, (sketcher_info(sketcher_agg(n, 4))).rows AS numeric,
	(sketcher_info(sketcher_agg(i, 4))).rows AS int, (sketcher_info(sketcher_agg(t, 4))).rows AS text FROM typed;
SELECT (sketcher_info(sketcher_learn(:'model'::sketcher, r))).rows AS real, (sketcher_info(sketcher_learn(:'model'::sketcher, n))).rows AS numeric,
	(sketcher_info(sketcher_learn(:'model'::sketcher, i))).rows AS int, (sketcher_info(sketcher_learn(:'model'::sketcher, t))).rows AS text FROM typed;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;
DROP TABLE typed;

-- what is no vector
SELECT sketcher_agg(ARRAY[1,NULL], 2);
SELECT sketcher_agg(ARRAY[1,1e100], 2);
SELECT sketcher_add(:'model'::sketcher, 1);
SELECT sketcher_hash(model, 1) FROM models;
SELECT sketcher_hash(model, ARRAY['1']) FROM models;
SELECT sketcher_hash(model, true) FROM models;
-- the details are the server's, and not the same in all versions
\set VERBOSITY terse
SELECT sketcher_hash(model, '1,2') FROM models;
SELECT sketcher_agg('1,2', 4);
SELECT sketcher_agg(id, 4) FROM vectors;
SELECT sketcher_hash(model, '[1,2') FROM models;
SELECT sketcher_hash(model, '[1,x]') FROM models;
SELECT sketcher_hash(model, '') FROM models;
\set VERBOSITY default
SELECT sketcher_hash(model, '[]') FROM models;
SELECT sketcher_hash(model, '[1,2]') FROM models;
SELECT sketcher_hash(model, '[1,2,3,4,5,6,7,NaN]') FROM models;
SELECT sketcher_hash(model, '[1,2,3,4,5,6,7,NULL]') FROM models;
SELECT sketcher_hash(model, ARRAY[1,2,3,4,5,6,7,NULL]) FROM models;
SELECT sketcher_hash(model, ARRAY[1,2,3,4,5,6,7,1e100]) FROM models;
SELECT sketcher_hash('no_such_model', '[1,2]');
SELECT sketcher_hash('a.b.c.d', '[1,2]');
SELECT sketcher_hash('vectors', '[1,2]');

SELECT sketcher_detach('vectors', 'code');
DROP TABLE made, vectors, models;
DROP FUNCTION model;
DROP DOMAIN embedding;

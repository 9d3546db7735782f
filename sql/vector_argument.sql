-- vectors without casts: whatever is a vector, and literals and parameters without a type

CREATE TABLE vectors AS SELECT i AS id, ARRAY(SELECT (10 * sin(i * k))::int::real FROM generate_series(1, 8) k) AS v FROM generate_series(1, 300) i;
CREATE TABLE models AS SELECT sketcher_agg(v, 4 ORDER BY id) AS model FROM vectors;
ALTER TABLE vectors ADD code bithash(4);
SELECT sketcher_attach('vectors', 'v', 'code', 4, auto_refresh => NULL);

-- the same code from all of them
CREATE DOMAIN embedding AS real[] CHECK (array_length(value, 1) = 8);
SELECT count(*) AS vectors,
	count(*) FILTER (WHERE sketcher_hash(model, v::double precision[]) <> c) AS double_precision,
	count(*) FILTER (WHERE sketcher_hash(model, v::numeric[]) <> c) AS numeric,
	count(*) FILTER (WHERE sketcher_hash(model, v::int[]) <> c) AS int,
	count(*) FILTER (WHERE sketcher_hash(model, v::smallint[]) <> c) AS smallint,
	count(*) FILTER (WHERE sketcher_hash(model, v::bigint[]) <> c) AS bigint,
	count(*) FILTER (WHERE sketcher_hash(model, v::embedding) <> c) AS domain,
	count(*) FILTER (WHERE sketcher_hash(model, v::text) <> c) AS text,
	count(*) FILTER (WHERE sketcher_hash(model, translate(v::text, '{}', '[]')) <> c) AS brackets,
	count(*) FILTER (WHERE sketcher_hash(model, v::text::varchar) <> c) AS varchar
FROM vectors, models, LATERAL (SELECT sketcher_hash(model, v) AS c) AS hash;
-- with a model table, named in all ways
SELECT count(*) AS vectors,
	count(*) FILTER (WHERE sketcher_hash('vectors_code_model', v::numeric[]) <> code) AS literal,
	count(*) FILTER (WHERE sketcher_hash('vectors_code_model'::regclass, v::int[]) <> code) AS regclass,
	count(*) FILTER (WHERE sketcher_hash('vectors_code_model'::regclass::oid, v) <> code) AS oid,
	count(*) FILTER (WHERE sketcher_hash('public.vectors_code_model', v::text) <> code) AS qualified,
	count(*) FILTER (WHERE sketcher_hash('public.vectors_code_model'::text, v::double precision[]) <> code) AS text
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
	IF sketcher_hash('vectors_code_model', v) <> sketcher_hash('vectors_code_model', '[1,2,3,4,5,6,7,8]') THEN
		RAISE 'not the same';
	END IF;
END $$;
CREATE FUNCTION model() RETURNS sketcher LANGUAGE sql IMMUTABLE AS 'SELECT model FROM public.models';
CREATE TABLE made (n int[], code bithash GENERATED ALWAYS AS (sketcher_hash(model(), n)) STORED);
CREATE INDEX ON made USING hamming (sketcher_hash(model(), n));
INSERT INTO made SELECT v::int[] FROM vectors;
SELECT count(*) FILTER (WHERE made.code <> vectors.code) AS wrong FROM made JOIN vectors ON made.n = vectors.v::int[];

-- what is no vector
SELECT sketcher_hash(model, 1) FROM models;
SELECT sketcher_hash(model, ARRAY['1']) FROM models;
SELECT sketcher_hash(model, true) FROM models;
-- the details are the server's, and not the same in all versions
\set VERBOSITY terse
SELECT sketcher_hash(model, '1,2') FROM models;
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

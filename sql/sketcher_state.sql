-- states of the sketcher's aggregates: whoever calls the support functions, whatever the state has gone through

CREATE TABLE vectors AS
SELECT i AS id, ARRAY[sin(i), cos(i * 2), sin(i * 3) / 2, i % 7 / 4.0, i % 3, sin(i::float8 * i)]::real[] AS v FROM generate_series(1, 300) i;
ANALYZE vectors;
CREATE TABLE models AS SELECT sketcher_agg(v, 3 ORDER BY id) AS model FROM vectors;
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- aggregates of users that put the support functions together in other ways
CREATE FUNCTION last_of(sketcher, sketcher) RETURNS sketcher LANGUAGE sql IMMUTABLE AS 'SELECT $2';
CREATE AGGREGATE stream_of_values(sketcher) (SFUNC = last_of, STYPE = sketcher, FINALFUNC = sketcher_stream_final);
CREATE AGGREGATE stream_of_merged(sketcher) (SFUNC = sketcher_combine, STYPE = sketcher, FINALFUNC = sketcher_stream_final);
CREATE AGGREGATE stream_of_agg(real[], integer) (SFUNC = sketcher_agg_trans, STYPE = sketcher, FINALFUNC = sketcher_stream_final);
CREATE AGGREGATE stream_of_learnt(sketcher, real[]) (SFUNC = sketcher_learn_trans, STYPE = sketcher, FINALFUNC = sketcher_stream_final);
CREATE AGGREGATE stream_state(real[], integer) (SFUNC = sketcher_stream_trans, STYPE = sketcher);
CREATE AGGREGATE stream_learnt(sketcher, real[]) (SFUNC = sketcher_stream_model_trans, STYPE = sketcher, FINALFUNC = sketcher_learn_final);
CREATE AGGREGATE last_learnt(sketcher) (SFUNC = last_of, STYPE = sketcher, FINALFUNC = sketcher_learn_final);
-- a state that is no stream's has no row to make a code of
SELECT stream_of_values(model), stream_of_merged(model) FROM models;
SELECT stream_of_agg(v, 3), stream_of_learnt((SELECT model FROM models), v) FROM vectors;
SELECT count(*), count(a), count(b) FROM (SELECT stream_of_agg(v, 3) OVER w AS a, stream_of_learnt((SELECT model FROM models), v) OVER w AS b
	FROM vectors WINDOW w AS (ORDER BY id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)) t;
-- a stream's state, as a value, is the model of all its rows
SELECT (sketcher_info(stream_state(v, 3 ORDER BY id))).rows, sketcher_drift(stream_state(v, 3 ORDER BY id), (SELECT model FROM models)) < 0.001 AS same,
	(sketcher_info(stream_learnt((SELECT model FROM models), v ORDER BY id))).rows AS learnt FROM vectors;
CREATE TABLE states AS SELECT id, stream_state(v, 3) OVER (ORDER BY id) AS state FROM vectors;
SELECT count(*), bool_and((sketcher_info(state)).rows = id) AS all_rows FROM states;
SELECT (sketcher_info(last_learnt(model))).rows FROM models;
-- a state of another configuration
DO $$ BEGIN EXECUTE (SELECT format('CREATE AGGREGATE go_on(real[], integer) (SFUNC = sketcher_agg_trans, STYPE = sketcher, INITCOND = %L)', model) FROM models); END $$;
DO $$ BEGIN EXECUTE (SELECT format('CREATE AGGREGATE go_on_streaming(real[], integer) (SFUNC = sketcher_stream_trans, STYPE = sketcher, FINALFUNC = sketcher_stream_final, INITCOND = %L)', model) FROM models); END $$;
SELECT (sketcher_info(go_on(v, 3))).rows, length(go_on_streaming(v, 3)) FROM vectors;
SELECT error_of('SELECT go_on(v, 2) FROM vectors'), error_of('SELECT go_on(ARRAY[1,2]::real[], 3)');
SELECT error_of('SELECT go_on_streaming(v, 2) FROM vectors'), error_of('SELECT go_on_streaming(ARRAY[1,2]::real[], 3)');
SELECT error_of('SELECT stream_of_merged(m) FROM (SELECT model AS m FROM models UNION ALL SELECT sketcher_new(5, 3)) t');

-- frames that begin later and later: each its own rows
SELECT max(abs(rows - least(id, 10))) AS agg, max(abs(learnt - 300 - least(id, 10))) AS learn, max(abs(merged - 300 * least(id, 10))) AS merge,
	count(*) FILTER (WHERE streamed IS NULL) AS without_code
FROM (SELECT id, (sketcher_info(sketcher_agg(v, 3) OVER w)).rows, (sketcher_info(sketcher_learn(model, v) OVER w)).rows AS learnt,
		(sketcher_info(sketcher_merge(model) OVER w)).rows AS merged, sketcher_stream(v, 3) OVER w AS streamed
	FROM vectors, models WINDOW w AS (ORDER BY id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)) t;

-- models that come and go at one place in memory are told apart
CREATE FUNCTION made(seed integer, rows integer) RETURNS sketcher LANGUAGE sql IMMUTABLE
	AS 'SELECT sketcher_learn(sketcher_new(6, 3, tracker => ''lsh'', rotation => ''none'', seed => seed), v ORDER BY id) FROM vectors WHERE id <= rows';
CREATE TABLE codes AS SELECT seed, sketcher_hash(made(seed, 10)::text::sketcher, '{3,1,4,1,5,9}'::real[]) AS code FROM generate_series(1, 20) seed;
SELECT count(DISTINCT code) > 3 AS different,
	sum(code <~> sketcher_hash(sketcher_learn_final(made(seed, 10)), '{3,1,4,1,5,9}'::real[])) AS differ FROM codes;
SELECT sum(code <~> sketcher_hash(sketcher_merge(sketcher_new(6, 3, tracker => 'lsh', rotation => 'none', seed => seed), made(seed, 10)), '{3,1,4,1,5,9}'::real[])) AS differ FROM codes;
SELECT sum(sketcher_hash(sketcher_add(made(seed, 10), '{0,0,0,0,0,0}'::real[]), '{3,1,4,1,5,9}'::real[])
	<~> sketcher_hash(sketcher_add(made(seed, 10), '{0,0,0,0,0,0}'::real[])::text::sketcher, '{3,1,4,1,5,9}'::real[])) AS differ FROM codes;
DO $$
DECLARE model sketcher; code bithash; differ integer := 0;
BEGIN
	FOR seed IN 1 .. 20 LOOP
		model := sketcher_add(sketcher_new(6, 3, tracker => 'lsh', rotation => 'none', seed => seed), '{0,0,0,0,0,0}'::real[]);
		code := sketcher_hash(model, '{3,1,4,1,5,9}'::real[]);
		differ := differ + (code <~> sketcher_hash(model::text::sketcher, '{3,1,4,1,5,9}'::real[]));
	END LOOP;
	RAISE NOTICE '% bits differ', differ;
END $$;

-- parts of aggregates, as other servers send them: through the text form, combined, finished.  A part of sketcher_learn has
-- the model that it starts from beside what it has learnt; it shows in parallel plans of an aggregate without a final function
CREATE AGGREGATE agg_part(real[], integer) (SFUNC = sketcher_agg_trans, STYPE = sketcher, COMBINEFUNC = sketcher_combine, PARALLEL = SAFE);
CREATE AGGREGATE learn_part(sketcher, real[]) (SFUNC = sketcher_learn_trans, STYPE = sketcher, COMBINEFUNC = sketcher_combine, PARALLEL = SAFE);
CREATE AGGREGATE combine_parts(sketcher) (SFUNC = sketcher_combine, STYPE = sketcher);
CREATE AGGREGATE finish_parts(sketcher) (SFUNC = sketcher_combine, STYPE = sketcher, FINALFUNC = sketcher_learn_final);
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
CREATE TABLE still AS SELECT sketcher_learn(sketcher_new(6, 3, rotation => 'random'), v ORDER BY id) AS model FROM vectors;
SELECT format('CREATE TABLE part_%s AS SELECT %s AS part, agg_part(v, 3) AS agg, learn_part((SELECT model FROM models), v) AS learn, learn_part((SELECT model FROM still), v) AS learn_still FROM vectors WHERE id BETWEEN %s AND %s',
	part, part, part * 100 + 1, part * 100 + 100) FROM generate_series(0, 2) part \gexec
CREATE TABLE parts AS TABLE part_0 UNION ALL TABLE part_1 UNION ALL TABLE part_2;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET max_parallel_workers_per_gather;
SELECT part, get_byte(sketcher_send(learn), 7) & 4 AS with_base, agg::text::sketcher::text = agg::text AS agg_text,
	learn::text::sketcher::text = learn::text AS learn_text FROM parts ORDER BY part;
SELECT (sketcher_info(combine_parts(agg::text::sketcher ORDER BY part))).rows AS agg, (sketcher_info(finish_parts(learn::text::sketcher ORDER BY part))).rows AS learn,
	(sketcher_info(sketcher_merge(agg::text::sketcher ORDER BY part))).rows AS merge FROM parts;
-- near what one pass learns, also if the rotation turns meanwhile; what is learnt from another seed is farther than that
SELECT sketcher_drift(part, pass) < 0.235 AS near, sketcher_drift(other, pass) > 0.235 AS other_far,
	sketcher_drift(part_still, pass_still) < 0.04 AS near_still, sketcher_drift(other_still, pass_still) > 0.04 AS other_far_still
FROM (SELECT finish_parts(learn::text::sketcher ORDER BY part) AS part, finish_parts(learn_still::text::sketcher ORDER BY part) AS part_still FROM parts) parts,
	(SELECT sketcher_learn((SELECT model FROM models), v ORDER BY id) AS pass, sketcher_learn((SELECT model FROM still), v ORDER BY id) AS pass_still,
		sketcher_learn(sketcher_new(6, 3, seed => 5), v ORDER BY id) AS other,
		sketcher_learn(sketcher_new(6, 3, seed => 5, rotation => 'random'), v ORDER BY id) AS other_still FROM vectors) passes;
-- as a value it is the model that it stands for, to every function
SELECT (sketcher_info(learn)).rows, (sketcher_info(sketcher_add(learn, '{1,2,3,4,5,6}'::real[]))).rows AS add, (sketcher_info(sketcher_merge(learn, agg))).rows AS merge,
	(sketcher_info(sketcher_merge(agg, learn))).rows AS merge_other, length(sketcher_hash(learn, '{1,2,3,4,5,6}'::real[])) AS hash,
	sketcher_drift(learn, sketcher_learn_final(learn)) < 0.001 AS same, sketcher_mean(learn) = sketcher_mean(sketcher_learn_final(learn)) AS mean FROM parts ORDER BY part;
SELECT (sketcher_info(sketcher_merge(learn))).rows AS merge, (sketcher_info(sketcher_merge(learn::text::sketcher))).rows AS merge_text FROM parts;
SELECT (sketcher_info(sketcher_learn(learn, v))).rows AS learn, (sketcher_info(stream_learnt(learn, v))).rows AS stream FROM vectors, parts WHERE part = 1;
SELECT (sketcher_info(combine_parts(x ORDER BY n))).rows AS without_and_with FROM (SELECT 1 AS n, agg AS x FROM parts WHERE part = 1 UNION ALL SELECT 2, learn FROM parts WHERE part = 2) t;

DROP TABLE vectors, models, still, states, codes, parts, part_0, part_1, part_2;
DROP AGGREGATE stream_of_values(sketcher), stream_of_merged(sketcher), stream_of_agg(real[], integer), stream_of_learnt(sketcher, real[]), stream_state(real[], integer),
	stream_learnt(sketcher, real[]), last_learnt(sketcher), go_on(real[], integer), go_on_streaming(real[], integer), agg_part(real[], integer), learn_part(sketcher, real[]),
	combine_parts(sketcher), finish_parts(sketcher);
DROP FUNCTION error_of, last_of, made;

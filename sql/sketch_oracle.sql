-- the sketch index against a sequential scan with a sort: all distances, with and without a model
SET client_min_messages = warning;
SET jit = off;
SELECT setseed(0.25);

CREATE FUNCTION random_vector(dims int, kind int) RETURNS real[] LANGUAGE sql VOLATILE AS $$
	SELECT CASE kind
		-- unrelated, around a common direction, few different ones, extremely long and short ones
		WHEN 0 THEN array_agg((random() - 0.5)::real)
		WHEN 1 THEN array_agg((3 + sin(k) + (random() - 0.5) / k)::real)
		WHEN 2 THEN array_agg((random() * 3)::int::real)
		ELSE array_agg(((random() - 0.5) * 10 ^ (seed * 60 - 30))::real) END
	FROM generate_series(1, dims) k, (SELECT random() AS seed OFFSET 0) s $$;

CREATE TABLE vectors (id serial, v real[], kind int);

CREATE FUNCTION ids(query text, by_index bool) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	plan text := '';
	line text;
	result int[];
BEGIN
	PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_sort', (NOT by_index)::text, true),
		set_config('enable_indexscan', by_index::text, true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		plan := plan || line;
	END LOOP;
	IF (plan LIKE '%Index Scan using vectors_v_idx%') <> by_index THEN
		RAISE 'wrong plan: %', plan;
	END IF;
	EXECUTE format('SELECT array_agg(id) FROM (%s) q', query) INTO result;
	RETURN coalesce(result, '{}');
END $$;

-- the distances of rows in this order, NULLs and all
CREATE FUNCTION distances(ids int[], operator text, q real[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(coalesce((v %s $2)::text, ''null''), '' '' ORDER BY n) FROM unnest($1) WITH ORDINALITY u (id, n) JOIN vectors USING (id)', operator)
		INTO result USING ids, q;
	RETURN result;
END $$;

CREATE FUNCTION same_rows(a int[], b int[]) RETURNS bool LANGUAGE sql AS
	$$ SELECT (SELECT array_agg(x ORDER BY x) FROM unnest(a) x) IS NOT DISTINCT FROM (SELECT array_agg(x ORDER BY x) FROM unnest(b) x) $$;

-- one query, in all ways; the number of true ones among the first ten at recall .99
CREATE FUNCTION compare(operator text, q real[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT id FROM vectors ORDER BY v %s (SELECT %L::real[])', operator, q);
	filter text := format('SELECT id FROM vectors WHERE id %% 7 = 3 ORDER BY v %s (SELECT %L::real[])', operator, q);
	truth int[] := ids(query, false);
	found int[];
	recall text;
	hits int;
BEGIN
	FOREACH recall IN ARRAY ARRAY['1', '0.99', '0.5'] LOOP
		PERFORM set_config('unifdiag.recall', recall, true);
		found := ids(query, true);
		IF NOT same_rows(found, truth) THEN
			RAISE 'recall %: not the same rows: %, %', recall, cardinality(found), cardinality(truth);
		END IF;
		IF recall = '1' AND distances(found, operator, q) <> distances(truth, operator, q) THEN
			RAISE 'not in order: % by %', query, operator;
		END IF;
		found := ids(filter, true);
		IF NOT same_rows(found, ids(filter, false)) THEN
			RAISE 'recall %: not the same rows with a filter', recall;
		END IF;
		IF recall = '0.99' THEN
			found := ids(query || ' LIMIT 10', true);
			SELECT count(*) INTO hits FROM unnest(string_to_array(distances(found, operator, q), ' ')) d
				WHERE d <> 'null' AND d::float8 <= split_part(distances(truth[1:10], operator, q), ' ', cardinality(truth[1:10]))::float8;
		END IF;
	END LOOP;
	RETURN hits;
END $$;

CREATE FUNCTION compare_all(operator text, opclass text, dims int, bits int) RETURNS TABLE (what text, sketched bool, recall bool) LANGUAGE plpgsql AS $$
DECLARE
	hits int;
	queries int;
	model bool;
BEGIN
	FOR step IN 1..4 LOOP
		CASE step
			WHEN 1 THEN
				what := 'few rows';
				TRUNCATE vectors;
				INSERT INTO vectors (v, kind) SELECT CASE WHEN i % 9 > 0 THEN random_vector(dims, i % 3) END, i % 3 FROM generate_series(1, 60) i;
				EXECUTE format('CREATE INDEX ON vectors USING sketch (v %s) WITH (bits = %s)', opclass, bits);
			WHEN 2 THEN
				what := 'learnt later';
				INSERT INTO vectors (v, kind) SELECT CASE WHEN i % 30 > 0 THEN random_vector(dims, i % 3) END, i % 3 FROM generate_series(1, 1500) i;
				INSERT INTO vectors (v) VALUES (array_fill(0::real, ARRAY[dims])), (array_fill(0::real, ARRAY[dims]));
			WHEN 3 THEN
				what := 'others since';
				DELETE FROM vectors WHERE id % 3 = 1;
				INSERT INTO vectors (v, kind) SELECT random_vector(dims, 3), 3 FROM generate_series(1, 100) i;
				UPDATE vectors SET v = random_vector(dims, 0), kind = 0 WHERE id % 5 = 1;
			ELSE
				what := 'built';
				REINDEX TABLE vectors;
		END CASE;
		PERFORM sketch_check('vectors_v_idx');
		hits := 0;
		queries := 0;
		FOR kind IN 0..3 LOOP
			hits := hits + compare(operator, random_vector(dims, kind)) + compare(operator, (SELECT v FROM vectors WHERE v IS NOT NULL ORDER BY random() LIMIT 1));
			queries := queries + 2;
		END LOOP;
		PERFORM compare(operator, array_fill(0::real, ARRAY[dims]));
		PERFORM compare(operator, NULL);
		SELECT i.learnt > 0 AND i.unsketched < i.rows / 2 INTO model FROM sketch_info('vectors_v_idx') i;
		sketched := coalesce(model, false);
		recall := hits >= 0.95 * 10 * queries;
		RETURN NEXT;
	END LOOP;
	DROP INDEX vectors_v_idx;
END $$;

SELECT * FROM compare_all('<->', 'real_l2_ops', 30, 20);
SELECT * FROM compare_all('<=>', 'real_cosine_ops', 30, 20);
SELECT * FROM compare_all('<#>', 'real_ip_ops', 30, 20);
-- more bits than dimensions, and kernels that are not the best
SELECT * FROM compare_all('<->', 'real_l2_ops', 5, 20);
SET unifdiag.kernel = portable;
SELECT * FROM compare_all('<=>', 'real_cosine_ops', 40, 130);
RESET unifdiag.kernel;
SELECT * FROM compare_all('<->', 'real_l2_ops', 1, 1);

DROP TABLE vectors;
DROP FUNCTION compare_all, compare, same_rows, distances, ids, random_vector;

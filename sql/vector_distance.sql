-- distances between vectors

SELECT '{0,0}'::real[] <-> '{3,4}' AS l2, '{1,2}'::real[] <#> '{3,4}' AS ip, '{1,0}'::real[] <=> '{0,2}' AS cosine;
SELECT '{1,2}'::real[] <=> '{2,4}' AS same, '{1,2}'::real[] <=> '{-1,-2}' AS opposite, '{1,2}'::real[] <-> '{1,2}' AS zero,
	'{0,0}'::real[] <#> '{1,2}' AS not_minus_zero;
SELECT '{1,2}'::real[] <-> NULL AS l2, NULL <=> '{1,2}'::real[] AS cosine, real_negative_inner_product(NULL, '{1}') AS ip;
-- a zero vector has no direction; NaN sorts behind all numbers
SELECT v, round((v <=> '{1,1}')::numeric, 6) AS distance FROM (VALUES ('{0,0}'::real[]), ('{-1,-1}'), ('{1,0.9}')) AS t (v)
ORDER BY v <=> '{1,1}';

-- other arrays where the server makes real[] of them by itself
SELECT '{0,0}'::real[] <-> ARRAY[3, 4] AS integers, ARRAY[0.3, 0.4] <-> '{0,0}'::real[] AS numerics;
\set VERBOSITY terse
SELECT '{0,0}'::real[] <-> '{3,4}'::double precision[];
\set VERBOSITY default

-- sums that single precision cannot hold
SELECT ('{3e30,4e30}'::real[] <-> '{0,0}')::real AS large, ('{3e-30,4e-30}'::real[] <-> '{0,0}')::real AS small,
	round(('{3e30,4e30}'::real[] <=> '{4e30,3e30}')::numeric, 6) AS large_cosine,
	round(('{3e-30,4e-30}'::real[] <=> '{4e-30,3e-30}')::numeric, 6) AS small_cosine,
	round((('{3e30,4e30}'::real[] <#> '{1e30,1e30}') / 1e60)::numeric, 4) AS large_product;

-- against plain SQL, at every length from 1 to 100, with every kernel that the machine has
CREATE TABLE pairs AS
SELECT n, array_agg(sin(n * 7 + i)::real ORDER BY i) AS a, array_agg(cos(n * 3 + i * i)::real ORDER BY i) AS b
FROM generate_series(1, 100) n, LATERAL generate_series(1, n) i GROUP BY n;
CREATE FUNCTION try_kernels() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE kernel text; wrong int;
BEGIN
	FOREACH kernel IN ARRAY ARRAY['auto', 'portable', 'avx2', 'avx512', 'neon'] LOOP
		BEGIN
			PERFORM set_config('unifdiag.kernel', kernel, false);
		EXCEPTION WHEN invalid_parameter_value THEN
			CONTINUE;			-- of another architecture, or beyond this CPU
		END;
		SELECT count(*) INTO wrong
		FROM pairs, LATERAL (SELECT sum(x::float8 * y) AS ab, sum(x::float8 * x) AS aa, sum(y::float8 * y) AS bb
			FROM unnest(a, b) AS e (x, y)) AS s
		WHERE abs((a <-> b) - sqrt(aa + bb - 2 * ab)) > 1e-5 * sqrt(aa + bb) OR abs((a <#> b) + ab) > 1e-5 * sqrt(aa * bb)
			OR abs((a <=> b) - (1 - ab / sqrt(aa * bb))) > 1e-5;
		IF kernel IN ('auto', 'portable') OR wrong > 0 THEN
			RETURN NEXT format('%s: %s wrong', kernel, wrong);
		END IF;
	END LOOP;
	RESET unifdiag.kernel;
END $$;
SELECT try_kernels();
DROP FUNCTION try_kernels;
DROP TABLE pairs;

-- what is no vector, and no pair of them
SELECT '{1,2}'::real[] <-> '{1,2,3}';
SELECT '{1,2}'::real[] <=> '{1,2,3}';
SELECT '{1,2}'::real[] <#> '{1,2,3}';
SELECT '{}'::real[] <-> '{}';
SELECT '{{1,2},{3,4}}'::real[] <-> '{{1,2},{3,4}}';
SELECT '{1,NULL}'::real[] <-> '{1,2}';
SELECT '{1,NaN}'::real[] <-> '{1,2}';
SELECT '{1,2}'::real[] <#> '{0,Infinity}';
SELECT '{0,0}'::real[] <=> '{-Infinity,0}';
SELECT '{Infinity}'::real[] <-> '{Infinity}';

-- between an array and what is none
SELECT '{1,2}'::real[] <-> 1;
SELECT point(1,2) <=> '{1,2}'::real[];

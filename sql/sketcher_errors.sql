-- bad input of the sketcher's functions: SQLSTATE, message, detail and hint of each

CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN SQLSTATE || ' ' || SQLERRM || CASE WHEN detail <> '' THEN ' / ' || detail ELSE '' END
		|| CASE WHEN hint <> '' THEN ' / ' || hint ELSE '' END;
END $$;
CREATE TABLE models AS
SELECT sketcher_agg(ARRAY[i, i * i % 7, i % 3, i % 5]::real[], 2) AS model FROM generate_series(1, 100) i;

\pset format unaligned
\pset tuples_only on

-- options
SELECT error_of('SELECT sketcher_new(' || arguments || ')')
FROM unnest(ARRAY['0, 1', '-1, 1', '16001, 8', '8, 0', '8, -1', '8, 9', '16000, 16000',
	'8, 4, tracker => ''kalman''', '8, 4, tracker => ''lsh''', '8, 4, tracker => ''hadamard'', rotation => ''random''', '8, 9, tracker => ''lsh'', rotation => ''none''', '8, 4, rotation => ''left''', '8, 4, forgetting => 0',
	'8, 4, forgetting => 1.1', '8, 4, forgetting => -1', '8, 4, forgetting => ''NaN''', '8, 4, forgetting => ''Infinity''']) arguments;

-- vectors
SELECT error_of('SELECT sketcher_hash(model, ' || vector || ') FROM models')
FROM unnest(ARRAY['''{}''::real[]', 'ARRAY[1,2,3]::real[]', 'ARRAY[1,2,3,4,5]::float8[]', 'ARRAY[[1,2],[3,4]]::real[]',
	'ARRAY[1,NULL,3,4]::real[]', 'ARRAY[1,2,3,NULL]::float8[]', 'ARRAY[1,2,''NaN'',4]::real[]', 'ARRAY[''Infinity'',2,3,4]::real[]',
	'ARRAY[1,''-Infinity'',3,4]::float8[]', 'ARRAY[1,2,3,''NaN'']::float8[]', 'ARRAY[1,2,3,1e39]::float8[]', 'ARRAY[-1e300,2,3,4]::float8[]',
	'array_fill(1::real, ARRAY[16001])']) vector;
SELECT error_of('SELECT sketcher_agg(v, 2) FROM (VALUES (ARRAY[1,2,3]::real[]), (ARRAY[1,2]::real[])) t(v)');
SELECT error_of('SELECT sketcher_agg(ARRAY[1,NULL]::real[], 2)');
SELECT error_of('SELECT sketcher_agg(ARRAY[1,2]::real[], 3)');
SELECT error_of('SELECT sketcher_agg(ARRAY[1,2]::real[], 0)');
SELECT error_of('SELECT sketcher_agg(ARRAY[1,2]::real[], NULL)');
SELECT error_of('SELECT sketcher_agg(ARRAY[1,2]::real[], n) FROM generate_series(1, 2) n');
SELECT error_of('SELECT sketcher_stream(ARRAY[1,2]::real[], 3)');
SELECT error_of('SELECT sketcher_stream(v, 2) OVER (ORDER BY array_length(v, 1)) FROM (VALUES (ARRAY[1,2,3]::real[]), (ARRAY[1,2]::real[])) t(v)');
SELECT error_of('SELECT sketcher_learn(model, ARRAY[1,2]::real[]) FROM models');
SELECT error_of('SELECT sketcher_add(model, ARRAY[1,2]::real[]) FROM models');

-- a lower bound other than 1 is no matter
SELECT sketcher_hash(model, '[5:8]={1,2,3,4}'::real[]) = sketcher_hash(model, '{1,2,3,4}'::real[]) FROM models;

-- models that have not learnt anything
SELECT error_of('SELECT ' || call) FROM unnest(ARRAY['sketcher_hash(sketcher_new(2, 1), ARRAY[1,2]::real[])',
	'sketcher_mean(sketcher_new(2, 1))', 'sketcher_basis(sketcher_new(2, 1))', 'sketcher_rotation(sketcher_new(2, 1))',
	'sketcher_covariance(sketcher_new(2, 1))', 'sketcher_drift(sketcher_new(2, 1), sketcher_new(2, 1))']) call;

-- models that do not fit together
SELECT error_of('SELECT sketcher_merge(model, sketcher_new(' || arguments || ')) FROM models')
FROM unnest(ARRAY['5, 2', '4, 3', '4, 2, rotation => ''none''', '4, 2, stable => false', '4, 2, center => false',
	'4, 2, forgetting => 0.5', '4, 2, seed => 1', '4, 2, "normalize" => true']) arguments;
SELECT error_of('SELECT sketcher_drift(model, sketcher_add(sketcher_new(5, 2), ARRAY[1,2,3,4,5]::real[])) FROM models');
SELECT error_of('SELECT sketcher_merge(m) FROM (SELECT model AS m FROM models UNION ALL SELECT sketcher_new(5, 2)) t');

-- support functions outside of aggregates
SELECT error_of('SELECT sketcher_combine(model, model) FROM models');
SELECT error_of('SELECT sketcher_agg_trans(NULL, ARRAY[1,2]::real[], 1)');
SELECT error_of('SELECT sketcher_stream_final(model) FROM models');

-- text
SELECT error_of(format('SELECT %L::sketcher', input)) FROM unnest(ARRAY['', 'x', 'not base64!', 'AAAA', 'VURTSw==', repeat('A', 200)]) input;

-- a stored model with single bytes changed, cut short, or extended: found by the checksum,
-- whichever byte it is
-- encode breaks lines
CREATE FUNCTION read_back(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM replace(encode(bytes, 'base64'), E'\n', '')::sketcher;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT read_back(sketcher_send(model)) FROM models;
SELECT count(*) = octet_length(sketcher_send(min(model::text)::sketcher)) AS all_bytes, bool_and(read_back(set_byte(sketcher_send(model), i, get_byte(sketcher_send(model), i) # 16)) <> 'accepted') AS all_refused
FROM models, generate_series(0, octet_length(sketcher_send(model)) - 1) i;
SELECT read_back(substr(sketcher_send(model), 1, octet_length(sketcher_send(model)) - 1)) FROM models;
SELECT read_back(sketcher_send(model) || '\x00') FROM models;
SELECT read_back(substr(sketcher_send(model), 1, 87)) FROM models;
-- another version; a header that claims 16000 x 16000, with and without rows
SELECT read_back(overlay(sketcher_send(sketcher_new(4, 2)) PLACING '\x0002' FROM 5));
SELECT read_back(overlay(sketcher_send(sketcher_new(4, 2)) PLACING '\x00003e8000003e80' FROM 13));
SELECT read_back(overlay(overlay(sketcher_send(sketcher_new(4, 2)) PLACING '\x00003e8000000400' FROM 13) PLACING '\x0000000000000001' FROM 41));
SELECT read_back(overlay(sketcher_send(sketcher_new(4, 2)) PLACING '\xffffffff' FROM 13));

DROP TABLE models;
DROP FUNCTION error_of, read_back;

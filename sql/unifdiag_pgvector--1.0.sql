/* unifdiag_pgvector 1.0: the indexes and aggregates of unifdiag, for the types and operators of pgvector */

-- complain if the script is sourced in psql, rather than through CREATE EXTENSION
\echo Use "CREATE EXTENSION unifdiag_pgvector" to load this file. \quit

-- Names below mean pgvector's objects, also if somebody has made others of these names in the schema that
-- this extension goes to: that of pgvector comes first, and has them with exactly these arguments.
SELECT pg_catalog.set_config('search_path', pg_catalog.format('%s, %s, pg_temp', v.extnamespace::pg_catalog.regnamespace, u.extnamespace::pg_catalog.regnamespace), true)
FROM pg_catalog.pg_extension AS v, pg_catalog.pg_extension AS u
WHERE v.extname OPERATOR(pg_catalog.=) 'vector' AND u.extname OPERATOR(pg_catalog.=) 'unifdiag';

--
-- hamming: pgvector's <~>
--
-- An operator class of the same family: each index of bit columns, also one that is there
-- already, finds the nearest by either operator.
--

CREATE OPERATOR CLASS @extschema@.bit_pgvector_ops
	FOR TYPE bit USING hamming FAMILY bit_hamming_ops AS
		OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops;
COMMENT ON OPERATOR CLASS @extschema@.bit_pgvector_ops USING hamming IS 'nearest codes by the distance of pgvector';

--
-- sketch: pgvector's types and distances
--
-- The support function is the one of pgvector's cast to real[].
--

CREATE OPERATOR CLASS @extschema@.vector_l2_ops
	DEFAULT FOR TYPE vector USING sketch AS
		OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
		FUNCTION 1 vector_to_float4(vector, integer, boolean);
COMMENT ON OPERATOR CLASS @extschema@.vector_l2_ops USING sketch IS 'nearest by Euclidean distance';
CREATE OPERATOR CLASS @extschema@.vector_cosine_ops
	FOR TYPE vector USING sketch AS
		OPERATOR 2 <=> (vector, vector) FOR ORDER BY float_ops,
		FUNCTION 1 vector_to_float4(vector, integer, boolean);
COMMENT ON OPERATOR CLASS @extschema@.vector_cosine_ops USING sketch IS 'nearest by cosine distance';
CREATE OPERATOR CLASS @extschema@.vector_ip_ops
	FOR TYPE vector USING sketch AS
		OPERATOR 3 <#> (vector, vector) FOR ORDER BY float_ops,
		FUNCTION 1 vector_to_float4(vector, integer, boolean);
COMMENT ON OPERATOR CLASS @extschema@.vector_ip_ops USING sketch IS 'nearest by negative inner product';

CREATE OPERATOR CLASS @extschema@.halfvec_l2_ops
	DEFAULT FOR TYPE halfvec USING sketch AS
		OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
		FUNCTION 1 halfvec_to_float4(halfvec, integer, boolean);
COMMENT ON OPERATOR CLASS @extschema@.halfvec_l2_ops USING sketch IS 'nearest by Euclidean distance';
CREATE OPERATOR CLASS @extschema@.halfvec_cosine_ops
	FOR TYPE halfvec USING sketch AS
		OPERATOR 2 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
		FUNCTION 1 halfvec_to_float4(halfvec, integer, boolean);
COMMENT ON OPERATOR CLASS @extschema@.halfvec_cosine_ops USING sketch IS 'nearest by cosine distance';
CREATE OPERATOR CLASS @extschema@.halfvec_ip_ops
	FOR TYPE halfvec USING sketch AS
		OPERATOR 3 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
		FUNCTION 1 halfvec_to_float4(halfvec, integer, boolean);
COMMENT ON OPERATOR CLASS @extschema@.halfvec_ip_ops USING sketch IS 'nearest by negative inner product';

--
-- Learning
--
-- Of vector the parser makes real[] by itself, but also halfvec: so there has to be one for each.
-- What they are made of is unifdiag's, whose schema comes first from here on.
--

SELECT pg_catalog.set_config('search_path', pg_catalog.format('%s, %s, pg_temp', u.extnamespace::pg_catalog.regnamespace, v.extnamespace::pg_catalog.regnamespace), true)
FROM pg_catalog.pg_extension AS v, pg_catalog.pg_extension AS u
WHERE v.extname OPERATOR(pg_catalog.=) 'vector' AND u.extname OPERATOR(pg_catalog.=) 'unifdiag';

DO $$
DECLARE
	vector text;
BEGIN
	FOREACH vector IN ARRAY ARRAY['vector', 'halfvec'] LOOP
		EXECUTE pg_catalog.replace($sql$
			CREATE FUNCTION @extschema@.sketcher_agg_trans(sketcher, VECTOR, integer) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE @extschema@.sketcher_agg(v VECTOR, bits integer) (
				SFUNC = @extschema@.sketcher_agg_trans, STYPE = sketcher, SSPACE = 250000, COMBINEFUNC = sketcher_combine, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE @extschema@.sketcher_agg(VECTOR, integer) IS 'model learnt from the rows';

			CREATE FUNCTION @extschema@.sketcher_learn_trans(sketcher, sketcher, VECTOR) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE @extschema@.sketcher_learn(model sketcher, v VECTOR) (
				SFUNC = @extschema@.sketcher_learn_trans, STYPE = sketcher, SSPACE = 250000, FINALFUNC = sketcher_learn_final,
				COMBINEFUNC = sketcher_combine, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE @extschema@.sketcher_learn(sketcher, VECTOR) IS 'the given model, taught the rows as well';

			CREATE FUNCTION @extschema@.sketcher_stream_trans(sketcher, VECTOR, integer) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE @extschema@.sketcher_stream(v VECTOR, bits integer) (
				SFUNC = @extschema@.sketcher_stream_trans, STYPE = sketcher, SSPACE = 250000, FINALFUNC = sketcher_stream_final, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE @extschema@.sketcher_stream(VECTOR, integer)
				IS 'in a window: the code of the current row by the model of the rows before it';

			CREATE FUNCTION @extschema@.sketcher_stream_model_trans(sketcher, sketcher, VECTOR) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE @extschema@.sketcher_stream(model sketcher, v VECTOR) (
				SFUNC = @extschema@.sketcher_stream_model_trans, STYPE = sketcher, SSPACE = 250000, FINALFUNC = sketcher_stream_final, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE @extschema@.sketcher_stream(sketcher, VECTOR)
				IS 'in a window: the code of the current row by the given model, taught the rows before it';
		$sql$, 'VECTOR', vector);
	END LOOP;
END $$;

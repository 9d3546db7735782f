/* unifdiag_pgvector 1.0: the indexes of unifdiag, for the types and operators of pgvector */

-- complain if the script is sourced in psql, rather than through CREATE EXTENSION
\echo Use "CREATE EXTENSION unifdiag_pgvector" to load this file. \quit

--
-- hamming: pgvector's <~>
--
-- An operator class of the same family: each index of bit columns, also one that is there
-- already, finds the nearest by either operator.
--

CREATE OPERATOR CLASS bit_pgvector_ops
	FOR TYPE bit USING hamming FAMILY bit_hamming_ops AS
		OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops;
COMMENT ON OPERATOR CLASS bit_pgvector_ops USING hamming IS 'nearest codes by the distance of pgvector';

--
-- sketch: pgvector's types and distances
--
-- The support function is the one of pgvector's cast to real[].
--

CREATE OPERATOR CLASS vector_l2_ops
	DEFAULT FOR TYPE vector USING sketch AS
		OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
		FUNCTION 1 vector_to_float4(vector, integer, boolean);
COMMENT ON OPERATOR CLASS vector_l2_ops USING sketch IS 'nearest by Euclidean distance';
CREATE OPERATOR CLASS vector_cosine_ops
	FOR TYPE vector USING sketch AS
		OPERATOR 2 <=> (vector, vector) FOR ORDER BY float_ops,
		FUNCTION 1 vector_to_float4(vector, integer, boolean);
COMMENT ON OPERATOR CLASS vector_cosine_ops USING sketch IS 'nearest by cosine distance';
CREATE OPERATOR CLASS vector_ip_ops
	FOR TYPE vector USING sketch AS
		OPERATOR 3 <#> (vector, vector) FOR ORDER BY float_ops,
		FUNCTION 1 vector_to_float4(vector, integer, boolean);
COMMENT ON OPERATOR CLASS vector_ip_ops USING sketch IS 'nearest by negative inner product';

CREATE OPERATOR CLASS halfvec_l2_ops
	DEFAULT FOR TYPE halfvec USING sketch AS
		OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
		FUNCTION 1 halfvec_to_float4(halfvec, integer, boolean);
COMMENT ON OPERATOR CLASS halfvec_l2_ops USING sketch IS 'nearest by Euclidean distance';
CREATE OPERATOR CLASS halfvec_cosine_ops
	FOR TYPE halfvec USING sketch AS
		OPERATOR 2 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
		FUNCTION 1 halfvec_to_float4(halfvec, integer, boolean);
COMMENT ON OPERATOR CLASS halfvec_cosine_ops USING sketch IS 'nearest by cosine distance';
CREATE OPERATOR CLASS halfvec_ip_ops
	FOR TYPE halfvec USING sketch AS
		OPERATOR 3 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
		FUNCTION 1 halfvec_to_float4(halfvec, integer, boolean);
COMMENT ON OPERATOR CLASS halfvec_ip_ops USING sketch IS 'nearest by negative inner product';

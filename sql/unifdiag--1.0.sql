/* unifdiag 1.0: nearest-neighbour search for vectors and binary codes */

-- complain if the script is sourced in psql, rather than through CREATE EXTENSION
\echo Use "CREATE EXTENSION unifdiag" to load this file. \quit

--
-- bithash: a binary code of 1 to 64000 bits
--

CREATE TYPE bithash;

CREATE FUNCTION bithash_in(cstring, oid, integer) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_out(bithash) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_recv(internal, oid, integer) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_send(bithash) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_typmod_in(cstring[]) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_typmod_out(integer) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- STORAGE external: the bits of a good code are random, compression would find nothing.
-- CATEGORY 'V', bit strings: see hamming_distance(bit varying, bit varying)
CREATE TYPE bithash (
	INPUT = bithash_in,
	OUTPUT = bithash_out,
	RECEIVE = bithash_recv,
	SEND = bithash_send,
	TYPMOD_IN = bithash_typmod_in,
	TYPMOD_OUT = bithash_typmod_out,
	INTERNALLENGTH = variable,
	ALIGNMENT = int4,
	STORAGE = external,
	CATEGORY = 'V'
);
COMMENT ON TYPE bithash IS 'binary code of 1 to 64000 bits';

CREATE FUNCTION length(bithash) RETURNS integer
	AS 'MODULE_PATHNAME', 'bithash_length' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION length(bithash) IS 'number of bits of the code';
CREATE FUNCTION bit_count(bithash) RETURNS bigint
	AS 'MODULE_PATHNAME', 'bithash_bit_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bit_count(bithash) IS 'number of bits set in the code';
CREATE FUNCTION get_bit(bithash, integer) RETURNS integer
	AS 'MODULE_PATHNAME', 'bithash_get_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION get_bit(bithash, integer) IS 'bit of the code, counted from 0 at the left';
-- core's own, for literals and parameters without a type, which would be ambiguous: bit varying is preferred
CREATE FUNCTION get_bit(bit varying, integer) RETURNS integer
	AS 'bitgetbit' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION get_bit(bit varying, integer) IS 'bit of the bit string, as core''s for bit';

--
-- Casts
--
-- From bit the cast is implicit, so that B'0101' serves as a query.  From bit varying it
-- must not be: core's length(bit) and others, called with a bit varying, would become
-- ambiguous.
--

CREATE FUNCTION bithash(bithash, integer, boolean) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_enforce_typmod' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash(bithash, integer, boolean) IS 'check that the code has the length that its type demands';
CREATE FUNCTION bithash(bit, integer, boolean) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_from_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash(bit, integer, boolean) IS 'convert bit to bithash';
CREATE FUNCTION bithash(bit varying, integer, boolean) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_from_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash(bit varying, integer, boolean) IS 'convert bit varying to bithash';
CREATE FUNCTION bithash(bytea, integer, boolean) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash(bytea, integer, boolean) IS 'convert bytea to bithash';
CREATE FUNCTION bithash(bigint, integer, boolean) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_from_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash(bigint, integer, boolean) IS 'convert bigint to bithash(64)';
CREATE FUNCTION bithash_to_bit(bithash) RETURNS bit
	AS 'MODULE_PATHNAME', 'bithash_to_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash_to_bit(bithash) IS 'convert bithash to bit';
CREATE FUNCTION bithash_to_varbit(bithash) RETURNS bit varying
	AS 'MODULE_PATHNAME', 'bithash_to_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash_to_varbit(bithash) IS 'convert bithash to bit varying';
CREATE FUNCTION bithash_to_bytea(bithash) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash_to_bytea(bithash) IS 'convert bithash to bytea';

CREATE FUNCTION bithash_to_int8(bithash) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bithash_to_int8(bithash) IS 'convert bithash(64) to bigint';

CREATE CAST (bithash AS bithash) WITH FUNCTION bithash(bithash, integer, boolean) AS IMPLICIT;
CREATE CAST (bit AS bithash) WITH FUNCTION bithash(bit, integer, boolean) AS IMPLICIT;
CREATE CAST (bit varying AS bithash) WITH FUNCTION bithash(bit varying, integer, boolean) AS ASSIGNMENT;
CREATE CAST (bytea AS bithash) WITH FUNCTION bithash(bytea, integer, boolean) AS ASSIGNMENT;
CREATE CAST (bigint AS bithash) WITH FUNCTION bithash(bigint, integer, boolean) AS ASSIGNMENT;
CREATE CAST (bithash AS bit) WITH FUNCTION bithash_to_bit(bithash) AS ASSIGNMENT;
CREATE CAST (bithash AS bit varying) WITH FUNCTION bithash_to_varbit(bithash) AS ASSIGNMENT;
CREATE CAST (bithash AS bytea) WITH FUNCTION bithash_to_bytea(bithash) AS ASSIGNMENT;
CREATE CAST (bithash AS bigint) WITH FUNCTION bithash_to_int8(bithash) AS ASSIGNMENT;

--
-- Order and equality
--

CREATE FUNCTION bithash_lt(bithash, bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_le(bithash, bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_eq(bithash, bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_ne(bithash, bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_ge(bithash, bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_gt(bithash, bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_cmp(bithash, bithash) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_sortsupport(internal) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_hash(bithash) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_hash_extended(bithash, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR < (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_lt,
	COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_le,
	COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR = (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_eq,
	COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_ne,
	COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR >= (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_ge,
	COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR > (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_gt,
	COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR < (bithash, bithash) IS 'less than, in the order of the text forms';
COMMENT ON OPERATOR <= (bithash, bithash) IS 'less than or equal, in the order of the text forms';
COMMENT ON OPERATOR = (bithash, bithash) IS 'equal: the same length and the same bits';
COMMENT ON OPERATOR <> (bithash, bithash) IS 'not equal';
COMMENT ON OPERATOR >= (bithash, bithash) IS 'greater than or equal, in the order of the text forms';
COMMENT ON OPERATOR > (bithash, bithash) IS 'greater than, in the order of the text forms';

CREATE OPERATOR CLASS bithash_ops DEFAULT FOR TYPE bithash USING btree AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >,
	FUNCTION 1 bithash_cmp(bithash, bithash),
	FUNCTION 2 bithash_sortsupport(internal),
	FUNCTION 4 btequalimage(oid);
COMMENT ON OPERATOR CLASS bithash_ops USING btree IS 'order of bithash';

CREATE OPERATOR CLASS bithash_ops DEFAULT FOR TYPE bithash USING hash AS
	OPERATOR 1 =,
	FUNCTION 1 bithash_hash(bithash),
	FUNCTION 2 bithash_hash_extended(bithash, bigint);
COMMENT ON OPERATOR CLASS bithash_ops USING hash IS 'hashing of bithash';

--
-- What core has for bit strings ("substring" is a keyword there)
--

CREATE FUNCTION bithash_and(bithash, bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR & (LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_and, COMMUTATOR = &);
COMMENT ON OPERATOR & (bithash, bithash) IS 'the bits that are set in both';
CREATE FUNCTION bithash_or(bithash, bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR | (LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_or, COMMUTATOR = |);
COMMENT ON OPERATOR | (bithash, bithash) IS 'the bits that are set in one or the other';
CREATE FUNCTION bithash_xor(bithash, bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR # (LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_xor, COMMUTATOR = #);
COMMENT ON OPERATOR # (bithash, bithash) IS 'the bits that differ';
CREATE FUNCTION bithash_not(bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR ~ (RIGHTARG = bithash, FUNCTION = bithash_not);
COMMENT ON OPERATOR ~ (NONE, bithash) IS 'the bits that are not set';
CREATE FUNCTION bithash_concat(bithash, bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR || (LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = bithash_concat);
COMMENT ON OPERATOR || (bithash, bithash) IS 'the bits of one code, then those of the other';

CREATE FUNCTION "substring"(bithash, integer, integer) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_substring' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION "substring"(bithash, integer, integer) IS 'part of the code: where it begins, counted from 1, and its number of bits';
CREATE FUNCTION "substring"(bithash, integer) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_substring_from' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION "substring"(bithash, integer) IS 'rest of the code, from where it begins, counted from 1';
CREATE FUNCTION set_bit(bithash, integer, integer) RETURNS bithash
	AS 'MODULE_PATHNAME', 'bithash_set_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION set_bit(bithash, integer, integer) IS 'the code with a bit, counted from 0 at the left, set to 0 or 1';
CREATE FUNCTION set_bit(bit varying, integer, integer) RETURNS bit
	AS 'bitsetbit' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION set_bit(bit varying, integer, integer) IS 'the bit string with a bit set to 0 or 1, as core''s for bit';
CREATE FUNCTION to_hex(bithash) RETURNS text
	AS 'MODULE_PATHNAME', 'bithash_to_hex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION to_hex(bithash) IS 'hexadecimal digits of the code, with zero bits after its end';

CREATE AGGREGATE bit_and(bithash) (SFUNC = bithash_and, STYPE = bithash, COMBINEFUNC = bithash_and, PARALLEL = SAFE);
COMMENT ON AGGREGATE bit_and(bithash) IS 'the bits that are set in all codes';
CREATE AGGREGATE bit_or(bithash) (SFUNC = bithash_or, STYPE = bithash, COMBINEFUNC = bithash_or, PARALLEL = SAFE);
COMMENT ON AGGREGATE bit_or(bithash) IS 'the bits that are set in any code';

CREATE FUNCTION bithash_smaller(bithash, bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bithash_larger(bithash, bithash) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE min(bithash) (SFUNC = bithash_smaller, STYPE = bithash, COMBINEFUNC = bithash_smaller, SORTOP = <, PARALLEL = SAFE);
COMMENT ON AGGREGATE min(bithash) IS 'first code in the order of the text forms';
CREATE AGGREGATE max(bithash) (SFUNC = bithash_larger, STYPE = bithash, COMBINEFUNC = bithash_larger, SORTOP = >, PARALLEL = SAFE);
COMMENT ON AGGREGATE max(bithash) IS 'last code in the order of the text forms';

--
-- Distance
--

CREATE FUNCTION hamming_distance(a bithash, b bithash) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_distance(bithash, bithash) IS 'number of bits in which two codes differ';

CREATE OPERATOR <~> (
	LEFTARG = bithash, RIGHTARG = bithash, FUNCTION = hamming_distance,
	COMMUTATOR = <~>
);
COMMENT ON OPERATOR <~> (bithash, bithash) IS 'Hamming distance: number of bits in which two codes differ';

--
-- Distances of bit strings and of bigint
--
-- pgvector has <~> and hamming_distance for two values of type bit, and with it each statement that
-- works without unifdiag means the same.  So there is <~> for bit and bithash, to which bit <~> bit
-- resolves where pgvector is not.  hamming_distance('101', '111') would have two candidates; a third,
-- with the preferred type of bit strings, is chosen, and is like pgvector's.  For bigint the
-- function has another name, since literals would have a second kind of candidate.
--

CREATE FUNCTION bit_hamming_distance(bit, bithash) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR <~> (LEFTARG = bit, RIGHTARG = bithash, FUNCTION = bit_hamming_distance);
COMMENT ON OPERATOR <~> (bit, bithash) IS 'Hamming distance: number of bits in which two codes differ';

CREATE FUNCTION hamming_distance(bit varying, bit varying) RETURNS double precision
	AS 'MODULE_PATHNAME', 'varbit_hamming_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_distance(bit varying, bit varying) IS 'number of bits in which two bit strings differ';

CREATE FUNCTION int8_hamming_distance(bigint, bigint) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR <~> (
	LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = int8_hamming_distance,
	COMMUTATOR = <~>
);
COMMENT ON OPERATOR <~> (bigint, bigint) IS 'Hamming distance: number of bits in which two numbers differ';

-- planner support: how many rows to expect
CREATE FUNCTION hamming_within_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION hamming_within(a bithash, b bithash, radius integer) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT hamming_within_support;
COMMENT ON FUNCTION hamming_within(bithash, bithash, integer) IS 'whether two codes differ in at most radius bits';
-- for bit as well; and for two literals, which without the preferred type would be ambiguous
CREATE FUNCTION hamming_within(a bit varying, b bit varying, radius integer) RETURNS boolean
	AS 'MODULE_PATHNAME', 'hamming_within_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT hamming_within_support;
COMMENT ON FUNCTION hamming_within(bit varying, bit varying, integer) IS 'whether two bit strings differ in at most radius bits';
-- with the column as it is, and not made bithash, so that its index serves
CREATE FUNCTION hamming_within(a bit varying, b bithash, radius integer) RETURNS boolean
	AS 'MODULE_PATHNAME', 'hamming_within_bit_code' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT hamming_within_support;
COMMENT ON FUNCTION hamming_within(bit varying, bithash, integer) IS 'whether two codes differ in at most radius bits';
-- the radius is bigint so that two literals and an integer do not become numbers
CREATE FUNCTION hamming_within(a bigint, b bigint, radius bigint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'hamming_within_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT hamming_within_support;
COMMENT ON FUNCTION hamming_within(bigint, bigint, bigint) IS 'whether two numbers differ in at most radius bits';

--
-- Distances between vectors
--
-- The operators are pgvector's, on arrays.  pgvector casts vector to real[] implicitly.  So
-- vector <-> real[], which is an error with pgvector alone, would quietly become a distance between
-- arrays, which no index on a vector column serves.  The operators between an array and any other type
-- give the parser a second candidate, so that it is an error again.
--

CREATE FUNCTION real_l2_distance(real[], real[]) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION real_l2_distance(real[], real[]) IS 'Euclidean distance';
CREATE FUNCTION real_cosine_distance(real[], real[]) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION real_cosine_distance(real[], real[]) IS 'cosine distance: one minus the cosine';
CREATE FUNCTION real_negative_inner_product(real[], real[]) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION real_negative_inner_product(real[], real[]) IS 'negative inner product';
CREATE FUNCTION no_distance(real[], anynonarray) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION no_distance(real[], anynonarray) IS 'always an error: cast both sides to one type';
CREATE FUNCTION no_distance(anynonarray, real[]) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION no_distance(anynonarray, real[]) IS 'always an error: cast both sides to one type';

CREATE OPERATOR <-> (
	LEFTARG = real[], RIGHTARG = real[], FUNCTION = real_l2_distance, COMMUTATOR = <->
);
CREATE OPERATOR <-> (LEFTARG = real[], RIGHTARG = anynonarray, FUNCTION = no_distance, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = anynonarray, RIGHTARG = real[], FUNCTION = no_distance, COMMUTATOR = <->);
COMMENT ON OPERATOR <-> (real[], real[]) IS 'Euclidean distance';
COMMENT ON OPERATOR <-> (real[], anynonarray) IS 'always an error: cast both sides to one type';
COMMENT ON OPERATOR <-> (anynonarray, real[]) IS 'always an error: cast both sides to one type';

CREATE OPERATOR <=> (
	LEFTARG = real[], RIGHTARG = real[], FUNCTION = real_cosine_distance, COMMUTATOR = <=>
);
CREATE OPERATOR <=> (LEFTARG = real[], RIGHTARG = anynonarray, FUNCTION = no_distance, COMMUTATOR = <=>);
CREATE OPERATOR <=> (LEFTARG = anynonarray, RIGHTARG = real[], FUNCTION = no_distance, COMMUTATOR = <=>);
COMMENT ON OPERATOR <=> (real[], real[]) IS 'cosine distance';
COMMENT ON OPERATOR <=> (real[], anynonarray) IS 'always an error: cast both sides to one type';
COMMENT ON OPERATOR <=> (anynonarray, real[]) IS 'always an error: cast both sides to one type';

CREATE OPERATOR <#> (
	LEFTARG = real[], RIGHTARG = real[], FUNCTION = real_negative_inner_product, COMMUTATOR = <#>
);
CREATE OPERATOR <#> (LEFTARG = real[], RIGHTARG = anynonarray, FUNCTION = no_distance, COMMUTATOR = <#>);
CREATE OPERATOR <#> (LEFTARG = anynonarray, RIGHTARG = real[], FUNCTION = no_distance, COMMUTATOR = <#>);
COMMENT ON OPERATOR <#> (real[], real[]) IS 'negative inner product';
COMMENT ON OPERATOR <#> (real[], anynonarray) IS 'always an error: cast both sides to one type';
COMMENT ON OPERATOR <#> (anynonarray, real[]) IS 'always an error: cast both sides to one type';

--
-- hamming: an index that finds the nearest codes
--
-- A condition hamming_within(code, center, radius) reaches the index as code <@
-- hamming_ball(center, radius), which the support function above makes of it; so hamming_ball takes
-- the same types.
--

CREATE TYPE hamming_ball;

CREATE FUNCTION hamming_ball_in(cstring) RETURNS hamming_ball
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hamming_ball_out(hamming_ball) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE hamming_ball (
	INPUT = hamming_ball_in,
	OUTPUT = hamming_ball_out,
	INTERNALLENGTH = variable,
	ALIGNMENT = int4,
	STORAGE = external
);
COMMENT ON TYPE hamming_ball IS 'all codes that differ from a center in at most radius bits';

CREATE FUNCTION hamming_ball(center bithash, radius integer) RETURNS hamming_ball
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_ball(bithash, integer) IS 'all codes that differ from center in at most radius bits';
CREATE FUNCTION hamming_ball(center bit varying, radius integer) RETURNS hamming_ball
	AS 'MODULE_PATHNAME', 'hamming_ball_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_ball(bit varying, integer) IS 'all codes that differ from center in at most radius bits';
CREATE FUNCTION hamming_ball(center bigint, radius bigint) RETURNS hamming_ball
	AS 'MODULE_PATHNAME', 'hamming_ball_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_ball(bigint, bigint) IS 'all codes that differ from center in at most radius bits';
CREATE FUNCTION hamming_in_ball(bithash, hamming_ball) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_in_ball(bithash, hamming_ball) IS 'implementation of <@ operator';
CREATE OPERATOR <@ (
	LEFTARG = bithash, RIGHTARG = hamming_ball, FUNCTION = hamming_in_ball,
	RESTRICT = contsel, JOIN = contjoinsel
);
COMMENT ON OPERATOR <@ (bithash, hamming_ball) IS 'whether the code lies in the ball';
CREATE FUNCTION hamming_in_ball(bit, hamming_ball) RETURNS boolean
	AS 'MODULE_PATHNAME', 'hamming_in_ball_bit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_in_ball(bit, hamming_ball) IS 'implementation of <@ operator';
CREATE OPERATOR <@ (
	LEFTARG = bit, RIGHTARG = hamming_ball, FUNCTION = hamming_in_ball,
	RESTRICT = contsel, JOIN = contjoinsel
);
COMMENT ON OPERATOR <@ (bit, hamming_ball) IS 'whether the bit string lies in the ball';
CREATE FUNCTION hamming_in_ball(bigint, hamming_ball) RETURNS boolean
	AS 'MODULE_PATHNAME', 'hamming_in_ball_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_in_ball(bigint, hamming_ball) IS 'implementation of <@ operator';
CREATE OPERATOR <@ (
	LEFTARG = bigint, RIGHTARG = hamming_ball, FUNCTION = hamming_in_ball,
	RESTRICT = contsel, JOIN = contjoinsel
);
COMMENT ON OPERATOR <@ (bigint, hamming_ball) IS 'whether the number lies in the ball';

CREATE FUNCTION hamming_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION hamming_handler(internal) IS 'handler of the hamming access method';
CREATE ACCESS METHOD hamming TYPE INDEX HANDLER hamming_handler;
COMMENT ON ACCESS METHOD hamming IS 'exact nearest binary codes, in order of distance';

CREATE OPERATOR CLASS bithash_hamming_ops
	DEFAULT FOR TYPE bithash USING hamming AS
		OPERATOR 1 <~> (bithash, bithash) FOR ORDER BY integer_ops,
		OPERATOR 2 <@ (bithash, hamming_ball);
COMMENT ON OPERATOR CLASS bithash_hamming_ops USING hamming IS 'nearest codes';
CREATE OPERATOR CLASS bit_hamming_ops
	DEFAULT FOR TYPE bit USING hamming AS
		OPERATOR 1 <~> (bit, bithash) FOR ORDER BY integer_ops,
		OPERATOR 2 <@ (bit, hamming_ball);
COMMENT ON OPERATOR CLASS bit_hamming_ops USING hamming IS 'nearest codes in columns of type bit, or bit varying of one length';
CREATE OPERATOR CLASS int8_hamming_ops
	DEFAULT FOR TYPE bigint USING hamming AS
		OPERATOR 1 <~> (bigint, bigint) FOR ORDER BY integer_ops,
		OPERATOR 2 <@ (bigint, hamming_ball);
COMMENT ON OPERATOR CLASS int8_hamming_ops USING hamming IS 'nearest codes of 64 bits in columns of type bigint';

-- volatile: they look at what is on disk now
CREATE FUNCTION hamming_info(
	index regclass, OUT version integer, OUT bits integer, OUT codes bigint, OUT nulls bigint,
	OUT pages bigint, OUT free_pages bigint, OUT fill float8) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION hamming_info(regclass) IS 'version, size and fill of a hamming index';
CREATE FUNCTION hamming_check(index regclass, with_table boolean DEFAULT true) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION hamming_check(regclass, boolean) IS 'raise an error if a hamming index is inconsistent in itself or, by default, with its table';

-- Joins: rows are named by ctid, as the statement's snapshot sees them.  Restricted, because temporary
-- tables are the session's own.
CREATE FUNCTION hamming_pairs(index regclass, radius integer, OUT a tid, OUT b tid, OUT distance integer)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION hamming_pairs(regclass, integer) IS 'all pairs of rows whose codes differ in at most radius bits';
CREATE FUNCTION hamming_pairs(index_a regclass, index_b regclass, radius integer, OUT a tid, OUT b tid, OUT distance integer)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION hamming_pairs(regclass, regclass, integer)
	IS 'all pairs of a row of one table and a row of another whose codes differ in at most radius bits';
CREATE FUNCTION hamming_clusters(index regclass, radius integer, OUT member tid, OUT cluster tid)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION hamming_clusters(regclass, integer)
	IS 'groups of rows: two rows are in one group if a chain of pairs whose codes differ in at most radius bits leads from one to the other; the first row names the group';
CREATE FUNCTION hamming_nearest(index regclass, queries bithash[], k integer, OUT query integer, OUT neighbour tid, OUT distance integer)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION hamming_nearest(regclass, bithash[], integer) IS 'for each of many codes the k rows with the nearest codes';

--
-- sketch: an index that finds the nearest vectors
--

CREATE FUNCTION sketch_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketch_handler(internal) IS 'handler of access method sketch';
CREATE ACCESS METHOD sketch TYPE INDEX HANDLER sketch_handler;
COMMENT ON ACCESS METHOD sketch IS 'nearest vectors, in order of distance, with the recall that is asked for';

CREATE OPERATOR CLASS real_l2_ops
	DEFAULT FOR TYPE real[] USING sketch AS
		OPERATOR 1 <-> (real[], real[]) FOR ORDER BY float_ops;
CREATE OPERATOR CLASS real_cosine_ops
	FOR TYPE real[] USING sketch AS
		OPERATOR 2 <=> (real[], real[]) FOR ORDER BY float_ops;
CREATE OPERATOR CLASS real_ip_ops
	FOR TYPE real[] USING sketch AS
		OPERATOR 3 <#> (real[], real[]) FOR ORDER BY float_ops;
-- it has no operator: whoever makes an index on such a column shall be told of the cast
CREATE OPERATOR CLASS double_precision_ops
	DEFAULT FOR TYPE double precision[] USING sketch AS
		STORAGE double precision[];
COMMENT ON OPERATOR CLASS double_precision_ops USING sketch IS 'not supported: make the index on the expression (v::real[])';
COMMENT ON OPERATOR CLASS real_l2_ops USING sketch IS 'nearest by Euclidean distance';
COMMENT ON OPERATOR CLASS real_cosine_ops USING sketch IS 'nearest by cosine distance';
COMMENT ON OPERATOR CLASS real_ip_ops USING sketch IS 'nearest by negative inner product';

-- volatile: they look at what is on disk now
CREATE FUNCTION sketch_info(
	index regclass, OUT version integer, OUT bits integer, OUT dims integer, OUT rows bigint, OUT nulls bigint,
	OUT unsketched bigint, OUT learnt bigint, OUT explained float8, OUT explained_now float8, OUT bytes bigint) RETURNS record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION sketch_info(regclass) IS 'version and size of a sketch index, and how well its model explains the rows that came last';
CREATE FUNCTION sketch_check(index regclass, with_table boolean DEFAULT true) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION sketch_check(regclass, boolean) IS 'raise an error if a sketch index is inconsistent in itself or, by default, with its table';
CREATE FUNCTION sketch_recall(index regclass, k integer DEFAULT 10, queries integer DEFAULT 100) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION sketch_recall(regclass, integer, integer)
	IS 'share of the true k nearest rows that the index returns first, for rows drawn at random as queries';

--
-- sketcher: a model that learns from rows
--

CREATE TYPE sketcher;

CREATE FUNCTION sketcher_in(cstring) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sketcher_out(sketcher) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sketcher_recv(internal) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sketcher_send(sketcher) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- STORAGE external: numbers of a model do not compress
CREATE TYPE sketcher (
	INPUT = sketcher_in,
	OUTPUT = sketcher_out,
	RECEIVE = sketcher_recv,
	SEND = sketcher_send,
	INTERNALLENGTH = variable,
	ALIGNMENT = int4,
	STORAGE = external
);
COMMENT ON TYPE sketcher IS 'model that turns vectors into binary codes';

-- "normalize" is a keyword of SQL that the grammar does not take as the name of an argument: it has to be
-- quoted here, and by callers that name it
CREATE FUNCTION sketcher_new(dims integer, bits integer, tracker text DEFAULT 'opast', rotation text DEFAULT 'neighbour',
		stable boolean DEFAULT true, center boolean DEFAULT true, forgetting double precision DEFAULT 1.0, seed bigint DEFAULT 0,
		"normalize" boolean DEFAULT false)
	RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_new(integer, integer, text, text, boolean, boolean, double precision, bigint, boolean)
	IS 'model that has not learnt from any row yet; the keyword "normalize" is quoted where it is named: "normalize" => true';

--
-- Learning: aggregates whose state is a sketcher
--
-- Their support functions are not STRICT, because a NULL vector is skipped and a NULL state
-- is the beginning.  SSPACE is a model of 64 bits for 960 dimensions, so that the planner does
-- not keep thousands of groups in memory.
--
-- They are declared for each type of array, not for "any": what moves partial states between servers
-- (Citus) checks the types of arguments, and calls support functions without their expressions.
-- Literals and parameters without a type resolve to text, which is written as {1,2} or [1,2].
--

CREATE FUNCTION sketcher_combine(sketcher, sketcher) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION sketcher_learn_final(sketcher) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION sketcher_stream_final(sketcher) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

DO $$
DECLARE
	vector text;
BEGIN
	FOREACH vector IN ARRAY ARRAY['real[]', 'double precision[]', 'numeric[]', 'integer[]', 'text'] LOOP
		EXECUTE pg_catalog.replace($sql$
			CREATE FUNCTION sketcher_agg_trans(sketcher, VECTOR, integer) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE sketcher_agg(v VECTOR, bits integer) (
				SFUNC = sketcher_agg_trans, STYPE = sketcher, SSPACE = 250000, COMBINEFUNC = sketcher_combine, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE sketcher_agg(VECTOR, integer) IS 'model learnt from the rows';

			CREATE FUNCTION sketcher_learn_trans(sketcher, sketcher, VECTOR) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE sketcher_learn(model sketcher, v VECTOR) (
				SFUNC = sketcher_learn_trans, STYPE = sketcher, SSPACE = 250000, FINALFUNC = sketcher_learn_final,
				COMBINEFUNC = sketcher_combine, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE sketcher_learn(sketcher, VECTOR) IS 'the given model, taught the rows as well';

			CREATE FUNCTION sketcher_stream_trans(sketcher, VECTOR, integer) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE sketcher_stream(v VECTOR, bits integer) (
				SFUNC = sketcher_stream_trans, STYPE = sketcher, SSPACE = 250000, FINALFUNC = sketcher_stream_final, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE sketcher_stream(VECTOR, integer)
				IS 'in a window: the code of the current row by the model of the rows before it';

			CREATE FUNCTION sketcher_stream_model_trans(sketcher, sketcher, VECTOR) RETURNS sketcher
				AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
			CREATE AGGREGATE sketcher_stream(model sketcher, v VECTOR) (
				SFUNC = sketcher_stream_model_trans, STYPE = sketcher, SSPACE = 250000, FINALFUNC = sketcher_stream_final, PARALLEL = SAFE
			);
			COMMENT ON AGGREGATE sketcher_stream(sketcher, VECTOR)
				IS 'in a window: the code of the current row by the given model, taught the rows before it';
		$sql$, 'VECTOR', vector);
	END LOOP;
END $$;

-- literals and parameters without a type resolve to text; of other types the planner makes real[]
CREATE FUNCTION vector_argument_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sketcher_add(model sketcher, v "any") RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT vector_argument_support;
COMMENT ON FUNCTION sketcher_add(sketcher, "any") IS 'the given model, taught one row more';
CREATE FUNCTION sketcher_add(model sketcher, v text) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_add(sketcher, text) IS 'the given model, taught one row more, written as {1,2} or [1,2]';

CREATE FUNCTION sketcher_merge(a sketcher, b sketcher) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_merge(sketcher, sketcher) IS 'one model of the rows of both';
CREATE FUNCTION sketcher_merge_trans(sketcher, sketcher) RETURNS sketcher
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE sketcher_merge(model sketcher) (
	SFUNC = sketcher_merge_trans, STYPE = sketcher, SSPACE = 250000, COMBINEFUNC = sketcher_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE sketcher_merge(sketcher) IS 'one model of the rows of all';

--
-- Using a model
--

-- COST: 4 microseconds for 64 bits of 784 dimensions, 13 for 256 of 960, as long as hundreds of operators
CREATE FUNCTION sketcher_hash(model sketcher, v "any") RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 300
	SUPPORT vector_argument_support;
COMMENT ON FUNCTION sketcher_hash(sketcher, "any") IS 'code of the vector';
CREATE FUNCTION sketcher_hash(model sketcher, v text) RETURNS bithash
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 300;
COMMENT ON FUNCTION sketcher_hash(sketcher, text) IS 'code of the vector, written as {1,2} or [1,2]';

CREATE FUNCTION sketcher_info(model sketcher, OUT dims integer, OUT bits integer, OUT rows bigint, OUT tracker text,
		OUT rotation text, OUT stable boolean, OUT center boolean, OUT forgetting double precision, OUT seed bigint,
		OUT explained_variance double precision, OUT balance double precision, OUT bytes bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_info(sketcher) IS 'options, size and quality of the model';
CREATE FUNCTION sketcher_mean(model sketcher) RETURNS real[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_mean(sketcher) IS 'mean of the rows';
CREATE FUNCTION sketcher_basis(model sketcher) RETURNS real[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_basis(sketcher) IS 'basis of the subspace, bits x dims, orthonormal rows';
CREATE FUNCTION sketcher_rotation(model sketcher) RETURNS real[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_rotation(sketcher) IS 'rotation within the subspace, bits x bits, orthogonal';
CREATE FUNCTION sketcher_covariance(model sketcher) RETURNS double precision[]
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_covariance(sketcher) IS 'covariance of the rows projected on the basis, bits x bits';
CREATE FUNCTION sketcher_drift(old sketcher, new sketcher) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_drift(sketcher, sketcher) IS 'expected fraction of bits that differ between codes of the two models';

--
-- Living in a table: codes and model kept fresh by triggers
--
-- What writes or commits is PARALLEL UNSAFE, and VOLATILE.  sketcher_hash with a model table
-- is STABLE, because it reads that, and PARALLEL RESTRICTED, because it may be a temporary one.
--

CREATE FUNCTION sketcher_hash(model_table regclass, v "any") RETURNS bithash
	AS 'MODULE_PATHNAME', 'sketcher_hash_published' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 300
	SUPPORT vector_argument_support;
COMMENT ON FUNCTION sketcher_hash(regclass, "any") IS 'code of the vector by the published model';
CREATE FUNCTION sketcher_hash(model_table regclass, v text) RETURNS bithash
	AS 'MODULE_PATHNAME', 'sketcher_hash_published' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 300;
COMMENT ON FUNCTION sketcher_hash(regclass, text) IS 'code of the vector, written as {1,2} or [1,2], by the published model';
-- a model table that is named by a literal: text is what that resolves to
CREATE FUNCTION sketcher_hash(model_table text, v "any") RETURNS bithash
	AS 'MODULE_PATHNAME', 'sketcher_hash_named' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 300
	SUPPORT vector_argument_support;
COMMENT ON FUNCTION sketcher_hash(text, "any") IS 'code of the vector by the published model';
CREATE FUNCTION sketcher_hash(model_table text, v text) RETURNS bithash
	AS 'MODULE_PATHNAME', 'sketcher_hash_named' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 300;
COMMENT ON FUNCTION sketcher_hash(text, text) IS 'code of the vector, written as {1,2} or [1,2], by the published model';

-- reads with the caller's rights, in a statement of its own
CREATE FUNCTION sketcher_recall(target regclass, vector_column name, code_column name, k integer DEFAULT 10,
		candidates integer DEFAULT 100, queries integer DEFAULT 100) RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION sketcher_recall(regclass, name, name, integer, integer, integer)
	IS 'share of the true k nearest rows, by Euclidean distance, among the nearest candidates by codes';

CREATE FUNCTION sketcher_hash_trigger() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sketcher_hash_trigger()
	IS 'for triggers BEFORE INSERT OR UPDATE with the condition sketcher_columns: makes the code';
-- not STRICT: it tells whether there is anything but NULLs; vectors are of any type with a cast
CREATE FUNCTION sketcher_columns(model_table regclass, vector "any", code bithash) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sketcher_columns(regclass, "any", bithash)
	IS 'condition of triggers: tells sketcher_hash_trigger its model table and columns';

-- not STRICT: some arguments may be NULL, and a forgotten table or column is an error
CREATE FUNCTION sketcher_attach(target regclass, vector_column name, code_column name, bits integer,
		tracker text DEFAULT 'opast', rotation text DEFAULT 'neighbour', stable boolean DEFAULT true,
		center boolean DEFAULT true, forgetting double precision DEFAULT 1.0, seed bigint DEFAULT 0,
		"normalize" boolean DEFAULT false, backfill boolean DEFAULT true, auto_refresh double precision DEFAULT 0.05, dims integer DEFAULT NULL)
	RETURNS regclass
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION sketcher_attach(regclass, name, name, integer, text, text, boolean, boolean, double precision, bigint, boolean, boolean, double precision, integer)
	IS 'keep codes of a column of vectors from now on, and learn from its rows; returns the model table; the keyword "normalize" is quoted where it is named: "normalize" => true';
CREATE FUNCTION sketcher_detach(target regclass, code_column name) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION sketcher_detach(regclass, name)
	IS 'stop updating the codes: drop trigger and model table, and keep the column';
CREATE PROCEDURE sketcher_refresh(target regclass, code_column name, min_drift double precision DEFAULT 0, batch integer DEFAULT 1000)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE sketcher_refresh(regclass, name, double precision, integer)
	IS 'learn the rows that are new, publish the model, and give rows whose code changes the new one';

-- what core has for bit strings, for codes: the same answers as core's

CREATE TABLE pairs AS
SELECT n, substr(a, 1, n)::bit varying AS a, substr(b, 1, n)::bit varying AS b
FROM (SELECT string_agg((('x' || md5('a' || i))::bit(128))::text, '') AS a, string_agg((('x' || md5('b' || i))::bit(128))::text, '') AS b
	FROM generate_series(1, 2) i) t, generate_series(1, 200) n;
SELECT count(*) AS pairs,
	count(*) FILTER (WHERE (a::bithash & b::bithash)::bit varying IS DISTINCT FROM (a & b)) AS wrong_and,
	count(*) FILTER (WHERE (a::bithash | b::bithash)::bit varying IS DISTINCT FROM (a | b)) AS wrong_or,
	count(*) FILTER (WHERE (a::bithash # b::bithash)::bit varying IS DISTINCT FROM (a # b)) AS wrong_xor,
	count(*) FILTER (WHERE (~ a::bithash)::bit varying IS DISTINCT FROM ~ a) AS wrong_not,
	count(*) FILTER (WHERE bit_count(~ a::bithash) IS DISTINCT FROM n - bit_count(a)) AS wrong_padding
FROM pairs;
-- padding stays zero: equality is bytewise
SELECT count(*) AS wrong FROM pairs WHERE ~ ~ a::bithash IS DISTINCT FROM a::bithash OR (a::bithash # b::bithash) # b::bithash IS DISTINCT FROM a::bithash;
SELECT count(*) AS wrong_concat FROM pairs p, pairs q
WHERE (p.n + q.n) % 7 = 0 AND ((p.a::bithash || q.b::bithash)::bit varying IS DISTINCT FROM p.a || q.b OR p.a::bithash || q.b::bithash IS DISTINCT FROM (p.a || q.b)::bithash);
SELECT count(*) AS parts, count(*) FILTER (WHERE substring(a::bithash, f, c) IS DISTINCT FROM substring(a, f, c)::bithash OR substring(a::bithash, f, c)::bit varying IS DISTINCT FROM substring(a, f, c)) AS wrong_part
FROM pairs, unnest(ARRAY[-3, 0, 1, 2, 7, 8, 9, 64, 2147483647]) f, unnest(ARRAY[0, 1, 2, 5, 8, 9, 100, 2147483647]) c
WHERE n % 13 = 1 AND length(substring(a::text, f, c)) > 0;
SELECT count(*) AS rests, count(*) FILTER (WHERE substring(a::bithash, f) IS DISTINCT FROM substring(a, f)::bithash) AS wrong_rest
FROM pairs, unnest(ARRAY[-3, 0, 1, 2, 7, 8, 9, 64]) f WHERE n >= greatest(f, 1);
SELECT count(*) AS bits, count(*) FILTER (WHERE set_bit(a::bithash, i, v) IS DISTINCT FROM set_bit(a, i, v)::bithash OR get_bit(a::bithash, i) IS DISTINCT FROM get_bit(a, i)) AS wrong_bit
FROM pairs, generate_series(0, n - 1) i, generate_series(0, 1) v;
SELECT count(*) AS wrong_hex FROM pairs WHERE n % 4 = 0 AND ('x' || to_hex(a::bithash))::bithash IS DISTINCT FROM a::bithash;
SELECT to_hex('xDEADBEEF'::bithash), to_hex('101'::bithash) AS padded, to_hex('111111111'::bithash) AS padded_byte;

-- aggregates, beside core's and beside the order of the text forms
SELECT n % 5 AS part, bit_and(substring(a, 1, 5)::bithash)::bit varying = bit_and(substring(a, 1, 5)) AS bit_and,
	bit_or(substring(b, 1, 5)::bithash)::bit varying = bit_or(substring(b, 1, 5)) AS bit_or,
	min(b::bithash)::text COLLATE "C" = min(b::text COLLATE "C") AS min, max(a::bithash)::text COLLATE "C" = max(a::text COLLATE "C") AS max
FROM pairs WHERE n >= 5 GROUP BY 1 ORDER BY 1;
SELECT bit_and(c), bit_or(c), min(c), max(c) FROM (VALUES (NULL::bithash), ('0110'), ('1100'), (NULL)) AS t (c);
SELECT bit_and(c), bit_or(c), min(c), max(c) FROM (SELECT NULL::bithash AS c WHERE false) AS t;
-- the least and the largest from an index
CREATE TABLE sorted AS SELECT a::bithash AS code FROM pairs;
CREATE INDEX ON sorted (code);
SET enable_seqscan = off;
SELECT min(code) = (SELECT code FROM sorted ORDER BY code LIMIT 1) AS least, max(code) = (SELECT code FROM sorted ORDER BY code DESC LIMIT 1) AS largest FROM sorted;
RESET enable_seqscan;
DROP TABLE sorted;

-- numbers
SELECT number, number::bithash AS code, number::bithash::bigint = number AS back, number::bithash::bit(64) = number::bit(64) AS as_core
FROM unnest(ARRAY[0, 1, -1, 9223372036854775807, -9223372036854775808, 6148914691236517205]::bigint[]) number;
SELECT 'x00000000000000FF'::bithash::bigint, 7::bigint::bithash(64) = 7::bigint::bithash AS declared;
CREATE TABLE numbers (code bithash(64), number bigint);
INSERT INTO numbers VALUES (7::bigint, repeat('1', 64)::bithash);
SELECT * FROM numbers;
DROP TABLE numbers, pairs;

-- what cannot be
SELECT '0101'::bithash & '01';
SELECT '0101'::bithash | '01';
SELECT '0101'::bithash # '01';
SELECT repeat('01', 32000)::bithash || '1';
SELECT substring('0101'::bithash, 5);
SELECT substring('0101'::bithash, 2, 0);
SELECT substring('0101'::bithash, 2, -1);
SELECT set_bit('0101'::bithash, 4, 1);
SELECT set_bit('0101'::bithash, -1, 1);
SELECT set_bit('0101'::bithash, 0, 2);
SELECT '0101'::bithash::bigint;
SELECT 7::bigint::bithash(63);

-- core's own functions go on taking literals and parameters without a type
SELECT get_bit('1011', 1) AS bit, set_bit('1011', 1, 1) AS set, pg_typeof(set_bit('1011', 1, 1)) AS type, get_bit(NULL, 1) AS none;
PREPARE bit_of AS SELECT get_bit($1, 2), set_bit($1, 0, 0);
EXECUTE bit_of('1011');
DEALLOCATE bit_of;
SELECT get_bit(B'1011', 1) AS bit, get_bit(B'1011'::varbit, 1) AS varying, get_bit('\x05'::bytea, 0) AS bytes, get_bit('1011'::bithash, 1) AS code, set_bit(B'1011', 1, 1) AS set;

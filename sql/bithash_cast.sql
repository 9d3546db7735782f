-- casts between bithash and core's bit, bit varying and bytea

SELECT '0101'::bithash::bit varying, '0101'::bithash::bit(4), 'xDEAD'::bithash::bytea;
SELECT B'0101'::bithash, '0101'::bit varying::bithash, '\xdead'::bytea::bithash;

-- there and back again, at every length
SELECT count(*) AS lengths,
	bool_and(code::bit varying::text = code::text) AS to_varbit,
	bool_and(code::bit varying::bithash = code) AS from_varbit,
	bool_and(code::bytea = substr(bithash_send(code), 5)) AS to_bytea,
	bool_and(code::bytea::bithash <~> rpad(code::text, (length(code) + 7) / 8 * 8, '0')::bithash = 0) AS from_bytea
FROM (SELECT substr(repeat('1101001110010110', 4001), 1, n)::bithash AS code
	FROM generate_series(1, 600) n) t;

-- bytes carry no length that is not a multiple of eight; the type modifier does
SELECT 'xABC'::bithash::bytea AS bytes, 'xABC'::bithash::bytea::bithash AS sixteen, 'xABC'::bithash::bytea::bithash(12) AS twelve;

-- a query may be a bit constant
SELECT '0101'::bithash <~> B'0110' AS distance, '0101'::bithash = B'0101' AS same;

-- assignment
CREATE TEMPORARY TABLE assigned (code bithash, b8 bit(8), vb bit varying(10), bytes bytea);
INSERT INTO assigned SELECT c, c, c, c FROM (SELECT 'xA5'::bithash AS c) t;
INSERT INTO assigned (code) VALUES (B'11'), ('11'::bit varying), ('\xff'::bytea);
SELECT * FROM assigned;
INSERT INTO assigned (b8) VALUES ('111'::bithash);
INSERT INTO assigned (vb) VALUES ('xFFF'::bithash);

-- core's own functions stay unambiguous
SELECT length('0101'::bit varying), bit_count('0101'::bit varying), get_bit('0101'::bit varying, 1), length(B'01') AS length_of_bit, length('0101') AS length_of_unknown;

-- bad input
SELECT ''::bit varying::bithash;
SELECT ''::bytea::bithash;
SELECT repeat('0', 64001)::bit varying::bithash;
SELECT decode(repeat('00', 8001), 'hex')::bithash;
SELECT B'0101'::bithash(5);
SELECT '\xabcd'::bytea::bithash(12);
SELECT '\xabcd'::bytea::bithash(17);
SELECT '\xab'::bytea::bithash(12);

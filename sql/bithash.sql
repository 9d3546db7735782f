-- the bithash type: text and binary forms, type modifier, length, bits

-- both notations
SELECT '0101'::bithash, 'b0101'::bithash, 'B0101'::bithash, 'xDE'::bithash, 'Xad'::bithash;
SELECT '1'::bithash, '0'::bithash, '111111111'::bithash;
SELECT 'xDEADBEEF'::bithash = '11011110101011011011111011101111'::bithash AS same;

-- every length up to 70 and some more: out is the inverse of in
SELECT count(*) AS lengths, bool_and(s::bithash::text = s AND length(s::bithash) = n) AS same
FROM (SELECT n, substr(repeat('1101001110010110', 4001), 1, n) AS s
	FROM generate_series(1, 70) n
	UNION ALL
	SELECT n, substr(repeat('1101001110010110', 4001), 1, n)
	FROM unnest(ARRAY[511, 512, 513, 1024, 63999, 64000]) n) t;

-- how a value is stored: a length of two bytes in front of the bits
CREATE TEMPORARY TABLE stored (code bithash);
INSERT INTO stored VALUES ('1'), ('xDEADBEEFDEADBEEF'), (repeat('1', 1000)::bithash);
SELECT length(code), pg_column_size(code) FROM stored;

-- a code too large for a page is stored out of line, uncompressed
INSERT INTO stored VALUES (repeat('01', 32000)::bithash);
SELECT length(code), pg_column_size(code), bit_count(code), get_bit(code, 63999), md5(code::text) = md5(repeat('01', 32000)) AS same
FROM stored WHERE length(code) = 64000;

-- length, count, single bits
SELECT length('0101'::bithash), bit_count('0101'::bithash), get_bit('0100'::bithash, 1), get_bit('0100'::bithash, 3);
SELECT bool_and(get_bit(code, i) = get_bit(code::bit varying, i)) AS same
FROM (SELECT 'x1234567890ABCDEF5'::bithash AS code) t, generate_series(0, 67) i;
SELECT length(NULL::bithash), bit_count(NULL::bithash), get_bit(NULL::bithash, 0), get_bit('1'::bithash, NULL);

-- type modifier
CREATE TEMPORARY TABLE typed (code bithash(8));
INSERT INTO typed VALUES ('01010101'), ('xFF'), (B'00001111'), (NULL);
SELECT * FROM typed;
SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'typed'::regclass AND attnum = 1;
SELECT '0101'::bithash(4);
CREATE TEMPORARY TABLE untyped AS SELECT code::bithash FROM typed;
INSERT INTO untyped VALUES ('1');
INSERT INTO typed SELECT code FROM untyped;
ALTER TABLE untyped ALTER code TYPE bithash(8);

-- binary form: that of core's bit
SELECT bool_and(bithash_send(s::bithash) = varbit_send(s::bit varying)) AS same
FROM (SELECT substr(repeat('1101001110010110', 4001), 1, n) AS s FROM generate_series(1, 600) n) t;

-- arrays and composite values
SELECT ARRAY['01', '1']::bithash[], ROW('01'::bithash, 1);

-- bad input
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || SQLERRM || CASE WHEN detail <> '' THEN ' / ' || detail ELSE '' END;
END $$;

\pset format unaligned
\pset tuples_only on
SELECT error_of(format('SELECT %L::bithash', input))
FROM unnest(ARRAY['', 'x', 'b', '2', '01a', '0 1', ' 01', '01 ', 'xDEADBEEG', 'x 1', '0x1', '-1', E'01\n']) input;
SELECT error_of('SELECT repeat(''0'', 64001)::bithash');
SELECT error_of('SELECT (''x'' || repeat(''0'', 16001))::bithash');
SELECT error_of('SELECT repeat(''0'', 10000000)::bithash');
SELECT error_of('SELECT ''0101''::bithash(3)');
SELECT error_of('SELECT ''0101''::bithash::bithash(5)');
SELECT error_of('INSERT INTO typed VALUES (''010101010'')');
SELECT error_of('INSERT INTO typed VALUES (B''0101010'')');
SELECT error_of('SELECT NULL::bithash(' || modifier || ')')
FROM unnest(ARRAY['0', '-1', '64001', '8,8', '''x''', '99999999999']) modifier;
SELECT error_of('SELECT get_bit(''0101''::bithash, ' || i || ')') FROM unnest(ARRAY[-1, 4, 2147483647]) i;
SELECT count(*) FROM typed;
DROP FUNCTION error_of;
\pset format aligned
\pset tuples_only off

-- from PostgreSQL 16 on, bad input can be asked about without an error
SELECT current_setting('server_version_num')::int >= 160000 AS soft \gset
\if :soft
SELECT pg_input_is_valid('0101', 'bithash(4)') AND NOT pg_input_is_valid('0101', 'bithash(5)')
	AND NOT pg_input_is_valid('012', 'bithash') AND NOT pg_input_is_valid('', 'bithash')
	AND NOT pg_input_is_valid(repeat('0', 64001), 'bithash') AS soft \gset
\else
\set soft t
\endif
SELECT :'soft' AS soft;

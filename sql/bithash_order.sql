-- order, equality and hashing of codes: sorts, joins, groups, indexes

-- 2000 different codes of 1 to 200 bits, some of them several times, and NULLs
CREATE TABLE codes AS
SELECT i AS id, CASE WHEN i % 50 <> 0
	THEN substr('x' || md5((i % 2000)::text) || md5((i % 2000)::text), 2)::text END AS hex
FROM generate_series(1, 5000) i;
ALTER TABLE codes ADD code bithash;
UPDATE codes SET code = substr(('x' || hex)::bithash::text, 1, 1 + id % 2000 % 200)::bithash;
ANALYZE codes;

-- bytewise and by length is the order of the text forms, in the C collation
SELECT count(*) AS rows, bool_and(by_code = by_text) AS same
FROM (SELECT row_number() OVER (ORDER BY code, id) AS by_code,
		row_number() OVER (ORDER BY code::text COLLATE "C", id) AS by_text
	FROM codes) t;

-- the six operators agree with that order
SELECT bool_and((a.code < b.code) = (a.t < b.t)) AS lt, bool_and((a.code <= b.code) = (a.t <= b.t)) AS le,
	bool_and((a.code = b.code) = (a.t = b.t)) AS eq, bool_and((a.code <> b.code) = (a.t <> b.t)) AS ne,
	bool_and((a.code >= b.code) = (a.t >= b.t)) AS ge, bool_and((a.code > b.code) = (a.t > b.t)) AS gt,
	bool_and(sign(bithash_cmp(a.code, b.code)) = (a.t > b.t)::int - (a.t < b.t)::int) AS cmp
FROM (SELECT code, code::text COLLATE "C" AS t FROM codes WHERE id <= 200) a,
	(SELECT code, code::text COLLATE "C" AS t FROM codes WHERE id <= 200) b;

-- a prefix comes before what it begins; zeros behind the end are no bits
SELECT array_agg(c ORDER BY c) FROM unnest('{1,10,0,00,000000000,01,0000000000,1000000000,0000000001}'::bithash[]) c;
SELECT '0'::bithash = '00'::bithash AS same, bithash_hash('0') = bithash_hash('00') AS same_hash;

-- groups and duplicates
SELECT count(DISTINCT code) = count(DISTINCT code::text) AS same FROM codes;
SET enable_hashagg = off;
SELECT count(*), sum(n) FROM (SELECT code, count(*) AS n FROM codes GROUP BY code) t;
RESET enable_hashagg;
SET enable_sort = off;
SELECT count(*), sum(n) FROM (SELECT code, count(*) AS n FROM codes GROUP BY code) t;
RESET enable_sort;

-- joins by hashing and by merging
SET enable_mergejoin = off; SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM codes a JOIN codes b USING (code);
SELECT count(*) FROM codes a JOIN codes b USING (code);
SET enable_mergejoin = on; SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM codes a JOIN codes b USING (code);
SELECT count(*) FROM codes a JOIN codes b USING (code);
RESET enable_mergejoin; RESET enable_hashjoin; RESET enable_nestloop;
SELECT count(*) FROM codes a JOIN codes b ON a.code::text = b.code::text;

-- the two hash functions agree, and both know the length
SELECT count(*) = 0 AS none_differ
FROM codes WHERE bithash_hash(code)::bigint & x'ffffffff'::bigint <> bithash_hash_extended(code, 0) & x'ffffffff'::bigint;
SELECT count(DISTINCT bithash_hash(repeat('0', n)::bithash)) > 590 AS spread FROM generate_series(1, 600) n;

-- btree and hash indexes
CREATE INDEX codes_btree ON codes (code);
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM codes WHERE code = '0';
SELECT id FROM codes WHERE code = (SELECT code FROM codes WHERE id = 77) ORDER BY id;
SELECT count(*) FROM codes WHERE code > '1' AND code <= '11';
DROP INDEX codes_btree;
CREATE INDEX codes_hash ON codes USING hash (code);
EXPLAIN (COSTS OFF) SELECT id FROM codes WHERE code = '0';
SELECT id FROM codes WHERE code = (SELECT code FROM codes WHERE id = 77) ORDER BY id;
RESET enable_seqscan; RESET enable_bitmapscan;
SELECT count(*) FROM codes WHERE code::text > '1' COLLATE "C" AND code::text <= '11' COLLATE "C";
DROP TABLE codes;

-- sorting with abbreviated keys that say little: equal beginnings, codes out of line
CREATE TABLE long_codes AS
SELECT i AS id, (repeat('01', 4000) || substr(('x' || md5(i::text))::bithash::text, 1, 100 + i % 20))::bithash AS code
FROM generate_series(1, 300) i;
SELECT bool_and(by_code = by_text) AS same
FROM (SELECT row_number() OVER (ORDER BY code, id) AS by_code,
		row_number() OVER (ORDER BY code::text COLLATE "C", id) AS by_text
	FROM long_codes) t;
SELECT count(DISTINCT bithash_hash(code)) > 295 AS spread FROM long_codes;
DROP TABLE long_codes;

-- partitioning by hash
CREATE TABLE parted (code bithash) PARTITION BY HASH (code);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parted SELECT ('x' || md5(i::text))::bithash FROM generate_series(1, 1000) i;
SELECT min(n) > 400 AS balanced FROM (SELECT count(*) AS n FROM parted GROUP BY tableoid) t;
DROP TABLE parted;

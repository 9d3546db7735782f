-- What the files of this folder were made of, the same in every server: the making and the reading of them
-- both run this, so that rows have the same row numbers.

-- numbers that single precision has exactly
CREATE FUNCTION sample_vector(i int, dims int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
	$$ SELECT array_agg((('x' || left(md5(i || ' ' || k), 4))::bit(16)::int * (dims - k + 1) / 65536.0 - (i % 3) * k)::real ORDER BY k) FROM generate_series(1, dims) k $$;
CREATE FUNCTION sample_bits(i int, n int) RETURNS bit varying LANGUAGE sql IMMUTABLE AS
	$$ SELECT left(string_agg(('x' || md5(i || ' ' || k))::bit(128)::text, '' ORDER BY k), n)::bit varying FROM generate_series(0, (n - 1) / 128) k $$;

CREATE TABLE samples (id int, by_bithash bithash(100), by_bit bit(70), by_bigint bigint, by_vector real[]) WITH (autovacuum_enabled = off);
CREATE FUNCTION add_samples(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO samples SELECT i, sample_bits(i, 100)::bithash, sample_bits(i, 70), sample_bits(i, 64)::bit(64)::bigint, sample_vector(i, 24)
		FROM generate_series(first, last) i WHERE i % 50 > 0
	UNION ALL SELECT i, NULL, NULL, NULL, NULL FROM generate_series(first, last) i WHERE i % 50 = 0 $$;

-- pages as a build, later rows and VACUUM leave them
SELECT add_samples(1, 600);
CREATE INDEX samples_by_bithash ON samples USING hamming (by_bithash);
CREATE INDEX samples_by_bit ON samples USING hamming (by_bit);
CREATE INDEX samples_by_bigint ON samples USING hamming (by_bigint);
CREATE INDEX samples_by_vector ON samples USING sketch (by_vector) WITH (bits = 64);
SELECT add_samples(601, 900);
DELETE FROM samples WHERE id % 9 = 0;
VACUUM samples;

# Dump and restore keep types, type modifiers, indexes and every bit.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('dump');
$node->init;
$node->start;
my $directory = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE TABLE items (id int PRIMARY KEY, code bithash(128) DEFAULT repeat('0', 128)::bithash, free bithash,
		CHECK (hamming_within(code, repeat('0', 128)::bithash, 128)));
	INSERT INTO items SELECT i, ('x' || md5(i::text))::bithash, substr(('x' || md5(i::text))::bithash::text, 1, 1 + i % 128)::bithash
	FROM generate_series(1, 1000) i;
	CREATE INDEX ON items (code);
	CREATE INDEX ON items USING hash (free);
	CREATE VIEW near AS SELECT a.id FROM items a WHERE a.code <~> repeat('1', 128)::bithash < 50;
	CREATE TABLE parted (code bithash) PARTITION BY RANGE (code);
	CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO ('1');
	CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM ('1') TO (MAXVALUE);
	INSERT INTO parted SELECT code FROM items;
});

my $digest = q{
	SELECT md5(string_agg(id || ' ' || code::text || ' ' || free::text, ',' ORDER BY id)) FROM items
	UNION ALL SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'items'::regclass AND attname = 'code'
	UNION ALL SELECT string_agg(pg_get_indexdef(indexrelid), ',' ORDER BY indexrelid) FROM pg_index WHERE indrelid = 'items'::regclass
	UNION ALL SELECT count(*)::text FROM near
	UNION ALL SELECT count(*)::text FROM parted_low
	UNION ALL SELECT count(*)::text FROM items a JOIN items b USING (free)
};
my $before = $node->safe_psql('postgres', $digest);

foreach my $format ('plain', 'custom')
{
	$node->safe_psql('postgres', "CREATE DATABASE restored_$format");
	$node->command_ok([ 'pg_dump', '-F', $format, '-f', "$directory/$format", $node->connstr('postgres') ], "dump as $format");
	$node->command_ok($format eq 'plain'
		? [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/$format", $node->connstr("restored_$format") ]
		: [ 'pg_restore', '-e', '-d', $node->connstr("restored_$format"), "$directory/$format" ], "restore from $format");
	is($node->safe_psql("restored_$format", $digest), $before, "all is there after restoring from $format");
}

$node->stop;
done_testing();

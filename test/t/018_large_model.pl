# A model of 2048 bits and 4096 dimensions learns, is stored, dumped and restored.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('large');
$node->init;
$node->start;
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';

# as many rows as fill the basis, and some blocks more
$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE TABLE items (id int, v real[]);
	ALTER TABLE items ALTER COLUMN v SET STORAGE EXTERNAL;
	SELECT setseed(0.5);
	INSERT INTO items SELECT i, array_agg(random() - 0.5) FROM generate_series(1, 2200) i, generate_series(1, 4096) GROUP BY i;
	CREATE TABLE models AS SELECT sketcher_agg(v, 2048 ORDER BY id) AS m FROM items;
	CREATE TABLE codes AS SELECT id, sketcher_hash(m, v) AS code FROM items, models WHERE id <= 20;
});
is($node->safe_psql('postgres', 'SELECT (i).dims, (i).bits, (i).rows, (i).explained_variance > 0.8 FROM (SELECT sketcher_info(m) i FROM models) x'),
	'4096|2048|2200|t', 'it learns');
is($node->safe_psql('postgres', 'SELECT round(avg(bit_count(code))) BETWEEN 950 AND 1100 FROM codes'), 't', 'and hashes');

my $same = q{SELECT md5(m::text) FROM models};
my $before = $node->safe_psql('postgres', $same);

$node->command_ok([ 'pg_dump', '-F', 'plain', '-t', 'models', '-f', $dump, $node->connstr('postgres') ], 'dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->safe_psql('restored', 'CREATE EXTENSION unifdiag');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'restore');
is($node->safe_psql('restored', $same), $before, 'every bit is there after restoring');

# what was restored goes on learning
is($node->safe_psql('postgres', 'SELECT (sketcher_info(sketcher_learn(m, v ORDER BY id))).rows FROM models, items WHERE id <= 64'),
	'2264', 'and learns more');

# a text as long as that of the largest models
my ($code, $out, $err) = $node->psql('postgres', q{SELECT repeat(repeat('!', 1000), 715828)::sketcher});
like($err, qr/invalid input syntax for type sketcher/, 'long texts are read');

$node->stop;
done_testing();

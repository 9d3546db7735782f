# Sixteen clients that write and search, with VACUUM as eager as it gets.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('concurrent');
$node->init;
$node->append_conf('postgresql.conf', $HammingLoad::settings);
$node->start;
HammingLoad::create($node);
my @loads = (
	HammingLoad::start_load($node, 14, $HammingLoad::seconds, 1, qw(insert update delete rollback search search)),
	# one that builds at a time, so that names do not clash
	HammingLoad::start_load($node, 1, $HammingLoad::seconds, 2, qw(build)),
	HammingLoad::start_load($node, 1, $HammingLoad::seconds, 3, qw(vacuum)));
ok(HammingLoad::finish_load($_), 'no client had an error') foreach @loads;
HammingLoad::is_sound($node, 'the indexes are sound');
$node->safe_psql('postgres', 'DELETE FROM short; VACUUM short;');
is($node->safe_psql('postgres', q{SELECT codes, nulls FROM hamming_info('short_code')}), '0|0', 'nothing is left of deleted rows');

# a table that was unlogged when the server was killed is empty, and its index with it
$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE unlogged AS SELECT random_code(64) AS code FROM generate_series(1, 2000);
	CREATE INDEX unlogged_code ON unlogged USING hamming (code);
	CHECKPOINT;
});
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM unlogged}), '0', 'an unlogged table after a crash');
is($node->safe_psql('postgres', q{SELECT bits, codes, pages FROM hamming_info('unlogged_code')}), '|0|1', 'and its index');
$node->safe_psql('postgres', q{INSERT INTO unlogged SELECT random_code(64) FROM generate_series(1, 2000); SELECT hamming_check('unlogged_code')});

# an index that moves to another tablespace
my $directory = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$directory'");
$node->safe_psql('postgres', 'ALTER INDEX long_code SET TABLESPACE elsewhere; CREATE INDEX ON short USING hamming (code) TABLESPACE elsewhere');
HammingLoad::is_sound($node, 'indexes in another tablespace');
$node->stop;

done_testing();

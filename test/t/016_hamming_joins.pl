# Joins while rows come and go, and VACUUM moves entries: the pairs of the statement's snapshot, and no others.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('joins');
$node->init;
$node->append_conf('postgresql.conf', $HammingLoad::settings);
$node->start;
# codes so long that few fit on a page, and so that VACUUM has entries to move
$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION padded_code() RETURNS bithash LANGUAGE sql VOLATILE AS
		$$ SELECT rpad((random() * 65535)::int::bit(16)::text, 4000, '01')::bithash $$;
	CREATE TABLE joined (id serial, code bithash(4000), note int DEFAULT 0) WITH (fillfactor = 70);
	INSERT INTO joined (code) SELECT padded_code() FROM generate_series(1, 500);
	CREATE INDEX joined_code ON joined USING hamming (code);
});
my @loads = (
	HammingLoad::start_load($node, 4, $HammingLoad::seconds, 1, 'churn'),
	HammingLoad::start_load($node, 4, $HammingLoad::seconds, 2, 'join'),
	HammingLoad::start_load($node, 1, $HammingLoad::seconds, 3, 'vacuum_joined'));
ok(HammingLoad::finish_load($_), 'no client had an error') foreach @loads;
my ($joins) = ${ $loads[1]{output} } =~ /actually processed: (\d+)/;
cmp_ok($joins, '>', 10, 'joins were compared');
$node->safe_psql('postgres', q{SELECT hamming_check('joined_code')});

# a transaction that is older than an index of which it may need rows that are not in it
my $old = Session->new($node);
$node->safe_psql('postgres', q{
	CREATE TABLE updated (id int, code bithash(8), note int) WITH (fillfactor = 50, autovacuum_enabled = off);
	INSERT INTO updated VALUES (1, '00000000'), (2, '00000001');
	CREATE INDEX updated_id ON updated (id);
});
$old->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM updated');
$node->safe_psql('postgres', q{
	UPDATE updated SET code = '11111111' WHERE id = 1;
	CREATE INDEX updated_code ON updated USING hamming (code);
});
my $join = q{SELECT distance FROM hamming_pairs('updated_code', 8)};
like($old->query($join), qr/cannot be used by this transaction yet/, 'an index that lacks what an old snapshot sees');
is($old->query("ROLLBACK; $join"), '7', 'and a later one');
$old->quit;

# what does not fit into memory goes to temporary files, which are gone in the end, also of what was cancelled
$node->safe_psql('postgres', q{
	CREATE TABLE many AS SELECT i AS id, ('x' || md5(i::text))::bit(64)::bithash AS code FROM generate_series(1, 100000) i;
	CREATE INDEX many_code ON many USING hamming (code);
});
$node->safe_psql('postgres', q{
	SET work_mem = '64kB';
	SET log_temp_files = 0;
	SELECT count(*) FROM hamming_pairs('many_code', 3);
	SELECT count(*) FROM hamming_clusters('many_code', 3);
});
like(slurp_file($node->logfile), qr/temporary file: path/, 'temporary files were used');
foreach my $long (q{hamming_pairs('many_code', 25)}, q{hamming_clusters('many_code', 25)},
	q{hamming_nearest('many_code', (SELECT array_agg(code) FROM many), 1000)})
{
	my ($status, $output, $error) = $node->psql('postgres', qq{
		SET work_mem = '64kB';
		SET statement_timeout = '500ms';
		SELECT count(*) FROM $long;
	});
	like($error, qr/canceling statement due to statement timeout/, "is cancelled: $long");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_ls_tmpdir()}), '0', 'no temporary file is left');
$node->stop;

done_testing();

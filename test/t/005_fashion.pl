# Learning from real data: Fashion-MNIST, as Debian packages it.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $python = '/usr/bin/python3';
plan skip_all => 'needs Debian packages dataset-fashion-mnist and python3-numpy'
  unless -d '/usr/share/datasets/fashion-mnist' && system("$python -c 'import numpy' 2>/dev/null") == 0;

my $node = PostgreSQL::Test::Cluster->new('fashion');
$node->init;
$node->append_conf('postgresql.conf', "shared_buffers = 256MB\nfsync = off\nmax_wal_size = 2GB\njit = off");
$node->start;
my $directory = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE TABLE images (id int, label int, v real[]);
});
system(sprintf q{%s test/demo/fashion.py rows | psql -X -q -d "%s" -c 'COPY images FROM STDIN (FORMAT binary)'}, $python, $node->connstr('postgres')) == 0
  or die 'could not load the pictures';
$node->safe_psql('postgres', 'ALTER TABLE images ADD PRIMARY KEY (id)');
is($node->safe_psql('postgres', 'SELECT count(*) FROM images'), 70000, '70000 pictures');

# against numpy
$node->safe_psql('postgres', 'CREATE TABLE models AS SELECT bits, sketcher_agg(v, bits ORDER BY id) AS model
	FROM images, unnest(ARRAY[32, 64]) bits WHERE id <= 60000 GROUP BY bits');
foreach my $part ('mean', 'basis', 'rotation', 'covariance')
{
	append_to_file("$directory/$part", $node->safe_psql('postgres', "SELECT sketcher_$part(model) FROM models WHERE bits = 64"));
}
$node->safe_psql('postgres', q{CREATE TABLE balanced AS SELECT sketcher_learn(sketcher_new(784, 64, rotation => 'unifdiag'), v ORDER BY id) AS model
	FROM images WHERE id <= 60000});
foreach my $part ('basis', 'rotation')
{
	append_to_file("$directory/balanced_$part", $node->safe_psql('postgres', "SELECT sketcher_$part(model) FROM balanced"));
}
append_to_file("$directory/info", $node->safe_psql('postgres', 'SELECT (sketcher_info(model)).explained_variance FROM models WHERE bits = 64'));
append_to_file("$directory/balanced_info", $node->safe_psql('postgres', 'SELECT (sketcher_info(model)).balance FROM balanced'));
append_to_file("$directory/codes", $node->safe_psql('postgres', q{
	SELECT images.id || ',' || sketcher_hash(model, v) FROM images, models WHERE bits = 64 AND id % 100 = 0 AND id <= 60000}));
my $checks = `$python test/t/oracle.py $directory 2>&1`;
while ($checks =~ /^(not )?ok \d+ - (.*)$/mg)
{
	ok(!$1, $2);
}
like($checks, qr/^1\.\.\d+$/m, 'all checks against numpy were made') or diag($checks);

# codes stay valid while the model moves: those made on arrival against those of the final model
sub share_of_changed_bits
{
	my ($bits, $rows, $options) = @_;
	return $node->safe_psql('postgres', qq{
		WITH start AS MATERIALIZED (SELECT sketcher_new(784, $bits$options) AS model),
		final AS MATERIALIZED (SELECT sketcher_learn((SELECT model FROM start), v ORDER BY id) AS model FROM images WHERE id <= $rows)
		SELECT avg(code <~> sketcher_hash((SELECT model FROM final), v)) / $bits
		FROM (SELECT v, sketcher_stream((SELECT model FROM start), v) OVER (ORDER BY id) AS code FROM images WHERE id <= $rows) t
		WHERE code IS NOT NULL});
}
foreach my $bits (32, 64)
{
	my $default = share_of_changed_bits($bits, 60000, '');
	my $stable = share_of_changed_bits($bits, 60000, q{, rotation => 'unifdiag'});
	my $paper = share_of_changed_bits($bits, 60000, q{, rotation => 'unifdiag', stable => false});
	cmp_ok($default, '<=', 0.015, sprintf('%d bits: %.4f of the bits change, default rotation', $bits, $default));
	cmp_ok($stable, '<=', 0.015, sprintf('%d bits: %.4f of the bits change, stable form', $bits, $stable));
	cmp_ok($paper, '>', $stable, sprintf('%d bits: %.4f of the bits change, from the identity each time', $bits, $paper));
}

# four parts, merged, are as good as the whole
$node->safe_psql('postgres', q{
	INSERT INTO models SELECT 4, sketcher_merge(model ORDER BY part)
	FROM (SELECT id % 4 AS part, sketcher_agg(v, 64 ORDER BY id) AS model FROM images WHERE id <= 60000 GROUP BY 1) parts});
my $ratio = $node->safe_psql('postgres', q{
	SELECT (SELECT (sketcher_info(model)).explained_variance FROM models WHERE bits = 4) / (sketcher_info(model)).explained_variance FROM models WHERE bits = 64});
cmp_ok($ratio, '>=', 0.99, sprintf('four parts explain %.4f of what the whole does', $ratio));
is($node->safe_psql('postgres', 'SELECT (sketcher_info(model)).rows FROM models WHERE bits = 4'), 60000, 'of all rows');

# recall of the ten nearest pictures among the hundred nearest codes
sub recall
{
	my ($model) = @_;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS codes;
		CREATE TABLE codes AS SELECT id, sketcher_hash((SELECT model FROM models WHERE bits = $model), v) AS code FROM images;
		COPY (SELECT q.id, n.id, row_number() OVER (PARTITION BY q.id ORDER BY n.distance, n.id)
			FROM codes q, LATERAL (SELECT id, code <~> q.code AS distance FROM codes
				WHERE id <= 60000 ORDER BY distance, id LIMIT 100) n
			WHERE q.id BETWEEN 60001 AND 61000) TO '$directory/neighbours' (FORMAT csv)});
	my $found = `$python test/demo/fashion.py recall $directory/neighbours`;
	return map { $found =~ /among the +$_ nearest codes: (\S+)/ ? $1 : die $found } 10, 100;
}
my @whole = recall(64);
my @merged = recall(4);
cmp_ok($merged[0], '>=', $whole[0] - 0.01, "recall\@10 of the merged model $merged[0], of the whole $whole[0]");
cmp_ok($merged[1], '>=', $whole[1] - 0.01, "recall\@10 among 100 of the merged model $merged[1], of the whole $whole[1]");
cmp_ok($whole[1], '>', 0.5, 'which is worth having');

# drift is what it says, be it large or small, and also if other pictures come
$node->safe_psql('postgres', q{
	CREATE TABLE pairs AS
	SELECT format('from the first %s pictures to all', n) AS name, (SELECT sketcher_agg(v, 64 ORDER BY id) FROM images WHERE id <= n) AS early,
		(SELECT model FROM models WHERE bits = 64) AS late
	FROM unnest(ARRAY[1000, 2000, 10000, 30000]) n;
	INSERT INTO pairs SELECT 'from five classes to ten', (SELECT sketcher_agg(v, 64 ORDER BY id) FROM images WHERE label < 5 AND id <= 10000);
	UPDATE pairs SET late = (SELECT sketcher_learn(early, v ORDER BY id) FROM images WHERE label >= 5 AND id <= 10000) WHERE late IS NULL});
foreach my $pair (split /\n/, $node->safe_psql('postgres', q{
	SELECT name, sketcher_drift(early, late), (SELECT avg(sketcher_hash(early, v) <~> sketcher_hash(late, v)) / 64 FROM images WHERE id <= 10000) FROM pairs}))
{
	my ($name, $expected, $measured) = split /\|/, $pair;
	cmp_ok(abs(log($expected / $measured)), '<', log(1.5), sprintf('drift %s: expected %.4f, measured %.4f', $name, $expected, $measured));
}

# learning can be cancelled
my $start = time;
my ($code, $stdout, $stderr) = $node->psql('postgres', q{SET statement_timeout = '300ms'; SELECT sketcher_agg(v, 512) FROM images});
like($stderr, qr/canceling statement due to statement timeout/, 'a long learn is cancelled');
cmp_ok(time - $start, '<', 5, 'at once');

$node->stop;
done_testing();

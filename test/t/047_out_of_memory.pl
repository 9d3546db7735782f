# A connection that runs out of memory while it learns, hashes or searches: an error, and the server lives.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

plan skip_all => 'needs prlimit' if system('prlimit --version >/dev/null 2>&1') != 0;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
$node->append_conf('postgresql.conf', $Items::settings);
$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = off\nmax_parallel_workers_per_gather = 0\nmax_parallel_maintenance_workers = 0\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 30000) i;
	CREATE TABLE wide AS SELECT i AS id, ARRAY(SELECT sin(i * k + k * k) FROM generate_series(1, 2000) k)::real[] AS v FROM generate_series(1, 150) i;
	CREATE TABLE models AS SELECT sketcher_agg(v, 100) AS model FROM wide});
Items::create_indexes($node, 'postgres', 'items');

my %statements = (
	'learning' => q{SELECT (sketcher_info(sketcher_agg(v, 128))).rows FROM wide},
	'learning on' => q{SELECT (sketcher_info(sketcher_learn(model, v))).rows FROM wide, models},
	'merging' => q{SELECT (sketcher_info(sketcher_merge(m))).rows FROM (SELECT sketcher_agg(v, 32) AS m FROM wide GROUP BY id % 3) p},
	'hashing' => q{SELECT count(sketcher_hash(model, v)) FROM wide, models},
	'reading a model' => q{SELECT length(model::text) > 0, array_length(sketcher_basis(model), 1) FROM models},
);
foreach my $search (@Items::searches)
{
	$statements{"$search->{kind} search"} = "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(d) FROM (SELECT $search->{order} AS d FROM items ORDER BY $search->{order}) q";
	$statements{"$search->{kind} build"} = "BEGIN; CREATE INDEX another ON items $search->{index}; ROLLBACK";
}
my %right = map { ($_ => $node->safe_psql('postgres', $statements{$_})) } keys %statements;

# So many pages, and so many megabytes more.
sub limit_memory
{
	my ($pid, $pages, $more) = @_;
	system("prlimit --pid $pid --as=" . ($pages * 4096 + $more * 1024 * 1024) . ':') == 0 or die 'prlimit';
	return;
}

# as much as a connection has, and more
foreach my $name (sort keys %statements)
{
	my ($wrong, $lost, $refused, $answered) = (0, 0, 0, 0);
	foreach my $more (0, 0.25, 0.5, 1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 160, 170, 180, 190, 200, 210, 230, 250, 1000)
	{
		my $session = Session->new($node);
		# what loading takes is not the statement's
		my $pid = $session->query("LOAD 'unifdiag'; SELECT pg_backend_pid()");
		my ($pages) = slurp_file("/proc/$pid/statm") =~ /^(\d+)/;
		limit_memory($pid, $pages, $more);
		my ($out, $error) = eval { $session->send($statements{$name})->finish };
		if (!defined $out)
		{
			# the connection is gone; the server must not be
			$lost++;
			$session->abandon;
			next;
		}
		if ($error =~ /ERROR/)
		{
			$refused++ if $error =~ /out of memory/i;
			$wrong++ unless $error =~ /out of memory|could not load|Cannot allocate memory|could not resize/i;
			diag("$name, $more MB: $error") unless $error =~ /out of memory|could not load|Cannot allocate memory|could not resize/i;
		}
		else
		{
			$answered++;
			$wrong++ if $out ne $right{$name};
			diag("$name, $more MB: $out") if $out ne $right{$name};
		}
		# it goes on with little more: the server's caches may have taken all
		limit_memory($pid, $pages, $more + 1);
		$session->query('ROLLBACK');
		$wrong++ unless $session->query('SELECT 1') eq '1';
		$session->quit;
	}
	is($wrong, 0, "$name: the right answer, or an error");
	# the server itself ends one that has no memory left for its next command; the log shows whether any crashed
	cmp_ok($lost, '<=', 2, "$name: $lost connections are lost");
	cmp_ok($refused, '>', 0, "$name: memory was short $refused times");
	cmp_ok($answered, '>', 0, "$name: and enough $answered times");
}
Items::indexes_are_right($node, 'postgres', 'items', 'afterwards');
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC|terminated by signal/, 'nothing crashed');
done_testing();

# Every method on real data, by the evaluation's protocol in its quick form: one partition, 32 bits.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $python = '/usr/bin/python3';
plan skip_all => 'needs Debian packages dataset-fashion-mnist and python3-numpy'
  unless -d '/usr/share/datasets/fashion-mnist' && system("$python -c 'import numpy' 2>/dev/null") == 0;

my $node = PostgreSQL::Test::Cluster->new('methods');
$node->init;
$node->append_conf('postgresql.conf', "shared_buffers = 256MB\nfsync = off\nmax_wal_size = 2GB\njit = off");
$node->start;
my $directory = PostgreSQL::Test::Utils::tempdir();

# the script's own way of finding the server and of leaving its results
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
local $ENV{PGDATABASE} = 'postgres';
local $ENV{SCRATCH} = $directory;
local $ENV{OUTPUT} = $directory;
local $ENV{EVAL_PARTITIONS} = 1;
local $ENV{EVAL_BITS} = 32;
local $ENV{EVAL_SHARES} = '10 100';
local $ENV{EVAL_QUICK} = 1;
is(system("test/bench/eval >$directory/log 2>&1"), 0, 'the evaluation runs') or diag(slurp_file("$directory/log"));

my %result;
foreach (split /\n/, slurp_file("$directory/eval.jsonl"))
{
	my ($method) = /"method": "([^"]*)"/;
	my %shares = /"map": \{(.*?)\}/ ? ($1 =~ /"(\d+)": ([\d.e-]+)/g) : ();
	my %values;
	foreach my $name ('recall', 'arrival', 'changed', 'changed_late')
	{
		$values{$name} = $1 if /"$name": ([\d.e-]+)/;
	}
	$result{$method} = { final => $shares{100}, tenth => $shares{10}, %values };
}

# what a broken method would not reach; measured are values a good deal above
my %least = (
	'opast+unifdiag' => 0.28, 'opast+unifdiag, paper' => 0.20, 'opast+neighbour' => 0.28, 'opast+itq' => 0.22, 'opast+isohash' => 0.22,
	'opast+random' => 0.24, 'opast+none' => 0.24, 'osh+random' => 0.23, 'lsh' => 0.15, 'hadamard' => 0.15);
foreach my $method (sort keys %least)
{
	cmp_ok($result{$method}{final} // 0, '>=', $least{$method}, sprintf('%s: mAP %.3f', $method, $result{$method}{final} // 0));
}
my $default = $result{'opast+neighbour'};
cmp_ok($default->{final}, '>=', $result{$_}{final}, "the default is at least as good as $_")
  for 'opast+unifdiag', 'opast+itq', 'opast+random', 'opast+isohash', 'osh+random';
cmp_ok($default->{arrival} / $default->{final}, '>=', 0.97, 'codes kept as made on arrival keep their worth');
cmp_ok($default->{tenth} / $default->{final}, '>=', 0.95, 'and a tenth of the rows is enough');
cmp_ok($default->{changed_late}, '<=', 0.02, 'few bits change after a tenth');
cmp_ok($default->{recall}, '>', 0.4, sprintf('recall %.3f', $default->{recall}));
like(slurp_file("$directory/eval.md"), qr/^\| opast\+neighbour \|/m, 'there is a table');
like(slurp_file("$directory/map_$_.svg"), qr/<polyline|<circle/, "and a plot by $_") for 'rows', 'time';

$node->stop;
done_testing();

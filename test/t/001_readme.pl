# Every SQL block of the README runs, in order, in one fresh database; where a text block
# follows a SQL block, it is what psql prints.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $readme = slurp_file('README.md');
my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->start;

# without the lines that differ from run to run
sub comparable
{
	my ($output) = @_;
	$output =~ s/^Time: .*\n//mg;
	$output =~ s/[ \t]+$//mg;
	$output =~ s/\s+\z//;
	return $output;
}

my $blocks = 0;
while ($readme =~ /^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/msg)
{
	my ($sql, $expected) = ($1, $2);
	my $line = 1 + (substr($readme, 0, $-[0]) =~ tr/\n//);
	my ($stdout, $stderr);
	my $result = IPC::Run::run(
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
		'<', \$sql, '>', \$stdout, '2>', \$stderr);
	ok($result, "README line $line runs") or diag($stderr);
	is(comparable($stdout), comparable($expected), "README line $line prints what it says")
	  if defined $expected;
	$blocks++;
}
cmp_ok($blocks, '>', 0, 'the README has SQL blocks');

$node->stop;
done_testing();

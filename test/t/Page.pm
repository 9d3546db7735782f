# The statements of a documentation page that are meant for one engine run as they are printed there.
package Page;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

sub comparable
{
	my ($output) = @_;
	$output =~ s/[ \t]+$//mg;
	$output =~ s/\s+\z//;
	return $output;
}

# Runs the blocks "```sql ENGINE" of the page; where a text block follows, it is what psql prints.
sub run
{
	my ($page, $engine, $node, $database) = @_;
	my $text = slurp_file($page);
	my $blocks = 0;
	while ($text =~ /^```sql $engine\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/msg)
	{
		my ($sql, $expected) = ($1, $2);
		my $where = "$page line " . (1 + (substr($text, 0, $-[0]) =~ tr/\n//));
		my ($stdout, $stderr);
		my $result = IPC::Run::run([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database) ],
			'<', \$sql, '>', \$stdout, '2>', \$stderr);
		ok($result, "$where runs") or diag($stderr);
		is(comparable($stdout), comparable($expected), "$where prints what it says") if defined $expected;
		$blocks++;
	}
	cmp_ok($blocks, '>', 0, "$page has statements for $engine");
	return;
}

1;

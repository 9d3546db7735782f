# An index whose file is damaged on purpose.
package Damage;
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant PAGE_SIZE => 8192;

# A server with an index of this name, made by these statements; it is stopped.
sub new
{
	my ($class, $index, $statements) = @_;
	my $node = PostgreSQL::Test::Cluster->new('corrupt');
	# without checksums, which newer servers have by default, and which would find all of this first
	$node->init(extra => [ `initdb --help` =~ /(--no-data-checksums)/ ? $1 : () ]);
	# nobody may rewrite the pages that we damage
	$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = off\n");
	$node->start;
	$node->safe_psql('postgres', $statements);
	my $self = bless { node => $node, index => $index }, $class;
	$self->take;
	return $self;
}

# The file as it is now is the good one; the server stops.
sub take
{
	my ($self) = @_;
	my $node = $self->{node};
	$self->{path} = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$self->{index}')");
	$node->stop;
	$self->{good} = slurp_file($self->{path});
	return;
}

sub start_with
{
	my ($self, $content) = @_;
	open my $file, '>:raw', $self->{path} or die "$self->{path}: $!";
	print $file $content or die;
	close $file or die;
	$self->{node}->start;
	return;
}

# The good file with these bytes at this place.
sub changed
{
	my ($self, $offset, $bytes) = @_;
	my $bad = $self->{good};
	substr($bad, $offset, length $bytes) = $bytes;
	return $bad;
}

# What the statements say of an index whose file has these bytes at this place.
sub errors_with
{
	my ($self, $offset, $bytes, @statements) = @_;
	my @errors;
	$self->start_with($self->changed($offset, $bytes));
	foreach my $statement (@statements)
	{
		my (undef, undef, $error) = $self->{node}->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
		push @errors, $error;
	}
	$self->{node}->stop;
	return @errors;
}

# What a statement answers if the file is like this.
sub answer_with
{
	my ($self, $content, $statement) = @_;
	$self->start_with($content);
	my $answer = $self->{node}->safe_psql('postgres', $statement);
	$self->{node}->stop;
	return $answer;
}

# Damage at random, in some rounds, to so many bytes: whatever comes of the statements, no crash.  After
# each round the index is made anew, by statements that must succeed.
sub survive
{
	my ($self, $rounds, $bytes, $statements, $renewal) = @_;
	srand(20180415);
	foreach my $round (1 .. $rounds)
	{
		my $bad = $self->{good};
		my $pages = length($bad) / PAGE_SIZE;
		substr($bad, int(rand(length $bad)), 1) = chr(int(rand(256))) foreach 1 .. $bytes;
		# page headers are small, and hit too seldom otherwise
		substr($bad, int(rand($pages)) * PAGE_SIZE + int(rand(72)), 1) = chr(int(rand(256))) foreach 1 .. 3;
		substr($bad, int(rand(144)), 1) = chr(int(rand(256))) if $round % 3 == 0;
		$self->start_with($bad);
		$self->{node}->psql('postgres', $_) foreach @$statements;
		is($self->{node}->safe_psql('postgres', 'SELECT 1'), '1', "random damage $round: the server lives");
		$self->{node}->safe_psql('postgres', $renewal);
		# the table has changed, and the index has another file
		$self->take;
	}
	return;
}

1;

# A psql that stays connected, for tests of several sessions at once.
package Session;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;

my $marker = 0;

sub new
{
	my ($class, $node, $database) = @_;
	my $self = bless { in => '', out => '', err => '' }, $class;
	$self->{timer} = IPC::Run::timer($PostgreSQL::Test::Utils::timeout_default // 180);
	$self->{run} = IPC::Run::start(
		[ 'psql', '-X', '-A', '-t', '-q', '-f', '-', '-d', $node->connstr($database // 'postgres') ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timer});
	return $self;
}

# Sends statements, and does not wait for them.
sub send
{
	my ($self, $sql) = @_;
	$self->{mark} = 'done ' . ++$marker;
	$self->{out} = $self->{err} = '';
	$self->{in} .= "$sql;\n\\echo $self->{mark}\n";
	$self->{run}->pump_nb;
	return $self;
}

# Have they been done?
sub is_done
{
	my ($self) = @_;
	$self->{run}->pump_nb;
	return $self->{out} =~ /^$self->{mark}$/m;
}

# Waits for them; returns what they have printed, and the errors and notices.
sub finish
{
	my ($self) = @_;
	$self->{run}->pump until $self->{out} =~ /^$self->{mark}$/m;
	(my $out = $self->{out}) =~ s/^$self->{mark}\n//m;
	# what came by the other pipe may need a moment
	$self->{run}->pump_nb;
	chomp $out;
	return ($out, $self->{err});
}

# Statements whose output is wanted.
sub query
{
	my ($self, $sql) = @_;
	my ($out, $err) = $self->send($sql)->finish;
	return $err =~ /ERROR/ ? $err : $out;
}

# Ends a session whose server has gone away.
sub abandon
{
	my ($self) = @_;
	$self->{run}->kill_kill;
	return;
}

sub quit
{
	my ($self) = @_;
	$self->{in} .= "\\q\n";
	$self->{run}->finish;
	return;
}

1;

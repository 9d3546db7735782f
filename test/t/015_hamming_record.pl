# The record that an insertion writes by itself, beside the one that the server makes of the same
# change: both give the same page.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('record');
$node->init;
# records have changes, not pages, and are in files; and nobody else writes any
$node->append_conf('postgresql.conf', "full_page_writes = off\nautovacuum = off\nwal_level = replica\ncheckpoint_timeout = 1h\nbgwriter_lru_maxpages = 0\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION unifdiag');

# The changes of a record of generic WAL: offset on the page, and bytes.
sub changes_in
{
	my ($record) = @_;
	# XLogRecord is 24 bytes; then comes the header of block 0, with its relation's three oids
	my ($id, $flags, $length) = unpack('CCv', substr($record, 24, 4));
	die sprintf('unexpected block header %d, flags %x', $id, $flags) if $id != 0 || ($flags & 0xf0) != 0x20;
	my $data = substr($record, 24 + 4 + 12 + 4, $length);
	die 'unexpected length' unless length $data == $length && length $record == 24 + 4 + 12 + 4 + $length;
	my @changes;
	while (length $data)
	{
		my ($offset, $size) = unpack('vv', $data);
		push @changes, [ $offset, substr($data, 4, $size) ];
		$data = substr($data, 4 + $size);
	}
	return @changes;
}

# The bytes of the record of generic WAL that a statement writes, without the headers of WAL pages.
sub record_of
{
	my ($statement) = @_;
	my ($start, $end, $file) = split /\|/, $node->safe_psql('postgres', qq{
		SELECT pg_switch_wal();
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		$statement;
		SELECT :'start', pg_current_wal_flush_lsn(), pg_walfile_name(pg_current_wal_flush_lsn())}) =~ s/^.*\n//r;
	my $path = $node->data_dir . "/pg_wal/$file";
	my ($dump) = run_command([ 'pg_waldump', '--rmgr=Generic', "--start=$start", "--end=$end", '--path=' . $node->data_dir . '/pg_wal' ]);
	my @lines = grep { /^rmgr: Generic/ } split /\n/, $dump;
	is(scalar @lines, 1, 'one record');
	my ($total, $lsn) = $lines[0] =~ m{len \(rec/tot\):\s+\d+/\s*(\d+).*lsn: ([0-9A-F]+/[0-9A-F]+)} or die $lines[0];
	my ($high, $low) = map { hex } split m{/}, $lsn;
	my $position = $low % (16 * 1024 * 1024);
	my $wal = slurp_file($path);
	my $record = '';
	while (length $record < $total)
	{
		# a page that a record continues on starts with a header of 24 bytes
		$position += 24 if $position % 8192 == 0;
		my $size = 8192 - $position % 8192;
		$size = $total - length $record if $size > $total - length $record;
		$record .= substr($wal, $position, $size);
		$position += $size;
	}
	return $record;
}

# A page of the index, with the changes of a record, without the log's position and the checksum.
sub apply
{
	my ($page, @changes) = @_;
	substr($page, $_->[0], length $_->[1]) = $_->[1] foreach @changes;
	return unpack('H*', substr($page, 10));
}

foreach my $bits (1, 8, 13, 64, 72, 100, 256, 4001)
{
	my %changes;
	my %page;
	foreach my $private ('on', 'off')
	{
		$node->safe_psql('postgres', qq{
			CREATE TABLE codes_$private (code bithash);
			CREATE INDEX codes_${private}_code ON codes_$private USING hamming (code);
			INSERT INTO codes_$private SELECT repeat('1', $bits)::bithash FROM generate_series(1, 2);
			CHECKPOINT});
		my $path = $node->safe_psql('postgres', qq{SELECT pg_relation_filepath('codes_${private}_code')});
		$page{$private} = substr(slurp_file($node->data_dir . "/$path"), 8192, 8192);
		$changes{$private} = [ changes_in(record_of(qq{
			SET unifdiag.private_interfaces = $private;
			INSERT INTO codes_$private VALUES (left(repeat('1101', 2000), $bits)::bithash)})) ];
	}
	is(apply($page{on}), apply($page{off}), "$bits bits: equal pages before");
	is(apply($page{on}, @{ $changes{on} }), apply($page{off}, @{ $changes{off} }), "$bits bits: equal pages after");
	isnt(apply($page{on}, @{ $changes{on} }), apply($page{on}), "$bits bits: there were changes");
	$node->safe_psql('postgres', 'DROP TABLE codes_on, codes_off');
}
$node->stop;

done_testing();

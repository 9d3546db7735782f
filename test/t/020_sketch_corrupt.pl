# Damaged pages of a sketch index, its model among them: errors that name the block, and never a crash.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('corrupt');
# without checksums, which newer servers have by default, and which would find all of this first
$node->init(extra => [ `initdb --help` =~ /(--no-data-checksums)/ ? $1 : () ]);
# nobody may rewrite the pages that we damage
$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = off\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
		$$ SELECT array_agg((sin(i % 17 * k) + cos(i + k * k) / 3)::real) FROM generate_series(1, 100) k $$;
	CREATE TABLE items AS SELECT i AS id, CASE WHEN i % 10 > 0 THEN vec(i) END AS v FROM generate_series(1, 3000) i;
	CREATE INDEX items_v ON items USING sketch (v) WITH (bits = 64);
	SELECT sketch_check('items_v');
});
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('items_v')});
my $size = 8192;
$node->stop;
my $good = slurp_file($path);

sub write_file
{
	my ($content) = @_;
	open my $file, '>:raw', $path or die "$path: $!";
	print $file $content or die;
	close $file or die;
	return;
}

# What the statements say of an index whose file has these bytes at this place.
sub errors_with
{
	my ($offset, $bytes, @statements) = @_;
	my $bad = $good;
	substr($bad, $offset, length $bytes) = $bytes;
	write_file($bad);
	$node->start;
	my @errors;
	foreach my $statement (@statements)
	{
		my (undef, undef, $error) = $node->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
		push @errors, $error;
	}
	$node->stop;
	return @errors;
}

my $search = q{SET enable_seqscan = off; SET enable_sort = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> vec(7)) q};
my $check = q{SELECT sketch_check('items_v')};
my $insert = q{BEGIN; INSERT INTO items VALUES (0, vec(0)); ROLLBACK};

# the model comes first: 101 rows of 100 floats and the parameters, on 5 or 6 pages; then the entries
my ($model) = grep { unpack('v', substr($good, $_ * $size + 24, 2)) == 4 } 1 .. length($good) / $size - 1;
my ($entries) = grep { unpack('v', substr($good, $_ * $size + 24, 2)) == 2 } 1 .. length($good) / $size - 1;
is($model, 1, 'the model is on the first pages');
cmp_ok($entries, '>', 3, 'entries follow');
my $first = $model * $size;
my $block = $entries * $size;

# what, byte, new value, what must be said of it, by the check and by searches
my @cases = (
	[ 'metapage: magic number', 40, pack('V', 1), qr/XX002.*block 0: the metapage has a wrong magic number/ ],
	[ 'metapage: numbers', 88, pack('V', 3), qr/XX002.*block 0: the metapage has an impossible size of numbers/ ],
	[ 'metapage: no numbers', 88, pack('VV', 0, 0), qr/XX002.*block 0: it is not the metapage of a sketch index/ ],
	[ 'metapage: dimensions', 92, pack('V', 20000), qr/XX002.*block 0: the metapage has an impossible number of dimensions/ ],
	[ 'metapage: other dimensions', 92, pack('V', 99), qr/XX002.*block \d+: (the model is not one for this index|its codes are not as long as those of the index)|22000.*different dimensions/ ],
	[ 'metapage: options', 104, pack('V', 99999), qr/XX002.*block 0: the metapage has impossible options/ ],
	[ 'metapage: metric', 108, pack('V', 9), qr/XX002.*block 0: the metapage has impossible options/ ],
	[ 'metapage: other metric', 108, pack('V', 2), qr/XX002.*block 1: the model is not one for this index/ ],
	[ 'metapage: model block', 112, pack('V', 60000), qr/XX002.*block 60000: the model ends too early/ ],
	[ 'metapage: model block of entries', 112, pack('V', $entries), qr/XX002.*block $entries: it is not a page of the model/ ],
	[ 'metapage: checksum', 116, pack('V', 1), qr/XX002.*block 1: the model has a wrong checksum/ ],
	[ 'model: identifier', $first + 32, pack('V', 77), qr/XX002.*block 1: it is not a page of the model/ ],
	[ 'model: count', $first + 26, pack('v', 0), qr/XX002.*block 1: it has an impossible part of the model/ ],
	[ 'model: few bytes', $first + 26, pack('v', 20), qr/XX002.*block 1: its model has no parameters/ ],
	[ 'model: next', $first + 64, pack('V', 0), qr/XX002.*block 0: the model ends too early/ ],
	[ 'model: loop', $first + 64, pack('V', 1), qr/XX002.*block 1: (the model has a wrong checksum|its model is longer than it says)/ ],
	[ 'model: parameters', $first + 72, pack('VVVV', 0, 0, 0, 0), qr/XX002.*block 1: its model has impossible parameters/ ],
	[ 'model: numbers', $first + 2000, pack('V', 0x12345678), qr/XX002.*block 1: the model has a wrong checksum/ ],
	[ 'entries: count', $block + 26, pack('v', 60000), qr/XX002.*block $entries: it has more entries than there is room for/ ],
	[ 'entries: kind', $block + 24, pack('v', 7), qr/XX002.*block $entries: it is not a page of entries/ ],
	[ 'entries: dimensions', $block + 36, pack('v', 3), qr/XX002.*block $entries: its codes are not as long as those of the index/ ],
);
foreach my $case (@cases)
{
	my ($what, $offset, $bytes, $expected) = @$case;
	my @errors = errors_with($offset, $bytes, $check, $search);
	like($errors[0], $expected, "$what: the check finds it");
	like($errors[1], $expected, "$what: a search finds it");
}
# of these only the check knows: a row's 64 signs, 64 x 2 more bits and four floats, and its number; on a page
# there are 8 * int(8128 / 50 / 8) rows
my $capacity = 160;
my ($rest, $numbers, $tids) = ($block + 64 + 8 * $capacity, $block + 64 + 40 * $capacity, $block + 64 + 44 * $capacity);
my ($error) = errors_with($block + 64, pack('VV', 0xaaaa_aaaa, 0x5555_5555), $check);
like($error, qr/XX002.*block $entries: an entry has not the sketch of its row/, 'wrong signs');
($error) = errors_with($rest, pack('VV', 0xaaaa_aaaa, 0x5555_5555), $check);
like($error, qr/XX002.*block $entries: an entry has not the sketch of its row/, 'wrong bits below the signs');
foreach my $float (0 .. 3)
{
	($error) = errors_with($rest + 16 + 4 * $float, pack('f<', 0.37), $check);
	like($error, qr/XX002.*block $entries: an entry has not the sketch of its row/, "a wrong float $float");
	($error) = errors_with($rest + 16 + 4 * $float, pack('V', 0x7fc0_0000), $check, $search);
	like($error, qr/XX002.*block $entries: an entry has not the sketch of its row/, "float $float is no number");
}
($error) = errors_with($numbers, pack('V', 0xffff_ffff), $check);
like($error, qr/XX002.*block $entries: an entry has not the sketch of its row/, 'a wrong number');
($error) = errors_with($tids, pack('vvv', 0, 60000, 1), $check);
like($error, qr/XX002.*block $entries: an entry points outside of the table/, 'a TID outside of the table');
# what no row can have is not handed to the server
foreach my $none ([ 0, 1, 0 ], [ 65535, 65535, 1 ])
{
	foreach my $statement ($search, "$insert; VACUUM (INDEX_CLEANUP ON) items")
	{
		($error) = errors_with($tids, pack('vvv', @$none), $statement);
		like($error, qr/XX002.*index "items_v" is corrupt: an entry points to no row/, "(@$none): $statement");
	}
}
($error) = errors_with($block, "\0" x $size, $check);
like($error, qr/XX002.*is not indexed/, 'a block of zeros');

# floats that are no numbers hide no row
write_file($good);
my $nan = $good;
substr($nan, $rest + 16 + 32 * $_, 16) = pack('V4', (0x7fc0_0000) x 4) foreach 0 .. 20;
write_file($nan);
$node->start;
is($node->safe_psql('postgres', $search), '3000', 'numbers that are none');
$node->stop;

# an index of which a page has another model: all of its rows are looked at, and found
write_file($good);
my $other = $good;
substr($other, $block + 32, 4) = pack('V', 12345);
write_file($other);
$node->start;
is($node->safe_psql('postgres', $search), '3000', 'a page by another model');
$node->stop;

# damage at random: whatever comes of it, no crash
srand(20180415);
foreach my $round (1 .. 20)
{
	my $bad = $good;
	substr($bad, int(rand(length $bad)), 1) = chr(int(rand(256))) foreach 1 .. 10;
	# page headers are small, and hit too seldom otherwise
	substr($bad, int(rand(length($bad) / $size)) * $size + int(rand(72)), 1) = chr(int(rand(256))) foreach 1 .. 2;
	substr($bad, int(rand(144)), 1) = chr(int(rand(256))) if $round % 3 == 0;
	write_file($bad);
	$node->start;
	$node->psql('postgres', $_) foreach $search, $insert, q{VACUUM items}, $check, q{DELETE FROM items WHERE id % 3 = 0}, q{VACUUM items}, q{SELECT sketch_info('items_v')}, q{SELECT sketch_recall('items_v', 3, 5)}, $search;
	is($node->safe_psql('postgres', 'SELECT 1'), '1', "random damage $round: the server lives");
	$node->safe_psql('postgres', q{REINDEX INDEX items_v; SELECT sketch_check('items_v')});
	$node->stop;
	# the table has changed, and the index has another file
	last if $round == 20;
	$node->start;
	$node->safe_psql('postgres', q{INSERT INTO items SELECT i, vec(i) FROM generate_series(1, 1000) i; REINDEX INDEX items_v});
	$path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('items_v')});
	$node->stop;
	$good = slurp_file($path);
}

done_testing();

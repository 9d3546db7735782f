# Damaged pages of a sketch index, its model among them: errors that name the block, and never a crash.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Damage;
use Test::More;

my $damage = Damage->new('items_v', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
		$$ SELECT array_agg((sin(i % 17 * k) + cos(i + k * k) / 3)::real) FROM generate_series(1, 100) k $$;
	CREATE TABLE items AS SELECT i AS id, CASE WHEN i % 10 > 0 THEN vec(i) END AS v FROM generate_series(1, 3000) i;
	CREATE INDEX items_v ON items USING sketch (v) WITH (bits = 64);
	SELECT sketch_check('items_v');
});
my $good = $damage->{good};
my $size = Damage::PAGE_SIZE;

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
	[ 'metapage: no numbers', 88, pack('VVVV', 0, 0, 0, 0), qr/XX002.*block 0: it is not the metapage of a sketch index/ ],
	[ 'metapage: dimensions', 92, pack('V', 20000), qr/XX002.*block 0: the metapage has an impossible number of dimensions/ ],
	[ 'metapage: other dimensions', 92, pack('V', 99), qr/XX002.*block \d+: (the model does not fit the index|its codes are not as long as those of the index)|22000.*(different dimensions|holds vectors of 99)/ ],
	[ 'metapage: another model', 96, pack('V', 7), qr/XX002.*block 1: it is not a page of the model/ ],
	[ 'metapage: a model of nothing', 92, pack('V', 0), qr/XX002.*block 0: the metapage has an impossible model/ ],
	[ 'metapage: options', 104, pack('V', 99999), qr/XX002.*block 0: the metapage has impossible options/ ],
	[ 'metapage: metric', 108, pack('V', 9), qr/XX002.*block 0: the metapage has impossible options/ ],
	[ 'metapage: other metric', 108, pack('V', 2), qr/XX002.*block 1: the model does not fit the index/ ],
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
	my @errors = $damage->errors_with($offset, $bytes, $check, $search, $insert);
	like($errors[0], $expected, "$what: the check finds it");
	like($errors[1], $expected, "$what: a search finds it");
	# which goes to another page of entries
	like($errors[2], $what =~ /^entries/ ? qr/^$/ : $expected, "$what: an insertion");
}
# of these only the check knows: a row's 64 signs, 64 x 2 more bits and four floats, and its number; on a page
# there are 8 * int(8128 / 50 / 8) rows
my $capacity = 160;
my ($numbers, $rest, $tids) = ($block + 64 + 8 * $capacity, $block + 64 + 12 * $capacity, $block + 64 + 44 * $capacity);
my ($error) = $damage->errors_with($block + 64, pack('VV', 0xaaaa_aaaa, 0x5555_5555), $check);
like($error, qr/XX002.*block $entries: an entry does not have the sketch of its row/, 'wrong signs');
($error) = $damage->errors_with($rest, pack('VV', 0xaaaa_aaaa, 0x5555_5555), $check);
like($error, qr/XX002.*block $entries: an entry does not have the sketch of its row/, 'wrong bits below the signs');
foreach my $float (0 .. 3)
{
	($error) = $damage->errors_with($rest + 16 + 4 * $float, pack('f<', 0.37), $check);
	like($error, qr/XX002.*block $entries: an entry does not have the sketch of its row/, "a wrong float $float");
	($error) = $damage->errors_with($rest + 16 + 4 * $float, pack('V', 0x7fc0_0000), $check, $search);
	like($error, qr/XX002.*block $entries: an entry does not have the sketch of its row/, "float $float is no number");
}
($error) = $damage->errors_with($numbers, pack('V', 0xffff_ffff), $check);
like($error, qr/XX002.*block $entries: an entry does not have the sketch of its row/, 'a wrong number');
($error) = $damage->errors_with($tids, pack('vvv', 0, 60000, 1), $check);
like($error, qr/XX002.*block $entries: an entry points outside of the table/, 'a TID outside of the table');
# what no row can have is not handed to the server
foreach my $none ([ 0, 0, 0 ], [ 0, 1, 0 ], [ 65535, 65535, 1 ])
{
	foreach my $statement ($search, "SET unifdiag.recall = 1; $search", "$insert; VACUUM (INDEX_CLEANUP ON) items")
	{
		($error) = $damage->errors_with($tids, pack('vvv', @$none), $statement);
		like($error, qr/XX002.*index "items_v" is corrupt: an entry points to no row/, "(@$none): $statement");
	}
}
($error) = $damage->errors_with($block, "\0" x $size, $check);
like($error, qr/XX002.*is not indexed/, 'a block of zeros');

# floats that are no numbers hide no row
my $nan = $good;
substr($nan, $rest + 16 + 32 * $_, 16) = pack('V4', (0x7fc0_0000) x 4) foreach 0 .. 20;
is($damage->answer_with($nan, $search), '3000', 'numbers that are none');

# an index of which a page has another model: all of its rows are looked at, and found
is($damage->answer_with($damage->changed($block + 32, pack('V', 12345)), $search), '3000', 'a page by another model');

$damage->survive(20, 10,
	[ $search, $insert, q{VACUUM items}, $check, q{DELETE FROM items WHERE id % 3 = 0}, q{VACUUM items}, q{SELECT sketch_info('items_v')}, q{SELECT sketch_recall('items_v', 3, 5)}, $search ],
	q{REINDEX INDEX items_v; SELECT sketch_check('items_v'); INSERT INTO items SELECT i, vec(i) FROM generate_series(1, 1000) i; REINDEX INDEX items_v});

done_testing();

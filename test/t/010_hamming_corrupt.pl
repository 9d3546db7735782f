# Damaged pages of a hamming index: errors that name the block, and never a crash.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Damage;
use Test::More;

my $damage = Damage->new('items_code', q{
	CREATE EXTENSION unifdiag;
	CREATE TABLE items AS SELECT i AS id, CASE WHEN i % 10 > 0 THEN ('x' || left(md5(i::text), 18))::bit(72)::bithash END AS code FROM generate_series(1, 4000) i;
	CREATE INDEX items_code ON items USING hamming (code);
	VACUUM items;
	SELECT hamming_check('items_code');
});
my $good = $damage->{good};
my $size = Damage::PAGE_SIZE;

my $search = q{SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM items ORDER BY code <~> ('x' || repeat('5', 18))::bit(72)::bithash) q};
my $within = q{SET enable_seqscan = off; SELECT count(*) FROM items WHERE hamming_within(code, ('x' || repeat('5', 18))::bit(72)::bithash, 20)};
my $check = q{SELECT hamming_check('items_code')};
my $codes_of_all = q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM (SELECT code FROM items ORDER BY code <~> ('x' || repeat('5', 18))::bit(72)::bithash) q};
my $nearest_of_all = q{SELECT count(*) FROM hamming_nearest('items_code', ARRAY[('x' || repeat('5', 18))::bit(72)::bithash], 4000)};
my $insert = q{INSERT INTO items VALUES (0, ('x' || repeat('5', 18))::bit(72)::bithash)};
my $block = 2 * $size;

# byte, new value, and what the check must say of it
my @cases = (
	[ 'metapage: magic number', 40, pack('V', 1), qr/XX002.*block 0: the metapage has a wrong magic number/ ],
	[ 'metapage: version', 44, pack('V', 1), qr/0A000.*has format version 1, but this library knows version 7/ ],
	[ 'metapage: code length', 48, pack('V', 70000), qr/XX002.*block 0: the metapage has an impossible code length/ ],
	[ 'metapage: end', 52, pack('V', 70000), qr/XX002.*block 0: the index does not end within its file/ ],
	[ 'metapage: no end', 52, pack('V', 0), qr/XX002.*block 0: the index does not end within its file/ ],
	[ 'metapage: a model', 96, pack('V', 1), qr/XX002.*block 0: the metapage has an impossible model/ ],
	[ 'metapage: a model to be', 100, pack('V', 1), qr/XX002.*block 0: the metapage has an impossible model/ ],
	[ 'metapage: kind', 24, pack('v', 2), qr/XX002.*block 0: it is not a metapage/ ],
	[ 'page identifier', $block + 30, pack('v', 0), qr/XX002.*block 2: it is not a page of such an index/ ],
	[ 'special space', $block + 16, pack('v', 8000), qr/XX00[12].*block 2/ ],
	[ 'kind', $block + 24, pack('v', 7), qr/XX002.*block 2: it is not a page of entries/ ],
	[ 'count', $block + 26, pack('v', 60000), qr/XX002.*block 2: it has more entries than there is room for/ ],
	[ 'lower count', $block + 26, pack('v', 3), qr/XX002.*block 2: its entries do not end where its header says/ ],
	[ 'code length', $block + 28, pack('v', 71), qr/XX002.*block 2: its codes are not as long as those of the index/ ],
	[ 'pd_lower', $block + 12, pack('v', 100), qr/XX00[12].*block 2/ ],
	[ 'whole page', $block, "\xa5" x $size, qr/XX00[12].*block 2/ ],
);
foreach my $case (@cases)
{
	my ($what, $offset, $bytes, $expected) = @$case;
	my @errors = $damage->errors_with($offset, $bytes, $check, $search, $within, $insert);
	like($errors[0], $expected, "$what: the check finds it");
	like($errors[1], $expected, "$what: a search finds it");
	like($errors[2], $expected, "$what: a condition finds it");
	# which goes to another page
	like($errors[3], $expected, "$what: an insertion finds it") if $offset < $size;
}

# of these only the check knows: a search has no way to see them
my $capacity = int(($size - 64) / 22 / 8) * 8;
my $tids = 64 + 16 * $capacity;
my $first = substr($good, $block + $tids, 6);
my $second = substr($good, $block + $tids + 6, 6);
my ($high, $low, $offset) = unpack('vvv', $first);
my ($error) = $damage->errors_with($block + $tids, pack('vvv', 0, 60000, 1), $check);
like($error, qr/XX002.*block 2: an entry points outside of the table/, 'a TID outside of the table');
($error) = $damage->errors_with($block + $tids, pack('vvv', 0, 0, 0), $check);
like($error, qr/XX002.*block 2: an entry points outside of the table/, 'a TID that is none');
# but what no row can have is not handed to the server; nor is it passed over, be it the very first
my $itself = "SET enable_seqscan = off; SELECT id FROM items ORDER BY code <~> (SELECT code FROM items WHERE ctid = '($low,$offset)') LIMIT 1";
foreach my $none ([ 0, 0, 0 ], [ 0, 1, 0 ], [ 65535, 65535, 1 ])
{
	foreach my $statement ($search, $itself, $within =~ s/20\)/72)/r, "BEGIN; $insert; ROLLBACK; VACUUM (INDEX_CLEANUP ON) items", $codes_of_all, $nearest_of_all)
	{
		($error) = $damage->errors_with($block + $tids, pack('vvv', @$none), $statement);
		like($error, qr/XX002.*index "items_code" is corrupt: an entry points to no row/, "(@$none): $statement");
	}
}
($error) = $damage->errors_with($block + $tids + 6, $first, $check);
like($error, qr/XX002.*row \($low,$offset\) is indexed (twice|with another code)/, 'a row indexed twice');
($error) = $damage->errors_with($block + 64, pack('Q', 0), $check);
like($error, qr/XX002.*row \($low,$offset\) is indexed with another code/, 'a wrong code');
($high, $low, $offset) = unpack('vvv', $second);
($error) = $damage->errors_with($block + $tids + 6, pack('vvv', 0, 0, 200), $check);
like($error, qr/XX002.*row \($low,$offset\) is not indexed/, 'a row that is not indexed');
# the last page of codes is not full

# The same entry again and again.  Two of them are no damage: a search may come upon the entry of a dead row, and,
# when VACUUM has removed that and the row's place is used again, upon that of the new row.
my $copied = "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT 1 / (count(*) = COPIES)::int
	FROM (SELECT code FROM items ORDER BY code <~> ('x' || repeat('5', 18))::bit(72)::bithash OFFSET 0) q
	WHERE code = (SELECT code FROM items WHERE ctid = '(" . join(',', (unpack('vvv', $first))[1, 2]) . ")')";
foreach my $copies (2, $capacity)
{
	my $page = substr($good, $block, $size);
	foreach my $column ([ 64, 8 ], [ 64 + 8 * $capacity, 8 ], [ $tids, 6 ])
	{
		my ($start, $width) = @$column;
		substr($page, $start, $width * $copies) = substr($page, $start, $width) x $copies;
	}
	is(($damage->errors_with($block, $page, $copied =~ s/COPIES/$copies/r))[0], '', "an entry $copies times: an index-only scan");
}

my $last = int(3600 / $capacity) + 1;
($error) = $damage->errors_with($last * $size + 64 + 8 * ($capacity - 1), 'x', $check);
like($error, qr/XX002.*block $last: there is something besides its entries/, 'something behind the entries');

($error) = $damage->errors_with($block + 40, 'x', $check);
like($error, qr/XX002.*block 2: there is something besides its entries/, 'something before the entries');

($error) = $damage->errors_with(52, pack('V', 3), $check);
like($error, qr/XX002.*block 3: it has entries beyond the end of the index/, 'an end before the last entry');

# a block of zeros, as a crash may leave it, is a page without entries: rows are missing
($error) = $damage->errors_with($block, "\0" x $size, $check);
like($error, qr/XX002.*is not indexed/, 'a block of zeros');

$damage->survive(25, 40,
	[ $search, $within, $insert, q{VACUUM items}, $check, q{DELETE FROM items WHERE id % 3 = 0}, q{VACUUM items}, $search ],
	q{REINDEX INDEX items_code; SELECT hamming_check('items_code')});

# an entry that points right after the table's last page: the table can grow there all the same
my $pages = $damage->answer_with($damage->{good}, q{SELECT pg_relation_size('items') / 8192});
my @errors = $damage->errors_with($block + $tids, pack('vvv', 0, $pages, 1), $search, $codes_of_all, $nearest_of_all,
	'INSERT INTO items SELECT i FROM generate_series(1, 1000) i', 'VACUUM items', 'SELECT * FROM items');
like($errors[$_], qr/XX002.*index "items_code" is corrupt: an entry points to no row/, "after the table's end: a search finds it") foreach 0 .. 2;
is($errors[$_], '', 'and the table grows') foreach 3 .. 5;

done_testing();

# The demonstration runs to its end, and its page is whole: all its parts are there, and a browser finds no missing
# picture and no error in it.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'needs dataset-fashion-mnist and python3-numpy'
  unless -e '/usr/share/datasets/fashion-mnist' && system('/usr/bin/python3 -c "import numpy" 2>/dev/null') == 0;

my $node = PostgreSQL::Test::Cluster->new('demo');
$node->init;
$node->start;
my $output = PostgreSQL::Test::Utils::tempdir();
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', OUTPUT => $output, DEMO_PICTURES => 5000);
	my ($stdout, $stderr);
	my $result = IPC::Run::run(['test/demo/run'], '>', \$stdout, '2>', \$stderr);
	ok($result, 'the demonstration runs') or diag($stdout . $stderr);
	like($stdout, qr/demo\.html/, 'it says where the page is');
	like($stdout, qr/make install/, 'and how to go on');
	my ($recall) = $stdout =~ /^  sketch index +\S+ ms +recall (\S+)/m;
	cmp_ok($recall, '>=', 0.95, "the sketch index finds what is near: recall $recall");
	my ($before, $after) = $stdout =~ /Recall was (\S+) before the refresh and (\S+) after/;
	cmp_ok($after, '>', $before, "a refresh makes codes better: recall $before, $after");
}
$node->stop;

my $page = slurp_file("$output/demo.html");
foreach my $part ('Search', 'Near duplicates', 'A stream that changes')
{
	like($page, qr/<h2>\Q$part\E<\/h2>/, "$part is on the page");
}
unlike($page, qr/(?:src|href)="(?!data:|#)/, 'the page refers to nothing outside of it');

my ($chromium) = grep { -x $_ } map { "$_/chromium" } split /:/, $ENV{PATH};
SKIP:
{
	skip 'needs chromium', 3 unless defined $chromium;
	# a script that has every picture loaded once more, and says how many can be shown
	$page =~ s{</body>}{<script>
const images = [...document.querySelectorAll('img, image')].map(picture => {
	const image = document.createElement('img');
	image.src = picture.getAttribute('href') || picture.getAttribute('src');
	document.body.append(image);
	return image;
});
addEventListener('load', () => { document.title = images.filter(i => i.naturalWidth > 0).length + ' of ' + images.length + ' pictures'; });
</script></body>};
	open my $file, '>', "$output/checked.html" or die $!;
	print $file $page;
	close $file;
	my ($dom, $log);
	# as root it has no sandbox of its own
	IPC::Run::run([ $chromium, '--headless', '--no-sandbox', '--disable-gpu', "--user-data-dir=$output/profile", '--enable-logging=stderr',
			'--dump-dom', "file://$output/checked.html" ], '>', \$dom, '2>', \$log);
	my ($shown, $all) = $dom =~ /<title>(\d+) of (\d+) pictures<\/title>/;
	cmp_ok($all // 0, '>', 300, 'the page has pictures') or diag($log);
	is($shown, $all, 'a browser shows them all');
	unlike($log, qr/CONSOLE/, 'a browser finds no error');
}

done_testing();

# CRC-32C, bit by bit: what stored models are protected by.
package Checksum;
use strict;
use warnings;

sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xffffffff;
	foreach my $byte (unpack('C*', $bytes))
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}

1;

package qris

import "fmt"

// polynomial is that of CRC-16/CCITT-FALSE.
const polynomial = 0x1021

var crcTable = makeTable()

func makeTable() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= polynomial
			}
		}
		table[i] = crc
	}
	return table
}

// Checksum is CRC-16/CCITT-FALSE over the bytes of a text, as four upper-case
// hexadecimal digits. That of "123456789" is 29B1.
func Checksum(text string) string {
	crc := uint16(0xFFFF)
	for i := range len(text) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^text[i]]
	}
	return fmt.Sprintf("%04X", crc)
}

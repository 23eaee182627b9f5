package wire

import "bytes"

// OK is an OK_Packet, or an EOF_Packet, which carries a part of the same
// (manual: "OK_Packet", "EOF_Packet").
type OK struct {
	AffectedRows uint64
	LastInsertID uint64
	Status       uint16
	Warnings     uint16
	// Info is the human-readable text, such as "Rows matched: 1  Changed: 1
	// Warnings: 0". It points into the packet.
	Info []byte
}

// DecodeOK reads an OK packet, with the header 0x00 or (CLIENT_DEPRECATE_EOF,
// at the end of rows) 0xfe. capabilities are the connection's.
func DecodeOK(packet []byte, capabilities uint32) (OK, error) {
	c := NewCursor(packet)
	c.Uint8()
	ok := OK{
		AffectedRows: c.Int(),
		LastInsertID: c.Int(),
		Status:       c.Uint16(),
		Warnings:     c.Uint16(),
	}
	if capabilities&ClientSessionTrack == 0 {
		ok.Info = c.Rest()
	} else if c.Len() > 0 {
		ok.Info = c.String()
	}
	return ok, c.Err()
}

// DecodeEOF reads an EOF packet (without CLIENT_DEPRECATE_EOF).
func DecodeEOF(packet []byte) (OK, error) {
	c := NewCursor(packet)
	c.Uint8()
	eof := OK{Warnings: c.Uint16(), Status: c.Uint16()}
	return eof, c.Err()
}

// AppendOK appends an OK packet.
func AppendOK(dst []byte, ok OK, capabilities uint32) []byte {
	dst = append(dst, HeaderOK)
	dst = AppendInt(dst, ok.AffectedRows)
	dst = AppendInt(dst, ok.LastInsertID)
	dst = append(dst, byte(ok.Status), byte(ok.Status>>8), byte(ok.Warnings), byte(ok.Warnings>>8))
	if capabilities&ClientSessionTrack != 0 && len(ok.Info) > 0 {
		return AppendString(dst, ok.Info)
	}
	return append(dst, ok.Info...)
}

// SetStatus overwrites the status flags in an OK packet (header 0x00 or 0xfe).
func SetStatus(packet []byte, status uint16) error {
	c := NewCursor(packet)
	c.Uint8()
	c.Int()
	c.Int()
	return overwriteStatus(c, status)
}

// SetEOFStatus overwrites the status flags in an EOF packet.
func SetEOFStatus(packet []byte, status uint16) error {
	c := NewCursor(packet)
	c.Uint8()
	c.Uint16()
	return overwriteStatus(c, status)
}

func overwriteStatus(c *Cursor, status uint16) error {
	field := c.Bytes(2)
	if field == nil {
		return c.Err()
	}
	field[0], field[1] = byte(status), byte(status>>8)
	return nil
}

// RowsMatched reads the number of matched rows from the info string of an
// UPDATE. ok is false when the string has none, as for other statements and
// for an UPDATE whose WHERE the server found to be impossible.
func RowsMatched(info []byte) (n uint64, ok bool) {
	rest, found := bytes.CutPrefix(info, []byte("Rows matched: "))
	if !found {
		return 0, false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		n = n*10 + uint64(rest[digits]-'0')
		digits++
	}
	return n, digits > 0
}

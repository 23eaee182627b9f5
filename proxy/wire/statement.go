package wire

// PrepareOK is the first packet of the answer to COM_STMT_PREPARE
// (manual: "COM_STMT_PREPARE_OK").
type PrepareOK struct {
	StatementID uint32
	Columns     uint16
	Params      uint16
}

// DecodePrepareOK reads packet.
func DecodePrepareOK(packet []byte) (PrepareOK, error) {
	c := NewCursor(packet)
	c.Uint8()
	p := PrepareOK{StatementID: c.Uint32(), Columns: c.Uint16(), Params: c.Uint16()}
	return p, c.Err()
}

// LastPrepared stands, in a COM_STMT_EXECUTE or COM_STMT_CLOSE to MariaDB, for
// the statement that was prepared last.
const LastPrepared uint32 = 0xffffffff

// DecodeStatementID reads the statement id of a COM_STMT_EXECUTE, _FETCH,
// _SEND_LONG_DATA, _RESET or _CLOSE from the packet or its first five bytes.
func DecodeStatementID(packet []byte) (uint32, error) {
	c := NewCursor(packet)
	c.Uint8()
	id := c.Uint32()
	return id, c.Err()
}

// DecodeColumnCount reads the first packet of a result set.
func DecodeColumnCount(packet []byte) (int, error) {
	c := NewCursor(packet)
	n := c.Int()
	if n > 1<<16 {
		return 0, ErrShort
	}
	return int(n), c.Err()
}

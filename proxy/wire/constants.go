package wire

import "fmt"

// Capability flags (manual: "Capabilities Flags").
const (
	ClientLongPassword       uint32 = 1 << 0 // MariaDB: unset means extended capabilities follow
	ClientFoundRows          uint32 = 1 << 1
	ClientConnectWithDB      uint32 = 1 << 3
	ClientCompress           uint32 = 1 << 5
	ClientLocalFiles         uint32 = 1 << 7
	ClientProtocol41         uint32 = 1 << 9
	ClientSSL                uint32 = 1 << 11
	ClientSecureConnection   uint32 = 1 << 15
	ClientMultiStatements    uint32 = 1 << 16
	ClientPluginAuth         uint32 = 1 << 19
	ClientConnectAttrs       uint32 = 1 << 20
	ClientPluginAuthLenEnc   uint32 = 1 << 21
	ClientSessionTrack       uint32 = 1 << 23
	ClientDeprecateEOF       uint32 = 1 << 24
	ClientOptionalMetadata   uint32 = 1 << 25
	ClientZstd               uint32 = 1 << 26
	ClientQueryAttributes    uint32 = 1 << 27
	ClientMultiFactor        uint32 = 1 << 28
	MariaDBExtendedMetadata  uint32 = 1 << 3 // of the extended capabilities
	mariaDBCapabilitiesStart        = 6      // within the greeting's 10 reserved bytes
)

// Status flags (manual: "SERVER_STATUS_flags_enum").
const (
	StatusInTransaction uint16 = 1 << 0
	StatusAutocommit    uint16 = 1 << 1
	StatusMoreResults   uint16 = 1 << 3
	StatusCursorExists  uint16 = 1 << 6
)

// Command is the first byte of a packet in the command phase.
type Command byte

// The commands that a server may be sent (manual: "Command Phase").
const (
	ComQuit             Command = 0x01
	ComInitDB           Command = 0x02
	ComQuery            Command = 0x03
	ComFieldList        Command = 0x04
	ComRefresh          Command = 0x07
	ComShutdown         Command = 0x08
	ComStatistics       Command = 0x09
	ComProcessInfo      Command = 0x0a
	ComProcessKill      Command = 0x0c
	ComDebug            Command = 0x0d
	ComPing             Command = 0x0e
	ComChangeUser       Command = 0x11
	ComBinlogDump       Command = 0x12
	ComTableDump        Command = 0x13
	ComRegisterSlave    Command = 0x15
	ComStmtPrepare      Command = 0x16
	ComStmtExecute      Command = 0x17
	ComStmtSendLongData Command = 0x18
	ComStmtClose        Command = 0x19
	ComStmtReset        Command = 0x1a
	ComSetOption        Command = 0x1b
	ComStmtFetch        Command = 0x1c
	ComBinlogDumpGTID   Command = 0x1e
	ComResetConnection  Command = 0x1f
	ComStmtBulkExecute  Command = 0xfa
	ComMulti            Command = 0xfe
)

var commandNames = map[Command]string{
	ComQuit: "COM_QUIT", ComInitDB: "COM_INIT_DB", ComQuery: "COM_QUERY", ComFieldList: "COM_FIELD_LIST",
	ComRefresh: "COM_REFRESH", ComShutdown: "COM_SHUTDOWN", ComStatistics: "COM_STATISTICS",
	ComProcessInfo: "COM_PROCESS_INFO", ComProcessKill: "COM_PROCESS_KILL", ComDebug: "COM_DEBUG", ComPing: "COM_PING",
	ComChangeUser: "COM_CHANGE_USER", ComBinlogDump: "COM_BINLOG_DUMP", ComTableDump: "COM_TABLE_DUMP",
	ComRegisterSlave: "COM_REGISTER_SLAVE", ComStmtPrepare: "COM_STMT_PREPARE", ComStmtExecute: "COM_STMT_EXECUTE",
	ComStmtSendLongData: "COM_STMT_SEND_LONG_DATA", ComStmtClose: "COM_STMT_CLOSE", ComStmtReset: "COM_STMT_RESET",
	ComSetOption: "COM_SET_OPTION", ComStmtFetch: "COM_STMT_FETCH", ComBinlogDumpGTID: "COM_BINLOG_DUMP_GTID",
	ComResetConnection: "COM_RESET_CONNECTION", ComStmtBulkExecute: "COM_STMT_BULK_EXECUTE", ComMulti: "COM_MULTI",
}

func (c Command) String() string {
	if name, ok := commandNames[c]; ok {
		return name
	}
	return fmt.Sprintf("command 0x%02x", byte(c))
}

// First bytes that tell the packets of a response apart.
const (
	HeaderOK          = 0x00
	HeaderMoreData    = 0x01 // authentication: AuthMoreData
	HeaderLocalInfile = 0xfb
	HeaderEOF         = 0xfe // also AuthSwitchRequest
	HeaderERR         = 0xff
)

// MaxPayload is the longest payload of one packet, in bytes. A payload that
// reaches it goes on in the next packet.
const MaxPayload = 1<<24 - 1
